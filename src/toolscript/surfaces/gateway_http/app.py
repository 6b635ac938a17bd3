"""Assembles a gateway's HTTP: its routes, its MCP endpoint, and the one shape of its errors."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute

from toolscript.errors import ToolscriptError
from toolscript.ports import Gateway
from toolscript.surfaces.error_table import ERROR_TABLE, envelope, envelope_of
from toolscript.surfaces.gateway_http.guard import Address, Guard
from toolscript.surfaces.gateway_http.routes import gateway_routes
from toolscript.surfaces.request_context import RequestContext
from toolscript.surfaces.security_headers import SecurityHeaders

MOST_BYTES = 8 * 1024 * 1024


def create_gateway_app(
    gateway: Gateway,
    *,
    limit: int,
    threshold: float,
    token: str,
    is_same_person: Callable[[Address, Address], bool] | None = None,
    more_routes: tuple[BaseRoute, ...] = (),
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
        routes=[*gateway_routes(gateway, limit=limit, threshold=threshold), *more_routes],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(RequestContext, most_bytes=MOST_BYTES),
            Middleware(Guard, token=token, is_same_person=is_same_person),
        ],
        exception_handlers={ToolscriptError: _ours, HTTPException: _the_frameworks},
        lifespan=living,
    )


async def _ours(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ToolscriptError)  # noqa: S101
    return JSONResponse(envelope_of(error), ERROR_TABLE[type(error)].http_status)


async def _the_frameworks(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    code = "NOT_FOUND" if error.status_code == 404 else "VALIDATION_ERROR"
    message = f"{request.method} {request.url.path[:200]}: {error.detail}"
    return JSONResponse(envelope(code, message), error.status_code, headers=error.headers)
