"""What is known of a collection as a whole, looked up now and then rather than by every search."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.common_terms import SAMPLE, CommonTerms
from toolscript.adapters.qdrant.connection import Qdrant, translated
from toolscript.adapters.qdrant.filter_split import Sizes
from toolscript.adapters.qdrant.layout import WORDS, Layout, scanned_vectors
from toolscript.model.index import Scalar


@dataclass(frozen=True)
class Sample:
    """Which words are common, how many points a filter lets through, how many have no value of `counted_empty`."""

    common: CommonTerms = field(default_factory=lambda: CommonTerms(0, {}))
    sizes: Sizes = field(default_factory=Sizes)
    empty: int = 0


class Sampler:
    def __init__(self, qdrant: Qdrant, name: str, layout: Layout, dimensions: int) -> None:
        self._qdrant = qdrant
        self._name = name
        self._layout = layout
        self._scanned = scanned_vectors(dimensions)

    @property
    def is_needed(self) -> bool:
        """By questions without words, too."""
        return bool(self._layout.counted_fields)

    async def take(self) -> Sample:
        points, segments, empty = await asyncio.gather(self.count(exact=False), self._segments(), self._empty())
        values = await asyncio.gather(*map(self._values, self._layout.counted_fields))
        by_field = dict(zip(self._layout.counted_fields, values, strict=True))
        common = CommonTerms.of_sample(points, await self._random_terms())
        return Sample(common, Sizes(points, segments, self._scanned, by_field), empty)

    async def count(self, *, exact: bool, where: wire.Filter | None = None) -> int:
        request = wire.CountPoints(collection_name=self._name, exact=exact, filter=where)
        return int((await self._points("Count", request)).result.count)

    async def _empty(self) -> int:
        if not self._layout.counted_empty:
            return 0
        is_empty = wire.IsEmptyCondition(key=self._layout.counted_empty)
        return await self.count(exact=True, where=wire.Filter(must=[wire.Condition(is_empty=is_empty)]))

    async def _segments(self) -> int:
        request = wire.GetCollectionInfoRequest(collection_name=self._name)
        with translated():
            answer = await self._qdrant.collections.Get(request, timeout=self._qdrant.timeout_seconds)
        return max(1, int(answer.result.segments_count))

    async def _values(self, field_name: str) -> Mapping[Scalar, int]:
        most = Sizes.most_values
        request = wire.FacetCounts(collection_name=self._name, key=field_name, limit=most, exact=False)
        answer = await self._points("Facet", request)
        return {hit.value.string_value: int(hit.count) for hit in answer.hits}

    async def _random_terms(self) -> list[Sequence[int]]:
        request = wire.QueryPoints(
            collection_name=self._name,
            query=wire.Query(sample=wire.Sample.Random),
            limit=SAMPLE,
            with_vectors=wire.WithVectorsSelector(include=wire.VectorsSelector(names=[WORDS])),
            with_payload=wire.WithPayloadSelector(enable=False),
        )
        answer = await self._points("Query", request)
        return [hit.vectors.vectors.vectors[WORDS].sparse.indices for hit in answer.result]

    async def _points(self, method: str, request: object) -> Any:
        with translated():
            return await getattr(self._qdrant.points, method)(request, timeout=self._qdrant.timeout_seconds)
