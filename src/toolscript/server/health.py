"""Health checks of the service, and of the contents of its indexes."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from toolscript.core.errors import IndexLost, IndexMissing, ToolscriptError
from toolscript.core.health import CheckHealth, Health, PartHealth
from toolscript.core.retrieval.namespaced import DEFAULT_ONLY
from toolscript.core.retrieval.ports import Embedder, Index, IndexViews
from toolscript.documents.lost import index_lost, require_any
from toolscript.documents.ports import DocumentIndex, Tenants
from toolscript.knowledge.search import KnowledgeSearch
from toolscript.server.stores import CatalogStores

# Counting is O(items): rare while all is well, more frequent while an operator waits for a repair.
WELL_SECONDS, ILL_SECONDS = 60.0, 5.0
FIRST_SECONDS = 1.5
# Items change between the three counts, so small differences are normal.
TOLERATED = 0.01

REPAIR_HINT = "run `toolscript doctor --index --repair`, then `toolscript worker`"
SEE_THE_LOG = "see the log"
NOT_COUNTED = PartHealth(ok=True, needed=False, note="not counted yet")
CHECK_SECONDS = 2.0
CACHED_SECONDS = 2.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Counts:
    """`pending`: items waiting to be indexed or removed; they explain a difference."""

    expected: int
    pending: int
    points: int

    @property
    def differing(self) -> int:
        """Number of points too few or too many; 0 within the tolerance."""
        unexplained = abs(self.expected - self.points) - self.pending
        return unexplained if unexplained > TOLERATED * self.expected else 0

    @property
    def mostly_missing(self) -> bool:
        return self.differing > 0 and self.points * 2 < self.expected


Count = Callable[[], Awaitable[Counts]]


class IndexContents:
    def __init__(self, name: str, count: Count) -> None:
        self._name = name
        self._count = count
        self._part: PartHealth | None = None
        self._counted_at = float("-inf")
        self._counting: asyncio.Future[None] | None = None

    async def part(self) -> PartHealth:
        """Return the last count. Only the first caller waits for it, and not for long."""
        lasts = WELL_SECONDS if self._part is None or self._part.ok else ILL_SECONDS
        if time.monotonic() - self._counted_at > lasts and (self._counting is None or self._counting.done()):
            self._counting = asyncio.ensure_future(self._recount())
        if self._counting is not None and (self._part is None or not self._part.ok):
            await asyncio.wait([self._counting], timeout=FIRST_SECONDS)
        return self._part or NOT_COUNTED

    async def _recount(self) -> None:
        try:
            counts = await self._count()
            if counts.differing:
                # Items may have come and gone between one count and the next.
                counts = min(counts, await self._count(), key=lambda each: each.differing)
        except ToolscriptError as error:
            logger.warning("not counted", extra={"part": self._name, "reason": error.message})
            return
        finally:
            self._counted_at = time.monotonic()
        self._part = self._assess(counts)

    def _assess(self, counts: Counts) -> PartHealth:
        if not counts.differing:
            return PartHealth(ok=True, needed=False)
        reason = (
            f"{counts.points} of {counts.expected} are in the index, {counts.pending} on their way: {REPAIR_HINT}"
        )
        logger.warning("the index is not what it should be", extra={"part": self._name, "reason": reason})
        return PartHealth(ok=False, needed=counts.mostly_missing, note=REPAIR_HINT)


def item_contents(stores: CatalogStores, index: Index) -> IndexContents:
    async def count() -> Counts:
        # Order matters: an item indexed between the counts is counted twice rather than never.
        expected = await stores.catalog.count()
        index_version = await index_version_of(stores, index)
        pending = 0 if index_version is None else (await stores.dirty.pending(index_version)).total
        return Counts(expected, pending, await index.count())

    return IndexContents("index contents", count)


def skill_contents(stores: CatalogStores, skills: Index) -> IndexContents:
    async def count() -> Counts:
        index_version = await index_version_of(stores, skills)
        written = {} if index_version is None else await stores.skill_vectors.written(index_version)
        pending = sum(minimum < maximum for minimum, maximum in written.values())
        return Counts(len(written), pending, await skills.count())

    return IndexContents("skill contents", count)


async def index_version_of(stores: CatalogStores, index: Index) -> int | None:
    """Return the id of the index version on record; None if there is no record."""
    index_versions = await stores.dirty.index_versions()
    return next(
        (
            index_version.id
            for index_version in index_versions
            if index_version.fingerprint == index.card.fingerprint
        ),
        None,
    )


class CachedHealth:
    """Caches the result briefly: a probe must not cost as much as a search."""

    def __init__(self, check: CheckHealth) -> None:
        self._check = check
        self._checked_at = float("-inf")
        self._health = Health({})

    async def check(self) -> Health:
        if time.monotonic() - self._checked_at > CACHED_SECONDS:
            self._health = await self._check()
            self._checked_at = time.monotonic()
        return self._health


@dataclass(frozen=True)
class DocumentHealth:
    """With `tenants`, an empty index is not well where a tenant holds documents."""

    embedder: Embedder
    index: DocumentIndex
    tenants: Tenants | None = None

    async def check(self) -> Health:
        embedding, index = await asyncio.gather(
            _part("embedding", _embeds(self.embedder), needed=False),
            _part("index", self._index(), needed=True),
        )
        return Health({"embedding": embedding, "index": index})

    async def _index(self) -> str:
        try:
            await self.index.ready()
        except IndexMissing as error:
            raise index_lost() from error
        if self.tenants is not None:
            await require_any(self.index, self.tenants)
        return ""


@dataclass(frozen=True)
class HealthChecks:
    """`knowledge` and `documents` are None where they are not configured; then they are not reported."""

    stores: CatalogStores
    embedder: Embedder
    index: IndexViews
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
        await self.index.within(DEFAULT_ONLY).fields([1])
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
    """Check documents. They are not required: searches of tools and knowledge work without them."""
    failed = {name: part.note for name, part in (await check()).parts.items() if not part.ok}
    notes = [name if note == SEE_THE_LOG else f"{name}: {note}" for name, note in failed.items()]
    return PartHealth(ok=not failed, needed=False, note=f"not well: {', '.join(notes)}" if failed else "")


async def _part(name: str, check: Awaitable[str], *, needed: bool) -> PartHealth:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return PartHealth(ok=True, needed=needed, note=await check)
    except (ToolscriptError, TimeoutError) as error:
        logger.warning("a part is not well", extra={"part": name, "reason": str(error) or "no answer in time"})
        return PartHealth(ok=False, needed=needed, note=note_of(error))


def note_of(error: Exception) -> str:
    """Return what a probe is shown: the message of another error may name hosts."""
    return f"{error.message}: {error.hint}" if isinstance(error, IndexLost) else SEE_THE_LOG
