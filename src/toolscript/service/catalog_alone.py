"""The catalog without an index: enough for what only reads or writes items, and quick to load."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolscript.adapters import postgres
from toolscript.settings.service import Settings


@asynccontextmanager
async def open_pool(settings: Settings) -> AsyncIterator[postgres.Pool]:
    url = settings.postgres_url.get_secret_value()
    async with postgres.open_pool(url, size=settings.postgres_connections) as pool:
        await postgres.require_current_schema(pool)
        yield pool


@asynccontextmanager
async def open_catalog(settings: Settings) -> AsyncIterator[postgres.PostgresCatalog]:
    async with open_pool(settings) as pool:
        yield postgres.PostgresCatalog(pool, hold_changes=settings.hold_changes)
