"""When a request to the gateway begins: with its body, whichever of uvicorn's parsers reads it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
import uvicorn

from toolscript.gateway.slow_senders import LONG_BODY_BYTES, Senders

pytestmark = [pytest.mark.requirement("TS-010"), pytest.mark.parametrize("parser", ["h11", "httptools"])]

Parser = Literal["h11", "httptools"]
POST = b"POST /search HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"


@asynccontextmanager
async def serving(parser: Parser, begun: list[str], seconds: float = 60.0) -> AsyncIterator[int]:
    """Serve an application that answers with the length of each body."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        begun.append(scope["path"])
        size, more = 0, True
        while more:
            message = await receive()
            size, more = size + len(message.get("body", b"")), message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"%d bytes" % size})

    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none", http=parser)
    Senders(seconds).watch(config)
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        task = asyncio.create_task(server._serve([listening]))
        yield listening.getsockname()[1]
        server.should_exit = True
        await task


async def answered(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.read(), 30)


async def sent(port: int, *parts: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.writelines(parts)
    return reader, writer


async def test_half_a_body_begins_no_request(parser: Parser) -> None:
    begun: list[str] = []
    async with serving(parser, begun) as port:
        reader, writer = await sent(port, POST % 4, b"{")
        whole, other = await sent(port, POST % 2, b"{}")
        assert b"2 bytes" in await answered(whole)
        assert len(begun) == 1
        writer.write(b"  }")
        assert b"4 bytes" in await answered(reader)
        assert len(begun) == 2
        writer.close()
        other.close()


async def test_a_long_body_is_handed_on_while_it_arrives(parser: Parser) -> None:
    begun: list[str] = []
    async with serving(parser, begun) as port:
        reader, writer = await sent(port, POST % (9 * LONG_BODY_BYTES), *[b" " * LONG_BODY_BYTES] * 9)
        assert b"%d bytes" % (9 * LONG_BODY_BYTES) in await answered(reader)
        writer.close()


async def test_a_body_that_never_arrives_is_ended_without_a_request(parser: Parser) -> None:
    begun: list[str] = []
    async with serving(parser, begun, seconds=0.2) as port:
        reader, writer = await sent(port, POST % 4, b"{")
        assert (await answered(reader)).startswith(b"HTTP/1.1 408 ")
        writer.close()
    assert begun == []
