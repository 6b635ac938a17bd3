"""Assembles the HTTP API."""

from collections.abc import Collection

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
from toolscript.surfaces.http.known_hosts import KnownHosts
from toolscript.surfaces.http.openapi import DescribedApi
from toolscript.surfaces.http.reference import reference_routes
from toolscript.surfaces.http.security_headers import SecurityHeaders
from toolscript.surfaces.http.skills import audit_routes, skill_routes
from toolscript.surfaces.http.suggestions import suggestion_routes
from toolscript.surfaces.http.sync import MOST_SYNC_BYTES, SYNC_PATH, SyncRequests, sync_routes
from toolscript.surfaces.http.tool_search import tool_search_routes
from toolscript.surfaces.http.visitors import VisitorOf
from toolscript.surfaces.http.write_guard import AdminAccess, admins_only, readers_only, writers_only
from toolscript.surfaces.request_context import RequestContext
from toolscript.sync.skill_management import SkillManagement

NO_ADMIN = AdminAccess()


def create_app(
    search: ToolSearch,
    skills: SkillManagement,
    changes: ItemChanges,
    sync: SyncRequests,
    check_health: CheckHealth,
    *,
    admin: AdminAccess = NO_ADMIN,
    hosts: Collection[str] | None = None,
    docs: bool = True,
    documents: DocumentRoutes | None = None,
    knowledge: KnowledgeRoutes | None = None,
    catalog_readers: VisitorOf | None = None,
    telemetry: TelemetryConfig | None = None,
) -> FastAPI:
    """Routes that write, and those that tell who decided what, are for administrators; those of documents know
    their callers by themselves.

    `catalog_readers`: who they are, where the catalog is not for everybody. `hosts`: the names it may be asked by,
    None: any.
    """
    app = DescribedApi(
        title="Toolscript",
        version=__version__,
        summary="Finds the right tool for a request in plain words.",
        redirect_slashes=False,
        openapi_url="/openapi.json" if docs else None,
        docs_url=None,
        redoc_url=None,
        telemetry=telemetry,
    )
    reading = [Depends(readers_only(catalog_readers, admin))] if catalog_readers else []
    app.include_router(tool_search_routes(search), dependencies=reading)
    app.include_router(health_routes(check_health))
    admins, writers = [Depends(admins_only(admin))], [Depends(writers_only(admin)), *reading]
    # In this order: `suggestions` and `audit` would be taken for ids of skills.
    app.include_router(suggestion_routes(skills), dependencies=admins)
    app.include_router(audit_routes(skills), dependencies=admins)
    app.include_router(skill_routes(skills), dependencies=writers)
    app.include_router(item_skill_routes(skills), dependencies=writers)
    app.include_router(change_routes(changes), dependencies=admins)
    app.include_router(sync_routes(sync), dependencies=admins)
    app.include_router(catalog_routes(sync), dependencies=writers)
    app.include_router(search_health_routes(documents))
    app.include_router(document_routes(documents))
    app.include_router(knowledge_routes(knowledge))
    if docs:
        app.include_router(reference_routes(app.openapi))
    install_error_handlers(app)
    if hosts is not None:
        app.add_middleware(KnownHosts, hosts=hosts)
    app.add_middleware(RequestContext, larger={f"POST {SYNC_PATH}": MOST_SYNC_BYTES, **LARGER_REQUESTS})
    app.add_middleware(SecurityHeaders)
    return app
