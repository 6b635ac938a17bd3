"""Pools, backlog and counts of the stores, looked at now and then."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolscript.core.errors import ToolscriptError
from toolscript.core.retrieval.ports import Index
from toolscript.server.stores import Stores
from toolscript.tools.model.catalog import GenerationState

if TYPE_CHECKING:
    from toolscript.server.metrics import StoreMetrics

POOL_SECONDS = 5.0
# Counting reads what it counts: 0.1 s of PostgreSQL for a million items.
STORES_SECONDS = 30.0
MAX_SECONDS = 10.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoreWatch:
    stores: Stores
    index: Index
    metrics: "StoreMetrics"
    pool_seconds: float = POOL_SECONDS
    stores_seconds: float = STORES_SECONDS

    @asynccontextmanager
    async def running(self, before_page: Callable[[Callable[[], None]], None]) -> AsyncIterator[None]:
        """`before_page` is told what has to be looked at anew before each page."""
        before_page(self.look_at_pool)
        tasks = [
            asyncio.create_task(self._keep_looking_at_pool()),
            asyncio.create_task(self._keep_looking_at_stores()),
        ]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def look_at_pool(self) -> None:
        self.metrics.pool(self.stores.pool.get_stats())

    async def look_at_stores(self) -> None:
        """What cannot be found out is not known; the log has it from whoever needed it."""
        try:
            async with asyncio.timeout(MAX_SECONDS):
                generations = await self.stores.dirty.generations()
                live = next(
                    generation.id for generation in generations if generation.state is GenerationState.LIVE
                )
                self.metrics.backlog(await self.stores.dirty.pending(live))
                self.metrics.items(await self.stores.catalog.count(), await self.index.count())
        except (ToolscriptError, TimeoutError, StopIteration):
            self.metrics.unknown()

    async def _keep_looking_at_pool(self) -> None:
        """Also where nobody asks this process: others of the same server answer for it."""
        while True:
            self.look_at_pool()
            await asyncio.sleep(self.pool_seconds)

    async def _keep_looking_at_stores(self) -> None:
        while True:
            try:
                await self.look_at_stores()
            except Exception:
                logger.exception("the stores cannot be watched")
            await asyncio.sleep(self.stores_seconds)
