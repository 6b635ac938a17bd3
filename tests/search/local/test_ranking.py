"""One order out of two arms: neither drowns the other, and more of anything is never worse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.local.scenes import ITEMS, direction, index_of, item
from toolscript.model.models import Vector
from toolscript.search.local.index import LocalIndex
from toolscript.search.local.ranking import Ranking, rank
from toolscript.search.local.spelling import wanted

pytestmark = pytest.mark.requirement("TS-003")

# `alpha` by words, `beta` by meaning: which is first tells which arm decided.
BY_WORDS, BY_MEANING, NEITHER = item("s", "alpha", "letter"), item("s", "beta", "sound"), item("s", "gamma", "ray")
THREE = (BY_WORDS, BY_MEANING, NEITHER)
VECTORS = np.stack([direction(0.1, 1), direction(1, 0.1), direction(0, 1)])
QUERY = direction(1, 0)


def ranked(text: str, alpha: float, index: LocalIndex | None = None, vector: Vector | None = QUERY) -> Ranking:
    index = index or index_of(THREE, VECTORS)
    return rank(index, index.rows(None), wanted(text, index), vector, alpha)


def first(ranking: Ranking) -> str:
    return THREE[int(np.argmax(ranking.standing))].name


def test_alpha_weighs_meaning_against_words() -> None:
    assert first(ranked("alpha", 1.0)) == "beta"
    assert first(ranked("alpha", 0.0)) == "alpha"
    standings = [ranked("alpha", alpha).standing[1] for alpha in (0.0, 0.3, 0.6, 1.0)]
    assert standings == sorted(standings)
    assert standings[0] < standings[-1]


def test_alpha_of_one_is_the_order_of_meaning_and_zero_that_of_words() -> None:
    meaning, words = ranked("alpha letter", 1.0), ranked("alpha letter", 0.0)
    assert meaning.semantic is not None
    np.testing.assert_array_equal(np.argsort(meaning.standing), np.argsort(meaning.semantic))
    np.testing.assert_array_equal(np.argsort(words.standing), np.argsort(words.words))


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.7, 1.0])
def test_words_with_nothing_to_say_leave_the_whole_word_to_meaning(alpha: float) -> None:
    silent = ranked("zzzz", alpha)
    assert not silent.words.any()
    np.testing.assert_array_equal(silent.standing, ranked("zzzz", 1.0).standing)
    assert silent.standing.std() == pytest.approx(1.0)


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.0])
def test_without_vectors_words_have_the_whole_word(alpha: float) -> None:
    for ranking in (ranked("alpha", alpha, vector=None), ranked("alpha", alpha, index_of(THREE))):
        assert ranking.semantic is None
        assert first(ranking) == "alpha"
        assert ranking.standing.std() == pytest.approx(1.0)


def test_rows_of_which_none_is_embedded_are_ranked_by_words() -> None:
    index = index_of(THREE, np.stack([np.zeros(2), np.zeros(2), direction(1, 0)]).astype(np.float32))
    ranking = rank(index, index.rows(None)[:2], wanted("alpha", index), QUERY, 0.7)
    assert ranking.semantic is None
    assert ranking.standing[0] > ranking.standing[1]


def test_an_item_without_a_vector_stands_at_the_mean_of_meaning() -> None:
    index = index_of(THREE, np.stack([direction(1, 0), direction(0, 1), np.zeros(2, np.float32)]))
    standing = ranked("zzzz", 0.7, index).standing
    assert standing[0] > standing[2] == 0.0 > standing[1]


def test_items_that_are_all_alike_stand_alike() -> None:
    index = index_of(THREE, np.stack([direction(1, 1)] * 3))
    assert ranked("zzzz", 0.7, index).standing.tolist() == [0.0, 0.0, 0.0]


def test_no_rows_are_no_ranking() -> None:
    index = index_of(ITEMS)
    ranking = rank(index, index.rows(None)[:0], wanted("file", index), QUERY, 0.7)
    assert len(ranking.standing) == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    st.floats(0, 1),
    st.sampled_from(["alpha", "beta letter", "gamma ray sound", "zzzz"]),
)
def test_whoever_is_better_in_both_arms_stands_no_lower(cosines: list[float], alpha: float, text: str) -> None:
    vectors = np.array([[cosine, np.sqrt(1 - cosine**2)] for cosine in cosines], dtype=np.float32)
    ranking = ranked(text, alpha, index_of(THREE, vectors))
    semantic = ranking.semantic
    assert semantic is not None
    for one in range(3):
        for other in range(3):
            if semantic[one] >= semantic[other] and ranking.words[one] >= ranking.words[other]:
                assert ranking.standing[one] >= ranking.standing[other] - 1e-9
