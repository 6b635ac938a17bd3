"""Tools and a library in memory, served over HTTP and MCP, wired and watched as the service does it."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import httpx2

from tests.unit.knowledge.search.conftest import filled
from tests.unit.knowledge.search.scenes import Shelf, open_shelf
from tests.unit.server.composition.seen_app import settings_of
from tests.unit.server.mcp.scenes import Plain
from tests.unit.tools.search.scenes import Scene
from toolscript.core.auth.model import Caller, Scope, Tenant
from toolscript.core.health import Health, PartHealth
from toolscript.core.retrieval.ports import Index
from toolscript.core.web.auth import AdminAccess, visitors_of
from toolscript.knowledge.http.routes import KnowledgeRoutes
from toolscript.knowledge.ports import LibraryReader
from toolscript.knowledge.search import KnowledgeSearch
from toolscript.server.app import create_app
from toolscript.server.mcp import open_mcp
from toolscript.server.mcp_tools import ServiceParts
from toolscript.server.metrics import Figures
from toolscript.server.observability import Seeing, open_seeing
from toolscript.testing import MemoryIndexes, MemoryRequestBudget, MemoryTaxonomy
from toolscript.testing.auth import MemoryCallers
from toolscript.tools.mcp.tools import CatalogParts
from toolscript.tools.search import ToolSearch

PUBLIC = frozenset({Scope.KNOWLEDGE_READ, Scope.TOOLS_READ})
TOKEN = "token-of-ann"


@dataclass
class Products:
    """Any part can be put in the place of another."""

    shelf: Shelf
    scene: Scene = field(default_factory=Scene)
    library: LibraryReader | None = None
    per_minute: int = 0

    def tools(self, seeing: Seeing) -> ToolSearch:
        scene = self.scene
        return ToolSearch(
            scene.embedder,
            seeing.item_index(scene.index, "tools"),
            seeing.item_index(scene.skills, "tools"),
            scene.catalog,
            spans=seeing.spans_of("tools"),
        )

    def knowledge(self, seeing: Seeing, *, log_queries: bool) -> KnowledgeSearch:
        see = seeing.item_index

        async def indexes() -> tuple[Index, Index]:
            return see(self.shelf.chunks, "knowledge"), see(self.shelf.extractions, "knowledge")

        return KnowledgeSearch(
            self.shelf.embedder,
            indexes,
            seeing.library(self.library or self.shelf.library),
            spans=seeing.spans_of("knowledge"),
            log_queries=log_queries,
        )


async def some_products(scene: Scene | None = None) -> Products:
    two = MemoryIndexes(engine_rarity=False), MemoryIndexes(engine_rarity=False)
    products = Products(await filled(await open_shelf(*two)), scene or Scene())
    await products.scene.fill()
    return products


@asynccontextmanager
async def served(products: Products, values: Mapping[str, object]) -> AsyncIterator["Served"]:
    settings = settings_of(values)
    visitor_of = visitors_of(
        MemoryCallers({TOKEN: Caller(Tenant("ann"))}),
        MemoryRequestBudget(),
        public_scopes=PUBLIC,
        public_requests_per_minute=products.per_minute,
    )

    async def check() -> Health:
        return Health({"index": PartHealth(ok=True, needed=True)})

    async with open_seeing(settings, cast("Any", None)) as seeing:
        search = seeing.tool_search(products.tools(seeing))
        knowledge = seeing.knowledge_search(products.knowledge(seeing, log_queries=settings.log_queries))
        catalog = CatalogParts(search, products.scene.catalog, MemoryTaxonomy(products.scene.catalog))
        nothing = cast("Any", None)
        async with open_mcp(settings, ServiceParts(knowledge, catalog), visitor_of, seeing.mcp) as routes:
            app = create_app(
                search,
                nothing,
                nothing,
                nothing,
                check,
                knowledge=KnowledgeRoutes(knowledge, visitor_of),
                telemetry=seeing.telemetry,
            )
            app.router.routes.extend(routes)
            seeing.install(app, AdminAccess(development=True))
            transport = httpx2.ASGITransport(app, client=("203.0.113.7", 1234), raise_app_exceptions=False)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                yield Served(client, seeing.figures)


@dataclass(frozen=True)
class Served:
    http: httpx2.AsyncClient
    figures: Figures | None

    @property
    def mcp(self) -> Plain:
        """Somebody who speaks MCP."""
        return Plain(self.http)

    @property
    def page(self) -> bytes:
        assert self.figures is not None
        return self.figures.page()

    async def find_tools(self, query: str = "read a file", **asked: object) -> httpx2.Response:
        return await self.http.post("/api/v1/search", json={"query": query, **asked})

    async def ask(self, query: str = "where does the hive stand", **asked: object) -> httpx2.Response:
        return await self.http.post("/search_knowledge", json={"query": query, **asked})
