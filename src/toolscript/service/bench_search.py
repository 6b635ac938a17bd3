"""bench search: the product against its own bare parts."""

import asyncio
import http.client
import json
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np

from toolscript.adapters.query_lines import read_queries
from toolscript.errors import SetupError
from toolscript.evaluation.side_by_side import WARM_UP, compare
from toolscript.model.index import Ask
from toolscript.model.measurements import Comparison
from toolscript.model.models import IndexCard
from toolscript.model.progress import OnProgress
from toolscript.ports import Catalog, Embedder, Index
from toolscript.search.ranking import CANDIDATES_PER_ARM, LOOKED_AT, read_request
from toolscript.search.ranking.traits import TRAIT_FIELDS
from toolscript.service.parts import open_embedder, open_stores
from toolscript.service.queries import names_from_catalog
from toolscript.settings import load_settings
from toolscript.sync.generations import open_for_reading

RETURNED = 5
START_SECONDS = 60.0


def bench_search(*, queries: Path | None, count: int, on_progress: OnProgress) -> Comparison:
    async def run() -> Comparison:
        settings = load_settings()
        async with open_stores(settings) as stores, open_embedder(settings, parallel=2) as embedder:
            index = (await open_for_reading(stores.indexes, IndexCard(embedder.model))).items
            wanted = count + WARM_UP
            texts = read_queries(queries, wanted) if queries else await names_from_catalog(stores.catalog, wanted)
            async with _server() as search:
                return await compare(_bare(embedder, index, stores.catalog), search, texts, on_progress)

    return asyncio.run(run())


def _bare(embedder: Embedder, index: Index, catalog: Catalog) -> Callable[[str], Awaitable[dict[str, float]]]:
    """The embeddings, the engine queries and the SQL of a direct hybrid search, and nothing else."""

    async def run(text: str) -> dict[str, float]:
        request = read_request(text)
        started = time.perf_counter()
        vectors = request.vectors(np.array(await asyncio.gather(*map(embedder.embed_query, request.texts))))
        embedded = time.perf_counter()
        asked = zip(vectors, request.parts, strict=True)
        asks = [Ask(vector, part.terms, (), CANDIDATES_PER_ARM) for vector, part in asked]
        found = (await asyncio.gather(*map(index.search, asks)))[0]
        best = [hit.id for hit in found.dense or ()][:LOOKED_AT]
        await index.fields(best, TRAIT_FIELDS)
        searched = time.perf_counter()
        ids = best[:RETURNED]
        await asyncio.gather(index.fields(ids), catalog.schemas(ids))
        loaded = time.perf_counter()
        marks = {"embedding": embedded - started, "index": searched - embedded, "details": loaded - searched}
        return {name: seconds * 1000 for name, seconds in marks.items()}

    return run


@asynccontextmanager
async def _server() -> AsyncIterator[Callable[[str], Awaitable[None]]]:
    """`toolscript serve` as a process of its own, and a function that searches over one connection to it."""
    port = _free_port()
    command = (sys.executable, "-m", "toolscript", "serve", "--host", "127.0.0.1", "--port", str(port))
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    try:
        await _until_ready(process, port)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        # The bench does one thing at a time, so a plain blocking call is the least in the way.
        yield lambda text: _post(connection, text)
        connection.close()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _post(connection: http.client.HTTPConnection, text: str) -> None:
    body = json.dumps({"query": text, "limit": RETURNED, "tool_threshold": 0.0})
    connection.request("POST", "/api/v1/search", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    if answer.status != 200 or found["metadata"]["degraded"]:
        raise SetupError(f"the server answered {answer.status}: {str(found)[:200]}")


async def _until_ready(process: asyncio.subprocess.Process, port: int) -> None:
    ends_at = time.monotonic() + START_SECONDS
    while time.monotonic() < ends_at and process.returncode is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            await asyncio.sleep(0.1)
    raise SetupError("`toolscript serve` did not start", hint="run it by hand to see why")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
