"""A person's own search ranks by its recipe: neither arm drowns the other, and a name always surfaces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.gateway.search.builders import ITEMS, direction, found, index_of, item, names, search_over
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

# `alpha` by words, `beta` by meaning: which is first tells which arm decided.
THREE = (item("s", "alpha", "letter"), item("s", "beta", "sound"), item("s", "gamma", "ray"))
VECTORS = np.stack([direction(0.1, 1), direction(1, 0.1), direction(0, 1)])
HALVES = [np.zeros(2, np.float32), np.zeros(2, np.float32), direction(1, 0)]
SENTENCE = "read the contents of a file"

Weights = st.floats(0, 5)
Evidences = st.builds(Evidence, *[st.floats(-5, 5)] * len(EVIDENCE))
Recipes = st.builds(
    RankingWeights,
    st.floats(0, 1),
    st.floats(0, 1),
    *[Weights] * 5,
    calibration=st.builds(Calibration, Evidences, Evidences, st.floats(0, 1)),
)


class OneDirection(HashEmbedder):
    async def embed_query(self, text: str) -> Vector:
        return direction(1, 0)


def arms_alone(meaning: float) -> RankingWeights:
    return RankingWeights(meaning, wishes=0.0, coverage=0.0, said=0.0, name=0.0, action=0.0, subject=0.0)


async def ranked(text: str, meaning: float, vectors: Matrix | None = VECTORS) -> LocalAnswer:
    search = search_over(THREE, weights=arms_alone(meaning))
    search.index, search.embedder = index_of(THREE, vectors), OneDirection()
    return await search.search(LocalQuery(text, limit=10, threshold=0.0))


async def first(text: str, meaning: float, vectors: Matrix | None = VECTORS) -> str:
    return names(await ranked(text, meaning, vectors))[0]


async def test_the_recipe_weighs_meaning_against_words() -> None:
    assert await first("letter", 1.0) == "beta"
    assert await first("letter", 0.0) == "alpha"


@pytest.mark.parametrize("meaning", [0.0, 0.1, 0.7, 1.0])
async def test_words_with_nothing_to_say_leave_the_whole_word_to_meaning(meaning: float) -> None:
    assert (await ranked("zzzz", meaning)).hits == (await ranked("zzzz", 1.0)).hits
    assert await first("zzzz", meaning) == "beta"


@pytest.mark.parametrize("meaning", [0.0, 0.7, 1.0])
async def test_without_vectors_words_have_the_whole_word(meaning: float) -> None:
    assert await first("letter", meaning, None) == "alpha"


async def test_what_is_not_embedded_yet_can_come_first_by_its_words() -> None:
    assert await first("letter", 0.5, np.stack(HALVES)) == "alpha"


async def test_items_that_are_all_alike_come_in_the_order_of_their_names() -> None:
    assert names(await ranked("zzzz", 0.7, np.stack([direction(1, 1)] * 3))) == ["alpha", "beta", "gamma"]


async def test_a_hit_tells_what_each_part_gave_it() -> None:
    parts = (await found(SENTENCE)).hits[0].parts.standing
    assert {"meaning", "words", "said"} <= set(parts)
    assert all(parts[part] > 0 for part in ("meaning", "words", "said"))


@pytest.mark.parametrize("part", PARTS)
async def test_a_part_that_is_off_gives_nothing_to_anyone(part: str) -> None:
    answer = await found(SENTENCE, weights=DEFAULT_WEIGHTS.without(part))
    assert answer.hits
    assert all(part not in hit.parts.standing for hit in answer.hits)


@settings(max_examples=40, deadline=None)
@given(Recipes, st.sampled_from(ITEMS), st.booleans())
async def test_an_exact_name_is_first_and_sure_whatever_the_weights(
    weights: RankingWeights, wanted: Item, model: bool
) -> None:
    best = (await found(wanted.name, weights=weights, model=model)).hits[0]
    assert best.item == wanted
    assert best.confidence >= 0.98


@settings(max_examples=40, deadline=None)
@given(Recipes, st.sampled_from([SENTENCE, "file", "qqqq", "read a file and send a letter"]), st.booleans())
async def test_confidence_is_0_to_1_best_first_whatever_the_weights(
    weights: RankingWeights, text: str, model: bool
) -> None:
    answer = await found(text, weights=weights, model=model)
    confidences = [hit.confidence for hit in answer.hits]
    assert confidences == sorted(confidences, reverse=True)
    assert all(0 <= one <= 1 for one in confidences)
