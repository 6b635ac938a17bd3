"""serve: searches over HTTP."""

import asyncio
import gc
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import cast

import uvicorn
from fastapi import FastAPI

from toolscript.core.breaker import Patience
from toolscript.core.embedding.cache import CachedEmbedder
from toolscript.core.embedding.scale import ModelScales
from toolscript.core.errors import IndexUnavailable, ModelMismatch, SetupError, Unavailable
from toolscript.core.retrieval.model import IndexCard, ModelCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings, read_alternative_names
from toolscript.core.web.logs import configure_logs
from toolscript.server.access import admin_access, full_path, open_sockets, public_scopes, trusted_proxy_options
from toolscript.server.documents import cursor_secret, open_routes
from toolscript.server.http_protocol import Connections, Server
from toolscript.server.knowledge import open_knowledge
from toolscript.server.observability import Observability, ids_for_logs, metrics_folder, open_observability
from toolscript.server.processes import raise_gc_thresholds, run, run_in_processes
from toolscript.server.search_log import keeping_search_log
from toolscript.server.serve_worker import following_catalog
from toolscript.server.settings import load_settings
from toolscript.server.stores import Stores, open_embedder, open_stores, origin_if_known, searching_embedder
from toolscript.server.tenancy import open_tenancy
from toolscript.server.wiring import (
    Backends,
    SharedResources,
    admission_of,
    open_api,
    skill_index_to_search,
    tool_search,
)
from toolscript.tools.indexing.versions import Readable, open_for_reading, open_later

logger = logging.getLogger(__name__)

# Time for a process to close its engines after the last response.
END_SECONDS = 10.0
# Far more than there are concurrent requests; `ulimit -n` may lower it.
MAX_CONNECTIONS = 1000
# For the headers of a request, and again for its body: enough for a slow connection.
RECEIVE_SECONDS = 15.0
# Cached query vectors per process: about 6 MB at 384 dimensions, and more queries than agents repeat.
CACHED_QUERIES = 4096

DOCUMENTS_HINT = "TOOLSCRIPT_JWT_KEYS and TOOLSCRIPT_JWT_ISSUER turn them on"
KNOWLEDGE_HINT = "TOOLSCRIPT_MONGO_URL turns it on"
WORKER_HINT = "`toolscript worker` indexes the tools, or TOOLSCRIPT_SERVE_WORKER=true turns it on"
WRITES_HINT = "TOOLSCRIPT_ADMIN_TOKEN or TOOLSCRIPT_SOCKET turns them on"


def serve(*, host: str | None, port: int | None, socket_file: str | None = None) -> None:
    aliases = read_alternative_names(Path.cwd())
    settings = load_settings(aliases)
    configure_logs(settings.log_level, settings.log_format, ids_for_logs(settings))
    if aliases.told:
        logger.info("settings by second names: %s", aliases.told)
    # Updated before the allowed hosts are derived from them.
    listening = {
        "host": host or settings.host,
        "port": settings.port if port is None else port,
        "socket": full_path(socket_file or settings.socket),
    }
    settings = settings.model_copy(update=listening)
    with metrics_folder(settings) as metrics, open_sockets(settings) as shared:
        common = SharedResources(metrics, cursor_secret(settings))
        log_what_is_served(settings, shared[0].getsockname()[1])

        async def work(on_started: Callable[[], None] = lambda: None) -> None:
            await answer(settings, common, shared, open_app(settings, common), on_started)

        if settings.processes == 1:
            run(work())
            return
        # This process only watches the others, for as long as they live.
        gc.enable()
        run_in_processes(
            settings.processes,
            lambda started: run(work(started)),
            shared,
            end_seconds=settings.drain_seconds + settings.shutdown_seconds + END_SECONDS,
        )


