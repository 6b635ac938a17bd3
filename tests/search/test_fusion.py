"""Two ranked lists into one, on the scale of the cosine."""

import math

import pytest

from toolscript.model.index import Candidate, Candidates
from toolscript.search.fusion import HALF_SURE_RARITIES, WORDS_TRUST, fuse


def arm(**scores: float) -> list[Candidate]:
    """`arm(a=0.9)`: the candidate with id 1 scores 0.9, best first."""
    ids = {name: "abcdefgh".index(name) + 1 for name in scores}
    return sorted((Candidate(ids[name], score) for name, score in scores.items()), key=lambda one: -one.score)


# A catalog in which a word score of 10 reads as one half.
POINTS = round((math.exp(10 / HALF_SURE_RARITIES) - 2) / 2)


def fused(dense: list[Candidate] | None, words: list[Candidate] | None, limit: int = 100) -> dict[str, float]:
    return {"abcdefgh"[one.candidate.id - 1]: one.score for one in fuse(Candidates(dense, words, POINTS), limit)}


@pytest.mark.requirement("BR-009")
def test_the_dense_arm_alone_keeps_its_cosines() -> None:
    scores = fused(arm(a=0.2, b=0.9, c=-0.1), None)
    assert list(scores.items()) == [("b", 0.9), ("a", 0.2), ("c", -0.1)]
    assert fused(arm(a=0.2, b=0.9, c=-0.1), []) == scores


def test_the_word_arm_alone_is_brought_between_zero_and_one() -> None:
    scores = fused(None, arm(a=10.0, b=30.0, c=0.1))
    assert list(scores) == ["b", "a", "c"]
    assert scores["a"] == pytest.approx(0.5, abs=1e-4)
    assert all(0 < score < 1 for score in scores.values())
    assert fused([], arm(a=10.0, b=30.0, c=0.1)) == scores


def test_no_candidates_fuse_to_nothing() -> None:
    assert fuse(Candidates(), 100) == []
    assert fuse(Candidates([], []), 100) == []


@pytest.mark.requirement("BR-009")
def test_both_arms_are_averaged_in_units_of_their_spread() -> None:
    """Dense: mean 0.5, spread 0.327. Words: 5, 10 and, as the arm is complete, 0: mean 5, spread 4.08."""
    scores = fused(arm(a=0.9, b=0.5, c=0.1), arm(b=10.0, a=5.0))
    assert scores == pytest.approx({"a": 0.7, "b": 0.7, "c": 0.1})


def test_whoever_a_full_arm_does_not_name_scores_as_its_last() -> None:
    """Both arms are cut at two. Dense: mean 0.6, spread 0.2. Words: mean 4, spread 2."""
    scores = fused(arm(a=0.8, b=0.4), arm(b=6.0, c=2.0), limit=2)
    assert scores == pytest.approx({"a": 0.6, "b": 0.6, "c": 0.4})


def test_first_in_both_arms_keeps_its_cosine_or_better() -> None:
    scores = fused(arm(a=0.8, b=0.5, c=0.4, d=0.3), arm(a=12.0, b=2.0))
    assert next(iter(scores)) == "a"
    assert 0.75 < scores["a"] < 1.0


@pytest.mark.requirement("BR-001")
def test_ties_are_ordered_by_id() -> None:
    assert list(fused(arm(c=0.5, a=0.5, b=0.5), None)) == ["a", "b", "c"]
    assert list(fused(arm(c=0.5, a=0.5, b=0.5), arm(c=3.0, a=3.0, b=3.0))) == ["a", "b", "c"]


def test_an_arm_that_tells_nobody_apart_leaves_the_order_to_the_other() -> None:
    assert list(fused(arm(a=0.2, b=0.9, c=0.5), arm(a=3.0, b=3.0, c=3.0))) == ["b", "c", "a"]


def unlike() -> list[Candidate]:
    return [Candidate(id_, 0.01 * id_) for id_ in range(20, 0, -1)]


def test_where_nothing_is_alike_a_common_word_does_not_make_it_so() -> None:
    best = fuse(Candidates(unlike(), [Candidate(20, 3.0)], POINTS), 100)[0]
    assert best.candidate.id == 20
    assert best.score < 0.3


def test_words_that_match_well_lift_a_list_the_model_cannot_read_and_keep_its_order() -> None:
    """A word score of 30 reads as 0.75, of which 0.6 is trusted."""
    lifted = fuse(Candidates(unlike(), [Candidate(7, 30.0)], POINTS), 100)
    assert lifted[0].candidate.id == 7
    assert lifted[0].score == pytest.approx(WORDS_TRUST * 0.75, abs=1e-4)
    assert [one.candidate.id for one in lifted[1:]] == [id_ for id_ in range(20, 0, -1) if id_ != 7]


@pytest.mark.parametrize("points", [3, 10, 44, 37_659, 10**6])
def test_a_word_that_one_item_has_alone_counts_the_same_in_catalogs_of_any_size(points: int) -> None:
    rarity = math.log(1 + (points - 0.5) / 1.5)
    (only,) = fuse(Candidates(None, [Candidate(1, rarity * 1.5)], points), 100)
    assert 0.4 < only.score < 0.65


def test_a_dense_arm_that_tells_nobody_apart_leaves_the_order_to_the_words() -> None:
    assert list(fused(arm(a=0.5, b=0.5, c=0.5), arm(c=9.0, b=4.0))) == ["c", "b", "a"]
