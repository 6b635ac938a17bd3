"""serve: searches over HTTP."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from toolscript.adapters.embedding_cache import CachedEmbedder
from toolscript.errors import ToolscriptError
from toolscript.model.models import IndexCard
from toolscript.ports import Embedder
from toolscript.search.tools import ToolSearch
from toolscript.service.parts import Stores, open_embedder, open_stores
from toolscript.settings import Settings
from toolscript.surfaces.http import Health, PartHealth, create_app
from toolscript.surfaces.logs import configure_logs
from toolscript.sync.generations import open_for_reading

HEALTH_SECONDS = 2.0

logger = logging.getLogger(__name__)


def serve(*, host: str | None, port: int | None) -> None:
    settings = Settings()
    configure_logs(settings.log_level, settings.log_format)

    async def run() -> None:
        async with open_app(settings) as app:
            config = uvicorn.Config(
                app, host=host or settings.host, port=settings.port if port is None else port, log_config=None
            )
            await uvicorn.Server(config).serve()

    asyncio.run(run())


@asynccontextmanager
async def open_app(settings: Settings) -> AsyncIterator[FastAPI]:
    """The HTTP API with everything behind it open. Refuses an index that another model made."""
    cores = os.cpu_count() or 1
    async with open_stores(settings) as stores, open_embedder(settings, parallel=cores) as embedder:
        cached = CachedEmbedder(embedder, settings.embedding_cache_size)
        index = await open_for_reading(stores.indexes, IndexCard(embedder.model))
        await embedder.embed_query("warm up")
        search = ToolSearch(cached, index, stores.catalog, deadline_seconds=settings.deadline_seconds)

        async def check_health() -> Health:
            return await _health(stores, embedder, index.card.fingerprint)

        yield create_app(search, check_health)


async def _health(stores: Stores, embedder: Embedder, fingerprint: str) -> Health:
    embedding, index, catalog = await asyncio.gather(
        _part(_embedding_note(embedder), needed=False),
        _part(_index_note(stores, fingerprint), needed=True),
        _part(_catalog_note(stores), needed=False),
    )
    return Health({"embedding": embedding, "index": index, "catalog": catalog})


async def _part(check: Awaitable[str], *, needed: bool) -> PartHealth:
    try:
        async with asyncio.timeout(HEALTH_SECONDS):
            return PartHealth(ok=True, needed=needed, note=await check)
    except (ToolscriptError, TimeoutError) as error:
        return PartHealth(ok=False, needed=needed, note=str(error) or "no answer in time")


async def _embedding_note(embedder: Embedder) -> str:
    await embedder.embed_query("ready")
    return embedder.model.name


async def _index_note(stores: Stores, fingerprint: str) -> str:
    live = await stores.indexes.live()
    if live != fingerprint:
        return f"serving {fingerprint}, while {live} has become live: restart with its model"
    return fingerprint


async def _catalog_note(stores: Stores) -> str:
    await stores.catalog.scan(after=0, limit=1)
    return ""
