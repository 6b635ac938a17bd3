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
from toolscript.knowledge.http.routes import KnowledgeRoutes, knowledge_routes
from toolscript.server.reference import reference_routes
from toolscript.tools.http.catalog import catalog_routes, change_routes
from toolscript.tools.http.search import SearchesCatalog, tool_search_routes
from toolscript.tools.http.skills import audit_routes, item_skill_routes, skill_routes, suggestion_routes
from toolscript.tools.http.sync import MAX_SYNC_BYTES, SYNC_PATH, SyncRequests, sync_routes
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

Depended = list[DependsOn]

MCP_PATH = "/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
HOUR_SECONDS = 3600


class DescribedApi(FastAPI):
    def openapi(self) -> Json:
        if not self.openapi_schema:
            for operations in super().openapi()["paths"].values():
                for operation in operations.values():
                    _complete_responses(operation)
        return super().openapi()


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
    if access.docs:
        app.include_router(reference_routes(app.openapi))
    install_error_handlers(app)
    _add_middleware(app, access.hosts, admission)
    return app


def _described_api(access: ApiAccess, telemetry: TelemetryConfig | None) -> DescribedApi:
    return DescribedApi(
        title="Toolscript",
        version=__version__,
        summary="Finds the right tool for a request in plain words.",
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
    # Order matters: `suggestions` and `audit` would otherwise match as skill ids.
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
    app.add_middleware(RequestContext, larger={f"POST {SYNC_PATH}": MAX_SYNC_BYTES, **LARGER_REQUESTS})
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
