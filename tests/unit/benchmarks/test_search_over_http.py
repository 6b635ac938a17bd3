"""The generator's connection, against a tiny local server with scripted responses."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest

from benchmarks.open_loop import Answer
from benchmarks.search import LOST, REFUSED, HttpLine, body_of, message_length, read_answer, search_request
from tests.support.reserved_ports import reserved_port
from toolscript.tools.model.query import Strategy

TIMES = (
    '"query_embedding_time_ms":12.5,"skill_search_time_ms":3.0,"tool_search_time_ms":9.0,"ranking_time_ms":2.0,'
    '"schema_load_time_ms":1.25,"total_time_ms":25.75'
)
# A tool may have fields with the names of ours.
TOOL = '{"input_schema":{"metadata":{"final_count":0}}}'
GOOD = '{"tools":[' + TOOL + '],"metadata":{"strategy_used":"direct","final_count":5,' + TIMES + "}}"
EMPTY = '{"tools":[],"metadata":{"final_count":0,' + TIMES + "}}"


def message(body: str, status: str = "200 OK", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{more}\r\n{body}".encode()


class Answering:
    """Answers each request with the next parts; without parts it closes the connection."""

    def __init__(self, *answers: Sequence[bytes]) -> None:
        self._answers = iter(answers)
        self._serving: set[asyncio.Task[None]] = set()
        self.has_answered = asyncio.Event()

    async def __aenter__(self) -> "Answering":
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.wait_for(asyncio.gather(*self._serving), 10)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.ensure_future(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve until the client is gone, or the script ends."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await self._answer(reader, writer):
                self.has_answered.set()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly((message_length(head) or 0) - len(head))
        pieces = next(self._answers)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        return bool(pieces)


async def ask(line: HttpLine) -> Answer:
    answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    line.send(search_request("a query", Strategy.DIRECT), answered.set_result)
    return await asyncio.wait_for(answered, 10)


async def test_an_answer_is_read_with_its_strategy_and_every_millisecond_in_one_stage() -> None:
    async with Answering([message(GOOD)]) as server:
        line = HttpLine(server.port)
        answer = await ask(line)
        line.close()
    assert (answer.fault, answer.strategy) == ("", "direct")
    assert answer.stages == {
        "embedding": 12.5,
        "skills": 3.0,
        "index": 7.0,
        "details": 1.25,
        "ranking": 2.0,
        "total": 25.75,
    }


async def test_a_response_in_parts_is_read_whole_and_the_connection_is_reused() -> None:
    whole = message(GOOD)
    async with Answering([whole[:20], whole[20:90], whole[90:]], [whole]) as server:
        line = HttpLine(server.port)
        assert [(await ask(line)).fault, (await ask(line)).fault] == ["", ""]
        line.close()


async def test_a_connection_that_breaks_is_an_error_and_is_opened_again() -> None:
    async with Answering([], [message(GOOD)]) as server:
        line = HttpLine(server.port)
        assert (await ask(line)).fault == LOST
        assert (await ask(line)).fault == ""
        line.close()


async def test_an_unreachable_server_is_an_error() -> None:
    with reserved_port() as port:
        assert (await ask(HttpLine(port))).fault == REFUSED


async def test_an_abandoned_response_is_not_taken_for_the_next_one() -> None:
    async with Answering([message(GOOD)[:30]], [message(GOOD)]) as server:
        line, output = HttpLine(server.port), list[Answer]()
        line.send(search_request("first", Strategy.DIRECT), output.append)
        await asyncio.wait_for(server.has_answered.wait(), 10)
        line.give_up()
        assert (await ask(line)).strategy == "direct"
        line.close()
    assert output == []


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (message("{}", "503 Service Unavailable"), "status 503"),
        (message(GOOD, more="X-Toolscript-Degraded: embedding\r\n"), "degraded"),
        (message(EMPTY), "empty"),
        (message("{}"), "not understood"),
    ],
)
def test_an_invalid_response_has_a_fault(answer: bytes, fault: str) -> None:
    assert read_answer(answer).fault == fault


def test_a_request_says_how_long_it_is() -> None:
    request = search_request("größer", Strategy.HYBRID)
    assert message_length(request) == len(request)
    assert b'"strategy": "hybrid"' in body_of(request)
