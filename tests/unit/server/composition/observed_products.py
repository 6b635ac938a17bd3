"""Tools and a library in memory, served over HTTP and MCP, wired and observed like the service."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import httpx2

from tests.doubles import MemoryTokenVerifier
from tests.unit.knowledge.search.builders import Shelf, open_shelf
from tests.unit.knowledge.search.conftest import filled
from tests.unit.server.composition.observed_app import settings_of
from tests.unit.server.mcp.builders import Plain
from tests.unit.tools.search.builders import Scene
from toolscript.core.auth.model import Principal, Scope, Tenant
from toolscript.core.health import Health, PartHealth
from toolscript.core.postgres.pool import Pool
from toolscript.core.retrieval.namespaced import DefaultNamespace
from toolscript.core.retrieval.ports import Index
from toolscript.core.web.auth import AdminAccess, optional_authenticator_of
from toolscript.knowledge.http.routes import KnowledgeRoutes
from toolscript.knowledge.ports import LibraryReader
from toolscript.knowledge.search import KnowledgeSearch
from toolscript.server.app import create_app
from toolscript.server.mcp import open_mcp
from toolscript.server.mcp_tools import ServiceDependencies
from toolscript.server.metrics import Metrics
from toolscript.server.observability import Observability, open_observability
from toolscript.testing import MemoryIndexes, MemoryRequestBudget, MemorySearchLog, MemoryTaxonomy
from toolscript.tools.http.search_log import SearchLogService
from toolscript.tools.mcp.tools import CatalogDependencies
from toolscript.tools.model.search_log import Channel
from toolscript.tools.search import ToolSearch

PUBLIC = frozenset({Scope.KNOWLEDGE_READ, Scope.TOOLS_READ})
TOKEN = "token-of-ann"


@dataclass
class Products:
    """Each part can be replaced."""

    shelf: Shelf
    scene: Scene = field(default_factory=Scene)
    library: LibraryReader | None = None
    per_minute: int = 0

    def tools(self, observability: Observability) -> ToolSearch:
        scene = self.scene
        return ToolSearch(
            scene.embedder,
            DefaultNamespace(observability.item_index(scene.index, "tools")),
            DefaultNamespace(observability.item_index(scene.skills, "tools")),
            scene.catalog,
            spans=observability.spans_of("tools"),
        )

    def knowledge(self, observability: Observability, *, log_queries: bool) -> KnowledgeSearch:
        see = observability.item_index

        async def indexes() -> tuple[Index, Index]:
            return see(self.shelf.chunks, "knowledge"), see(self.shelf.extractions, "knowledge")

        return KnowledgeSearch(
            self.shelf.embedder,
            indexes,
            observability.library(self.library or self.shelf.library),
            spans=observability.spans_of("knowledge"),
            log_queries=log_queries,
        )


async def some_products(scene: Scene | None = None) -> Products:
    two = MemoryIndexes(engine_idf=False), MemoryIndexes(engine_idf=False)
    products = Products(await filled(await open_shelf(*two)), scene or Scene())
    await products.scene.fill()
    return products


@asynccontextmanager
async def served(
    products: Products, values: Mapping[str, object], pool: Pool | None = None
) -> AsyncIterator["Served"]:
    settings = settings_of(values)
    identify = optional_authenticator_of(
        MemoryTokenVerifier({TOKEN: Principal(Tenant("ann"))}),
        MemoryRequestBudget(),
        public_scopes=PUBLIC,
        public_requests_per_minute=products.per_minute,
    )

    async def check() -> Health:
        return Health({"index": PartHealth(ok=True, needed=True)})

    async with open_observability(settings, cast("Any", pool)) as observability:
        search = observability.tool_search(products.tools(observability))
        knowledge = observability.knowledge_search(
            products.knowledge(observability, log_queries=settings.log_queries)
        )
        record = observability.record_tool_searches
        catalog = CatalogDependencies(
            search, products.scene.catalog, MemoryTaxonomy(products.scene.catalog), record(Channel.MCP)
        )
        nothing = cast("Any", None)
        async with open_mcp(
            settings, ServiceDependencies(knowledge, catalog), identify, observability.mcp
        ) as routes:
            app = create_app(
                search,
                nothing,
                nothing,
                nothing,
                check,
                knowledge=KnowledgeRoutes(knowledge, identify),
                telemetry=observability.telemetry,
                searches=SearchLogService(
                    MemorySearchLog(products.scene.catalog),
                    observability.keeps_tool_searches,
                    record(Channel.HTTP),
                ),
            )
            app.router.routes.extend(routes)
            observability.install(app, AdminAccess(development=True))
            transport = httpx2.ASGITransport(app, client=("203.0.113.7", 1234), raise_app_exceptions=False)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                yield Served(client, observability.metrics)


@dataclass(frozen=True)
class Served:
    http: httpx2.AsyncClient
    metrics: Metrics | None

    @property
    def mcp(self) -> Plain:
        """Return an MCP client."""
        return Plain(self.http)

    @property
    def page(self) -> bytes:
        assert self.metrics is not None
        return self.metrics.page()

    async def find_tools(self, query: str = "read a file", **asked: object) -> httpx2.Response:
        return await self.http.post("/api/v1/search", json={"query": query, **asked})

    async def ask(self, query: str = "where does the hive stand", **asked: object) -> httpx2.Response:
        return await self.http.post("/search_knowledge", json={"query": query, **asked})
