"""An MCP endpoint with sessions for clients of the older versions that begin one: they can be asked questions.

A session is the way back to its client, and nothing else is kept in it. A request of one that is not there any
more, because the process was started again, is answered all the same, without a way back.
"""

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscript.core.mcp.endpoint import LOOPBACK_ONLY, SESSION_HEADER, ToolServer, without_whitespace

MAX_SESSIONS = 1_000
# Of a body that is searched for the request that begins a session; it is short.
MAX_FIRST_BYTES = 64 * 1024


class _Sessions(StreamableHTTPSessionManager):
    def __init__(self, server: Server[Any], max_bytes: int) -> None:
        super().__init__(server, security_settings=LOOPBACK_ONLY, max_request_body_size=max_bytes)

    def has(self, session: str | None) -> bool:
        return session is not None and session in self._server_instances

    async def end(self, session: str) -> None:
        """End a session, and cancel what is done in it."""
        if (transport := self._server_instances.get(session)) is not None:
            await self._discard_session(session, transport)

    @property
    def are_full(self) -> bool:
        return len(self._server_instances) >= MAX_SESSIONS


class SessionApp:
    """ASGI app for a route. A client that sends the header `one_stream` has left when it closes its stream."""

    def __init__(self, server: ToolServer, max_bytes: int, one_stream: str) -> None:
        server.has_session = self.has
        self._one_stream = one_stream
        self._sessions = _Sessions(server, max_bytes)
        self._ended: dict[str, None] = {}
        self._stateless = StreamableHTTPSessionManager(
            server, stateless=True, security_settings=LOOPBACK_ONLY, max_request_body_size=max_bytes
        )

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        async with self._stateless.run(), self._sessions.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = without_whitespace(scope)
        session = Headers(scope=scope).get(SESSION_HEADER)
        if self._sessions.has(session) or session in self._ended:
            if scope["method"] == "DELETE" and session is not None:
                self._note_end(session)
            await self._sessions.handle_request(scope, receive, send)
            if scope["method"] == "GET" and session is not None and self._one_stream in Headers(scope=scope):
                await self._sessions.end(session)
        elif scope["method"] != "POST":
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
        else:
            await self._post(scope, receive, send)

    def has(self, session: str) -> bool:
        return self._sessions.has(session)

    def _note_end(self, session: str) -> None:
        """A client that ended its session is told so when it uses it again; only one that lost it is not."""
        self._ended[session] = None
        while len(self._ended) > MAX_SESSIONS:
            del self._ended[next(iter(self._ended))]

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        begins = not self._sessions.are_full and _begins_session(first)
        manager = self._sessions if begins else self._stateless
        if SESSION_HEADER in Headers(scope=scope):
            name = SESSION_HEADER.encode()
            scope = {**scope, "headers": [header for header in scope["headers"] if header[0] != name]}
        await manager.handle_request(scope, _again(first, receive), send)


def _begins_session(message: Message) -> bool:
    body = message.get("body", b"")
    if message.get("more_body") or len(body) > MAX_FIRST_BYTES or b"initialize" not in body:
        return False
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(request, dict) and request.get("method") == "initialize"


def _again(first: Message, receive: Receive) -> Receive:
    """Return a `receive` that begins with a message that was received before."""
    left = [first]

    async def receive_again() -> Message:
        return left.pop() if left else await receive()

    return receive_again


def mcp_asgi_with_sessions(
    server: ToolServer, max_bytes: int = DEFAULT_MAX_REQUEST_BODY_SIZE, one_stream: str = ""
) -> tuple[ASGIApp, AbstractAsyncContextManager[None]]:
    """Return the app for a route and its lifespan context."""
    app = SessionApp(server, max_bytes, one_stream)
    return app, app.run()
