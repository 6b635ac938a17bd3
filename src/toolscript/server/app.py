"""Assembles the HTTP API."""

from collections.abc import Collection
from dataclasses import dataclass, field

from fastapi import APIRouter, Depends, FastAPI
from fastapi.params import Depends as DependsOn
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig

from toolscript import __version__
from toolscript.model.tenancy import Scope
from toolscript.ports import ItemChanges
from toolscript.surfaces.admission.admission import Admission
from toolscript.surfaces.admission.middleware import Admitted
from toolscript.surfaces.http.catalog_contents import catalog_routes
from toolscript.surfaces.http.changes import change_routes
from toolscript.surfaces.http.checked_routes import for_visitors
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
from toolscript.surfaces.http.skills import audit_routes, skill_routes
from toolscript.surfaces.http.suggestions import suggestion_routes
from toolscript.surfaces.http.sync import MOST_SYNC_BYTES, SYNC_PATH, SyncRequests, sync_routes
from toolscript.surfaces.http.tool_search import AsksCatalog, tool_search_routes
from toolscript.surfaces.http.visitors import VisitorOf
from toolscript.surfaces.http.write_guard import AdminAccess, admins_only, readers_only, writers_only
from toolscript.surfaces.request_context import RequestContext
from toolscript.surfaces.security_headers import SecurityHeaders
from toolscript.sync.skill_management import SkillManagement

Depended = list[DependsOn]


@dataclass(frozen=True)
class ApiAccess:
    """`hosts`: the names it may be asked by, None: any. `docs`: whether the API describes itself."""

    admin: AdminAccess = field(default_factory=AdminAccess)
    hosts: Collection[str] | None = None
    docs: bool = True


NO_ADMIN = ApiAccess()


def create_app(
    search: AsksCatalog,
    skills: SkillManagement,
    changes: ItemChanges,
    sync: SyncRequests,
    check_health: CheckHealth,
    *,
    access: ApiAccess = NO_ADMIN,
    documents: DocumentRoutes | None = None,
    knowledge: KnowledgeRoutes | None = None,
    catalog_readers: VisitorOf | None = None,
    searchers: VisitorOf | None = None,
    telemetry: TelemetryConfig | None = None,
    admission: Admission | None = None,
) -> FastAPI:
    """Routes that write, and those that tell who decided what, are for administrators; those of documents know
    their callers by themselves.

    `catalog_readers`: who they are, where the catalog is not for everybody; where it is, `searchers` are counted.
    """
    app = DescribedApi(
        title="Toolscript",
        version=__version__,
        summary="Finds the right tool for a request in plain words.",
        redirect_slashes=False,
        openapi_url="/openapi.json" if access.docs else None,
        docs_url=None,
        redoc_url=None,
        telemetry=telemetry,
    )
    reading = [Depends(readers_only(catalog_readers, access.admin))] if catalog_readers else []
    app.include_router(tool_search_routes(search, _counted(searchers, access.admin)), dependencies=reading)
    _include_managing(app, (skills, changes, sync), access.admin, reading)
    _include_open(app, health_routes(check_health), search_health_routes(documents))
    _include_open(app, document_routes(documents), knowledge_routes(knowledge))
    if access.docs:
        app.include_router(reference_routes(app.openapi))
    install_error_handlers(app)
    _surround(app, access.hosts, admission)
    return app


def _include_managing(
    app: FastAPI, managed: tuple[SkillManagement, ItemChanges, SyncRequests], admin: AdminAccess, reading: Depended
) -> None:
    skills, changes, sync = managed
    admins, writers = [Depends(admins_only(admin))], [Depends(writers_only(admin)), *reading]
    # In this order: `suggestions` and `audit` would be taken for ids of skills.
    for routes, who in (
        (suggestion_routes(skills), admins),
        (audit_routes(skills), admins),
        (skill_routes(skills), writers),
        (item_skill_routes(skills), writers),
        (change_routes(changes), admins),
        (sync_routes(sync), admins),
        (catalog_routes(sync), writers),
    ):
        app.include_router(routes, dependencies=who)


def _include_open(app: FastAPI, *routers: APIRouter) -> None:
    """Those that know by themselves who may ask, or let everybody."""
    for router in routers:
        app.include_router(router)


def _counted(searchers: VisitorOf | None, admin: AdminAccess) -> type[APIRoute]:
    """Administrators are no visitors, and not counted."""
    return for_visitors(searchers, Scope.TOOLS_READ, admin.admits) if searchers else APIRoute


def _surround(app: FastAPI, hosts: Collection[str] | None, admission: Admission | None) -> None:
    """With what holds for every request; the last is the outermost."""
    if hosts is not None:
        app.add_middleware(KnownHosts, hosts=hosts)
    if admission is not None:
        app.state.admission = admission
        app.add_middleware(Admitted, admission=admission)
    app.add_middleware(RequestContext, larger={f"POST {SYNC_PATH}": MOST_SYNC_BYTES, **LARGER_REQUESTS})
    app.add_middleware(SecurityHeaders)
