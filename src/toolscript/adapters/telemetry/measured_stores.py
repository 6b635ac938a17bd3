"""An index and a library, asked through somebody who takes the time."""

from collections.abc import Collection, Mapping, Sequence

from toolscript.adapters.telemetry.timing import Observe, timed
from toolscript.model.index import Ask, Candidates, Fields, KeptPoint, Point, PointVersion
from toolscript.model.library import Chunk, Extraction, Source
from toolscript.model.models import IndexCard
from toolscript.ports import Index, LibraryReader


class MeasuredIndex:
    """Of an index that is searched: what is written or counted is not timed."""

    def __init__(self, index: Index, took: Observe) -> None:
        self._index = index
        self._took = took

    @property
    def card(self) -> IndexCard:
        return self._index.card

    async def search(self, ask: Ask) -> Candidates:
        return await timed(self._took, "search", self._index.search(ask))

    async def search_all(self, asks: Sequence[Ask]) -> Sequence[Candidates]:
        return await timed(self._took, "search", self._index.search_all(asks))

    async def rarities(self, terms: Collection[int]) -> Mapping[int, float]:
        return await timed(self._took, "rarities", self._index.rarities(terms))

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        return await timed(self._took, "fields", self._index.fields(ids, only))

    async def put(self, points: Sequence[Point]) -> None:
        await self._index.put(points)

    async def remove(self, points: Sequence[PointVersion]) -> None:
        await self._index.remove(points)

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        return await self._index.scan(after, limit)

    async def count(self) -> int:
        return await self._index.count()

    async def whole(self, most: int) -> Sequence[KeptPoint] | None:
        return await self._index.whole(most)


class MeasuredLibrary:
    def __init__(self, library: LibraryReader, took: Observe) -> None:
        self._library = library
        self._took = took

    async def sources(self, ids: Sequence[str]) -> Mapping[str, Source]:
        return await timed(self._took, "sources", self._library.sources(ids))

    async def chunks(self, ids: Sequence[str]) -> Mapping[str, Chunk]:
        return await timed(self._took, "chunks", self._library.chunks(ids))

    async def extractions(self, ids: Sequence[str]) -> Mapping[str, Extraction]:
        return await timed(self._took, "extractions", self._library.extractions(ids))

    async def source_page(
        self, after: str, limit: int, types: Sequence[str] = (), topics: Sequence[str] = ()
    ) -> Sequence[Source]:
        return await timed(self._took, "source_page", self._library.source_page(after, limit, types, topics))

    async def passage(self, source_id: str, first: int, last: int) -> Sequence[Chunk]:
        return await timed(self._took, "passage", self._library.passage(source_id, first, last))

    async def ready(self) -> None:
        await timed(self._took, "ready", self._library.ready())
