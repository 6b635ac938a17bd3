"""The HTTP API: its routes, its OpenAPI description and its metadata as a protected resource."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from fastapi import Depends, FastAPI, params
from fastapi.telemetry import TelemetryConfig
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolscript.core.auth.model import Scope
from toolscript.core.health import CheckHealth, health_routes
from toolscript.core.retrieval.query import SearchType
from toolscript.core.version import __version__
from toolscript.core.web.admission import Admission, Admitted
from toolscript.core.web.auth import AdminAccess, Identify, admins_only
from toolscript.core.web.errors import install_error_handlers
from toolscript.core.web.hosts import AllowedHosts
from toolscript.core.web.paging import TemplatedRoute
from toolscript.core.web.request_context import RequestContext, SecurityHeaders
from toolscript.core.web.routers import add_routers, operation_id
from toolscript.documents.http.dependencies import DocumentRoutes
from toolscript.documents.http.routes import LARGER_REQUESTS, document_routes, search_health_routes
from toolscript.documents.http.tenants import tenant_routes
from toolscript.knowledge.http.routes import KnowledgeRoutes, knowledge_routes
from toolscript.server.openapi import ACCESS, DescribedApi
from toolscript.server.reference import reference_routes
from toolscript.tools.curation import CurationManagement
from toolscript.tools.http.access import CatalogAccess
from toolscript.tools.http.catalog import change_routes, source_routes, tool_routes
from toolscript.tools.http.curation import curation_routes
from toolscript.tools.http.jobs import JOBS_PATH, MAX_JOB_BYTES, SyncRequests, job_routes
from toolscript.tools.http.search import SearchesCatalog, SearchService, tool_search_routes
from toolscript.tools.http.search_log import SearchLogService, search_log_routes
from toolscript.tools.http.skills import audit_routes, skill_routes, suggestion_routes, tool_skill_routes
from toolscript.tools.ports import ItemChanges
from toolscript.tools.skills.management import SkillManagement

TAGS = {
    "tools": "Search and read the tools, prompts and resources of the catalog.",
    "skills": "The categories of tools that route a search.",
    "suggestions": "Skills that a classifier found missing, for people to decide.",
    "curation": "Rules of people: which tool comes first or never, and what words mean.",
    "tool_searches": "What was searched for, and what was not found, where the log of tool searches is on.",
    "changes": "Definitions of tools that changed after they were first seen.",
    "sources": "Where tools come from.",
    "jobs": "Imports and syncs that run in the background.",
    "audit": "Who decided what.",
    "documents": "Documents of the token's tenant.",
    "tenants": "Tenants that have documents.",
    "knowledge": "A library of chunks and extractions, each with its source.",
    "health": "Whether the service is alive and ready.",
}
DESCRIPTION = """\
Resources are under `/api/v1`. Lists take `cursor` and `limit` and answer `results` and `next_cursor`; searches
answer `query_id`, `results` and `metadata`. Errors are `{"error": {"code", "message", "details"}}`, and every
answer has an `x-request-id`. `security` of an operation names the scope of its token. `DELETE` answers 204 when it
is done, 202 with a job and its `Location` when it goes on, and 200 where there is something to report. Paths
outside `/api/v1`, and those below `/api/v1/search`, are aliases with their own field names: marked deprecated,
because new clients should not use them, and kept.
"""

MCP_PATH = "/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
HOUR_SECONDS = 3600


@dataclass(frozen=True)
class ApiAccess:
    """`hosts`: host names that requests may use, None for any. `docs`: whether the API serves its reference."""

    admin: AdminAccess = field(default_factory=AdminAccess)
    hosts: Collection[str] | None = None
    docs: bool = True


NO_ADMIN = ApiAccess()


def create_app(
    search: SearchesCatalog,
    skills: SkillManagement,
    changes: ItemChanges,
    sync: SyncRequests,
    check_health: CheckHealth,
    *,
    access: ApiAccess = NO_ADMIN,
    documents: DocumentRoutes | None = None,
    knowledge: KnowledgeRoutes | None = None,
    catalog_readers: Identify | None = None,
    telemetry: TelemetryConfig | None = None,
    admission: Admission | None = None,
    search_type: SearchType = SearchType.HYBRID,
    curation: CurationManagement | None = None,
    searches: SearchLogService | None = None,
) -> FastAPI:
    """Assemble the API. `ACCESS` says who may use which routes; document routes authenticate themselves.

    `catalog_readers` authenticates clients of the catalog, and counts those without a token where it is public.
    `search_type` is the default for tool searches.
    """
    app = _described_api(access, telemetry)
    catalog = CatalogAccess(access.admin, catalog_readers)
    service = SearchService(search, search_type, searches.record if searches else None)
    add_routers(app, tool_search_routes(service, catalog.searches()))
    _add_management(app, (skills, changes, sync, curation, searches), catalog)
    add_routers(app, health_routes(check_health), search_health_routes(documents))
    add_routers(app, *document_routes(documents), knowledge_routes(knowledge))
    add_routers(app, tenant_routes(documents, [Depends(admins_only(access.admin))]))
    if access.docs:
        add_routers(app, reference_routes(app.openapi))
    install_error_handlers(app)
    _add_middleware(app, access.hosts, admission)
    return app


def _described_api(access: ApiAccess, telemetry: TelemetryConfig | None) -> DescribedApi:
    return DescribedApi(
        title="Toolscript",
        version=__version__,
        summary="Finds the right tool, document or piece of knowledge for a request in plain words.",
        description=DESCRIPTION,
        license_info={"name": "Apache 2.0", "identifier": "Apache-2.0"},
        openapi_tags=[{"name": name, "description": description} for name, description in TAGS.items()],
        servers=[{"url": "/", "description": "This service."}],
        generate_unique_id_function=operation_id,
        redirect_slashes=False,
        openapi_url="/openapi.json" if access.docs else None,
        docs_url=None,
        redoc_url=None,
        telemetry=telemetry,
    )


def _add_management(
    app: FastAPI,
    managed: tuple[SkillManagement, ItemChanges, SyncRequests, CurationManagement | None, SearchLogService | None],
    catalog: CatalogAccess,
) -> None:
    skills, changes, sync, curation, searches = managed

    def checks(tag: str) -> list[params.Depends]:
        return [Depends(catalog.check(*ACCESS[tag]))]

    add_routers(
        app,
        tool_routes(sync, checks("tools")),
        tool_skill_routes(skills, checks("tools")),
        skill_routes(skills, checks("skills")),
        suggestion_routes(skills, checks("suggestions")),
        curation_routes(curation, checks("curation")),
        search_log_routes(searches, checks("tool_searches")),
        change_routes(changes, checks("changes")),
        source_routes(sync, checks("sources")),
        job_routes(sync, checks("jobs")),
        audit_routes(skills, checks("audit")),
    )


def _add_middleware(app: FastAPI, hosts: Collection[str] | None, admission: Admission | None) -> None:
    """Add the middleware of every request; the last one added is the outermost."""
    if hosts is not None:
        app.add_middleware(AllowedHosts, hosts=hosts)
    if admission is not None:
        app.state.admission = admission
        app.add_middleware(Admitted, admission=admission)
    app.add_middleware(RequestContext, larger={f"POST {JOBS_PATH}": MAX_JOB_BYTES, **LARGER_REQUESTS})
    app.add_middleware(SecurityHeaders)


@dataclass(frozen=True)
class ProtectedResource:
    """OAuth metadata of the MCP endpoint.

    With an empty `public_url` the address is that of the request. An issuer that is not a URL is left out.
    """

    public_url: str
    issuer: str
    scopes: Sequence[Scope]

    def metadata_url(self, request: Request) -> str:
        return f"{self._address(request)}{WELL_KNOWN}{MCP_PATH}"

    def routes(self) -> tuple[BaseRoute, ...]:
        return tuple(
            TemplatedRoute(path, self._answer, methods=["GET"]) for path in (WELL_KNOWN, f"{WELL_KNOWN}{MCP_PATH}")
        )

    async def _answer(self, request: Request) -> Response:
        # An address from a request header may be forged, so it must not be cached for other clients.
        cache_control = f"max-age={HOUR_SECONDS}" if self.public_url else "no-store"
        return JSONResponse(self._metadata(request), headers={"Cache-Control": cache_control})

    def _metadata(self, request: Request) -> dict[str, object]:
        servers = (
            {"authorization_servers": [self.issuer]} if self.issuer.startswith(("https://", "http://")) else {}
        )
        return {
            "resource": f"{self._address(request)}{MCP_PATH}",
            **servers,
            "scopes_supported": [str(scope) for scope in self.scopes],
            "bearer_methods_supported": ["header"],
            "resource_name": "Toolscript",
        }

    def _address(self, request: Request) -> str:
        return (self.public_url or str(request.base_url)).rstrip("/")
