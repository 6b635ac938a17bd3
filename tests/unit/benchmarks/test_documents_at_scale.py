"""Tables about searches in a collection of many tenants."""

import numpy as np
import pytest

from benchmarks.at_scale import PairedTimes, Recalls, StageTimes
from toolscript.core.auth.model import Tenant
from toolscript.core.retrieval.results import ChunkId, FoundChunk
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.model.points import ChunkQuery, FoundWithContent
from toolscript.documents.ports import TenantDocuments
from toolscript.testing.documents import MemoryTenantDocuments

VECTOR = np.ones(4, dtype=np.float32)


class Forgetful(MemoryTenantDocuments):
    """Finds every second of twenty chunks, unless the search is exact."""

    def __init__(self, there: int = 20) -> None:
        super().__init__(Tenant("acme"), {})
        self._there = there

    async def search(self, ask: ChunkQuery) -> FoundWithContent:
        result = [FoundChunk(ChunkId(f"{index:024x}", 0), 1 - index / 100) for index in range(self._there)]
        return FoundWithContent(dense=result if ask.exact else result[::2])


async def recall_rows(documents: TenantDocuments) -> list[dict[str, object]]:
    recalls = Recalls(("tenants",))
    await recalls.measure(("big",), documents, VECTOR, NO_FILTERS)
    return recalls.rows()


async def test_recall_is_the_share_of_what_an_exact_search_finds() -> None:
    assert await recall_rows(Forgetful()) == [{"tenants": "big", "recall@10": 0.5, "recall@100": 0.5, "of": 1}]


async def test_a_query_without_results_does_not_count_for_recall() -> None:
    assert await recall_rows(Forgetful(there=0)) == []


async def test_the_order_alternates() -> None:
    order: list[str] = []

    async def ours() -> None:
        order.append("ours")

    async def bare() -> None:
        order.append("bare")

    times = PairedTimes(("tenants", "search"), ("ours", "bare"))
    for _ in range(4):
        await times.measure(("tiny", "hybrid"), ours, bare)
    assert order == ["bare", "ours", "ours", "bare"] * 2
    assert [len(side) for side in times.spent["tiny", "hybrid"]] == [4, 4]


def test_rows_have_both_sides_and_their_ratio() -> None:
    times = PairedTimes(("tenants", "search"), ("ours", "bare"), {("tiny", "hybrid"): ([10.0] * 4, [8.0] * 4)})
    assert times.rows() == [
        {
            "tenants": "tiny",
            "search": "hybrid",
            "ours p50": 10.0,
            "ours p95": 10.0,
            "bare p50": 8.0,
            "bare p95": 8.0,
            "p50 ratio": 1.25,
            "p95 ratio": 1.25,
            "of": 4,
        }
    ]


def test_stages_are_measured_from_spans_even_when_a_search_fails() -> None:
    stages = StageTimes()
    for _ in range(2):
        with stages.span("search.embed"):
            pass
        with pytest.raises(ValueError, match="no"), stages.span("search.retrieve", limit=3):
            raise ValueError("no")
    assert set(stages.row()) == {"embed", "retrieve"}
