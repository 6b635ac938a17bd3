"""The index of skills, with a copy of it in memory that answers for as long as it is known to be fresh.

A few hundred skills are compared in less time than an engine takes to hear the question. What the engine has is
told by the versions of the points that were written, which the catalog records after each write: where they are
others than those of the copy, it is read again, beside the searches. Where nobody could tell for a while, where
the points are too many, or where a question is about words, the engine answers.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import numpy as np

from toolscript.core.errors import ToolscriptError
from toolscript.core.retrieval.model import (
    Ask,
    Candidate,
    Candidates,
    Condition,
    Fields,
    IndexCard,
    KeptPoint,
    Matrix,
    Point,
    PointVersion,
)
from toolscript.core.retrieval.ports import Index

MAX_SKILLS = 1_000
CHECK_SECONDS = 0.25
STALE_SECONDS = 2.0
READ_AGAIN_SECONDS = 60.0

# The version of every point that was written, by id.
Written = Callable[[], Awaitable[Mapping[int, int]]]

logger = logging.getLogger(__name__)


class SkillCopy:
    def __init__(self, index: Index, written: Written, now: Callable[[], float] = time.monotonic) -> None:
        self._index = index
        self._written = written
        self._now = now
        self._held: _Held | None = None
        self._versions: Mapping[int, int] = {}
        self._began = self._read_at = self._true_at = float("-inf")
        self._checking: asyncio.Task[None] | None = None

    @property
    def card(self) -> IndexCard:
        return self._index.card

    async def search(self, ask: Ask) -> Candidates:
        (candidates,) = await self.search_all([ask])
        return candidates

    async def search_all(self, asks: Sequence[Ask]) -> Sequence[Candidates]:
        held = self._fresh()
        if held is None or any(ask.vector is None or ask.terms is not None for ask in asks):
            return await self._index.search_all(asks)
        return [held.search(ask) for ask in asks]

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        held = self._fresh()
        return await self._index.fields(ids, only) if held is None else held.fields(ids, only)

    def forget(self) -> None:
        """For whoever has just written to the index: the next search asks the engine."""
        self._held, self._began, self._true_at = None, float("-inf"), float("-inf")
        if self._checking is not None:
            self._checking.cancel()
            self._checking = None

    async def check(self) -> None:
        """Makes sure that the copy is what the index has, or that there is none."""
        began = self._began = self._now()
        try:
            versions = await self._written()
            if versions != self._versions or began - self._read_at > READ_AGAIN_SECONDS:
                # What is written while we read is newer than these versions: the next check finds that.
                points = await self._index.whole(MAX_SKILLS)
                self._held = None if points is None else _Held(points)
                self._versions, self._read_at = versions, began
        except ToolscriptError as error:
            logger.debug("no copy of the skills", extra={"part": "skills", "reason": error.message})
            return
        self._true_at = began

    def _fresh(self) -> "_Held | None":
        """Nobody waits for a check."""
        now = self._now()
        if (self._checking is None or self._checking.done()) and now - self._began >= CHECK_SECONDS:
            self._checking = asyncio.ensure_future(self.check())
        return self._held if now - self._true_at <= STALE_SECONDS else None

    async def whole(self, maximum: int) -> Sequence[KeptPoint] | None:
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


class _Held:
    def __init__(self, points: Sequence[KeptPoint]) -> None:
        self._points = sorted(points, key=lambda point: point.id)
        self._by_id = {point.id: point for point in points}
        self._vectors: Matrix = np.array([point.vector for point in self._points], dtype=np.float32)

    def search(self, ask: Ask) -> Candidates:
        """Best first, of equals the lower id, as the engine has it."""
        if ask.vector is None or not self._points:
            return Candidates(dense=[], points=0)
        length = float(np.linalg.norm(ask.vector)) or 1.0
        scores = self._vectors @ np.asarray(ask.vector / length, dtype=np.float32)
        wanted = frozenset(ask.only)
        dense: list[Candidate] = []
        for row in np.argsort(-scores, kind="stable").tolist():
            point = self._points[row]
            if (not wanted or point.id in wanted) and all(_holds(point, condition) for condition in ask.where):
                dense.append(Candidate(point.id, float(scores[row]), _some(point.fields, ask.fields)))
                if len(dense) == ask.limit:
                    break
        return Candidates(dense=dense, points=len(self._points))

    def fields(self, ids: Sequence[int], only: Sequence[str]) -> dict[int, Fields]:
        known = [self._by_id[id_] for id_ in ids if id_ in self._by_id]
        return {point.id: _some(point.fields, only or tuple(point.fields)) for point in known}


def _some(fields: Fields, names: Sequence[str]) -> Fields:
    return {name: fields[name] for name in names if name in fields}


def _holds(point: KeptPoint, condition: Condition) -> bool:
    value = point.fields.get(condition.field)
    values = value if isinstance(value, list | tuple) else [value]
    return any(one in condition.any_of for one in values)
