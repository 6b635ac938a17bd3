"""Ends requests when their client disconnects, and streams without an end of their own when the gateway ends."""

import asyncio
from collections.abc import MutableMapping
from functools import partial
from typing import Any

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

LISTEN = b"subscriptions/listen"
METHOD_HEADER = b"mcp-method"


class EndingStreams:
    """ASGI middleware. `closing` is set when the gateway is to end, which would else wait for streams.

    From then on clients are told that their connection ends with the answer: a request that came at the moment in
    which an idle connection is ended would be lost.
    """

    def __init__(self, app: ASGIApp, closing: asyncio.Event) -> None:
        self._app = app
        self._closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_endless(scope):
            await self._app(scope, receive, partial(self._send_last, send))
            return
        is_open = False

        async def send_watched(message: MutableMapping[str, Any]) -> None:
            nonlocal is_open
            is_open = message["type"] == "http.response.start" or bool(message.get("more_body"))
            await send(message)

        serving = asyncio.ensure_future(self._app(scope, receive, send_watched))
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait({serving, closing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            closing.cancel()
            if not serving.done():
                serving.cancel()
                await asyncio.wait({serving})
        if not serving.cancelled():
            serving.result()
        elif is_open:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_last(self, send: Send, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start" and self._closing.is_set():
            message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
        await send(message)


async def cancel_on_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel the scope when the client disconnects, which is how MCP clients cancel."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


def _is_endless(scope: Scope) -> bool:
    if scope["type"] != "http":
        return False
    path = scope["path"]
    # The second is /mcp/all, or /mcp/{server}.
    is_mcp = path.endswith("/mcp") or path.rpartition("/")[0].endswith("/mcp")
    return (scope["method"] == "GET" and is_mcp) or (METHOD_HEADER, LISTEN) in scope["headers"]
