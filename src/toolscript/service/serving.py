"""serve: searches over HTTP."""

import logging
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from toolscript.adapters.embedding_cache import CachedEmbedder
from toolscript.adapters.postgres import PostgresItemChanges, PostgresSyncJobs
from toolscript.errors import Unavailable
from toolscript.model.models import IndexCard
from toolscript.ports import Embedder
from toolscript.search.tools import ToolSearch
from toolscript.service.event_loop import collect_seldom, run
from toolscript.service.health import HealthChecks
from toolscript.service.parts import open_embedder, open_stores
from toolscript.service.processes import bound, in_processes
from toolscript.service.skills import skill_management
from toolscript.service.sync_desk import SyncDesk
from toolscript.settings import Settings, load_settings
from toolscript.surfaces.http import create_app
from toolscript.surfaces.logs import configure_logs
from toolscript.sync.generations import open_for_reading
from toolscript.sync.job_runner import JobRunner

logger = logging.getLogger(__name__)


def serve(*, host: str | None, port: int | None) -> None:
    settings = load_settings()
    configure_logs(settings.log_level, settings.log_format)
    address = host or settings.host, settings.port if port is None else port
    if settings.processes == 1:
        run(_answer(settings, *address))
        return
    with bound(*address) as shared:
        in_processes(settings.processes, lambda: run(_answer(settings, *address, shared)))


async def _answer(settings: Settings, host: str, port: int, shared: socket.socket | None = None) -> None:
    async with open_app(settings) as app:
        config = uvicorn.Config(app, host=host, port=port, log_config=None)
        # It raises the signal that stopped it once more when it has stopped, which would end this process
        # before its syncs are interrupted and the servers they started are ended.
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, lambda *_: None)
        collect_seldom()
        await uvicorn.Server(config).serve(sockets=None if shared is None else [shared])


@asynccontextmanager
async def open_app(settings: Settings) -> AsyncIterator[FastAPI]:
    """The HTTP API with everything behind it open. Refuses an index that another model made."""
    cores = max(1, (os.cpu_count() or 1) // settings.processes)
    async with (
        open_stores(settings, catalog_needed=False) as stores,
        open_embedder(settings, parallel=cores) as embedder,
    ):
        cached = CachedEmbedder(embedder, settings.embedding_cache_size)
        opened = await open_for_reading(stores.indexes, IndexCard(embedder.model))
        await _warm_up(embedder)
        search = ToolSearch(
            cached, opened.items, opened.skills, stores.catalog, deadline_seconds=settings.deadline_seconds
        )

        async def embedder_of_skills() -> Embedder:
            return embedder

        jobs = PostgresSyncJobs(stores.pool)
        async with JobRunner(jobs).running() as runner:
            yield create_app(
                search,
                skill_management(stores, embedder_of_skills),
                PostgresItemChanges(stores.pool),
                SyncDesk(stores.catalog, jobs, runner, settings.sync_config),
                HealthChecks(stores, embedder, opened.items).check,
                admin_token=settings.admin_token.get_secret_value(),
            )


async def _warm_up(embedder: Embedder) -> None:
    """The first query must not wait for the model; an endpoint that is down can come back later."""
    try:
        await embedder.embed_query("ready")
    except Unavailable as error:
        logger.warning("no embeddings yet", extra={"part": "embedding", "reason": error.message})
