"""Ranking of the local search: neither retriever dominates, and an exact name always surfaces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.gateway.search.builders import ITEMS, direction, index_of, item, names, search_all, search_over
from toolscript.core.items import Item
from toolscript.core.retrieval.model import Matrix, Vector
from toolscript.core.retrieval.weights import (
    DEFAULT_WEIGHTS,
    EVIDENCE,
    PARTS,
    Calibration,
    Evidence,
    RankingWeights,
)
from toolscript.gateway.model import LocalAnswer, LocalQuery
from toolscript.testing import HashEmbedder

pytestmark = pytest.mark.requirement("TS-003")

# `alpha` matches by words, `beta` by vector: the first hit shows which retriever decided.
THREE = (item("s", "alpha", "letter"), item("s", "beta", "sound"), item("s", "gamma", "ray"))
VECTORS = np.stack([direction(0.1, 1), direction(1, 0.1), direction(0, 1)])
HALVES = [np.zeros(2, np.float32), np.zeros(2, np.float32), direction(1, 0)]
SENTENCE = "read the contents of a file"

Weights = st.floats(0, 5)
Evidences = st.builds(Evidence, *[st.floats(-5, 5)] * len(EVIDENCE))
AnyWeights = st.builds(
    RankingWeights,
    st.floats(0, 1),
    st.floats(0, 1),
    *[Weights] * 5,
    calibration=st.builds(Calibration, Evidences, Evidences, st.floats(0, 1)),
)


class OneDirection(HashEmbedder):
    async def embed_query(self, text: str) -> Vector:
        return direction(1, 0)


def retrievers_only(meaning: float) -> RankingWeights:
    return RankingWeights(meaning, subquery=0.0, coverage=0.0, word_match=0.0, name=0.0, action=0.0, subject=0.0)


async def ranked(text: str, meaning: float, vectors: Matrix | None = VECTORS) -> LocalAnswer:
    search = search_over(THREE, weights=retrievers_only(meaning))
    search.index, search.embedder = index_of(THREE, vectors), OneDirection()
    return await search.search(LocalQuery(text, limit=10, threshold=0.0))


async def first(text: str, meaning: float, vectors: Matrix | None = VECTORS) -> str:
    return names(await ranked(text, meaning, vectors))[0]


async def test_the_weights_balance_dense_and_sparse_scores() -> None:
    assert await first("letter", 1.0) == "beta"
    assert await first("letter", 0.0) == "alpha"


@pytest.mark.parametrize("meaning", [0.0, 0.1, 0.7, 1.0])
async def test_without_a_sparse_score_the_dense_score_decides(meaning: float) -> None:
    assert (await ranked("zzzz", meaning)).hits == (await ranked("zzzz", 1.0)).hits
    assert await first("zzzz", meaning) == "beta"


@pytest.mark.parametrize("meaning", [0.0, 0.7, 1.0])
async def test_without_vectors_the_sparse_score_decides(meaning: float) -> None:
    assert await first("letter", meaning, None) == "alpha"


async def test_an_item_without_embedding_can_rank_first_by_its_words() -> None:
    assert await first("letter", 0.5, np.stack(HALVES)) == "alpha"


async def test_equal_items_are_ordered_by_name() -> None:
    assert names(await ranked("zzzz", 0.7, np.stack([direction(1, 1)] * 3))) == ["alpha", "beta", "gamma"]


async def test_a_hit_has_the_contribution_of_each_feature() -> None:
    parts = (await search_all(SENTENCE)).hits[0].parts.contributions
    assert {"meaning", "words", "word_match"} <= set(parts)
    assert all(parts[part] > 0 for part in ("meaning", "words", "word_match"))


@pytest.mark.parametrize("part", PARTS)
async def test_a_disabled_feature_contributes_nothing(part: str) -> None:
    answer = await search_all(SENTENCE, weights=DEFAULT_WEIGHTS.without(part))
    assert answer.hits
    assert all(part not in hit.parts.contributions for hit in answer.hits)


@settings(max_examples=40, deadline=None)
@given(AnyWeights, st.sampled_from(ITEMS), st.booleans())
async def test_an_exact_name_is_first_and_sure_whatever_the_weights(
    weights: RankingWeights, target: Item, model: bool
) -> None:
    best = (await search_all(target.name, weights=weights, model=model)).hits[0]
    assert best.item == target
    assert best.confidence >= 0.98


@settings(max_examples=40, deadline=None)
@given(AnyWeights, st.sampled_from([SENTENCE, "file", "qqqq", "read a file and send a letter"]), st.booleans())
async def test_confidence_is_0_to_1_best_first_whatever_the_weights(
    weights: RankingWeights, text: str, model: bool
) -> None:
    answer = await search_all(text, weights=weights, model=model)
    confidences = [hit.confidence for hit in answer.hits]
    assert confidences == sorted(confidences, reverse=True)
    assert all(0 <= confidence <= 1 for confidence in confidences)
