"""Assembles the HTTP API, for the engines and for the demo in memory."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from fastapi import FastAPI

from toolscript.core.errors import SetupError
from toolscript.core.health import CheckHealth
from toolscript.core.retrieval.namespaced import NamespacedIndex
from toolscript.core.retrieval.ports import Embedder, Index
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.core.settings.service import Settings, listed
from toolscript.core.web.admission import Admission, Limits
from toolscript.core.web.clients import Clients
from toolscript.documents.http.dependencies import DocumentRoutes
from toolscript.knowledge.http.routes import KnowledgeRoutes
from toolscript.knowledge.search import KnowledgeSearch
from toolscript.server.access import api_access
from toolscript.server.app import create_app
from toolscript.server.health import CachedHealth, HealthChecks, index_version_of, item_contents, skill_contents
from toolscript.server.http_protocol import Draining
from toolscript.server.knowledge import optional_authenticator
from toolscript.server.mcp import open_mcp
from toolscript.server.mcp_tools import ServiceDependencies
from toolscript.server.observability import Observability
from toolscript.server.skills import skill_management
from toolscript.server.stores import CatalogStores
from toolscript.server.sync import SyncService
from toolscript.server.tenancy import Tenancy
from toolscript.tools.catalog.jobs import JobRunner
from toolscript.tools.curation import CurationManagement
from toolscript.tools.http.search_log import SearchLogService
from toolscript.tools.indexing.versions import Readable
from toolscript.tools.mcp.tools import CatalogDependencies
from toolscript.tools.model.search_log import Channel
from toolscript.tools.search import ToolSearch
from toolscript.tools.skill_copy import SkillCopy
from toolscript.tools.skills.management import SkillManagement


@dataclass(frozen=True)
class SharedResources:
    """Shared by all processes of a server, and created before they are forked."""

    metrics: str
    cursor_secret: bytes
    draining: Draining = field(default_factory=Draining)

    def health(self, checks: HealthChecks) -> CheckHealth:
        return self.draining.seen_by(CachedHealth(checks.check).check)


@dataclass(frozen=True)
class Backends:
    """Services behind the API; None where not configured. `embedder` is that of the tools, without a cache."""

    stores: CatalogStores
    embedder: Embedder
    opened: Readable
    tools: ToolSearch
    documents: DocumentRoutes | None
    library: KnowledgeSearch | None


@asynccontextmanager
async def open_api(
    settings: Settings,
    common: SharedResources,
    behind: Backends,
    tenancy: Tenancy,
    observability: Observability,
    admission: Admission,
) -> AsyncIterator[FastAPI]:
    stores, identity = behind.stores, optional_authenticator(settings, tenancy, observability)
    search = observability.tool_search(behind.tools)
    knowledge = observability.knowledge_search(behind.library)
    record = observability.record_tool_searches(Channel.MCP)
    catalog = CatalogDependencies(search, stores.catalog, stores.taxonomy, record)
    dependencies = ServiceDependencies(knowledge, catalog, behind.documents, search_type=settings.search_type)
    skills, access = skill_management(stores, _already_open(behind.embedder)), api_access(settings)
    async with (
        open_mcp(settings, dependencies, identity, observability.mcp) as mcp_routes,
        JobRunner(stores.jobs).running() as runner,
    ):
        app = create_app(
            search,
            refresh_copy_after_changes(skills, behind.opened.skills),
            stores.changes,
            _sync_service(settings, stores, runner),
            common.health(await _health(behind)),
            access=access,
            documents=behind.documents,
            knowledge=KnowledgeRoutes(knowledge, identity, settings.search_type),
            catalog_readers=identity,
            telemetry=observability.telemetry,
            admission=admission,
            search_type=settings.search_type,
            curation=CurationManagement(stores.curation, behind.tools.forget_rules),
            searches=_searches(stores, observability),
        )
        app.router.routes.extend(mcp_routes)
        observability.install(app, access.admin)
        yield app


def _sync_service(settings: Settings, stores: CatalogStores, runner: JobRunner) -> SyncService:
    limit = settings.max_items_per_namespace
    return SyncService(stores.catalog, stores.jobs, runner, settings.sync_config, stores.contents, limit)


def _searches(stores: CatalogStores, observability: Observability) -> SearchLogService:
    record = observability.record_tool_searches(Channel.HTTP)
    return SearchLogService(stores.searches, observability.keeps_tool_searches, record)


def tool_search(
    settings: Settings,
    embedder: Embedder,
    opened: Readable,
    stores: CatalogStores,
    observability: Observability,
    scale: CosineScale | None = None,
) -> ToolSearch:
    return ToolSearch(
        embedder,
        observability.namespaced_index(opened.items, "tools"),
        opened.skills,
        stores.catalog,
        deadline_seconds=settings.deadline_seconds,
        spans=observability.spans_of("tools"),
        scale=scale,
        curation=stores.curation,
    )


# A write mostly waits for PostgreSQL, whose pool is the real limit: this only bounds the queue.
MAX_CONCURRENT_WRITES = 64
# A few people and their scripts; places of their own, so that searches do not keep them out.
MAX_CONCURRENT_MANAGING = 16
# Longer than bursts, and shorter than the delay before an agent retries.
MAX_QUEUE_SECONDS = 0.5
# So many searches at the same moment are answered, each within the time that a search may take.
BURST = 50


def admission_of(settings: Settings, observability: Observability) -> Admission:
    on_refused = None if observability.metrics is None else observability.metrics.not_admitted
    return Admission(
        Limits(settings.max_concurrent_searches, MAX_QUEUE_SECONDS, BURST, settings.deadline_seconds, shares=True),
        Limits(MAX_CONCURRENT_WRITES, MAX_QUEUE_SECONDS),
        Limits(MAX_CONCURRENT_MANAGING, MAX_QUEUE_SECONDS),
        on_refused,
        Clients(listed(settings.trusted_proxies)),
    )


async def _health(behind: Backends) -> HealthChecks:
    """Return the health checks. Counts run at startup: a lost index is logged before the first empty search."""
    contents = {
        "index_contents": item_contents(behind.stores, behind.opened.items),
        "skill_contents": skill_contents(behind.stores, behind.opened.skills),
    }
    for index_contents in contents.values():
        await index_contents.part()
    document_health = behind.documents.check_health if behind.documents else None
    return HealthChecks(
        behind.stores, behind.embedder, behind.opened.items, contents, behind.library, document_health
    )


def _already_open(embedder: Embedder) -> Callable[[], Awaitable[Embedder]]:
    async def give() -> Embedder:
        return embedder

    return give


def skill_index_to_search(settings: Settings, stores: CatalogStores, skills: NamespacedIndex) -> NamespacedIndex:
    def copied(index: Index, namespace: str) -> Index:
        async def written() -> Mapping[int, int]:
            index_version = await index_version_of(stores, index)
            if index_version is None:
                raise SetupError("the live index is not recorded", hint="run `toolscript reindex` to rebuild it")
            written = await stores.skill_vectors.written(index_version, namespace)
            return {id_: in_index for id_, (in_index, _) in written.items()}

        return SkillCopy(index, written)

    return skills.wrapped(copied) if settings.skill_copy else skills


def refresh_copy_after_changes(management: SkillManagement, skills: NamespacedIndex) -> SkillManagement:
    """Invalidate the copies after changes of skills, so that the next search in this process sees them."""
    index_skills = management.index_skills

    async def index_and_invalidate(only: Collection[str]) -> int:
        try:
            return await index_skills(only)
        finally:
            for copy in skills.opened:
                if isinstance(copy, SkillCopy):
                    copy.forget()

    return replace(management, index_skills=index_and_invalidate)
