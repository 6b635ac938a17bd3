"""MCP in every version that clients use: over HTTP without sessions, and over stdio."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import anyio
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, ListToolsResult, PaginatedRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.core.errors import InvalidRequest, envelope_of
from toolscript.core.mcp.answers import compact_json, failed
from toolscript.core.mcp_client.model import CallResult

AT_ONCE = 64 * 1024
WAITING_LINES = 64

# From this version on, what a model can put right is an answer for the model and not an error of the protocol.
WRONG_ARGUMENTS_ARE_ANSWERS = "2025-11-25"
BLOCKS = frozenset({"text", "image", "audio", "resource", "resource_link"})
HOUR_MS = 60 * 60 * 1000

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")

Context = ServerRequestContext[Any, Any]
ListTools = Callable[[Context, PaginatedRequestParams | None], Awaitable[ListToolsResult]]
CallTool = Callable[[Context, CallToolRequestParams], Awaitable[dict[str, Any]]]


class InputLines:
    """An asynchronous iterator over the lines of a file descriptor. Starts to read when it is first asked."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: asyncio.Queue[str | None] = asyncio.Queue(WAITING_LINES)
        self._started = False

    def __aiter__(self) -> "InputLines":
        return self

    async def __anext__(self) -> str:
        if not self._started:
            self._started = True
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._read, args=(loop,), name="stdin", daemon=True).start()
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        rest = b""
        while piece := os.read(self._descriptor, AT_ONCE):
            *lines, rest = (rest + piece).split(b"\n")
            if not all(self._hand_over(line, loop) for line in lines):
                return
        if not rest or self._hand_over(rest, loop):
            self._hand_over(None, loop)

    def _hand_over(self, line: bytes | None, loop: asyncio.AbstractEventLoop) -> bool:
        """Waits until there is room; False when nobody reads any more."""
        text = None if line is None else line.decode("utf-8", "replace")
        put = self._lines.put(text)
        try:
            asyncio.run_coroutine_threadsafe(put, loop).result()
        except (RuntimeError, asyncio.CancelledError):
            put.close()
            return False
        return True


@contextmanager
def claimed_input() -> Iterator[int]:
    """A descriptor of our own for what arrives on stdin; meanwhile children find nothing there to take away."""
    wire = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        yield wire
    finally:
        # `wire` stays open: the thread may still be reading it.
        os.dup2(wire, 0)


def only_hosts(hosts: Sequence[str], schemes: Sequence[str] = ("http",)) -> TransportSecuritySettings:
    """Lets in who asks by one of these names, whatever the port, and pages from there: no others are ours."""
    named = [f"{host}{port}" for host in hosts for port in ("", ":*")]
    return TransportSecuritySettings(
        allowed_hosts=named, allowed_origins=[f"{scheme}://{one}" for scheme in schemes for one in named]
    )


LOOPBACK_ONLY = only_hosts(LOOPBACK_HOSTS)


@dataclass(frozen=True)
class Described:
    """What a server says of itself."""

    version: str
    description: str
    instructions: str


def server_of_tools(described: Described, lists: ListTools, calls: CallTool, listing: CacheHint) -> Server[Any]:
    """`listing` is who may keep the list of tools, and for how long."""
    server: Server[Any] = Server(
        "toolscript",
        version=described.version,
        title="Toolscript",
        description=described.description,
        instructions=described.instructions,
        cache_hints={"tools/list": listing, "server/discover": CacheHint(HOUR_MS, "public")},
        # No argument of ours is mirrored in a header; unasked, the SDK would list all tools again for each call.
        get_tool_input_schema=lambda _name: None,
        on_list_tools=lists,
    )
    server.add_request_handler("tools/call", CallToolRequestParams, calls)
    return server


async def wire_answer(call: Awaitable[CallResult], protocol: str) -> dict[str, Any]:
    try:
        result = await call
    except InvalidRequest as error:
        result = _refused(error, protocol)
    return wire_result(result, protocol)


def _refused(error: InvalidRequest, protocol: str) -> CallResult:
    if protocol < WRONG_ARGUMENTS_ARE_ANSWERS:
        said = f"{error.message}. {error.hint}" if error.hint else error.message
        raise MCPError(INVALID_PARAMS, said, envelope_of(error))
    return failed(error)


def wire_result(result: CallResult, protocol: str) -> dict[str, Any]:
    """The tool's own answer. Only what a version cannot carry is put differently."""
    content = [_block(block) for block in result.content]
    wire: dict[str, Any] = {"content": content, "isError": result.is_error, "resultType": "complete"}
    data = result.structured_content
    if isinstance(data, Mapping) or (data is not None and protocol in MODERN_PROTOCOL_VERSIONS):
        wire["structuredContent"] = data
    elif data is not None and not content:
        wire["content"] = [{"type": "text", "text": compact_json(data)}]
    return wire


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    if block.get("type") in BLOCKS:
        return dict(block)
    return {"type": "text", "text": compact_json(block)}


class PostOnly:
    """An app that a route can hold. Nothing is ever sent unasked and there is no session to end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") != "POST":
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        # Space around a value is no part of it (RFC 9110, 5.5), and not every HTTP parser takes it off.
        headers = [(name, value.strip()) for name, value in scope["headers"]]
        await self._app({**scope, "headers": headers}, receive, send)


def mcp_asgi(
    server: Server[Any],
    security: TransportSecuritySettings = LOOPBACK_ONLY,
    max_bytes: int = DEFAULT_MAX_REQUEST_BODY_SIZE,
    around: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> tuple[ASGIApp, AbstractAsyncContextManager[None]]:
    """The app to serve at `/mcp`, and what has to be open while it serves. What is put `around` it is asked first.

    Without sessions: no tool keeps anything between calls, and a client outlives a restart.
    """
    manager = StreamableHTTPSessionManager(
        server, stateless=True, security_settings=security, max_request_body_size=max_bytes
    )
    return PostOnly(around(manager.handle_request)), manager.run()


async def run_stdio(server: Server[Any]) -> None:
    """Serves one client until it closes our input. Whatever else prints goes to stderr."""
    with claimed_input() as wire:
        lines = cast("anyio.AsyncFile[str]", InputLines(wire))
        async with stdio_server(stdin=lines) as (read, write):
            await server.run(read, write, server.create_initialization_options())
