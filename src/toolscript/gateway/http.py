"""The gateway's HTTP API: the routes of its source document, authentication, and the one shape of its errors."""

import hmac
import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.core.daemon_threads import DaemonThreads
from toolscript.core.errors import (
    ERROR_TABLE,
    Forbidden,
    InvalidRequest,
    ToolscriptError,
    Unauthorized,
    envelope,
    envelope_of,
)
from toolscript.core.items import ItemKind
from toolscript.core.retrieval.query import SearchType
from toolscript.core.web.hosts import is_loopback_host, is_loopback_origin
from toolscript.core.web.request_context import RequestContext, SecurityHeaders, code_of_status, has_kinds
from toolscript.gateway.activity import ActivityLog, NoActivity
from toolscript.gateway.activity_api import NamedClient, activity_routes
from toolscript.gateway.api import HAS_CREDENTIAL, api_routes, json_object, seen_by, terms_of
from toolscript.gateway.callers import CLIENT_OF_TOKEN, on_terms
from toolscript.gateway.client_tokens import is_for_clients
from toolscript.gateway.json import (
    answer_to_json,
    call_to_json,
    health_to_json,
    item_to_json,
    states_to_json,
)
from toolscript.gateway.model import Gateway, LocalQuery
from toolscript.gateway.review_api import review_routes
from toolscript.gateway.workspace import PREFIX

# Values of `Sec-Fetch-Site` for this gateway's own page, and for an address that the user typed.
OWN_SITES = frozenset({"same-origin", "none"})

Address = tuple[str, int]

_HOW_TO_AUTHENTICATE = (
    "run `toolscript gateway env` as that user and send `Authorization: Bearer <token>`; "
    "`toolscript config connect CLIENT --http` writes it into a client's config"
)

# No request is answered before its guard: nothing else is done on these threads.
_GUARDS = DaemonThreads("guard", 2)
MAX_TOOLS = 1_000
MAX_BYTES = 8 * 1024 * 1024


