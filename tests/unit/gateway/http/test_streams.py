"""Streams end when the gateway ends, and other requests are answered."""

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from toolscript.gateway.streams import EndingStreams

STREAMS = ("/mcp", "/mcp/all", "/mcp/github", "/w/0123/mcp/github")


async def nothing() -> Message:
    await asyncio.Event().wait()
    return {}


async def silent(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await asyncio.Event().wait()


async def is_ended(method: str, path: str) -> bool:
    closing, sent = asyncio.Event(), list[Message]()

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": []}
    serving = asyncio.ensure_future(EndingStreams(silent, closing)(scope, nothing, send))
    await asyncio.sleep(0)
    closing.set()
    done, _ = await asyncio.wait({serving}, timeout=0.2)
    serving.cancel()
    return bool(done) and sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


@pytest.mark.parametrize("path", STREAMS)
async def test_a_stream_of_mcp_ends_with_the_gateway(path: str) -> None:
    assert await is_ended("GET", path)


@pytest.mark.parametrize(("method", "path"), [("POST", "/mcp/github"), ("GET", "/tools"), ("GET", "/mcpx")])
async def test_another_request_is_answered_first(method: str, path: str) -> None:
    assert not await is_ended(method, path)
