"""GET /metrics for Prometheus, and how long requests take."""

import time
from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscript.core.web.auth import AdminAccess

METRICS_PATH = "/metrics"
TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"

# Method, template of the route (empty where none fits), status, seconds.
ObserveRequest = Callable[[str, str, int, float], None]


def metrics_routes(page: Callable[[], bytes], admin: AdminAccess) -> APIRouter:
    """Figures tell how much an installation is used: for whoever runs it."""
    router = APIRouter()

    # Not async: making the page takes a while, on a thread that no search waits for.
    @router.get(METRICS_PATH, include_in_schema=False)
    def metrics(request: Request) -> Response:
        refused = admin.refusal(request)
        if refused is not None:
            raise refused
        return Response(page(), headers={"content-type": TEXT_FORMAT})

    return router


class MeasuredRequests:
    """To be put around everything else: what is answered is what is measured."""

    def __init__(self, app: ASGIApp, observe: ObserveRequest) -> None:
        self._app = app
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 500, time.perf_counter()

        async def seen(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, seen)
        finally:
            self._observe(scope["method"], _template(scope), status, time.perf_counter() - began)


def _template(scope: Scope) -> str:
    """The router leaves in the scope which route it chose."""
    return str(getattr(scope.get("route"), "path", ""))
