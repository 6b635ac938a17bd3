"""MCP of the service: the tools of each capability, and the guard that authenticates every request.

Refusals are said twice: as HTTP says them, with status and headers, and as an error of the protocol in the body.
Of the SDKs' clients some read the one and some the other. The code of the error is the status: codes of one's own
are to be outside of the range that JSON-RPC reserves (MCP 2026-07-28, Error Codes).

A tool that needs a scope:
- Whoever shows a token that lacks the scope is told which one is missing, with status 403 and
  `error="insufficient_scope"`: the authorization of MCP asks for that, so that a client can get a better token.
- The public is told what it would be told of a tool that does not exist. No client calls what is not listed, so a
  challenge would reach nobody but those who try names; an installation that wants everybody to sign in gives the
  public no scope, and then the first request is answered with 401.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, ListToolsResult, PaginatedRequestParams, Tool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from toolscript.core.auth.model import Scope, Visitor
from toolscript.core.errors import (
    ERROR_TABLE,
    InvalidRequest,
    SetupError,
    ToolscriptError,
    Unauthorized,
    envelope,
    envelope_of,
)
from toolscript.core.items import JsonObject
from toolscript.core.mcp.endpoint import HOUR_MS, Context, Described, answered, server_of_tools, wire_answer
from toolscript.core.mcp.lazy_mount import LoadedLater
from toolscript.core.mcp.tools import ERROR, OK, REFUSED, ObserveMcp, ServiceTool
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.retrieval.query import SearchType
from toolscript.core.settings.service import Settings, listed
from toolscript.core.version import __version__
from toolscript.core.web.auth import VisitorOf
from toolscript.core.web.errors import refusal_headers, require_scope
from toolscript.core.web.paging import TemplatedRoute
from toolscript.core.web.request_context import MOST_BYTES
from toolscript.documents.http.dependencies import DocumentRoutes
from toolscript.documents.mcp import document_tools
from toolscript.knowledge.mcp.tools import knowledge_tools
from toolscript.knowledge.ports import AsksLibrary
from toolscript.server.app import MCP_PATH, ProtectedResource
from toolscript.tools.mcp.tools import CatalogParts, catalog_tools

LIBRARY = "search_knowledge answers questions from the library, get_passage reads on around a hit."
CATALOG = "search_tools finds which tool of which MCP server could do a task, describe_tool shows its arguments."
DOCUMENTS = "search_documents searches your own documents, if your token allows it."
BODY_SECONDS = 10.0
LATE = 408
OUR_FAULT = 500
STRANGE_ADDRESS = "this service is not known by the address it was asked by, or that page may not ask it"
ADDRESS_HINT = "TOOLSCRIPT_PUBLIC_URL says by which address clients know the service"
DESCRIPTION = "Answers questions from a library, finds tools in a catalog, and searches a tenant's documents."

MODULES = ("toolscript.server.mcp", "toolscript.server.mcp")
# Whoever asks sooner has it loaded at once; until then it is in nobody's way.
QUIET_SECONDS = 5.0
EVERY_ADDRESS = frozenset({"0.0.0.0", "::", ""})  # noqa: S104
OWN = "own"

# From the names of all tools to whoever is told of requests.
Observed = Callable[[Iterable[str]], ObserveMcp | None]


@dataclass(frozen=True)
class ServiceParts:
    """`search_type` is for searches that name none."""

    knowledge: AsksLibrary | None = None
    catalog: CatalogParts | None = None
    documents: DocumentRoutes | None = None
    search_type: SearchType = SearchType.HYBRID


class ServiceTools:
    def __init__(self, parts: ServiceParts) -> None:
        known = [
            *(knowledge_tools(parts.knowledge, parts.search_type) if parts.knowledge is not None else ()),
            *(catalog_tools(parts.catalog, parts.search_type) if parts.catalog is not None else ()),
            *(document_tools(parts.documents) if parts.documents is not None else ()),
        ]
        self._tools = {tool.name: tool for tool in known}
        there = ((parts.knowledge, LIBRARY), (parts.catalog, CATALOG), (parts.documents, DOCUMENTS))
        # The same for every visitor: whoever is asked for it does not know who asks.
        self.instructions = " ".join(said for part, said in there if part is not None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Those that a token can be of use with."""
        return tuple(dict.fromkeys(tool.scope for tool in self._tools.values()))

    def all_are_for(self, visitor: Visitor) -> bool:
        return all(tool.is_for(visitor) for tool in self._tools.values())

    def of(self, visitor: Visitor) -> list[ServiceTool]:
        return [tool for tool in self._tools.values() if tool.is_for(visitor)]

    def find(self, name: str, visitor: Visitor) -> ServiceTool | None:
        """One that the visitor may not use is not there for it."""
        tool = self._tools.get(name)
        return tool if tool is not None and tool.is_for(visitor) else None

    def scope_lacking(self, name: object, visitor: Visitor) -> Scope | None:
        """What a token would need to have so that its caller could use this tool."""
        tool = self._tools.get(name) if isinstance(name, str) else None
        return None if tool is None or visitor.may(tool.scope) else tool.scope


