"""Which parts of the service answer. What went wrong goes to the log; a caller hears only which part it is."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass

from toolscript.errors import ToolscriptError
from toolscript.ports import DocumentIndex, Embedder, Index
from toolscript.search.knowledge.search import KnowledgeSearch
from toolscript.service.index_contents import IndexContents
from toolscript.service.parts import CatalogStores
from toolscript.surfaces.http.health import CheckHealth, Health, PartHealth

CHECK_SECONDS = 2.0
REMEMBERED_SECONDS = 2.0

logger = logging.getLogger(__name__)


class Remembered:
    """The last answer, for a moment: a probe must not cost as much as a search."""

    def __init__(self, check: CheckHealth) -> None:
        self._check = check
        self._checked_at = float("-inf")
        self._health = Health({})

    async def check(self) -> Health:
        if time.monotonic() - self._checked_at > REMEMBERED_SECONDS:
            self._health = await self._check()
            self._checked_at = time.monotonic()
        return self._health


@dataclass(frozen=True)
class DocumentHealth:
    embedder: Embedder
    index: DocumentIndex

    async def check(self) -> Health:
        embedding, index = await asyncio.gather(
            _part("embedding", _embeds(self.embedder), needed=False),
            _part("index", self._index(), needed=True),
        )
        return Health({"embedding": embedding, "index": index})

    async def _index(self) -> str:
        await self.index.ready()
        return ""


@dataclass(frozen=True)
class HealthChecks:
    """`knowledge` None: there is no library, and so nothing to be said of it. The same of `documents`."""

    stores: CatalogStores
    embedder: Embedder
    index: Index
    contents: Mapping[str, IndexContents]
    knowledge: KnowledgeSearch | None = None
    documents: CheckHealth | None = None

    async def check(self) -> Health:
        checks: dict[str, Awaitable[PartHealth]] = {
            "embedding": _part("embedding", _embeds(self.embedder), needed=False),
            "index": _part("index", self._index(), needed=True),
            "live_index": _part("live index", self._live_index(), needed=False),
            "catalog": _part("catalog", self._catalog(), needed=False),
        }
        if self.knowledge is not None:
            checks["library"] = _part("library", self.knowledge.ready(), needed=False)
        if self.documents is not None:
            checks["documents"] = _documents_part(self.documents)
        for name, contents in self.contents.items():
            checks[name] = contents.part()
        return Health(dict(zip(checks, await asyncio.gather(*checks.values()), strict=True)))

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


async def _embeds(embedder: Embedder) -> str:
    await embedder.embed_query("ready")
    return embedder.model.name


async def _documents_part(check: CheckHealth) -> PartHealth:
    """Tools and knowledge are found without documents."""
    wrong = [name for name, part in (await check()).parts.items() if not part.ok]
    return PartHealth(ok=not wrong, needed=False, note=f"not well: {', '.join(wrong)}" if wrong else "")


async def _part(name: str, check: Awaitable[str], *, needed: bool) -> PartHealth:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return PartHealth(ok=True, needed=needed, note=await check)
    except (ToolscriptError, TimeoutError) as error:
        logger.warning("a part is not well", extra={"part": name, "reason": str(error) or "no answer in time"})
        return PartHealth(ok=False, needed=needed, note="see the log")
