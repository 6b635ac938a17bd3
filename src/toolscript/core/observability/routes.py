"""GET /metrics for Prometheus, and the duration of requests."""

import time
from collections.abc import Callable

from fastapi import APIRouter, Depends, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscript.core.web.auth import AdminAccess, admins_only
from toolscript.core.web.routers import api_router

METRICS_PATH = "/metrics"
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"

# Arguments: method, template of the route (empty without a route), status, seconds.
ObserveRequest = Callable[[str, str, int, float], None]


def metrics_routes(page: Callable[[], bytes], admin: AdminAccess) -> APIRouter:
    """Return the metrics route, for administrators only: metrics reveal how much an installation is used."""
    router = api_router(checks=[Depends(admins_only(admin))])

    # Not async: rendering the page takes a while, so it runs in a thread.
    @router.get(METRICS_PATH, include_in_schema=False)
    def metrics() -> Response:
        return Response(page(), headers={"content-type": TEXT_FORMAT})

    return router


class MeasuredRequests:
    """Outermost middleware: measures every response."""

    def __init__(self, app: ASGIApp, observe: ObserveRequest) -> None:
        self._app = app
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 500, time.perf_counter()

        async def send_measured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_measured)
        finally:
            self._observe(scope["method"], _template(scope), status, time.perf_counter() - began)


def _template(scope: Scope) -> str:
    """Return the path template of the route, which the router stores in the scope."""
    return str(getattr(scope.get("route"), "path", ""))
