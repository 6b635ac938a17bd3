"""Makes one index follow the catalog, a batch of dirty items at a time.

Killed between any two steps nothing is lost: the batch stays dirty and its lease runs out. Done twice it gives
the same: what is written is always the item's current state, and the index keeps the newest version.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum

from toolscript.errors import Rejected, ToolscriptError, Unavailable
from toolscript.model.dirty import Claim
from toolscript.model.index import Point, PointVersion
from toolscript.model.items import StoredItem
from toolscript.ports import Catalog, DirtySet, Embedder, Index
from toolscript.sync.item_vectors import embed_items
from toolscript.sync.points import point_of

logger = logging.getLogger(__name__)


class Step(StrEnum):
    """The moments of a batch, in order."""

    CLAIMED = "claimed"
    READ = "read"
    EMBEDDED = "embedded"
    RENEWED = "renewed"
    PUT = "put"
    REMOVED = "removed"
    CLEARED = "cleared"


OnStep = Callable[[Step], None]


def unobserved(_: Step) -> None:
    """For a batch that nobody watches."""


class Indexer:
    def __init__(
        self,
        catalog: Catalog,
        dirty: DirtySet,
        embedder: Embedder,
        index: Index,
        generation: int,
        *,
        batch: int = 256,
        lease_seconds: float = 60.0,
        at_step: OnStep = unobserved,
    ) -> None:
        self._catalog = catalog
        self._dirty = dirty
        self._embedder = embedder
        self._index = index
        self._generation = generation
        self._batch = batch
        self._lease_seconds = lease_seconds
        self._at_step = at_step
        self.followed = 0

    async def follow_batch(self) -> int:
        """Follows the next dirty items; answers how many were claimed."""
        claim = await self._dirty.claim(self._generation, self._batch, self._lease_seconds)
        if claim.versions:
            self._at_step(Step.CLAIMED)
            await self._follow_or_postpone(claim)
        return len(claim.versions)

    async def _follow_or_postpone(self, claim: Claim) -> None:
        """One item that a part refuses must not hold back the others: the batch is halved until it is alone."""
        try:
            await self._follow(claim)
        except asyncio.CancelledError:
            # Whoever stops us must not have to wait for the lease.
            await self._dirty.renew(self._generation, claim, lease_seconds=0)
            raise
        except Unavailable as error:
            await self._postpone(claim, error)
            raise
        except Rejected as error:
            if len(claim.versions) == 1:
                await self._postpone(claim, error)
                return
            for half in _halves(claim):
                await self._follow_or_postpone(half)

    async def _postpone(self, claim: Claim, error: ToolscriptError) -> None:
        logger.warning("items postponed", extra={"done": len(claim.versions), "reason": error.message})
        await self._dirty.postpone(self._generation, claim, error.message)

    async def _follow(self, claim: Claim) -> None:
        items = [stored for stored in await self._catalog.items(list(claim.versions)) if stored.is_active]
        self._at_step(Step.READ)
        async with self._kept(claim):
            points = await self._points(items)
        self._at_step(Step.EMBEDDED)
        claim = await self._dirty.renew(self._generation, claim, self._lease_seconds)
        self._at_step(Step.RENEWED)
        await self._index.put([point for point in points if point.id in claim.versions])
        self._at_step(Step.PUT)
        await self._index.remove(_gone(claim, items))
        self._at_step(Step.REMOVED)
        await self._dirty.clear(self._generation, claim)
        self.followed += len(claim.versions)
        self._at_step(Step.CLEARED)

    @asynccontextmanager
    async def _kept(self, claim: Claim) -> AsyncIterator[None]:
        """Renews the lease for as long as the work within takes: an embedding endpoint may be slow."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(self._lease_seconds / 3)
                await self._dirty.renew(self._generation, claim, self._lease_seconds)

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            renewing.cancel()
            # A renewal that failed is found out before anything is written.
            await asyncio.gather(renewing, return_exceptions=True)

    async def _points(self, items: Sequence[StoredItem]) -> list[Point]:
        if not items:
            return []
        vectors = await embed_items(self._embedder, [stored.item for stored in items])
        return [point_of(stored, vector) for stored, vector in zip(items, vectors, strict=True)]


def _gone(claim: Claim, items: Sequence[StoredItem]) -> list[PointVersion]:
    present = {stored.id for stored in items}
    return [PointVersion(id_, version) for id_, version in claim.versions.items() if id_ not in present]


def _halves(claim: Claim) -> list[Claim]:
    pairs = list(claim.versions.items())
    middle = len(pairs) // 2
    return [Claim(claim.token, dict(pairs[:middle])), Claim(claim.token, dict(pairs[middle:]))]
