"""The service's MCP endpoint and its guard. All imports of the MCP SDK are in this module."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, ListToolsResult, PaginatedRequestParams, Tool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from toolscript.core.auth.model import Identity
from toolscript.core.errors import ERROR_TABLE, ToolscriptError, Unauthorized, envelope, envelope_of
from toolscript.core.mcp.endpoint import HOUR_MS, Context, Described, create_tool_server, wire_answer
from toolscript.core.mcp.tools import ERROR, OK, REFUSED, ObserveMcp
from toolscript.core.web.auth import Identify
from toolscript.core.web.errors import refusal_headers, require_scope
from toolscript.server.app import ProtectedResource
from toolscript.server.mcp_tools import ServiceTools, call

BODY_SECONDS = 10.0
LATE = 408
OUR_FAULT = 500
UNKNOWN_ADDRESS = "the Host or Origin header of this request is not allowed"
ADDRESS_HINT = "set TOOLSCRIPT_PUBLIC_URL to the address that clients use"
DESCRIPTION = "Answers questions from a library, finds tools in a catalog, and searches a tenant's documents."


@dataclass(frozen=True)
class Guard:
    """Authenticates requests before they reach the app. `resource` is None if no tokens are configured."""

    app: ASGIApp
    tools: ServiceTools
    identify: Identify
    security: TransportSecuritySettings
    resource: ProtectedResource | None = None
    observe: ObserveMcp | None = None

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request, began = Request(scope, receive), time.perf_counter()
        request.state.outcome = OK
        refusal = await self._refusal(request)
        body = b"" if refusal is not None else await request.body()
        try:
            if refusal is not None:
                request.state.outcome = ERROR if refusal.status_code >= OUR_FAULT else REFUSED
                await refusal(scope, receive, send)
            else:
                await self.app(scope, _replay(body, receive), _with_rate_headers(request, send))
        except BaseException:
            request.state.outcome = ERROR
            raise
        finally:
            if self.observe is not None:
                self.observe(*_method_and_tool(body), request.state.outcome, time.perf_counter() - began)

    async def _refusal(self, request: Request) -> Response | None:
        rejected = await TransportSecurityMiddleware(self.security).validate_request(request)
        if rejected is not None:
            data = envelope("FORBIDDEN", UNKNOWN_ADDRESS, {"hint": ADDRESS_HINT})
            return _error_response(rejected.status_code, f"{UNKNOWN_ADDRESS}. {ADDRESS_HINT}", data)
        try:
            identity = await self.identify(request, Response())
            with anyio.fail_after(BODY_SECONDS):
                self._require_scope(await request.body(), identity)
        except TimeoutError:
            return _error_response(LATE, f"the request did not arrive within {BODY_SECONDS:.0f} seconds")
        except ToolscriptError as error:
            return await self._refuse(request, error)
        request.state.identity = identity
        return None

    def _require_scope(self, body: bytes, identity: Identity) -> None:
        if identity.principal is None or self.tools.all_are_for(identity):
            return
        message = _parse_message(body)
        params = message.get("params")
        if message.get("method") == "tools/call" and isinstance(params, Mapping):
            lacking = self.tools.scope_lacking(params.get("name"), identity)
            if lacking is not None:
                require_scope(identity, lacking)

    async def _refuse(self, request: Request, error: ToolscriptError) -> Response:
        status = ERROR_TABLE[type(error)].http_status
        # The body of an unauthenticated request is not read.
        request_id = None if isinstance(error, Unauthorized) else await _request_id(request)
        rates: Mapping[str, str] = getattr(request.state, "rate_headers", {})
        challenge = {} if self.resource is None else self._challenge(request, self.resource)
        headers = {**rates, **refusal_headers(status, error, **challenge)}
        message = f"{error.message}. {error.hint}" if error.hint else error.message
        return _error_response(status, message, envelope_of(error), request_id, headers)

    def _challenge(self, request: Request, resource: ProtectedResource) -> dict[str, str]:
        return {"resource_metadata": resource.metadata_url(request), "scope": " ".join(resource.scopes)}


def _error_response(
    status: int,
    message: str,
    data: object = None,
    request_id: str | int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    error = {"code": status, "message": message, **({} if data is None else {"data": data})}
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": error}, status, headers)


async def _request_id(request: Request) -> str | int | None:
    """Return the JSON-RPC id, or None if it cannot be read."""
    try:
        with anyio.fail_after(BODY_SECONDS):
            value = _parse_message(await request.body()).get("id")
    except TimeoutError:
        return None
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def _parse_message(body: bytes) -> Mapping[str, object]:
    """Return the JSON-RPC message, or {} if the body is none; the SDK reports the error."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, Mapping) else {}


def _method_and_tool(body: bytes) -> tuple[str, str]:
    """Return the method and the name of the tool that is called; empty if there is none."""
    message = _parse_message(body)
    method, params = message.get("method"), message.get("params")
    name = params.get("name") if isinstance(params, Mapping) else None
    return method if isinstance(method, str) else "", name if isinstance(name, str) else ""


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that replays the body, and then continues with the original."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def _with_rate_headers(request: Request, send: Send) -> Send:
    """Add the rate-limit headers to every response."""
    rates: Mapping[str, str] = getattr(request.state, "rate_headers", {})
    headers = [(name.lower().encode(), value.encode()) for name, value in rates.items()]

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *headers]}
        await send(message)

    return send_with_headers


def create_service_server(tools: ServiceTools, version: str) -> Server[Any]:
    async def list_tools(context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        listed = [Tool.model_validate(tool.definition) for tool in tools.of(identity_in(context))]
        return ListToolsResult(tools=listed)

    async def call_tool(context: Context, params: CallToolRequestParams) -> dict[str, Any]:
        identity = identity_in(context)
        tool = tools.find(params.name, identity)
        if tool is None:
            _set_outcome(context, REFUSED)
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:200]}")
        try:
            answer = await wire_answer(call(tool, identity, params.arguments or {}), context.protocol_version)
        except MCPError:
            _set_outcome(context, REFUSED)
            raise
        if answer["isError"]:
            _set_outcome(context, ERROR)
        return answer

    # The list depends on the identity, so shared caches must not store it.
    listing = CacheHint(HOUR_MS, "private")
    return create_tool_server(Described(version, DESCRIPTION, tools.instructions), list_tools, call_tool, listing)


def _set_outcome(context: Context, outcome: str) -> None:
    """Record the outcome for the guard: over HTTP, a tool error is a response with status 200."""
    request: Any = context.request
    request.state.outcome = outcome


def identity_in(context: Context) -> Identity:
    request: Any = context.request
    identity: Identity = request.state.identity
    return identity
