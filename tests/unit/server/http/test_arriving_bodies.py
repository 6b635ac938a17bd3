"""When a request begins: with its body, so that one that never arrives costs no more than reading it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import uvicorn

from toolscript.core.web.admission import Admission, Limits
from toolscript.server.http_protocol import PROGRESS_BYTES, Connections, Draining, Server

pytestmark = pytest.mark.requirement("OP-006")

POST = b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
PATHS = [b"/api/v1/search", b"/api/v1/jobs", b"/livez", b"/mcp", b"/nowhere"]
OK = b"HTTP/1.1 200 OK"


class Echo:
    """An application that counts the requests that begin, and answers with the length of each body."""

    def __init__(self) -> None:
        self.begun = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun += 1
        size, more = 0, True
        while more:
            message = await receive()
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        body = str(size).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(echo: Echo, receive_seconds: float = 60.0) -> AsyncIterator[int]:
    limits = Limits(8)
    connections = Connections(Admission(limits, limits, limits), 100, receive_seconds)
    config = uvicorn.Config(
        cast("Any", echo),
        log_config=None,
        lifespan="off",
        ws="none",
        http=cast("type[asyncio.Protocol]", connections.protocol),
    )
    started = asyncio.Event()
    server = Server(config, Draining(), 0.0, started.set)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        task = asyncio.create_task(server._serve([listening]))
        await started.wait()
        yield listening.getsockname()[1]
        server.should_exit = True
        await task


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def answer_of(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    return head.split(b"\r\n")[0], await reader.readexactly(length)


async def answers_a_whole_request(port: int) -> None:
    """What was sent before on other connections has been read when this is answered."""
    async with connected(port) as (reader, writer):
        writer.write(POST % b"/whole" + b"content-length: 2\r\n\r\n{}")
        assert await answer_of(reader) == (OK, b"2")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("rest", [b"content-length: 4\r\n\r\n{", b"transfer-encoding: chunked\r\n\r\n1\r\n{"])
async def test_half_a_body_begins_no_request(path: bytes, rest: bytes) -> None:
    echo = Echo()
    async with serving(echo) as port, connected(port) as (reader, writer):
        writer.write(POST % path + rest)
        await answers_a_whole_request(port)
        assert echo.begun == 1
        writer.write(b" }\n" if b"length" in rest else b"\r\n3\r\n }\n\r\n0\r\n\r\n")
        assert await answer_of(reader) == (OK, b"4")
        # The next request on the same connection is answered, too.
        writer.write(POST % path + b"content-length: 2\r\n\r\n{}")
        assert await answer_of(reader) == (OK, b"2")
        assert echo.begun == 3


async def test_that_the_process_is_alive_is_said_by_the_parser_in_the_order_of_requests() -> None:
    """A task would wait for all searches that are ready to go on."""
    echo, alive = Echo(), b"GET /livez HTTP/1.1\r\nhost: x\r\nx-request-id: mine\r\n\r\n"
    async with serving(echo) as port, connected(port) as (reader, writer):
        writer.write(alive + POST % b"/one" + b"content-length: 2\r\n\r\n{}" + alive)
        answers = [await answer_of(reader) for _ in range(3)]
        assert answers == [(OK, b'{"status":"alive"}'), (OK, b"2"), (OK, b'{"status":"alive"}')]
        assert echo.begun == 1
        writer.write(alive)
        assert b"x-request-id: mine" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    echo = Echo()
    async with serving(echo) as port, connected(port) as (reader, writer):
        writer.write(
            POST % b"/one" + b"content-length: 2\r\n\r\n{}" + POST % b"/two" + b"content-length: 4\r\n\r\n{"
        )
        assert await answer_of(reader) == (OK, b"2")
        await answers_a_whole_request(port)
        assert echo.begun == 2
        writer.write(b"  }" + POST % b"/three" + b"content-length: 0\r\n\r\n")
        assert [await answer_of(reader), await answer_of(reader)] == [(OK, b"4"), (OK, b"0")]


async def test_a_client_that_asks_first_is_told_to_send_its_body() -> None:
    echo = Echo()
    async with serving(echo) as port, connected(port) as (reader, writer):
        writer.write(POST % b"/one" + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert echo.begun == 0
        writer.write(b"{}")
        assert await answer_of(reader) == (OK, b"2")


async def test_a_large_body_is_handed_on_while_it_arrives() -> None:
    echo, size = Echo(), 20 * PROGRESS_BYTES
    async with serving(echo) as port, connected(port) as (reader, writer):
        writer.write(POST % b"/one" + b"content-length: %d\r\n\r\n" % size)
        for _ in range(20):
            writer.write(b" " * PROGRESS_BYTES)
            await writer.drain()
        assert await answer_of(reader) == (OK, str(size).encode())


async def test_a_body_that_never_arrives_is_ended_without_a_request() -> None:
    echo = Echo()
    async with serving(echo, receive_seconds=0.2) as port, connected(port) as (reader, writer):
        writer.write(POST % b"/one" + b"content-length: 4\r\n\r\n{")
        assert (await answer_of(reader))[0] == b"HTTP/1.1 408 Request Timeout"
        assert await reader.read() == b""
    assert echo.begun == 0


async def test_an_upload_begins_before_it_has_arrived() -> None:
    echo = Echo()
    async with serving(echo) as port, connected(port) as (_, writer):
        writer.write(POST.replace(b"POST", b"PUT") % b"/api/v1/documents" + b"content-length: 4\r\n\r\n{")
        await answers_a_whole_request(port)
        assert echo.begun == 2
