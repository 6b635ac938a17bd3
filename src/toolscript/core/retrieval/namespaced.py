"""An index version with a collection for each namespace.

A search in one namespace asks one collection: its points, its graph and its statistics are all it can see. A
search in several asks each of them, and merges what they find by score.
"""

import asyncio
import time
from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from typing import TypeVar

from toolscript.core.errors import SetupError
from toolscript.core.namespaces import DEFAULT_NAMESPACE, MAX_NAMESPACES
from toolscript.core.retrieval.model import (
    Candidate,
    Candidates,
    Fields,
    IndexCard,
    IndexQuery,
    Point,
    PointVersion,
    StoredPoint,
)
from toolscript.core.retrieval.ports import Index, Indexes, IndexReader
from toolscript.core.retrieval.spelling import Vocabulary

DEFAULT_ONLY = (DEFAULT_NAMESPACE,)
# Collections that are kept open, besides that of the default namespace: each has a sample of its terms in memory.
MAX_OPEN = 2 * MAX_NAMESPACES
# A namespace without a collection counts as empty for so long, before the engine is asked again.
ABSENT_SECONDS = 1.0
MIN_SCANNED = 100

T = TypeVar("T")

# Adds a layer to the index of a namespace, such as metrics.
Wrap = Callable[[Index, str], Index]


def unwrapped(index: Index, _: str) -> Index:
    return index


class MergedIndex:
    """The indexes of several namespaces, or of none, as one."""

    def __init__(self, card: IndexCard, parts: Sequence[IndexReader]) -> None:
        self._card = card
        self._parts = parts
        self._vocabularies: Sequence[Vocabulary] = ()
        self._vocabulary = Vocabulary()

    @property
    def card(self) -> IndexCard:
        return self._card

    async def search(self, ask: IndexQuery) -> Candidates:
        (candidates,) = await self.search_all([ask])
        return candidates

    async def search_all(self, asks: Sequence[IndexQuery]) -> Sequence[Candidates]:
        answers = await asyncio.gather(*(part.search_all(asks) for part in self._parts))
        return [_merged(ask, [answer[index] for answer in answers]) for index, ask in enumerate(asks)]

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        answers = await asyncio.gather(*(part.fields(ids, only) for part in self._parts))
        return {id_: fields for answer in answers for id_, fields in answer.items()}

    async def vocabulary(self) -> Vocabulary:
        parts = await asyncio.gather(*(part.vocabulary() for part in self._parts))
        if [*map(id, parts)] != [*map(id, self._vocabularies)]:
            merged = await asyncio.to_thread(lambda: Vocabulary.merged(parts).prepared())
            self._vocabularies, self._vocabulary = parts, merged
        return self._vocabulary


class DefaultNamespace:
    """A single index as the one of the default namespace; all others are empty."""

    def __init__(self, index: IndexReader) -> None:
        self._index = index

    @property
    def card(self) -> IndexCard:
        return self._index.card

    def within(self, namespaces: tuple[str, ...]) -> IndexReader:
        return self._index if DEFAULT_NAMESPACE in namespaces else MergedIndex(self.card, ())


