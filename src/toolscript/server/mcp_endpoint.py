"""The service's MCP endpoint, and its guard. All that needs the SDK is in this module."""

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
from toolscript.core.mcp.endpoint import HOUR_MS, Context, Described, server_of_tools, wire_answer
from toolscript.core.mcp.tools import ERROR, OK, REFUSED, ObserveMcp
from toolscript.core.web.auth import Identify
from toolscript.core.web.errors import refusal_headers, require_scope
from toolscript.server.app import ProtectedResource
from toolscript.server.mcp_tools import ServiceTools, call

BODY_SECONDS = 10.0
LATE = 408
OUR_FAULT = 500
STRANGE_ADDRESS = "this service is not known by the address it was asked by, or that page may not ask it"
ADDRESS_HINT = "TOOLSCRIPT_PUBLIC_URL says by which address clients know the service"
DESCRIPTION = "Answers questions from a library, finds tools in a catalog, and searches a tenant's documents."


@dataclass(frozen=True)
class Guard:
    """`resource` None: nobody's tokens are known here, and none are asked for."""

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
                await self.app(scope, _again(body, receive), _telling(request, send))
        except BaseException:
            request.state.outcome = ERROR
            raise
        finally:
            if self.observe is not None:
                self.observe(*_asked_for(body), request.state.outcome, time.perf_counter() - began)

    async def _refusal(self, request: Request) -> Response | None:
        strange = await TransportSecurityMiddleware(self.security).validate_request(request)
        if strange is not None:
            data = envelope("FORBIDDEN", STRANGE_ADDRESS, {"hint": ADDRESS_HINT})
            return _said(strange.status_code, f"{STRANGE_ADDRESS}. {ADDRESS_HINT}", data)
        try:
            identity = await self.identify(request, Response())
            with anyio.fail_after(BODY_SECONDS):
                self._require_scope(await request.body(), identity)
        except TimeoutError:
            return _said(LATE, f"the request did not arrive within {BODY_SECONDS:.0f} seconds")
        except ToolscriptError as error:
            return await self._refused(request, error)
        request.state.identity = identity
        return None

    def _require_scope(self, body: bytes, identity: Identity) -> None:
        if identity.principal is None or self.tools.all_are_for(identity):
            return
        asked = _message(body)
        params = asked.get("params")
        if asked.get("method") == "tools/call" and isinstance(params, Mapping):
            lacking = self.tools.scope_lacking(params.get("name"), identity)
            if lacking is not None:
                require_scope(identity, lacking)

    async def _refused(self, request: Request, error: ToolscriptError) -> Response:
        status = ERROR_TABLE[type(error)].http_status
        # Nothing is read of those who are not known.
        number = None if isinstance(error, Unauthorized) else await _id(request)
        rates: Mapping[str, str] = getattr(request.state, "rate_headers", {})
        asking = {} if self.resource is None else self._challenge(request, self.resource)
        headers = {**rates, **refusal_headers(status, error, **asking)}
        said = f"{error.message}. {error.hint}" if error.hint else error.message
        return _said(status, said, envelope_of(error), number, headers)

    def _challenge(self, request: Request, resource: ProtectedResource) -> dict[str, str]:
        return {"resource_metadata": resource.metadata_url(request), "scope": " ".join(resource.scopes)}


def _said(
    status: int,
    message: str,
    data: object = None,
    number: str | int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    error = {"code": status, "message": message, **({} if data is None else {"data": data})}
    return JSONResponse({"jsonrpc": "2.0", "id": number, "error": error}, status, headers)


async def _id(request: Request) -> str | int | None:
    """What the request calls itself, where that can be told."""
    try:
        with anyio.fail_after(BODY_SECONDS):
            number = _message(await request.body()).get("id")
    except TimeoutError:
        return None
    return number if isinstance(number, str | int) and not isinstance(number, bool) else None


def _message(body: bytes) -> Mapping[str, object]:
    """Nothing, where it is none: what is wrong with it is said by who reads it next."""
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, Mapping) else {}


def _asked_for(body: bytes) -> tuple[str, str]:
    """Which method, and which tool where one is called."""
    asked = _message(body)
    method, params = asked.get("method"), asked.get("params")
    name = params.get("name") if isinstance(params, Mapping) else None
    return method if isinstance(method, str) else "", name if isinstance(name, str) else ""


def _again(body: bytes, receive: Receive) -> Receive:
    """What has been read, once more, and then whatever comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return left.pop() if left else await receive()

    return receive_again


def _telling(request: Request, send: Send) -> Send:
    """Every answer says what is left of the budget."""
    rates: Mapping[str, str] = getattr(request.state, "rate_headers", {})
    told = [(name.lower().encode(), value.encode()) for name, value in rates.items()]

    async def send_told(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *told]}
        await send(message)

    return send_told


def create_service_server(tools: ServiceTools, version: str) -> Server[Any]:
    async def list_tools(context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        listed = [Tool.model_validate(tool.definition) for tool in tools.of(identity_in(context))]
        return ListToolsResult(tools=listed)

    async def call_tool(context: Context, params: CallToolRequestParams) -> dict[str, Any]:
        identity = identity_in(context)
        tool = tools.find(params.name, identity)
        if tool is None:
            _became(context, REFUSED)
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:200]}")
        try:
            answer = await wire_answer(call(tool, identity, params.arguments or {}), context.protocol_version)
        except MCPError:
            _became(context, REFUSED)
            raise
        if answer["isError"]:
            _became(context, ERROR)
        return answer

    # Which tools there are depends on who asks: nobody keeps the list for others.
    listing = CacheHint(HOUR_MS, "private")
    return server_of_tools(Described(version, DESCRIPTION, tools.instructions), list_tools, call_tool, listing)


def _became(context: Context, outcome: str) -> None:
    """For the guard: an answer that says what went wrong is one as any other to HTTP."""
    request: Any = context.request
    request.state.outcome = outcome


def identity_in(context: Context) -> Identity:
    request: Any = context.request
    identity: Identity = request.state.identity
    return identity
