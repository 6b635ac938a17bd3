"""Measurement of an index: every shape of filter, and correct recall."""

import pytest

from benchmarks.at_scale import Question, measure
from benchmarks.synthetic import RealPoints, real_points, synthetic_points
from toolscript.core.items import ItemKind
from toolscript.core.retrieval.model import Candidates, IndexCard, IndexQuery
from toolscript.core.retrieval.terms import query_terms
from toolscript.testing import HashEmbedder
from toolscript.testing.retrieval import MemoryIndex
from toolscript.tools.item_stage import where_of

pytestmark = pytest.mark.slow


class Forgetful(MemoryIndex):
    """Finds only every other point, unless the search is exact."""

    async def search(self, ask: IndexQuery) -> Candidates:
        result = await super().search(ask)
        return result if ask.exact else Candidates((result.dense or [])[::2], result.words)


@pytest.fixture
async def real() -> RealPoints:
    vectors = await HashEmbedder().embed_texts([f"word{number}" for number in range(50)])
    return real_points(vectors, [query_terms(f"word{number}") for number in range(50)])


async def filled(index: MemoryIndex, real: RealPoints, count: int) -> MemoryIndex:
    for points in synthetic_points(real, count, batch=500):
        await index.put(points)
    return index


class Empty(MemoryIndex):
    """Has no prompts."""

    async def search(self, ask: IndexQuery) -> Candidates:
        return Candidates((), ()) if ask.where == where_of(ItemKind.PROMPT) else await super().search(ask)


async def test_an_exact_index_has_full_recall_and_a_forgetful_one_has_half(real: RealPoints) -> None:
    card = IndexCard(HashEmbedder().model)
    small = await filled(MemoryIndex(card), real, 300)
    question = Question(await HashEmbedder().embed_query("word7"), query_terms("word7"))
    metrics = await measure(small, await filled(MemoryIndex(card), real, 1_000), [question, question], real)
    assert {metric.recall_at_10 for metric in metrics} == {1.0}
    assert len({metric.shape for metric in metrics}) == 20
    poor = await measure(small, await filled(Forgetful(card), real, 1_000), [question, question], real)
    assert poor[0].recall_at_100 == pytest.approx(0.5, abs=0.02)


async def test_queries_without_results_do_not_count_for_recall(real: RealPoints) -> None:
    card = IndexCard(HashEmbedder().model)
    small = await filled(MemoryIndex(card), real, 300)
    question = Question(await HashEmbedder().embed_query("word7"), query_terms("word7"))
    measured = await measure(small, await filled(Empty(card), real, 1_000), [question, question], real)
    metrics = {item.shape: item for item in measured}
    nothing, all_ = metrics["prompts"], metrics["all"]
    assert (nothing.recall_at_10, nothing.recall_at_100, nothing.recall_questions) == (None, None, 0)
    assert (all_.recall_at_10, all_.recall_questions) == (1.0, 2)
