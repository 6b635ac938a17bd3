"""serve: searches over HTTP."""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import cast

import uvicorn
from fastapi import FastAPI

from toolscript.core.embedding.cache import CachedEmbedder
from toolscript.core.errors import Unavailable
from toolscript.core.retrieval.model import IndexCard, ModelCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings, second_names
from toolscript.core.web.logs import configure_logs
from toolscript.server.access import believed_headers, full_path, sockets_of
from toolscript.server.documents import cursor_secret, open_routes
from toolscript.server.http_protocol import Connections, Server
from toolscript.server.knowledge import open_knowledge
from toolscript.server.observability import Observability, ids_for_logs, metrics_folder, open_observability
from toolscript.server.processes import in_processes, raise_gc_thresholds, run
from toolscript.server.settings import load_settings
from toolscript.server.stores import Stores, open_embedder, open_stores, searching_embedder
from toolscript.server.tenancy import open_tenancy
from toolscript.server.wiring import (
    Backends,
    SharedResources,
    admission_of,
    assembled,
    skills_searched,
    tool_search,
)
from toolscript.tools.indexing.versions import Readable, open_for_reading

logger = logging.getLogger(__name__)

# What a process may take to close its engines, once all requests are answered.
END_SECONDS = 10.0
# Far more than requests can be under way at once; where `ulimit -n` is lower, so is this.
MAX_CONNECTIONS = 1000
# For the headers of a request, and then for its body: enough for a slow line.
RECEIVE_SECONDS = 15.0
# Vectors of queries that each process keeps: about 6 MB at 384 dimensions, and more queries than agents repeat.
CACHED_QUERIES = 4096


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
    with metrics_folder(settings) as metrics, sockets_of(settings) as shared:
        common = SharedResources(metrics, cursor_secret(settings))

        async def work(on_started: Callable[[], None] = lambda: None) -> None:
            await answer(settings, common, shared, open_app(settings, common), on_started)

        if settings.processes == 1:
            run(work())
            return
        in_processes(
            settings.processes,
            lambda started: run(work(started)),
            shared,
            end_seconds=settings.drain_seconds + settings.shutdown_seconds + END_SECONDS,
        )


async def answer(
    settings: Settings,
    common: SharedResources,
    shared: Sequence[socket.socket],
    opening: AbstractAsyncContextManager[FastAPI],
    on_started: Callable[[], None],
) -> None:
    """Until it is told to end."""
    async with opening as app:
        limits = Connections(app.state.admission, MAX_CONNECTIONS, RECEIVE_SECONDS)
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
        raise_gc_thresholds()
        await server.serve(sockets=list(shared))


@asynccontextmanager
async def open_app(settings: Settings, common: SharedResources | None = None) -> AsyncIterator[FastAPI]:
    """The HTTP API with everything behind it open."""
    common = common or SharedResources("", cursor_secret(settings))
    async with (
        open_stores(settings, catalog_needed=False) as stores,
        open_observability(settings, stores.pool, common.metrics) as observability,
        open_embedder(settings, parallel=_cores(settings), headers=observability.headers) as embedder,
        _model_of_tools(settings, stores, embedder) as of_tools,
        open_tenancy(settings, stores.pool) as tenancy,
        admission_of(settings, observability).adapting() as admission,
    ):
        cached = _caching(observability)
        opened = await _opened(settings, stores, of_tools, observability)
        tools = tool_search(settings, cached(of_tools), opened, stores, observability, admission)
        async with (
            open_routes(settings, stores, tenancy, embedder, observability, common.cursor_secret) as documents,
            open_knowledge(settings, stores.qdrant, embedder, observability, cached) as library,
            observability.watching(stores, opened.items),
        ):
            behind = Backends(stores, of_tools, opened, tools, documents, library)
            async with assembled(settings, common, behind, tenancy, observability, admission) as app:
                yield app


def _cores(settings: Settings) -> int:
    return max(1, (os.cpu_count() or 1) // settings.processes)


def _caching(observability: Observability) -> Callable[[Embedder], Embedder]:
    """One cache for each model. Measured within it: what was remembered has not been embedded."""

    caches = dict[ModelCard, Embedder]()

    def cached(embedder: Embedder) -> Embedder:
        if embedder.model not in caches:
            caches[embedder.model] = CachedEmbedder(observability.embedder(embedder), CACHED_QUERIES)
        return caches[embedder.model]

    return cached


@asynccontextmanager
async def _model_of_tools(settings: Settings, stores: Stores, configured: Embedder) -> AsyncIterator[Embedder]:
    origin = await stores.indexes.items.origin()
    async with searching_embedder(origin, settings, configured, "tools", parallel=_cores(settings)) as own:
        yield own


async def _opened(
    settings: Settings, stores: Stores, embedder: Embedder, observability: Observability
) -> Readable:
    opened = await open_for_reading(stores.indexes, IndexCard(embedder.model))
    await _warm_up(embedder)
    skills = observability.item_index(opened.skills, "tools")
    return Readable(opened.items, skills_searched(settings, stores, skills))


async def _warm_up(embedder: Embedder) -> None:
    """The first query must not wait for the model; an endpoint that is down can come back later."""
    try:
        await embedder.embed_query("ready")
    except Unavailable as error:
        logger.warning("no embeddings yet", extra={"part": "embedding", "reason": error.message})
