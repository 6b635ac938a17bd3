"""The index of skills, with a copy in memory that answers searches as long as it is fresh.

Comparing a few hundred skills takes less time than a round trip to the engine. The catalog records the version of
every point after each write: when these versions differ from those of the copy, a background task reads the copy
again. The engine answers sparse searches, and all searches when the last check is too old or there are too many
points.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import numpy as np

from toolscript.core.errors import ToolscriptError
from toolscript.core.retrieval.model import (
    Candidate,
    Candidates,
    Condition,
    Fields,
    IndexCard,
    IndexQuery,
    Matrix,
    Point,
    PointVersion,
    StoredPoint,
)
from toolscript.core.retrieval.ports import Index
from toolscript.core.retrieval.spelling import Vocabulary

MAX_SKILLS = 1_000
CHECK_SECONDS = 0.25
STALE_SECONDS = 2.0
READ_AGAIN_SECONDS = 60.0

# Reads the version of every written point, by id.
Written = Callable[[], Awaitable[Mapping[int, int]]]

logger = logging.getLogger(__name__)


class SkillCopy:
    def __init__(self, index: Index, written: Written, now: Callable[[], float] = time.monotonic) -> None:
        self._index = index
        self._written = written
        self._now = now
        self._copy: _Copy | None = None
        self._versions: Mapping[int, int] = {}
        self._check_started = self._read_at = self._fresh_at = float("-inf")
        self._checking: asyncio.Task[None] | None = None

    @property
    def card(self) -> IndexCard:
        return self._index.card

    async def search(self, ask: IndexQuery) -> Candidates:
        (candidates,) = await self.search_all([ask])
        return candidates

    async def search_all(self, asks: Sequence[IndexQuery]) -> Sequence[Candidates]:
        copy = self._fresh()
        if copy is None or any(ask.vector is None or ask.terms is not None for ask in asks):
            return await self._index.search_all(asks)
        return [copy.search(ask) for ask in asks]

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        copy = self._fresh()
        return await self._index.fields(ids, only) if copy is None else copy.fields(ids, only)

    async def vocabulary(self) -> Vocabulary:
        return await self._index.vocabulary()

    def forget(self) -> None:
        """Drop the copy after a write to the index: the next search queries the engine."""
        self._copy, self._check_started, self._fresh_at = None, float("-inf"), float("-inf")
        if self._checking is not None:
            self._checking.cancel()
            self._checking = None

    async def check(self) -> None:
        """Read the copy again if the index has changed; drop it if there are too many points."""
        started = self._check_started = self._now()
        try:
            versions = await self._written()
            if versions != self._versions or started - self._read_at > READ_AGAIN_SECONDS:
                # Points written during the read are newer than these versions: the next check detects that.
                points = await self._index.whole(MAX_SKILLS)
                self._copy = None if points is None else _Copy(points)
                self._versions, self._read_at = versions, started
        except ToolscriptError as error:
            logger.debug("skill copy not checked", extra={"part": "skills", "reason": error.message})
            return
        self._fresh_at = started

    def _fresh(self) -> "_Copy | None":
        """Return the copy if it is fresh. Start a check in the background; no search waits for it."""
        now = self._now()
        if (self._checking is None or self._checking.done()) and now - self._check_started >= CHECK_SECONDS:
            self._checking = asyncio.ensure_future(self.check())
        return self._copy if now - self._fresh_at <= STALE_SECONDS else None

    async def whole(self, maximum: int) -> Sequence[StoredPoint] | None:
        return await self._index.whole(maximum)

    async def idfs(self, terms: Collection[int]) -> Mapping[int, float]:
        return await self._index.idfs(terms)

    async def put(self, points: Sequence[Point]) -> None:
        await self._index.put(points)
        self.forget()

    async def remove(self, points: Sequence[PointVersion]) -> None:
        await self._index.remove(points)
        self.forget()

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        return await self._index.scan(after, limit)

    async def count(self) -> int:
        return await self._index.count()


class _Copy:
    def __init__(self, points: Sequence[StoredPoint]) -> None:
        self._points = sorted(points, key=lambda point: point.id)
        self._by_id = {point.id: point for point in points}
        self._vectors: Matrix = np.array([point.vector for point in self._points], dtype=np.float32)

    def search(self, ask: IndexQuery) -> Candidates:
        """Return the best first, on a tie the lower id first, like the engine."""
        if ask.vector is None or not self._points:
            return Candidates(dense=[], points=0)
        length = float(np.linalg.norm(ask.vector)) or 1.0
        scores = self._vectors @ np.asarray(ask.vector / length, dtype=np.float32)
        only = frozenset(ask.only)
        dense: list[Candidate] = []
        for row in np.argsort(-scores, kind="stable").tolist():
            point = self._points[row]
            if (not only or point.id in only) and all(_matches(point, condition) for condition in ask.where):
                dense.append(Candidate(point.id, float(scores[row]), _select(point.fields, ask.fields)))
                if len(dense) == ask.limit:
                    break
        return Candidates(dense=dense, points=len(self._points))

    def fields(self, ids: Sequence[int], only: Sequence[str]) -> dict[int, Fields]:
        points = [self._by_id[id_] for id_ in ids if id_ in self._by_id]
        return {point.id: _select(point.fields, only or tuple(point.fields)) for point in points}


def _select(fields: Fields, names: Sequence[str]) -> Fields:
    return {name: fields[name] for name in names if name in fields}


def _matches(point: StoredPoint, condition: Condition) -> bool:
    value = point.fields.get(condition.field)
    values = value if isinstance(value, list | tuple) else [value]
    return any(item in condition.any_of for item in values)
