"""Assembles the HTTP API."""

from fastapi import Depends, FastAPI
from fastapi.telemetry import TelemetryConfig

from toolscript import __version__
from toolscript.ports import ItemChanges
from toolscript.search.tools import ToolSearch
from toolscript.surfaces.http.catalog_contents import catalog_routes
from toolscript.surfaces.http.changes import change_routes
from toolscript.surfaces.http.documents import (
    LARGER_REQUESTS,
    DocumentRoutes,
    document_routes,
    search_health_routes,
)
from toolscript.surfaces.http.errors import install_error_handlers
from toolscript.surfaces.http.health import CheckHealth, health_routes
from toolscript.surfaces.http.item_skills import item_skill_routes
from toolscript.surfaces.http.knowledge import KnowledgeRoutes, knowledge_routes
from toolscript.surfaces.http.openapi import DescribedApi
from toolscript.surfaces.http.skills import skill_routes
from toolscript.surfaces.http.suggestions import suggestion_routes
from toolscript.surfaces.http.sync import MOST_SYNC_BYTES, SYNC_PATH, SyncRequests, sync_routes
from toolscript.surfaces.http.tool_search import tool_search_routes
from toolscript.surfaces.http.visitors import VisitorOf
from toolscript.surfaces.http.write_guard import readers_only, writers_only
from toolscript.surfaces.request_context import RequestContext
from toolscript.sync.skill_management import SkillManagement


def create_app(
    search: ToolSearch,
    skills: SkillManagement,
    changes: ItemChanges,
    sync: SyncRequests,
    check_health: CheckHealth,
    *,
    admin_token: str = "",
    documents: DocumentRoutes | None = None,
    knowledge: KnowledgeRoutes | None = None,
    catalog_readers: VisitorOf | None = None,
    telemetry: TelemetryConfig | None = None,
) -> FastAPI:
    """Routes that write ask `writers_only(admin_token)`; those of documents know their callers by themselves.

    `catalog_readers`: who they are, where the catalog is not for everybody.
    """
    app = DescribedApi(
        title="Toolscript",
        version=__version__,
        summary="Finds the right tool for a request in plain words.",
        redirect_slashes=False,
        telemetry=telemetry,
    )
    reading = [Depends(readers_only(catalog_readers, admin_token))] if catalog_readers else []
    app.include_router(tool_search_routes(search), dependencies=reading)
    app.include_router(health_routes(check_health))
    guard = [Depends(writers_only(admin_token)), *reading]
    # In this order: `suggestions` would be taken for the id of a skill.
    for routes in (suggestion_routes, skill_routes, item_skill_routes):
        app.include_router(routes(skills), dependencies=guard)
    app.include_router(change_routes(changes), dependencies=guard)
    app.include_router(sync_routes(sync), dependencies=guard)
    app.include_router(catalog_routes(sync), dependencies=guard)
    app.include_router(search_health_routes(documents))
    app.include_router(document_routes(documents))
    app.include_router(knowledge_routes(knowledge))
    install_error_handlers(app)
    app.add_middleware(RequestContext, larger={f"POST {SYNC_PATH}": MOST_SYNC_BYTES, **LARGER_REQUESTS})
    return app
