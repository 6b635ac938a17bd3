"""Assembles the HTTP API."""

from fastapi import FastAPI

from toolscript import __version__
from toolscript.search.tools import ToolSearch
from toolscript.surfaces.http.errors import install_error_handlers
from toolscript.surfaces.http.health import CheckHealth, health_routes
from toolscript.surfaces.http.tool_search import tool_search_routes
from toolscript.surfaces.request_context import RequestContext


def create_app(search: ToolSearch, check_health: CheckHealth) -> FastAPI:
    app = FastAPI(
        title="Toolscript",
        version=__version__,
        summary="Finds the right tool for a request in plain words.",
        redirect_slashes=False,
    )
    app.include_router(tool_search_routes(search))
    app.include_router(health_routes(check_health))
    install_error_handlers(app)
    app.add_middleware(RequestContext)
    return app
