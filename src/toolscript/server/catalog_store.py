"""PostgreSQL alone, for commands that read the catalog but no index."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.core.postgres.schema import require_current_schema
from toolscript.core.settings.service import Settings
from toolscript.tools.postgres.catalog import PostgresCatalog


@asynccontextmanager
async def open_catalog_pool(settings: Settings) -> AsyncIterator[Pool]:
    url = settings.postgres_url.get_secret_value()
    async with open_pool(url, size=settings.postgres_connections) as pool:
        await require_current_schema(pool)
        yield pool


@asynccontextmanager
async def open_catalog(settings: Settings) -> AsyncIterator[PostgresCatalog]:
    async with open_catalog_pool(settings) as pool:
        yield PostgresCatalog(pool, hold_changes=settings.hold_changes)
