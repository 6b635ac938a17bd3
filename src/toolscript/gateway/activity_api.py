"""The activity log over HTTP, and the names of the clients whose requests are logged."""

from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolscript.core.items import MAX_ID
from toolscript.core.web.cursors import decode_cursor, encode_cursor
from toolscript.gateway.activity import ActivityFilter, ActivityLog, Outcome, record_shown
from toolscript.gateway.api import count_in, parameter_of
from toolscript.gateway.callers import CLIENT_HEADER, CLIENT_OF_TOKEN, HTTP, client_is
from toolscript.gateway.openapi import ACTIVITY_PATH, DEFAULT_PAGE, MAX_PAGE


class NamedClient:
    """Middleware: a request is that of the client whose token it has, else of the one that our header names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = unquote(Headers(scope=scope).get(CLIENT_HEADER, "")) or HTTP
        with client_is(scope.get(CLIENT_OF_TOKEN) or said):
            await self._app(scope, receive, send)


def activity_routes(log: ActivityLog) -> list[Route]:
    async def list_activity(request: Request) -> Response:
        """List searches and calls, the newest first."""
        limit = count_in(request, "limit", DEFAULT_PAGE, MAX_PAGE)
        before = decode_cursor(request.query_params.get("cursor", ""), MAX_ID)
        if request.query_params.get("outcome"):
            parameter_of(request, "outcome", "", [*Outcome])
        names = ("server", "tool", "client", "outcome")
        where = ActivityFilter(**{name: request.query_params.get(name, "") for name in names})
        records = await log.page(where, before, limit + 1)
        next_cursor = encode_cursor(records[limit - 1].id) if len(records) > limit else None
        return JSONResponse({"results": [*map(record_shown, records[:limit])], "next_cursor": next_cursor})

    return [Route(ACTIVITY_PATH, list_activity, methods=["GET"])]