class Guard:
    """Authenticates requests: every local program can reach the port, and so can a web page through a browser.

    `token` is the person's own; `client_of` returns the client that has a token of its own. `is_same_person` gets
    both ends of the connection; None: only tokens count.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        is_same_person: Callable[[Address, Address], bool] | None = None,
        client_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        self._app = app
        self._token = token
        self._client_of = client_of
        self._is_same_person = is_same_person

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refused := await self._refusal(scope)):
            status = ERROR_TABLE[type(refused)].http_status
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
            await JSONResponse(envelope_of(refused), status, headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _refusal(self, scope: Scope) -> ToolscriptError | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not is_loopback_host(hosts[0]):
            return Forbidden("this gateway answers to 127.0.0.1 and localhost only", details={"header": "Host"})
        if header := _foreign_page(headers, scope):
            return Forbidden("requests from other web pages are not allowed", details={"header": header})
        token = _bearer(headers)
        scope[HAS_CREDENTIAL] = bool(token and self._token) and hmac.compare_digest(
            token.encode(), self._token.encode()
        )
        if scope["path"] == "/livez" or scope[HAS_CREDENTIAL]:
            return None
        if client := self._client_of(token) if token else "":
            scope[CLIENT_OF_TOKEN] = client
            return None if is_for_clients(scope["method"], _within_workspace(scope["path"])) else _for_the_person()
        # A token that nobody has, such as a revoked one, is no request of the person's own programs.
        if token or not await self._is_own_connection(scope):
            return Unauthorized(
                "this gateway belongs to one user and requires their token", hint=_HOW_TO_AUTHENTICATE
            )
        return None

    async def _is_own_connection(self, scope: Scope) -> bool:
        """Return whether the connection is the user's own. Not from a browser: a page may control its requests.

        Browsers always send `Sec-Fetch-Site`, and no script can prevent it; other clients may set `Origin`.
        """
        client, server, headers = scope.get("client"), scope.get("server"), Headers(scope=scope)
        from_browser = "sec-fetch-site" in headers
        if self._is_same_person is None or not client or not server or from_browser:
            return False
        is_same_person = self._is_same_person
        return await _GUARDS.run(lambda: is_same_person((client[0], client[1]), (server[0], server[1])))


def _bearer(headers: Headers) -> str:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def _within_workspace(path: str) -> str:
    return f"/{path.removeprefix(PREFIX).partition('/')[2]}" if path.startswith(PREFIX) else path


def _for_the_person() -> Forbidden:
    return Forbidden(
        "a client's token finds, lists and calls tools, and nothing else",
        hint="ask the user: what only they may do, they do in a terminal",
    )


def _foreign_page(headers: Headers, scope: Scope) -> str:
    """Return the header that shows a foreign page, or nothing. A page of another port is foreign, too."""
    _, port = scope["server"]
    for origin in headers.getlist("origin"):
        if not (is_loopback_origin(origin) and origin.endswith(f":{port}")):
            return "Origin"
    if not OWN_SITES.issuperset(headers.getlist("sec-fetch-site")):
        return "Sec-Fetch-Site"
    return ""


def gateway_routes(gateway: Gateway, *, limit: int, threshold: float) -> list[Route]:
    """Return the routes. `limit` and `threshold` are the defaults of a request."""

    async def search(request: Request) -> Response:
        query = LocalQuery(
            text=request.query_params.get("q", ""),
            limit=_whole(request, "limit", limit),
            threshold=_number(request, "threshold", threshold),
            kind=_kind(request),
            search_type=_search_type(request),
        )
        explain, schemas = _flag(request, "explain"), _flag(request, "schemas")
        return JSONResponse(answer_to_json(await gateway.search(query), explain=explain, schemas=schemas))

    async def health(request: Request) -> Response:
        health = await gateway.health()
        return JSONResponse(health_to_json(replace(health, servers=seen_by(request, health.servers))))

    async def alive(_: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def servers(request: Request) -> Response:
        return JSONResponse({"servers": states_to_json(seen_by(request, await gateway.servers()))})

    async def tools(request: Request) -> Response:
        """List the searchable items, one page at a time."""
        items = await gateway.items(_filter(request))
        offset, maximum = _whole(request, "offset", 0), min(MAX_TOOLS, _whole(request, "limit", MAX_TOOLS))
        page = [item_to_json(item, schemas=_flag(request, "schemas")) for item in items[offset : offset + maximum]]
        return JSONResponse({"tools": page, "total": len(items), "offset": offset})

    async def types(request: Request) -> Response:
        module = await gateway.typescript(_filter(request), compact=_flag(request, "compact"))
        return PlainTextResponse(module, media_type="application/typescript; charset=utf-8")

    async def call(request: Request) -> Response:
        arguments = json_object(await request.body(), "send the arguments as a JSON object")
        tool = request.path_params["tool"]
        with on_terms(terms_of(request, tool, confirms=_flag(request, "confirm"), given=request.query_params)):
            return JSONResponse(call_to_json(await gateway.call(tool, arguments)))

    return [
        Route("/search", search),
        Route("/health", health),
        Route("/livez", alive),
        Route("/servers", servers),
        Route("/tools", tools),
        Route("/runtime/tools.ts", types),
        Route("/tools/{tool:anything}", call, methods=["POST"]),
    ]


def _filter(request: Request) -> tuple[str, ...]:
    names = tuple(part.strip() for part in request.query_params.get("filter", "").split(",") if part.strip())
    if len(names) > MAX_TOOLS:
        raise InvalidRequest(f"a filter names at most {MAX_TOOLS}", details={"field": "filter"})
    return names


def _kind(request: Request) -> ItemKind | None:
    text = request.query_params.get("kind", ItemKind.TOOL.value)
    if text == "any":
        return None
    try:
        return ItemKind(text)
    except ValueError:
        raise InvalidRequest("kind must be tool, prompt, resource or any", details={"field": "kind"}) from None


def _search_type(request: Request) -> SearchType | None:
    text = request.query_params.get("search_type")
    try:
        return None if text is None else SearchType(text)
    except ValueError:
        known = ", ".join(SearchType)
        raise InvalidRequest(f"search_type must be one of {known}", details={"field": "search_type"}) from None


def _whole(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise InvalidRequest(f"{name} must be a whole number", details={"field": name})
    return int(text)


def _number(request: Request, name: str, default: float) -> float:
    text = request.query_params.get(name)
    try:
        number = default if text is None else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidRequest(f"{name} must be a number", details={"field": name})
    return number


def _flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "").lower() in ("1", "true", "yes")


def create_gateway_app(
    gateway: Gateway,
    *,
    limit: int,
    threshold: float,
    token: str,
    client_of: Callable[[str], str] = lambda _: "",
    activity: ActivityLog | None = None,
    is_same_person: Callable[[Address, Address], bool] | None = None,
    more_routes: tuple[BaseRoute, ...] = (),
    more_middleware: tuple[Middleware, ...] = (),
    lifespan: Callable[[], AbstractAsyncContextManager[None]] | None = None,
) -> Starlette:
    @asynccontextmanager
    async def living(_: Starlette) -> AsyncIterator[None]:
        if lifespan is None:
            yield
            return
        async with lifespan():
            yield

    return Starlette(
        routes=[
            *gateway_routes(gateway, limit=limit, threshold=threshold),
            *api_routes(gateway, limit=limit, threshold=threshold),
            *activity_routes(activity or NoActivity()),
            *review_routes(gateway),
            *more_routes,
        ],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(RequestContext, max_bytes=MAX_BYTES),
            Middleware(Guard, token=token, is_same_person=is_same_person, client_of=client_of),
            Middleware(NamedClient),
            *more_middleware,
        ],
        exception_handlers={ToolscriptError: _handle_own_error, HTTPException: _handle_http_exception},
        lifespan=living,
    )


def create_view_app(
    gateway: Gateway,
    *,
    limit: int,
    threshold: float,
    activity: ActivityLog | None = None,
    more_routes: tuple[BaseRoute, ...] = (),
) -> Starlette:
    """Return the routes of one workspace, which the app of the gateway passes requests to."""
    return Starlette(
        routes=[
            *gateway_routes(gateway, limit=limit, threshold=threshold),
            *api_routes(gateway, limit=limit, threshold=threshold),
            *activity_routes(activity or NoActivity()),
            *review_routes(gateway),
            *more_routes,
        ],
        exception_handlers={ToolscriptError: _handle_own_error, HTTPException: _handle_http_exception},
    )


async def _handle_own_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ToolscriptError)  # noqa: S101
    body = envelope_of(error, by_kind=has_kinds(request.url.path))
    return JSONResponse(body, ERROR_TABLE[type(error)].http_status)


async def _handle_http_exception(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    code = code_of_status(request.url.path, error.status_code)
    message = f"{request.method} {request.url.path[:200]}: {error.detail}"
    return JSONResponse(envelope(code, message), error.status_code, headers=error.headers)
