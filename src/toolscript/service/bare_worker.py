"""The bare pipeline in a process of its own, to be driven like a server.

It takes requests as the server does, from the same generator over the same kind of connection, so that what
driving costs is the same for both; on the same event loop, with garbage collected as seldom, and with the same
memory of vectors. It reads no more of a request than its query, and answers its times alone.

    python -m toolscript.service.bare_worker PORT STRATEGY    a line of JSON on stdin: the texts that will be asked
"""

import asyncio
import json
import os
import signal
import sys
from typing import cast

from toolscript.adapters.embedding_cache import CachedEmbedder
from toolscript.errors import ToolscriptError
from toolscript.model.models import IndexCard
from toolscript.model.queries import Strategy
from toolscript.service.bare_pipeline import BareAnswer, BarePipeline
from toolscript.service.event_loop import collect_seldom, run
from toolscript.service.parts import open_embedder, open_stores
from toolscript.service.search_over_http import body_of, message_length
from toolscript.settings.service import load_settings
from toolscript.sync.generations import open_for_reading

STAGE_NAMES = {
    "embedding": "query_embedding",
    "skills": "skill_search",
    "index": "tool_search",
    "details": "schema_load",
}


class _Connection(asyncio.Protocol):
    """One request at a time, as the generator sends them."""

    def __init__(self, pipeline: BarePipeline) -> None:
        self._pipeline = pipeline
        self._received = b""
        self._running: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Those of a faster event loop are of no class of Python's.
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        length = message_length(self._received)
        if length is not None and len(self._received) >= length:
            body, self._received = body_of(self._received[:length]), self._received[length:]
            self._running = asyncio.ensure_future(self._answer(json.loads(body)["query"]))

    async def _answer(self, text: str) -> None:
        try:
            message = _message("200 OK", _body(await self._pipeline.run(text)))
        except ToolscriptError as error:
            message = _message("500 Internal Server Error", json.dumps({"error": error.message}).encode())
        self._transport.write(message)


def _message(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def _body(answer: BareAnswer) -> bytes:
    times = "".join(f',"{STAGE_NAMES[name]}_time_ms":{spent:.3f}' for name, spent in answer.stages.items())
    total = sum(answer.stages.values())
    return f'{{"metadata":{{"final_count":{len(answer.ids)}{times},"total_time_ms":{total:.3f}}}}}'.encode()


async def _serve(port: int, strategy: Strategy, texts: list[str]) -> None:
    """Until it is told to end, or until whoever started it is gone."""
    settings, loop, ended = load_settings(), asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    loop.add_reader(sys.stdin.fileno(), ended.set)
    cores = os.cpu_count() or 1
    async with open_stores(settings) as stores, open_embedder(settings, parallel=cores) as embedder:
        opened = await open_for_reading(stores.indexes, IndexCard(embedder.model))
        cached = CachedEmbedder(embedder, settings.embedding_cache_size)
        pipeline = BarePipeline(cached, opened.items, opened.skills, stores.catalog, strategy)
        pipeline.prepare(texts)
        collect_seldom()
        server = await loop.create_server(lambda: _Connection(pipeline), "127.0.0.1", port, backlog=256)
        await ended.wait()
        server.close()


if __name__ == "__main__":
    try:
        run(_serve(int(sys.argv[1]), Strategy(sys.argv[2]), json.loads(sys.stdin.buffer.readline())))
    except ToolscriptError as error:
        sys.stderr.write(f"{error.message}: {error.hint}\n")
        sys.exit(2)
