"""MCP servers in all protocol versions in use, over HTTP."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import DEFAULT_MAX_REQUEST_BODY_SIZE, TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, ContentBlock, ListToolsResult, PaginatedRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.core.errors import InvalidRequest, envelope_of
from toolscript.core.mcp.answers import PICTURES, compact_json, failed
from toolscript.core.mcp_client.model import CallResult

# From this version on, invalid arguments are a tool result, which the model can correct, not a protocol error.
ARGUMENT_ERRORS_ARE_RESULTS = "2025-11-25"
_CONTENT_BLOCK = TypeAdapter[ContentBlock](ContentBlock)
HOUR_MS = 60 * 60 * 1000

SESSION_HEADER = "mcp-session-id"

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")

Context = ServerRequestContext[Any, Any]
ListTools = Callable[[Context, PaginatedRequestParams], Awaitable[ListToolsResult | dict[str, Any]]]
CallTool = Callable[[Context, CallToolRequestParams], Awaitable[dict[str, Any]]]


def allow_hosts(hosts: Sequence[str], schemes: Sequence[str] = ("http",)) -> TransportSecuritySettings:
    """Return settings that accept these Host names, on any port, and the origins of the same hosts."""
    names = [f"{host}{port}" for host in hosts for port in ("", ":*")]
    return TransportSecuritySettings(
        allowed_hosts=names, allowed_origins=[f"{scheme}://{name}" for scheme in schemes for name in names]
    )


LOOPBACK_ONLY = allow_hosts(LOOPBACK_HOSTS)


@dataclass(frozen=True)
class Described:
    """Self-description of a server."""

    version: str
    description: str
    instructions: str


class ToolServer(Server[Any]):
    """A server that says which of its lists change; `has_session` whether a session of HTTP still is there."""

    changing = NotificationOptions()
    has_session: Callable[[str], bool] = staticmethod(lambda _session: True)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        changing = notification_options or self.changing
        return super().create_initialization_options(changing, experimental_capabilities, extensions)


def create_tool_server(
    described: Described,
    lists: ListTools,
    calls: CallTool,
    listing: CacheHint,
    find_schema: Callable[[str], Mapping[str, Any] | None] = lambda _name: None,
) -> ToolServer:
    """Create a server of tools. `listing` is the cache hint of the tool list.

    `find_schema` returns the input schema of a tool that wants arguments repeated in headers. Without it, the SDK
    would list all tools for each call.
    """
    server = ToolServer(
        "toolscript",
        version=described.version,
        title="Toolscript",
        description=described.description,
        instructions=described.instructions,
        cache_hints={"tools/list": listing, "server/discover": CacheHint(HOUR_MS, "public")},
        get_tool_input_schema=find_schema,
    )
    server.add_request_handler("tools/list", PaginatedRequestParams, lists)
    server.add_request_handler("tools/call", CallToolRequestParams, calls)
    return server


def client_of(context: Context) -> str:
    """Return the name that a client states; of an older one without a session, its program, or an empty string."""
    params = context.session.client_params
    if params is not None:
        return params.client_info.name
    agent = context.request.headers.get("user-agent", "") if isinstance(context.request, Request) else ""
    return agent.partition(" ")[0].partition("/")[0]


async def wire_answer(call: Awaitable[CallResult], protocol: str) -> dict[str, Any]:
    try:
        result = await call
    except InvalidRequest as error:
        result = _argument_error(error, protocol)
    return wire_result(result, protocol)


def _argument_error(error: InvalidRequest, protocol: str) -> CallResult:
    if protocol < ARGUMENT_ERRORS_ARE_RESULTS:
        message = f"{error.message}. {error.hint}" if error.hint else error.message
        raise MCPError(INVALID_PARAMS, message, envelope_of(error))
    return failed(error)


def wire_result(result: CallResult, protocol: str) -> dict[str, Any]:
    """Return a tool's result on the wire, converted only where the protocol version requires it."""
    content = [_block(block) for block in result.content]
    wire: dict[str, Any] = {"content": content, "isError": result.is_error, "resultType": "complete"}
    data = result.structured_content
    if isinstance(data, Mapping) or (data is not None and protocol in MODERN_PROTOCOL_VERSIONS):
        wire["structuredContent"] = data
    elif data is not None and not content:
        wire["content"] = [{"type": "text", "text": compact_json(data)}]
    return wire


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a block that the SDK sends: with one that is malformed it would send nothing of the result."""
    plain = {name: value for name, value in block.items() if name not in ("annotations", "_meta")}
    for form in (block, plain):
        if _is_valid(form):
            return dict(form)
    data, is_picture = block.get("data"), block.get("type") in PICTURES
    shown = {"data": f"{len(data):,} characters"} if is_picture and isinstance(data, str) else {}
    return {"type": "text", "text": compact_json({**block, **shown})}


def _is_valid(block: Mapping[str, Any]) -> bool:
    if block.keys() == {"type", "text"} and block["type"] == "text" and isinstance(block["text"], str):
        return True
    try:
        _CONTENT_BLOCK.validate_python(block, by_alias=True, by_name=False)
    except ValidationError:
        return False
    return True


class PostOnly:
    """ASGI app for a route. Only POST is accepted: there are no server events and no sessions."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("method") != "POST":
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        await self._app(without_whitespace(scope), receive, send)


def without_whitespace(scope: Scope) -> Scope:
    """Whitespace around a header value is not part of it (RFC 9110, 5.5), but not every HTTP parser strips it."""
    return {**scope, "headers": [(name, value.strip()) for name, value in scope["headers"]]}


def mcp_asgi(
    server: Server[Any],
    security: TransportSecuritySettings = LOOPBACK_ONLY,
    max_bytes: int = DEFAULT_MAX_REQUEST_BODY_SIZE,
    around: Callable[[ASGIApp], ASGIApp] = lambda app: app,
) -> tuple[ASGIApp, AbstractAsyncContextManager[None]]:
    """Return the app for `/mcp` and its lifespan context. `around` wraps the app in middleware.

    Stateless: tools keep no state between calls, and clients survive a restart.
    """
    manager = StreamableHTTPSessionManager(
        server, stateless=True, security_settings=security, max_request_body_size=max_bytes
    )
    return PostOnly(around(manager.handle_request)), manager.run()