class NamespacedIndex:
    """The port `Index` over all namespaces; `within` is the part of it that a search sees.

    A point is written to the collection of its namespace, which is created with its first point. A removal without
    a namespace applies to all. Methods that read cover all namespaces.
    """

    def __init__(
        self,
        indexes: Indexes,
        default: Index,
        wrap: Wrap = unwrapped,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._indexes = indexes
        self._plain_default = default
        self._default = wrap(default, DEFAULT_NAMESPACE)
        self._wrap = wrap
        self._now = now
        self._opened = OrderedDict[str, Index]()
        self._opening = asyncio.Lock()
        self._created = {DEFAULT_NAMESPACE}
        self._listed: frozenset[str] = frozenset()
        self._listed_at = float("-inf")

    @classmethod
    async def open(cls, indexes: Indexes, card: IndexCard) -> "NamespacedIndex":
        """Open the index version; raise if it is absent or records another identity."""
        return cls(indexes, await indexes.open(card))

    def wrapped(self, wrap: Wrap) -> "NamespacedIndex":
        """Return the same index version with one more layer around the index of each namespace."""
        inner = self._wrap
        return NamespacedIndex(
            self._indexes, self._plain_default, lambda index, namespace: wrap(inner(index, namespace), namespace)
        )

    @property
    def card(self) -> IndexCard:
        return self._plain_default.card

    @property
    def opened(self) -> Sequence[Index]:
        """The indexes of the namespaces that are open, with their layers."""
        return [self._default, *self._opened.values()]

    def within(self, namespaces: tuple[str, ...]) -> IndexReader:
        if namespaces == DEFAULT_ONLY:
            return self._default
        parts = [
            self._default if namespace == DEFAULT_NAMESPACE else _Part(self, namespace) for namespace in namespaces
        ]
        return parts[0] if len(parts) == 1 else MergedIndex(self.card, parts)

    async def of(self, namespace: str) -> Index | None:
        """Return the index of a namespace; None if it has had no collection a moment ago."""
        if namespace == DEFAULT_NAMESPACE:
            return self._default
        if (opened := self._opened.get(namespace)) is not None:
            self._opened.move_to_end(namespace)
            return opened
        if namespace not in self._listed and self._now() - self._listed_at >= ABSENT_SECONDS:
            await self._list()
        return await self._open(namespace) if namespace in self._listed else None

    async def search(self, ask: IndexQuery) -> Candidates:
        return await (await self._everywhere()).search(ask)

    async def search_all(self, asks: Sequence[IndexQuery]) -> Sequence[Candidates]:
        return await (await self._everywhere()).search_all(asks)

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        return await (await self._everywhere()).fields(ids, only)

    async def vocabulary(self) -> Vocabulary:
        return await (await self._everywhere()).vocabulary()

    async def idfs(self, terms: Collection[int]) -> Mapping[int, float]:
        """Return the mean of the namespaces' IDFs, weighted by their points."""
        indexes = await self._all()
        idfs = await asyncio.gather(*(index.idfs(terms) for index in indexes))
        counts = await asyncio.gather(*(index.count() for index in indexes))
        weights = [max(count, 1) for count in counts]
        weighted = list(zip(idfs, weights, strict=True))
        return {term: sum(idf[term] * weight for idf, weight in weighted) / sum(weights) for term in terms}

    async def put(self, points: Sequence[Point]) -> None:
        by_namespace = defaultdict[str, list[Point]](list)
        for point in points:
            by_namespace[point.namespace].append(point)
        for namespace, group in by_namespace.items():
            try:
                await (await self._for_writing(namespace)).put(group)
            except SetupError:
                if not await self.was_dropped(namespace):
                    raise
                await (await self._for_writing(namespace)).put(group)

    async def remove(self, points: Sequence[PointVersion]) -> None:
        if not points:
            return
        known = [point for point in points if point.namespace is not None]
        unknown = [point for point in points if point.namespace is None]
        # Listed now: a point in a collection that is a moment old must not stay.
        existing = await self._list() if unknown or any(_is_other(point) for point in known) else DEFAULT_ONLY
        for namespace in existing:
            group = [*unknown, *(point for point in known if point.namespace == namespace)]
            if group:
                await self._remove_from(namespace, group)

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        """Return the next points in order of id and namespace, all of the last id: it may be in several."""
        namespaces = sorted(await self._list())
        chunk = max(MIN_SCANNED, limit // len(namespaces) + 1) if len(namespaces) > 1 else limit
        scans = [_Scan(await self._open(namespace), namespace, after, chunk) for namespace in namespaces]
        page: list[PointVersion] = []
        while len(page) < limit and scans:
            await asyncio.gather(*(scan.read() for scan in scans))
            # Nothing beyond the shortest scan is known in full.
            horizon = min((scan.last for scan in scans if not scan.is_done), default=None)
            page += merge(*(scan.take(horizon) for scan in scans), key=_place)
            scans = [scan for scan in scans if not scan.is_done or scan.has_more]
        end = next((end for end in range(limit, len(page)) if page[end].id != page[end - 1].id), len(page))
        return page[:end]

    async def was_dropped(self, namespace: str) -> bool:
        """Return whether the collection of this namespace alone is gone, as an operator may drop an empty one."""
        existing = frozenset(await self._indexes.namespaces(self.card))
        if namespace in existing or DEFAULT_NAMESPACE not in existing:
            return False
        self._listed, self._listed_at = existing, self._now()
        self._opened.pop(namespace, None)
        self._created.discard(namespace)
        return True

    async def _remove_from(self, namespace: str, points: Sequence[PointVersion]) -> None:
        try:
            await (await self._open(namespace)).remove(points)
        except SetupError:
            if not await self.was_dropped(namespace):
                raise

    async def count(self) -> int:
        return await self._indexes.size(self.card) or 0

    async def whole(self, maximum: int) -> Sequence[StoredPoint] | None:
        points: list[StoredPoint] = []
        for index in await self._all():
            more = await index.whole(maximum - len(points))
            if more is None:
                return None
            points += more
        return points

    async def _for_writing(self, namespace: str) -> Index:
        """Return the index of a namespace. The first write of a process creates or completes its collection."""
        if namespace not in self._created:
            await self._indexes.create(self.card, namespace)
            self._created.add(namespace)
            self._listed |= {namespace}
        return await self._open(namespace)

    async def _open(self, namespace: str) -> Index:
        if namespace == DEFAULT_NAMESPACE:
            return self._default
        async with self._opening:
            if (opened := self._opened.get(namespace)) is None:
                opened = self._wrap(await self._indexes.open(self.card, namespace), namespace)
                self._opened[namespace] = opened
        self._opened.move_to_end(namespace)
        while len(self._opened) > MAX_OPEN:
            self._opened.popitem(last=False)
        return opened

    async def _list(self) -> Iterable[str]:
        """Return the namespaces that have a collection, and the default one."""
        self._listed_at = self._now()
        self._listed = frozenset(await self._indexes.namespaces(self.card))
        return self._listed | {DEFAULT_NAMESPACE}

    async def _all(self) -> list[Index]:
        return [await self._open(namespace) for namespace in sorted(await self._list())]

    async def _everywhere(self) -> MergedIndex:
        return MergedIndex(self.card, await self._all())


class _Part:
    """The index of a namespace, opened at its first search; empty while it has no collection."""

    def __init__(self, owner: NamespacedIndex, namespace: str) -> None:
        self._owner = owner
        self._namespace = namespace
        self._empty = MergedIndex(owner.card, ())

    @property
    def card(self) -> IndexCard:
        return self._owner.card

    async def search(self, ask: IndexQuery) -> Candidates:
        return await self._ask(lambda index: index.search(ask))

    async def search_all(self, asks: Sequence[IndexQuery]) -> Sequence[Candidates]:
        return await self._ask(lambda index: index.search_all(asks))

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        return await self._ask(lambda index: index.fields(ids, only))

    async def vocabulary(self) -> Vocabulary:
        return await self._ask(lambda index: index.vocabulary())

    async def _ask(self, request: Callable[[IndexReader], Awaitable[T]]) -> T:
        try:
            return await request(await self._owner.of(self._namespace) or self._empty)
        except SetupError:
            if not await self._owner.was_dropped(self._namespace):
                raise
            return await request(self._empty)


class _Scan:
    """Reads the points of a namespace chunk by chunk, ahead of a merge."""

    def __init__(self, index: Index, namespace: str, after: int, chunk: int) -> None:
        self._index = index
        self._namespace = namespace
        self._chunk = chunk
        self._waiting: list[PointVersion] = []
        self.last = after
        self.is_done = False

    @property
    def has_more(self) -> bool:
        return bool(self._waiting)

    async def read(self) -> None:
        """Read the next chunk once the one before is taken."""
        if self._waiting or self.is_done:
            return
        page = await self._index.scan(self.last, self._chunk)
        self._waiting = [replace(point, namespace=self._namespace) for point in page]
        self.last = page[-1].id if page else self.last
        self.is_done = len(page) < self._chunk

    def take(self, horizon: int | None) -> list[PointVersion]:
        """Return the points up to this id, or all of them."""
        taken = [point for point in self._waiting if horizon is None or point.id <= horizon]
        self._waiting = self._waiting[len(taken) :]
        return taken


def _place(point: PointVersion) -> tuple[int, str]:
    return point.id, point.namespace or ""


def _is_other(point: PointVersion) -> bool:
    return point.namespace != DEFAULT_NAMESPACE


def _merged(ask: IndexQuery, answers: Sequence[Candidates]) -> Candidates:
    points = sum(answer.points for answer in answers)
    shares = defaultdict[int, float](float)
    for answer in answers:
        for term, share in answer.shares.items():
            shares[term] += share * answer.points / points if points else 0.0
    return Candidates(
        dense=None if ask.vector is None else _best((answer.dense for answer in answers), ask.limit),
        words=None if ask.terms is None else _best((answer.words for answer in answers), ask.limit),
        points=points,
        shares=dict(shares),
        unskilled=sum(answer.unskilled for answer in answers),
    )


def _best(lists: Iterable[Sequence[Candidate] | None], limit: int) -> list[Candidate]:
    hits = [hit for hits in lists for hit in hits or ()]
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]
