"""A search as bytes, both ways, with as little work as can be: who measures must not be what is measured."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping

from toolscript.evaluation.open_loop import Answer
from toolscript.model.queries import Strategy

REFUSED, LOST = "no connection", "connection lost"
HEAD_ENDS = b"\r\n\r\n"
DEGRADED = b"\r\nx-toolscript-degraded:"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)")
TIMES = re.compile(rb'"(\w+)_time_ms":([0-9.eE+-]+)')
STRATEGY = re.compile(rb'"strategy_used":"(\w+)"')
NOTHING_FOUND = re.compile(rb'"final_count":0\b')


def search_request(text: str, strategy: Strategy) -> bytes:
    """Whatever is most similar is wanted: without a threshold, an empty answer is a fault."""
    return post_request("/api/v1/search", {"query": text, "strategy": strategy.value, "tool_threshold": 0.0})


def post_request(path: str, asked: Mapping[str, object]) -> bytes:
    body = json.dumps(asked).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def message_length(data: bytes) -> int | None:
    """Of the message that this begins with; None while its head is not whole."""
    head_ends = data.find(HEAD_ENDS)
    if head_ends < 0:
        return None
    found = LENGTH.search(data[:head_ends].lower())
    return head_ends + len(HEAD_ENDS) + (int(found[1]) if found else 0)


def body_of(message: bytes) -> bytes:
    return message.partition(HEAD_ENDS)[2]


def read_answer(message: bytes) -> Answer:
    status = message[9:12].decode("ascii", "replace")
    if status != "200":
        return Answer(f"status {status}")
    head, _, body = message.partition(HEAD_ENDS)
    if DEGRADED in head.lower():
        return Answer("degraded")
    # The last one: a tool's schema may have a field of this name.
    told = body[max(0, body.rfind(b'"metadata":')) :]
    if NOTHING_FOUND.search(told):
        return Answer("empty")
    times = {name.decode(): float(value) for name, value in TIMES.findall(told)}
    if "total" not in times:
        return Answer("not understood")
    strategy = STRATEGY.search(told)
    return Answer("", strategy[1].decode() if strategy else "", _stages(times))


def _stages(times: Mapping[str, float]) -> dict[str, float]:
    """Every millisecond in one stage: the ranking is told as a part of the search of tools."""
    ranking = times.get("ranking", 0.0)
    stages = {
        "embedding": times.get("query_embedding", 0.0),
        "skills": times.get("skill_search", 0.0),
        "index": times.get("tool_search", 0.0) - ranking,
        "details": times.get("schema_load", 0.0),
        "ranking": ranking,
    }
    return {**{name: spent for name, spent in stages.items() if spent}, "total": times["total"]}


class HttpLine:
    """One connection to a port of this machine; opened again when it breaks."""

    def __init__(self, port: int, read: Callable[[bytes], Answer] = read_answer) -> None:
        self._port = port
        self._read = read
        self._transport: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None
        self._answered: Callable[[Answer], None] | None = None
        self._received = b""

    def ask(self, request: bytes, answered: Callable[[Answer], None]) -> None:
        self._answered, self._received = answered, b""
        if self._transport is None or self._transport.is_closing():
            self._opening = asyncio.ensure_future(self._open_and_write(request))
        else:
            self._transport.write(request)

    def give_up(self) -> None:
        self._answered = None
        self.close()

    def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    async def _open_and_write(self, request: bytes) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._transport, _ = await loop.create_connection(lambda: _Wire(self), "127.0.0.1", self._port)
        except OSError:
            self._tell(Answer(REFUSED))
        else:
            self._transport.write(request)

    def received(self, data: bytes) -> None:
        self._received += data
        length = message_length(self._received)
        if length is not None and len(self._received) >= length:
            self._tell(self._read(self._received))

    def lost(self, transport: asyncio.BaseTransport | None) -> None:
        """One that was given up is lost later, when another is in its place."""
        if self._transport is transport:
            self._transport = None
            self._tell(Answer(LOST))

    def _tell(self, answer: Answer) -> None:
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(answer)


class _Wire(asyncio.Protocol):
    def __init__(self, line: HttpLine) -> None:
        self._line = line
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._line.received(data)

    def connection_lost(self, _: Exception | None) -> None:
        self._line.lost(self._transport)
