"""Two arms into one standing: arithmetic by hand, and what holds whatever the arms say."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.core.ranking.builders import LIMIT, Founds, arm, id_of, letters
from toolscript.core.retrieval.model import Candidate, Candidates
from toolscript.core.retrieval.rerank import FusedScores, fuse_scores
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, WORTH_OF_WORDS, RankingWeights

# Both arms count the same.
HALF = RankingWeights(meaning=WORTH_OF_WORDS / (1 + WORTH_OF_WORDS), wishes=0.5)
# The z-scores of three scores that stand evenly apart.
EVENLY = math.sqrt(1.5)
Weights = st.floats(0, 1)


def fused(
    *found: Candidates, weights: RankingWeights = HALF, limit: int = LIMIT, also: tuple[int, ...] = ()
) -> FusedScores:
    return fuse_scores(found, limit, weights, also)


def fused_scores(seen: FusedScores) -> dict[str, float]:
    return dict(zip(letters(seen.ids.tolist()), seen.standing.tolist(), strict=True))


@pytest.mark.requirement("BR-009", "TS-003")
def test_each_arm_is_read_in_units_of_its_spread_and_weighed() -> None:
    """Dense: mean 0.5, spread 0.327. Words: 10, 5 and, as the arm is complete, 0: mean 5, spread 4.08."""
    seen = fused(Candidates(arm(a=0.9, b=0.5, c=0.1), arm(b=10.0, a=5.0)), weights=RankingWeights(meaning=0.7))
    assert fused_scores(seen) == pytest.approx({"a": 0.6 * EVENLY, "b": 0.4 * EVENLY, "c": -EVENLY})
    assert seen.meaning.tolist() == pytest.approx([0.6 * EVENLY, 0.0, -0.6 * EVENLY])
    assert seen.words.tolist() == pytest.approx([0.0, 0.4 * EVENLY, -0.4 * EVENLY])
    assert seen.wishes.tolist() == [0.0, 0.0, 0.0]


def test_whoever_a_full_arm_does_not_name_stands_as_its_last() -> None:
    """Both arms are cut at two. Dense: mean 0.6, spread 0.2. Words: mean 4, spread 2."""
    seen = fused(Candidates(arm(a=0.8, b=0.4), arm(b=6.0, c=2.0)), limit=2)
    assert fused_scores(seen) == pytest.approx({"a": 0.0, "b": 0.0, "c": -1.0})


def test_whoever_a_complete_word_arm_does_not_name_counts_as_zero() -> None:
    """6 and 3 alone would stand one spread from their mean; with the 0 of `c` they are 6, 3 and 0."""
    seen = fused(Candidates(None, arm(a=6.0, b=3.0)), also=(id_of("c"),))
    assert fused_scores(seen) == pytest.approx({"a": EVENLY, "b": 0.0, "c": -EVENLY})
    cut = fused(Candidates(None, arm(a=6.0, b=3.0)), also=(id_of("c"),), limit=2)
    assert fused_scores(cut) == pytest.approx({"a": 1.0, "b": -1.0, "c": -1.0})


def test_a_dense_arm_is_never_complete_for_it_knows_a_cosine_of_all() -> None:
    seen = fused(Candidates(arm(a=0.8, b=0.4), None), also=(id_of("c"),))
    assert fused_scores(seen) == pytest.approx({"a": 1.0, "b": -1.0, "c": -1.0})


@pytest.mark.requirement("TS-003")
@pytest.mark.parametrize("meaning", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("silent", [None, []])
def test_an_arm_with_nothing_to_say_leaves_the_whole_word_to_the_other(
    meaning: float, silent: list[Candidate] | None
) -> None:
    weights = RankingWeights(meaning=meaning)
    by_words = fused(Candidates(silent, arm(a=6.0, b=3.0, c=0.0)), weights=weights)
    assert fused_scores(by_words) == pytest.approx({"a": EVENLY, "b": 0.0, "c": -EVENLY})
    assert not by_words.meaning.any()
    by_meaning = fused(Candidates(arm(a=0.6, b=0.3, c=0.0), silent), weights=weights)
    assert fused_scores(by_meaning) == pytest.approx({"a": EVENLY, "b": 0.0, "c": -EVENLY})
    assert not by_meaning.words.any()


def test_meaning_is_weighed_against_words() -> None:
    found = Candidates(arm(a=0.9, b=0.5, c=0.1), arm(c=9.0, b=4.0))
    firsts = [letters(fused(found, weights=RankingWeights(meaning=share)).ids.tolist())[0] for share in (1.0, 0.0)]
    assert firsts == ["a", "c"]
    of_a = [
        fused_scores(fused(found, weights=RankingWeights(meaning=share)))["a"] for share in (0.0, 0.3, 0.6, 1.0)
    ]
    assert of_a == sorted(of_a)


@pytest.mark.requirement("BR-001")
def test_ties_are_ordered_by_id() -> None:
    for found in (
        Candidates(arm(c=0.5, a=0.5, b=0.5), None),
        Candidates(arm(c=0.5, a=0.5, b=0.5), arm(c=3.0, a=3.0, b=3.0)),
        Candidates(None, arm(b=3.0, a=3.0)),
    ):
        assert letters(fused(found).ids.tolist()) == "".join(sorted(letters(fused(found).ids.tolist())))


def test_an_arm_that_tells_nobody_apart_leaves_the_order_to_the_other() -> None:
    alike_words = Candidates(arm(a=0.2, b=0.9, c=0.5), arm(a=3.0, b=3.0, c=3.0))
    assert letters(fused(alike_words).ids.tolist()) == "bca"
    alike_meaning = Candidates(arm(a=0.5, b=0.5, c=0.5), arm(c=9.0, b=4.0))
    assert letters(fused(alike_meaning).ids.tolist()) == "cba"


def test_the_best_wish_replaces_the_whole_as_far_as_it_counts() -> None:
    """To the whole 1 and -1, to a wish -1 and 1: the best wish of `b` lifts it from -1 towards 1."""
    whole, wish = Candidates(arm(a=0.8, b=0.4), None), Candidates(arm(a=0.4, b=0.8), None)
    same = Candidates(arm(a=0.8, b=0.4), None)
    for weight in (0.0, 0.25, 1.0):
        seen = fused(whole, wish, same, weights=RankingWeights(wishes=weight))
        assert fused_scores(seen) == pytest.approx({"a": 1.0, "b": -1.0 + 2 * weight})
        assert sorted(seen.wishes.tolist()) == pytest.approx([0.0, 2 * weight])


def test_whoever_fits_the_whole_better_than_any_wish_falls_as_far() -> None:
    whole, wish = Candidates(arm(a=0.8, b=0.4), None), Candidates(arm(a=0.4, b=0.8), None)
    seen = fused(whole, wish, weights=RankingWeights(wishes=0.25))
    assert fused_scores(seen) == pytest.approx({"a": 0.5, "b": -0.5})


def test_a_wish_alone_may_name_a_candidate() -> None:
    seen = fused(Candidates(None, arm(a=5.0)), Candidates(None, arm(b=5.0)))
    assert sorted(letters(seen.ids.tolist())) == ["a", "b"]


def test_similarities_are_the_cosines_of_the_whole() -> None:
    whole, wish = Candidates(arm(a=0.8, b=-0.2), arm(c=4.0)), Candidates(arm(c=0.9, a=0.1), None)
    seen = fused(whole, wish)
    similarity = dict(zip(letters(seen.ids.tolist()), seen.similarity.tolist(), strict=True))
    assert (similarity["a"], similarity["b"]) == (0.8, -0.2)
    assert math.isnan(similarity["c"])
    assert seen.is_semantic
    assert seen.whole is whole


def test_what_was_not_asked_by_meaning_is_not_semantic() -> None:
    assert not fused(Candidates(None, arm(a=1.0))).is_semantic
    assert fused(Candidates([], arm(a=1.0))).is_semantic


def test_nothing_found_is_nobody() -> None:
    for nothing in (Candidates(), Candidates([], [])):
        assert len(fused(nothing, nothing).ids) == 0


@settings(max_examples=150, deadline=None)
@given(Founds, Weights, Weights, st.sets(st.integers(1, 60), max_size=3))
def test_everyone_named_stands_once_best_first_and_the_parts_make_the_standing(
    found: list[Candidates], meaning: float, wishes: float, also: set[int]
) -> None:
    seen = fuse_scores(found, 5, replace(DEFAULT_WEIGHTS, meaning=meaning, wishes=wishes), also)
    named = {hit.id for one in found for hit in (*(one.dense or ()), *(one.words or ()))} | also
    assert sorted(seen.ids.tolist()) == sorted(named)
    order = [(-standing, id_) for standing, id_ in zip(seen.standing.tolist(), seen.ids.tolist(), strict=True)]
    assert order == sorted(order)
    np.testing.assert_allclose(seen.meaning + seen.words + seen.wishes, seen.standing, atol=1e-9)
    assert np.isfinite(seen.standing).all()


@pytest.mark.requirement("TS-003")
@settings(max_examples=150, deadline=None)
@given(Founds.map(lambda found: found[0]), Weights, st.integers(1, 20))
def test_whoever_is_better_in_both_arms_stands_no_lower(found: Candidates, meaning: float, limit: int) -> None:
    seen = fused(found, weights=RankingWeights(meaning=meaning), limit=limit)
    dense = {hit.id: hit.score for hit in found.dense or ()}
    words = {hit.id: hit.score for hit in found.words or ()}
    standing = dict(zip(seen.ids.tolist(), seen.standing.tolist(), strict=True))
    for one in dense.keys() & words.keys():
        for other in dense.keys() & words.keys():
            if dense[one] >= dense[other] and words[one] >= words[other]:
                assert standing[one] >= standing[other] - 1e-9


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-100, 100), min_size=2, max_size=8), st.floats(0.1, 5), st.floats(-1, 1))
def test_a_model_whose_cosines_lie_closer_or_higher_gives_the_same_order(
    hundredths: list[int], scale: float, shift: float
) -> None:
    assume(len(set(hundredths)) > 1)
    cosines = [value / 100 for value in hundredths]
    words = [Candidate(1, 3.0)]
    one = fused(Candidates([Candidate(id_, value) for id_, value in enumerate(cosines)], words))
    other = fused(Candidates([Candidate(id_, scale * value + shift) for id_, value in enumerate(cosines)], words))
    by_id = [dict(zip(seen.ids.tolist(), seen.standing.tolist(), strict=True)) for seen in (one, other)]
    assert by_id[0] == pytest.approx(by_id[1], abs=1e-6)
