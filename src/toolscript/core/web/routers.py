"""Routers whose routes are added to an app as they are.

`FastAPI.include_router` builds every route a second time, when a request is first compared with it, and compares
each request with one router after the other.
"""

from collections.abc import Sequence

from fastapi import APIRouter, FastAPI
from fastapi.params import Depends
from fastapi.routing import APIRoute

NO_CHECKS: Sequence[Depends] = ()


def operation_id(route: APIRoute) -> str:
    return route.name


def api_router(
    prefix: str = "",
    tag: str | None = None,
    checks: Sequence[Depends] = NO_CHECKS,
    route_class: type[APIRoute] = APIRoute,
) -> APIRouter:
    """Return a router with all that its routes need: `add_routers` adds nothing to them.

    `checks` run before a route; a `route_class` may check before the body is read.
    """
    return APIRouter(
        prefix=prefix,
        tags=None if tag is None else [tag],
        dependencies=checks,
        route_class=route_class,
        generate_unique_id_function=operation_id,
    )


def add_routers(app: FastAPI, *routers: APIRouter) -> None:
    app.router.routes.extend(route for router in routers for route in router.routes)
