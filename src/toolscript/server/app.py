"""The HTTP API: its routes, its OpenAPI description and its metadata as a protected resource."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.params import Depends as DependsOn
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from toolscript.core.auth.model import Scope
from toolscript.core.health import CheckHealth, health_routes
from toolscript.core.retrieval.query import SearchType
from toolscript.core.version import __version__
from toolscript.core.web.admission import Admission, Admitted
from toolscript.core.web.auth import (
    AdminAccess,
    Identify,
    admins_only,
    readers_only,
    require_identity,
    writers_only,
)
from toolscript.core.web.errors import install_error_handlers
from toolscript.core.web.hosts import AllowedHosts
from toolscript.core.web.paging import TemplatedRoute
from toolscript.core.web.request_context import HEADER, RequestContext, SecurityHeaders
from toolscript.documents.http.dependencies import DocumentRoutes
from toolscript.documents.http.routes import LARGER_REQUESTS, document_routes, search_health_routes
from toolscript.documents.http.tenants import tenant_routes
from toolscript.knowledge.http.routes import KnowledgeRoutes, knowledge_routes
from toolscript.server.reference import reference_routes
from toolscript.tools.http.catalog import change_routes, source_routes, tool_routes
from toolscript.tools.http.jobs import JOBS_PATH, MAX_JOB_BYTES, SyncRequests, job_routes
from toolscript.tools.http.search import SearchesCatalog, tool_search_routes
from toolscript.tools.http.skills import audit_routes, skill_routes, suggestion_routes, tool_skill_routes
from toolscript.tools.ports import ItemChanges
from toolscript.tools.skills.management import SkillManagement

Json = dict[str, Any]

_TEXT = {"type": "string"}
_REQUEST_ID = {"description": "Id of the request, also in the log.", "required": True, "schema": _TEXT}
_CHALLENGE = {"description": "How to authenticate.", "required": True, "schema": _TEXT}
_TOO_LARGE = {
    "description": "Content Too Large",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorEnvelope"}}},
}

_SECURITY_SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A token of the configured issuer, with the scope of the operation and a tenant.",
    },
    "admin": {
        "type": "http",
        "scheme": "bearer",
        "description": "TOOLSCRIPT_ADMIN_TOKEN. Over the socket of `serve --socket` no token is needed.",
    },
}
TAGS = {
    "tools": "Search and read the tools, prompts and resources of the catalog.",
    "skills": "The categories of tools that route a search.",
    "suggestions": "Skills that a classifier found missing, for people to decide.",
    "changes": "Definitions of tools that changed after they were first seen.",
    "sources": "Where tools come from.",
    "jobs": "Imports and syncs that run in the background.",
    "audit": "Who decided what.",
    "documents": "Documents of the token's tenant.",
    "tenants": "Tenants that have documents.",
    "knowledge": "A library of chunks and extractions, each with its source.",
    "health": "Whether the service is alive and ready.",
}
ADMIN_TAGS = frozenset({"suggestions", "changes", "jobs", "audit", "tenants"})
PUBLIC_TAGS = frozenset({"tools", "skills", "sources", "knowledge"})

Depended = list[DependsOn]

DESCRIPTION = """\
Resources are under `/api/v1`. Lists take `cursor` and `limit` and answer `results` and `next_cursor`; searches
answer `query_id`, `results` and `metadata`. Errors are `{"error": {"code", "message", "details"}}`, and every
answer has an `x-request-id`. Paths outside `/api/v1`, and those below `/api/v1/search`, are aliases with their own
field names.
"""

MCP_PATH = "/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
HOUR_SECONDS = 3600


class DescribedApi(FastAPI):
    def openapi(self) -> Json:
        if not self.openapi_schema:
            schema = super().openapi()
            schema.setdefault("components", {})["securitySchemes"] = _SECURITY_SCHEMES
            for path, operations in schema["paths"].items():
                for method, operation in operations.items():
                    _complete_responses(operation)
                    _complete_security(operation, is_read=method == "get" or "search" in path)
        return super().openapi()


def _complete_security(operation: Json, *, is_read: bool) -> None:
    """Name the credential of an operation. Where anonymous clients may have the scope, none is a choice, too."""
    tag = operation["tags"][0]
    if "401" not in operation["responses"]:
        operation["security"] = []
    elif tag in ADMIN_TAGS or (tag in PUBLIC_TAGS and not is_read):
        operation["security"] = [{"admin": []}]
    elif tag in PUBLIC_TAGS:
        operation["security"] = [{"token": []}, {"admin": []}, {}]
    else:
        operation["security"] = [{"token": []}]


def _complete_responses(operation: Json) -> None:
    responses: Json = operation["responses"]
    if "requestBody" in operation:
        responses["413"] = dict(_TOO_LARGE)
    for status, response in responses.items():
        headers = response.setdefault("headers", {})
        headers[HEADER.decode()] = _REQUEST_ID
        if status == "401":
            headers["WWW-Authenticate"] = _CHALLENGE
    operation["responses"] = dict(sorted(responses.items()))


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
    searchers: Identify | None = None,
    telemetry: TelemetryConfig | None = None,
    admission: Admission | None = None,
    search_type: SearchType = SearchType.HYBRID,
) -> FastAPI:
    """Assemble the API. Write and audit routes require an administrator; document routes authenticate themselves.

    `catalog_readers` authenticates readers of a catalog that is not public; `searchers` rate-limits searches of a
    public one. `search_type` is the default for tool searches.
    """
    app = _described_api(access, telemetry)
    reading = [Depends(readers_only(catalog_readers, access.admin))] if catalog_readers else []
    searching = tool_search_routes(search, _rate_limited(searchers, access.admin), search_type)
    app.include_router(searching, dependencies=reading)
    _include_management(app, (skills, changes, sync), access.admin, reading)
    _include_open(app, health_routes(check_health), search_health_routes(documents))
    _include_open(app, document_routes(documents), knowledge_routes(knowledge))
    app.include_router(tenant_routes(documents), dependencies=[Depends(admins_only(access.admin))])
    if access.docs:
        app.include_router(reference_routes(app.openapi))
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
        generate_unique_id_function=lambda route: route.name,
        redirect_slashes=False,
        openapi_url="/openapi.json" if access.docs else None,
        docs_url=None,
        redoc_url=None,
        telemetry=telemetry,
    )


def _include_management(
    app: FastAPI, managed: tuple[SkillManagement, ItemChanges, SyncRequests], admin: AdminAccess, reading: Depended
) -> None:
    skills, changes, sync = managed
    admins, writers = [Depends(admins_only(admin))], [Depends(writers_only(admin)), *reading]
    for routes, who in (
        (tool_routes(sync), writers),
        (tool_skill_routes(skills), writers),
        (skill_routes(skills), writers),
        (suggestion_routes(skills), admins),
        (change_routes(changes), admins),
        (source_routes(sync), writers),
        (job_routes(sync), admins),
        (audit_routes(skills), admins),
    ):
        app.include_router(routes, dependencies=who)


def _include_open(app: FastAPI, *routers: APIRouter) -> None:
    """Include routes that authenticate on their own, or are public."""
    for router in routers:
        app.include_router(router)


def _rate_limited(searchers: Identify | None, admin: AdminAccess) -> type[APIRoute]:
    """Return a route class that rate-limits searchers, except administrators."""
    return require_identity(searchers, Scope.TOOLS_READ, admin.admits) if searchers else APIRoute


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
