"""serve: searches over HTTP."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypedDict, cast

import uvicorn
from fastapi import FastAPI
from starlette.routing import BaseRoute

from toolscript.adapters.embedding_cache import CachedEmbedder
from toolscript.adapters.postgres import PostgresCatalogContents, PostgresItemChanges, PostgresSyncJobs
from toolscript.errors import Unavailable
from toolscript.model.models import IndexCard, ModelCard
from toolscript.model.tenancy import Scope
from toolscript.ports import Embedder
from toolscript.search.knowledge.search import KnowledgeSearch
from toolscript.search.tools import ToolSearch
from toolscript.service.access import admin_access, api_access, believed_headers, full_path, sockets_of
from toolscript.service.documents import cursor_secret, open_routes
from toolscript.service.event_loop import collect_seldom, run
from toolscript.service.health import HealthChecks, Remembered
from toolscript.service.http_protocol import Connections
from toolscript.service.http_server import Draining, Server
from toolscript.service.index_contents import item_contents, skill_contents
from toolscript.service.index_models import searching_embedder
from toolscript.service.knowledge import open_knowledge, public_scopes, visitors
from toolscript.service.mcp import open_mcp
from toolscript.service.parts import Stores, open_embedder, open_stores
from toolscript.service.processes import in_processes
from toolscript.service.seeing import Seeing, figures_folder, ids_for_logs, open_seeing
from toolscript.service.skills import skill_management
from toolscript.service.skills_in_memory import seen_at_once, skills_searched
from toolscript.service.sync_desk import SyncDesk
from toolscript.service.tenancy import open_tenancy
from toolscript.service.usual_search import UsualToolSearch
from toolscript.settings.service import Settings, load_settings
from toolscript.settings.shared_names import second_names
from toolscript.surfaces.admission.admission import Admission
from toolscript.surfaces.admission.gate import Limits
from toolscript.surfaces.http import create_app
from toolscript.surfaces.http.documents import DocumentRoutes
from toolscript.surfaces.http.health import CheckHealth
from toolscript.surfaces.http.knowledge import KnowledgeRoutes
from toolscript.surfaces.http.tool_search import AsksCatalog
from toolscript.surfaces.http.visitors import VisitorOf
from toolscript.surfaces.logs import configure_logs
from toolscript.surfaces.mcp_service.parts import CatalogParts, ServiceParts
from toolscript.sync.generations import Readable, open_for_reading
from toolscript.sync.job_runner import JobRunner

logger = logging.getLogger(__name__)

# What a process may take to close its engines, once all requests are answered.
END_SECONDS = 10.0


def serve(*, host: str | None, port: int | None, socket_file: str | None = None) -> None:
    others = second_names(Path.cwd())
    settings = load_settings(others)
    configure_logs(settings.log_level, settings.log_format, ids_for_logs(settings))
    if others.told:
        logger.info("settings by second names: %s", others.told)
    # Also for those who ask by which name it may be called.
    listening = {
        "host": host or settings.host,
        "port": settings.port if port is None else port,
        "socket": full_path(socket_file or settings.socket),
    }
    settings = settings.model_copy(update=listening)
    with figures_folder(settings) as figures, sockets_of(settings) as shared:
        common = Common(figures, cursor_secret(settings))
        if settings.processes == 1:
            run(_answer(settings, common, shared))
            return
        in_processes(
            settings.processes,
            lambda started: run(_answer(settings, common, shared, started)),
            shared,
            end_seconds=settings.drain_seconds + settings.shutdown_seconds + END_SECONDS,
        )


@dataclass(frozen=True)
class Common:
    """What all processes of one installation share: made before they are."""

    figures: str
    cursor_secret: bytes
    draining: Draining = field(default_factory=Draining)

    def health(self, checks: HealthChecks) -> CheckHealth:
        return self.draining.seen_by(Remembered(checks.check).check)


async def _answer(
    settings: Settings,
    common: Common,
    shared: Sequence[socket.socket],
    on_started: Callable[[], None] = lambda: None,
) -> None:
    async with open_app(settings, common) as app:
        limits = Connections(app.state.admission, settings.max_connections, settings.receive_seconds)
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            log_config=None,
            ws="none",
            # Whatever makes one.
            http=cast("type[asyncio.Protocol]", limits.protocol),
            timeout_graceful_shutdown=settings.shutdown_seconds,
            **believed_headers(settings),
        )
        server = Server(config, common.draining, settings.drain_seconds, on_started)
        server.listen_to_signals()
        collect_seldom()
        await server.serve(sockets=list(shared))


@asynccontextmanager
async def open_app(settings: Settings, common: Common | None = None) -> AsyncIterator[FastAPI]:
    """The HTTP API with everything behind it open."""
    common = common or Common("", cursor_secret(settings))
    async with (
        open_stores(settings, catalog_needed=False) as stores,
        open_seeing(settings, stores.pool, common.figures) as seeing,
        open_embedder(settings, parallel=_cores(settings), headers=seeing.headers) as embedder,
        _model_of_tools(settings, stores, embedder) as of_tools,
        open_tenancy(settings, stores.pool) as tenancy,
        _admission(settings, seeing).adapting() as admission,
    ):
        cached = _caching(settings, seeing)
        opened = await _opened(settings, stores, of_tools, seeing)
        search = _tool_search(settings, cached(of_tools), opened, stores, seeing, admission)
        jobs, visitor = PostgresSyncJobs(stores.pool), visitors(settings, tenancy, seeing)
        catalog = CatalogParts(search, stores.catalog, stores.taxonomy)
        async with (
            open_routes(settings, stores, tenancy, embedder, seeing, common.cursor_secret) as documents,
            open_knowledge(settings, stores.qdrant, embedder, seeing, cached) as library,
            _open_mcp(settings, seeing, ServiceParts(library, catalog, documents), visitor) as mcp,
            seeing.watching(stores, opened.items),
            JobRunner(jobs).running() as runner,
        ):
            app = create_app(
                search,
                seen_at_once(skill_management(stores, _given(of_tools)), opened.skills),
                PostgresItemChanges(stores.pool),
                SyncDesk(stores.catalog, jobs, runner, settings.sync_config, PostgresCatalogContents(stores.pool)),
                common.health(await _health(stores, of_tools, opened, library, documents)),
                access=api_access(settings),
                documents=documents,
                knowledge=KnowledgeRoutes(mcp.parts.knowledge, visitor, settings.search_type),
                **_who_reads(settings, visitor),
                telemetry=seeing.telemetry,
                admission=admission,
            )
            app.router.routes.extend(mcp.routes)
            seeing.install(app, admin_access(settings))
            yield app


def _cores(settings: Settings) -> int:
    return max(1, (os.cpu_count() or 1) // settings.processes)


def _caching(settings: Settings, seeing: Seeing) -> Callable[[Embedder], Embedder]:
    """One cache for each model. Measured within it: what was remembered has not been embedded."""

    caches = dict[ModelCard, Embedder]()

    def cached(embedder: Embedder) -> Embedder:
        if embedder.model not in caches:
            caches[embedder.model] = CachedEmbedder(seeing.embedder(embedder), settings.embedding_cache_size)
        return caches[embedder.model]

    return cached


@asynccontextmanager
async def _model_of_tools(settings: Settings, stores: Stores, configured: Embedder) -> AsyncIterator[Embedder]:
    origin = await stores.indexes.items.origin()
    async with searching_embedder(origin, settings, configured, "tools", parallel=_cores(settings)) as own:
        yield own


async def _opened(settings: Settings, stores: Stores, embedder: Embedder, seeing: Seeing) -> Readable:
    opened = await open_for_reading(stores.indexes, IndexCard(embedder.model))
    await _warm_up(embedder)
    skills = seeing.item_index(opened.skills, "tools")
    return Readable(opened.items, skills_searched(settings, stores, skills))


class _Readers(TypedDict):
    """As the API calls them: who reads a catalog that is not public, and who is counted where it is."""

    catalog_readers: VisitorOf | None
    searchers: VisitorOf | None


def _who_reads(settings: Settings, visitor: VisitorOf) -> _Readers:
    is_public = Scope.TOOLS_READ in public_scopes(settings)
    return {"catalog_readers": None if is_public else visitor, "searchers": visitor if is_public else None}


def _admission(settings: Settings, seeing: Seeing) -> Admission:
    wait = settings.max_queue_seconds
    on_refused = None if seeing.figures is None else seeing.figures.not_admitted
    return Admission(
        Limits(settings.max_concurrent_searches, wait), Limits(settings.max_concurrent_writes, wait), on_refused
    )


@dataclass(frozen=True)
class _Mcp:
    """`parts` are asked by HTTP as well."""

    parts: ServiceParts
    routes: Sequence[BaseRoute]


@asynccontextmanager
async def _open_mcp(
    settings: Settings, seeing: Seeing, plain: ServiceParts, visitor: VisitorOf
) -> AsyncIterator[_Mcp]:
    library = seeing.knowledge_search(plain.knowledge)
    parts = replace(plain, knowledge=library, search_type=settings.search_type)
    async with open_mcp(settings, parts, visitor, seeing.mcp) as routes:
        yield _Mcp(parts, routes)


def _tool_search(
    settings: Settings,
    embedder: Embedder,
    opened: Readable,
    stores: Stores,
    seeing: Seeing,
    admission: Admission,
) -> AsksCatalog:
    search = ToolSearch(
        embedder,
        seeing.item_index(opened.items, "tools"),
        opened.skills,
        stores.catalog,
        deadline_seconds=settings.deadline_seconds,
        spans=seeing.spans_of("tools"),
        is_overloaded=admission.is_overloaded,
    )
    return UsualToolSearch(seeing.tool_search(search), settings.search_type)


async def _health(
    stores: Stores,
    embedder: Embedder,
    opened: Readable,
    library: KnowledgeSearch | None,
    documents: DocumentRoutes | None,
) -> HealthChecks:
    """Counted at once: an index that lost its points is in the log before the first search finds nothing."""
    contents = {
        "index_contents": item_contents(stores, opened.items),
        "skill_contents": skill_contents(stores, opened.skills),
    }
    for one in contents.values():
        await one.part()
    checked = documents.check_health if documents else None
    return HealthChecks(stores, embedder, opened.items, contents, library, checked)


def _given(embedder: Embedder) -> Callable[[], Awaitable[Embedder]]:
    async def give() -> Embedder:
        return embedder

    return give


async def _warm_up(embedder: Embedder) -> None:
    """The first query must not wait for the model; an endpoint that is down can come back later."""
    try:
        await embedder.embed_query("ready")
    except Unavailable as error:
        logger.warning("no embeddings yet", extra={"part": "embedding", "reason": error.message})
