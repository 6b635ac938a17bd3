"""Which parts of the service answer. What went wrong goes to the log; a caller hears only which part it is."""

import asyncio
import logging
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field

from toolscript.errors import ToolscriptError
from toolscript.ports import Embedder, Index
from toolscript.service.parts import Stores
from toolscript.surfaces.http import Health, PartHealth

CHECK_SECONDS = 2.0
REMEMBERED_SECONDS = 2.0

logger = logging.getLogger(__name__)


@dataclass
class HealthChecks:
    """Remembers its answer for a moment: a probe must not cost as much as a search."""

    stores: Stores
    embedder: Embedder
    index: Index
    _checked_at: float = float("-inf")
    _health: Health = field(default_factory=lambda: Health({}))

    async def check(self) -> Health:
        if time.monotonic() - self._checked_at > REMEMBERED_SECONDS:
            self._health = await self._check_all()
            self._checked_at = time.monotonic()
        return self._health

    async def _check_all(self) -> Health:
        embedding, index, live, catalog = await asyncio.gather(
            _part("embedding", self._embedding(), needed=False),
            _part("index", self._index(), needed=True),
            _part("live index", self._live_index(), needed=False),
            _part("catalog", self._catalog(), needed=False),
        )
        return Health({"embedding": embedding, "index": index, "live_index": live, "catalog": catalog})

    async def _embedding(self) -> str:
        await self.embedder.embed_query("ready")
        return self.embedder.model.name

    async def _index(self) -> str:
        await self.index.fields([1])
        return self.index.card.fingerprint

    async def _live_index(self) -> str:
        live = await self.stores.indexes.live()
        if live != self.index.card.fingerprint:
            raise ToolscriptError(f"index {live} has become live: restart with its model")
        return live

    async def _catalog(self) -> str:
        await self.stores.catalog.scan(after=0, limit=1)
        return ""


async def _part(name: str, check: Awaitable[str], *, needed: bool) -> PartHealth:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return PartHealth(ok=True, needed=needed, note=await check)
    except (ToolscriptError, TimeoutError) as error:
        logger.warning("a part is not well", extra={"part": name, "reason": str(error) or "no answer in time"})
        return PartHealth(ok=False, needed=needed, note="see the log")
