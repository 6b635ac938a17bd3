"""The HTTP API over what was opened: the same for the engines and for the demo in memory."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypedDict

from fastapi import FastAPI

from toolscript.model.tenancy import Scope
from toolscript.ports import Embedder
from toolscript.search.knowledge.search import KnowledgeSearch
from toolscript.search.tools import ToolSearch
from toolscript.service.access import admin_access, api_access
from toolscript.service.health import HealthChecks, Remembered
from toolscript.service.http_server import Draining
from toolscript.service.index_contents import item_contents, skill_contents
from toolscript.service.knowledge import public_scopes, visitors
from toolscript.service.mcp import open_mcp
from toolscript.service.parts import CatalogStores
from toolscript.service.seeing import Seeing
from toolscript.service.skills import skill_management
from toolscript.service.skills_in_memory import seen_at_once
from toolscript.service.sync_desk import SyncDesk
from toolscript.service.tenancy import Tenancy
from toolscript.service.usual_search import UsualToolSearch
from toolscript.settings.service import Settings
from toolscript.surfaces.admission.admission import Admission
from toolscript.surfaces.admission.gate import Limits
from toolscript.surfaces.http import create_app
from toolscript.surfaces.http.documents import DocumentRoutes
from toolscript.surfaces.http.health import CheckHealth
from toolscript.surfaces.http.knowledge import KnowledgeRoutes
from toolscript.surfaces.http.visitors import VisitorOf
from toolscript.surfaces.mcp_service.parts import CatalogParts, ServiceParts
from toolscript.sync.generations import Readable
from toolscript.sync.job_runner import JobRunner


@dataclass(frozen=True)
class Common:
    """What all processes of one installation share: made before they are."""

    figures: str
    cursor_secret: bytes
    draining: Draining = field(default_factory=Draining)

    def health(self, checks: HealthChecks) -> CheckHealth:
        return self.draining.seen_by(Remembered(checks.check).check)


@dataclass(frozen=True)
class Behind:
    """What the API asks. `embedder` is that of the tools, and remembers nothing. None: there is no such part."""

    stores: CatalogStores
    embedder: Embedder
    opened: Readable
    tools: ToolSearch
    documents: DocumentRoutes | None
    library: KnowledgeSearch | None


@asynccontextmanager
async def assembled(
    settings: Settings, common: Common, behind: Behind, tenancy: Tenancy, seeing: Seeing, admission: Admission
) -> AsyncIterator[FastAPI]:
    stores, visitor = behind.stores, visitors(settings, tenancy, seeing)
    search = UsualToolSearch(seeing.tool_search(behind.tools), settings.search_type)
    knowledge = seeing.knowledge_search(behind.library)
    parts = ServiceParts(
        knowledge,
        CatalogParts(search, stores.catalog, stores.taxonomy),
        behind.documents,
        search_type=settings.search_type,
    )
    async with (
        open_mcp(settings, parts, visitor, seeing.mcp) as mcp_routes,
        JobRunner(stores.jobs).running() as runner,
    ):
        app = create_app(
            search,
            seen_at_once(skill_management(stores, _given(behind.embedder)), behind.opened.skills),
            stores.changes,
            SyncDesk(stores.catalog, stores.jobs, runner, settings.sync_config, stores.contents),
            common.health(await _health(behind)),
            access=api_access(settings),
            documents=behind.documents,
            knowledge=KnowledgeRoutes(knowledge, visitor, settings.search_type),
            **_who_reads(settings, visitor),
            telemetry=seeing.telemetry,
            admission=admission,
        )
        app.router.routes.extend(mcp_routes)
        seeing.install(app, admin_access(settings))
        yield app


def tool_search(
    settings: Settings,
    embedder: Embedder,
    opened: Readable,
    stores: CatalogStores,
    seeing: Seeing,
    admission: Admission,
) -> ToolSearch:
    return ToolSearch(
        embedder,
        seeing.item_index(opened.items, "tools"),
        opened.skills,
        stores.catalog,
        deadline_seconds=settings.deadline_seconds,
        spans=seeing.spans_of("tools"),
        is_overloaded=admission.is_overloaded,
    )


def admission_of(settings: Settings, seeing: Seeing) -> Admission:
    wait = settings.max_queue_seconds
    on_refused = None if seeing.figures is None else seeing.figures.not_admitted
    return Admission(
        Limits(settings.max_concurrent_searches, wait), Limits(settings.max_concurrent_writes, wait), on_refused
    )


class _Readers(TypedDict):
    """As the API calls them: who reads a catalog that is not public, and who is counted where it is."""

    catalog_readers: VisitorOf | None
    searchers: VisitorOf | None


def _who_reads(settings: Settings, visitor: VisitorOf) -> _Readers:
    is_public = Scope.TOOLS_READ in public_scopes(settings)
    return {"catalog_readers": None if is_public else visitor, "searchers": visitor if is_public else None}


async def _health(behind: Behind) -> HealthChecks:
    """Counted at once: an index that lost its points is in the log before the first search finds nothing."""
    contents = {
        "index_contents": item_contents(behind.stores, behind.opened.items),
        "skill_contents": skill_contents(behind.stores, behind.opened.skills),
    }
    for one in contents.values():
        await one.part()
    checked = behind.documents.check_health if behind.documents else None
    return HealthChecks(behind.stores, behind.embedder, behind.opened.items, contents, behind.library, checked)


def _given(embedder: Embedder) -> Callable[[], Awaitable[Embedder]]:
    async def give() -> Embedder:
        return embedder

    return give