def log_what_is_served(settings: Settings, port: int) -> None:
    """Log the address and what is on, once for all processes, and what would turn on the rest."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    documents = settings.jwt_keys or settings.debug_bypass_auth
    knowledge = settings.mongo_url.get_secret_value()
    admin = admin_access(settings)
    by = [
        *(["with the admin token"] if admin.token else []),
        *([f"over {admin.socket}"] if admin.socket else []),
        *(["from this machine (development)"] if admin.development and not admin.token else []),
    ]
    logger.info("starting at http://%s:%s", host, port)
    logger.info("documents: %s", "on" if documents else f"off; {DOCUMENTS_HINT}")
    logger.info("knowledge: %s", "on" if knowledge else f"off; {KNOWLEDGE_HINT}")
    logger.info("worker: %s", "on" if settings.serve_worker else f"off; {WORKER_HINT}")
    logger.info("public, without a token: %s", ", ".join(sorted(public_scopes(settings))) or "nothing")
    logger.info("writes over HTTP: %s", f"on, {' and '.join(by)}" if by else f"off; {WRITES_HINT}")


async def answer(
    settings: Settings,
    common: SharedResources,
    shared: Sequence[socket.socket],
    opening: AbstractAsyncContextManager[FastAPI],
    on_started: Callable[[], None],
) -> None:
    """Serve until a signal ends it."""
    async with opening as app:
        limits = Connections(app.state.admission, MAX_CONNECTIONS, RECEIVE_SECONDS)
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            log_config=None,
            ws="none",
            # A factory, although uvicorn's type asks for a class.
            http=cast("type[asyncio.Protocol]", limits.protocol),
            timeout_graceful_shutdown=settings.shutdown_seconds,
            **trusted_proxy_options(settings),
        )
        server = Server(config, common.draining, settings.drain_seconds, on_started)
        server.listen_to_signals()
        raise_gc_thresholds()
        await server.serve(sockets=list(shared))


@asynccontextmanager
async def open_app(settings: Settings, common: SharedResources | None = None) -> AsyncIterator[FastAPI]:
    """Open the HTTP API with all engines and models behind it."""
    common = common or SharedResources("", cursor_secret(settings))
    async with (
        open_stores(settings, catalog_needed=False, patience=Patience()) as plain,
        open_observability(settings, plain.pool, common.metrics) as observability,
        open_embedder(settings, parallel=_cores(settings), headers=observability.headers) as embedder,
        _open_tool_embedder(settings, plain, embedder) as of_tools,
        open_tenancy(settings, plain.pool) as tenancy,
        admission_of(settings, observability).adapting() as admission,
        following_catalog(settings, plain, of_tools, observability, admission.is_searching) as stores,
    ):
        cached, scales = _cache_of(observability), ModelScales()
        opened = await _open_indexes(settings, stores, of_tools, observability)
        scale = await scales.of(of_tools)
        tools = tool_search(settings, cached(of_tools), opened, stores, observability, scale)
        async with (
            open_routes(
                settings, stores, tenancy, embedder, observability, common.cursor_secret, scales
            ) as documents,
            open_knowledge(settings, stores.qdrant, embedder, observability, cached, scales) as library,
            observability.watching(settings, stores, opened.items),
            keeping_search_log(settings, stores.searches),
        ):
            behind = Backends(stores, of_tools, opened, tools, documents, library)
            async with open_api(settings, common, behind, tenancy, observability, admission) as app:
                yield app


def _cores(settings: Settings) -> int:
    return max(1, (os.cpu_count() or 1) // settings.processes)


def _cache_of(observability: Observability) -> Callable[[Embedder], Embedder]:
    """Return a function that adds a cache, one per model. Metrics are inside: cache hits are not embedded."""

    caches = dict[ModelCard, Embedder]()

    def cached(embedder: Embedder) -> Embedder:
        if embedder.model not in caches:
            caches[embedder.model] = CachedEmbedder(observability.embedder(embedder), CACHED_QUERIES)
        return caches[embedder.model]

    return cached


@asynccontextmanager
async def _open_tool_embedder(settings: Settings, stores: Stores, configured: Embedder) -> AsyncIterator[Embedder]:
    origin = await origin_if_known(stores.indexes.items, "tools")
    async with searching_embedder(origin, settings, configured, "tools", parallel=_cores(settings)) as own:
        yield own


async def _open_indexes(
    settings: Settings, stores: Stores, embedder: Embedder, observability: Observability
) -> Readable:
    card = IndexCard(embedder.model)
    try:
        opened = await open_for_reading(stores.indexes, card)
    except ModelMismatch:
        raise
    except (IndexUnavailable, SetupError) as error:
        reason = f"{error.message}; {error.hint}"
        logger.warning("tools cannot be searched yet", extra={"part": "index", "reason": reason})
        opened = open_later(stores.indexes, card)
    await _warm_up(embedder)
    skills = observability.namespaced_index(opened.skills, "tools")
    return Readable(opened.items, skill_index_to_search(settings, stores, skills))


async def _warm_up(embedder: Embedder) -> None:
    """Load the model before the first query. An endpoint that is down may recover later."""
    try:
        await embedder.embed_query("ready")
    except Unavailable as error:
        logger.warning("no embeddings yet", extra={"part": "embedding", "reason": error.message})