async def call(tool: ServiceTool, visitor: Visitor, arguments: JsonObject) -> CallResult:
    """Raises InvalidRequest for arguments that are wrong; any other failure is an answer that says so."""
    return await answered(lambda: tool.call(visitor, arguments), (InvalidRequest,))


@dataclass(frozen=True)
class Guard:
    """`resource` None: nobody's tokens are known here, and none are asked for."""

    app: ASGIApp
    tools: ServiceTools
    visitor_of: VisitorOf
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
            visitor = await self.visitor_of(request, Response())
            with anyio.fail_after(BODY_SECONDS):
                self._require_scope(await request.body(), visitor)
        except TimeoutError:
            return _said(LATE, f"the request did not arrive within {BODY_SECONDS:.0f} seconds")
        except ToolscriptError as error:
            return await self._refused(request, error)
        request.state.visitor = visitor
        return None

    def _require_scope(self, body: bytes, visitor: Visitor) -> None:
        if visitor.caller is None or self.tools.all_are_for(visitor):
            return
        asked = _message(body)
        params = asked.get("params")
        if asked.get("method") == "tools/call" and isinstance(params, Mapping):
            lacking = self.tools.scope_lacking(params.get("name"), visitor)
            if lacking is not None:
                require_scope(visitor, lacking)

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
        listed = [Tool.model_validate(tool.definition) for tool in tools.of(visitor_in(context))]
        return ListToolsResult(tools=listed)

    async def call_tool(context: Context, params: CallToolRequestParams) -> dict[str, Any]:
        visitor = visitor_in(context)
        tool = tools.find(params.name, visitor)
        if tool is None:
            _became(context, REFUSED)
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name[:200]}")
        try:
            answer = await wire_answer(call(tool, visitor, params.arguments or {}), context.protocol_version)
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


def visitor_in(context: Context) -> Visitor:
    request: Any = context.request
    visitor: Visitor = request.state.visitor
    return visitor


def unobserved(_: Iterable[str]) -> None:
    """For an endpoint that nobody watches."""


@asynccontextmanager
async def open_mcp(
    settings: Settings, parts: ServiceParts, visitor_of: VisitorOf, observed: Observed = unobserved
) -> AsyncIterator[tuple[BaseRoute, ...]]:
    """Its routes: `/mcp`, and what tells clients about tokens, where tokens are known."""
    tools = ServiceTools(parts)
    resource = (
        ProtectedResource(settings.public_url, settings.jwt_issuer, tools.scopes) if settings.jwt_keys else None
    )
    hosts, observe = known_hosts(settings), observed(tools.names)

    @asynccontextmanager
    async def open_apps() -> AsyncIterator[Mapping[str, ASGIApp]]:
        from toolscript.core.mcp.endpoint import LOOPBACK_HOSTS, mcp_asgi, only_hosts

        security = only_hosts([*LOOPBACK_HOSTS, *hosts], ("http", "https"))
        app, living = mcp_asgi(
            create_service_server(tools, __version__),
            security,
            MOST_BYTES,
            lambda inner: Guard(inner, tools, visitor_of, security, resource, observe),
        )
        async with living:
            yield {OWN: app}

    later = LoadedLater(MODULES, open_apps, lambda: asyncio.sleep(QUIET_SECONDS))
    async with later.open():
        yield (TemplatedRoute(MCP_PATH, later.app(OWN)), *(resource.routes() if resource else ()))


def known_hosts(settings: Settings) -> list[str]:
    """Names by which others may ask: whatever else leads here was made to, by a page that rebinds its own name."""
    bound = [] if settings.host in EVERY_ADDRESS else [settings.host]
    public = [_host(settings.public_url)] if settings.public_url else []
    return [f"[{host}]" if ":" in host else host for host in (*bound, *public, *listed(settings.allowed_hosts))]


def _host(url: str) -> str:
    try:
        read = urlsplit(url)
    except ValueError:
        read = urlsplit("")
    if read.scheme not in {"http", "https"} or not read.hostname:
        raise SetupError(
            "TOOLSCRIPT_PUBLIC_URL is no address", hint="write it with its scheme: https://search.example.com"
        )
    return read.hostname
