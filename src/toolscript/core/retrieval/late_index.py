"""An index that is opened by the first request that can: its engine may be away, or nobody has made it yet."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from toolscript.core.retrieval.model import (
    Candidates,
    Fields,
    IndexCard,
    IndexQuery,
    Point,
    PointVersion,
    StoredPoint,
)
from toolscript.core.retrieval.ports import Index
from toolscript.core.retrieval.spelling import Vocabulary


class LateIndex:
    """The port `Index`. Until it is open, every request fails with the reason."""

    def __init__(self, card: IndexCard, open_index: Callable[[], Awaitable[Index]]) -> None:
        self._card = card
        self._open_index = open_index
        self._opened: Index | None = None
        self._opening = asyncio.Lock()

    @property
    def card(self) -> IndexCard:
        return self._card

    async def search(self, ask: IndexQuery) -> Candidates:
        return await (await self._index()).search(ask)

    async def search_all(self, asks: Sequence[IndexQuery]) -> Sequence[Candidates]:
        return await (await self._index()).search_all(asks)

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        return await (await self._index()).fields(ids, only)

    async def vocabulary(self) -> Vocabulary:
        return await (await self._index()).vocabulary()

    async def idfs(self, terms: Collection[int]) -> Mapping[int, float]:
        return await (await self._index()).idfs(terms)

    async def put(self, points: Sequence[Point]) -> None:
        await (await self._index()).put(points)

    async def remove(self, points: Sequence[PointVersion]) -> None:
        await (await self._index()).remove(points)

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        return await (await self._index()).scan(after, limit)

    async def count(self) -> int:
        return await (await self._index()).count()

    async def whole(self, maximum: int) -> Sequence[StoredPoint] | None:
        return await (await self._index()).whole(maximum)

    async def _index(self) -> Index:
        if self._opened is None:
            async with self._opening:
                if self._opened is None:
                    self._opened = await self._open_index()
        return self._opened
