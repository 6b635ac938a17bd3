"""Samples connection pool, backlog and counts of the stores periodically."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolscript.core.errors import ToolscriptError
from toolscript.core.retrieval.ports import Index
from toolscript.server.stores import Stores
from toolscript.tools.model.catalog import IndexVersionState

if TYPE_CHECKING:
    from toolscript.server.metrics import StoreMetrics

POOL_SECONDS = 5.0
# Counting is O(items): 0.1 s in PostgreSQL for a million.
STORES_SECONDS = 30.0
MAX_SECONDS = 10.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoreWatch:
    """`count_documents` returns the number of documents, and that of tenants that hold some."""

    stores: Stores
    index: Index
    metrics: "StoreMetrics"
    count_documents: Callable[[], Awaitable[tuple[int, int]]]
    pool_seconds: float = POOL_SECONDS
    stores_seconds: float = STORES_SECONDS

    @asynccontextmanager
    async def running(self, before_page: Callable[[Callable[[], None]], None]) -> AsyncIterator[None]:
        """Sample in the background. `before_page` registers what to refresh before each page."""
        before_page(self.sample_pool)
        tasks = [
            asyncio.create_task(self._watch_pool()),
            asyncio.create_task(self._watch_stores()),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def sample_pool(self) -> None:
        self.metrics.pool(self.stores.pool.get_stats())

    async def sample_stores(self) -> None:
        """Update the metrics; on failure set them to unknown. Requests that fail the same way log the reason."""
        try:
            async with asyncio.timeout(MAX_SECONDS):
                index_versions = await self.stores.dirty.index_versions()
                live = next(
                    index_version.id
                    for index_version in index_versions
                    if index_version.state is IndexVersionState.LIVE
                )
                self.metrics.backlog(await self.stores.dirty.pending(live))
                self.metrics.items(await self.stores.catalog.count(), await self.index.count())
        except (ToolscriptError, TimeoutError, StopIteration):
            self.metrics.unknown()

    async def sample_documents(self) -> None:
        """Update their counts apart from the others: either may fail alone."""
        try:
            async with asyncio.timeout(MAX_SECONDS):
                self.metrics.documents(*await self.count_documents())
        except (ToolscriptError, TimeoutError):
            self.metrics.documents_unknown()

    async def _watch_pool(self) -> None:
        """Sample even if this process is never scraped: other processes of the server report for it."""
        while True:
            self.sample_pool()
            await asyncio.sleep(self.pool_seconds)

    async def _watch_stores(self) -> None:
        while True:
            try:
                await self.sample_stores()
                await self.sample_documents()
            except Exception:
                logger.exception("the stores cannot be watched")
            await asyncio.sleep(self.stores_seconds)
