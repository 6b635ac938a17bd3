"""A ranking read on the scale of the cosine: one arm as it is, both as similarities."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings

from tests.unit.core.ranking.builders import Founds, arm, having, id_of, letters
from toolscript.core.retrieval.model import Candidate, Candidates
from toolscript.core.retrieval.request import parse_query
from toolscript.core.retrieval.rerank import Features, Ranking, fuse_scores, rank
from toolscript.core.retrieval.weights import WORTH_OF_WORDS, RankingWeights
from toolscript.tools.score_scale import (
    HALF_SURE_IDFS,
    MIN_SPREAD,
    WORDS_SPREAD,
    WORDS_TRUST,
    retriever_scores,
    scores_of,
    word_similarity,
)

# A catalog in which a word score of 10 reads as one half.
POINTS = round((math.exp(10 / HALF_SURE_IDFS) - 2) / 2)
# Both arms count the same.
HALF = RankingWeights(meaning=WORTH_OF_WORDS / (1 + WORTH_OF_WORDS), wishes=0.0)


def ranking_of(
    *found: Candidates,
    weights: RankingWeights = HALF,
    limit: int = 100,
    features: dict[int, Features] | None = None,
) -> Ranking:
    return rank(parse_query("delete file"), fuse_scores(found, limit, weights), features or {}, weights)


def scored(whole: Candidates, limit: int = 100, features: dict[int, Features] | None = None) -> dict[str, float]:
    whole = replace(whole, points=POINTS)
    ranking = ranking_of(whole, limit=limit, features=features)
    return dict(zip(letters(ranking.ids.tolist()), scores_of(ranking, whole), strict=True))


def unlike() -> list[Candidate]:
    return [Candidate(id_, 0.01 * id_) for id_ in range(20, 0, -1)]


@pytest.mark.requirement("BR-009")
@pytest.mark.parametrize("silent", [None, []])
def test_one_arm_alone_keeps_its_cosines(silent: list[Candidate] | None) -> None:
    scores = retriever_scores(Candidates(arm(a=0.2, b=0.9, c=-0.1), silent, POINTS))
    assert scores == [(id_of("b"), 0.9), (id_of("a"), 0.2), (id_of("c"), -0.1)]


def test_words_alone_are_brought_between_zero_and_one() -> None:
    scores = retriever_scores(Candidates(None, arm(a=10.0, b=30.0, c=0.1), POINTS))
    assert letters([id_ for id_, _ in scores]) == "bac"
    assert dict(scores)[id_of("a")] == pytest.approx(0.5, abs=1e-4)
    assert all(0 < score < 1 for _, score in scores)


@pytest.mark.requirement("BR-001")
def test_ties_of_one_arm_are_ordered_by_id() -> None:
    assert letters([id_ for id_, _ in retriever_scores(Candidates(arm(c=0.5, a=0.5, b=0.5)))]) == "abc"
    assert letters([id_ for id_, _ in retriever_scores(Candidates(None, arm(b=3.0, a=3.0), POINTS))]) == "ab"


def test_nothing_found_has_no_scores() -> None:
    for nothing in (Candidates(), Candidates([], [])):
        assert retriever_scores(nothing) == []
        assert scores_of(ranking_of(nothing), nothing) == []


@pytest.mark.requirement("BR-009")
def test_where_the_dense_arm_ranks_alone_all_keep_their_cosines_but_for_those_below_zero() -> None:
    assert scored(Candidates(arm(a=0.2, b=0.9, c=-0.1), [])) == pytest.approx({"b": 0.9, "a": 0.2, "c": 0.0})


@pytest.mark.requirement("BR-009")
def test_both_arms_are_averaged_in_units_of_their_spread() -> None:
    """Dense: mean 0.5, spread 0.327. Words: 5, 10 and, as the arm is complete, 0: mean 5, spread 4.08."""
    scores = scored(Candidates(arm(a=0.9, b=0.5, c=0.1), arm(b=10.0, a=5.0)))
    assert scores == pytest.approx({"a": 0.7, "b": 0.7, "c": 0.1})


def test_whoever_a_full_arm_does_not_name_scores_as_its_last() -> None:
    """Both arms are cut at two. Dense: mean 0.6, spread 0.2. Words: mean 4, spread 2."""
    scores = scored(Candidates(arm(a=0.8, b=0.4), arm(b=6.0, c=2.0)), limit=2)
    assert scores == pytest.approx({"a": 0.6, "b": 0.6, "c": 0.4})


def test_first_in_both_arms_keeps_its_cosine_or_better() -> None:
    scores = scored(Candidates(arm(a=0.8, b=0.5, c=0.4, d=0.3), arm(a=12.0, b=2.0)))
    assert next(iter(scores)) == "a"
    assert 0.75 < scores["a"] < 1.0


def test_whoever_a_second_look_puts_first_has_its_own_similarity_and_the_others_follow() -> None:
    found = Candidates(arm(a=0.8, b=0.5, c=0.2), [])
    scores = scored(found, features={id_of("b"): having("delete_file")})
    assert list(scores) == ["b", "a", "c"]
    assert scores["b"] == pytest.approx(0.5)
    assert scores["b"] > scores["a"] > scores["c"]


def test_where_nothing_is_alike_a_common_word_does_not_make_it_so() -> None:
    whole = Candidates(unlike(), [Candidate(20, 3.0)], POINTS)
    ranking = ranking_of(whole)
    assert ranking.ids[0] == 20
    assert scores_of(ranking, whole)[0] < 0.3


def test_words_that_match_well_lift_a_list_the_model_cannot_read_and_keep_its_order() -> None:
    """A word score of 30 reads as 0.75, of which 0.6 is trusted."""
    whole = Candidates(unlike(), [Candidate(7, 30.0)], POINTS)
    ranking = ranking_of(whole)
    assert ranking.ids.tolist() == [7, *(id_ for id_ in range(20, 0, -1) if id_ != 7)]
    scores = scores_of(ranking, whole)
    assert scores[0] == pytest.approx(WORDS_TRUST * 0.75, abs=1e-4)
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("points", [3, 10, 44, 37_659, 10**6])
def test_a_word_that_one_item_has_alone_counts_the_same_in_catalogs_of_any_size(points: int) -> None:
    idf = math.log(1 + (points - 0.5) / 1.5)
    assert 0.4 < word_similarity(idf * 1.5, points) < 0.65


def test_without_a_model_the_best_words_are_first_and_the_others_a_step_behind() -> None:
    scores = scored(Candidates(None, arm(a=10.0, b=5.0)), limit=2)
    assert scores["a"] == pytest.approx(0.5, abs=1e-4)
    assert scores["a"] - scores["b"] == pytest.approx(2 * WORDS_SPREAD)


def test_a_dense_arm_that_tells_nobody_apart_leaves_the_order_to_the_words() -> None:
    scores = scored(Candidates(arm(a=0.5, b=0.5, c=0.5), arm(c=9.0, b=4.0)))
    assert list(scores) == ["c", "b", "a"]
    assert scores["a"] < scores["b"] < scores["c"] < scores["a"] + 3 * MIN_SPREAD


@settings(max_examples=100, deadline=None)
@given(Founds)
def test_scores_fall_down_the_list_one_for_each(found: list[Candidates]) -> None:
    ranking = ranking_of(*found, weights=RankingWeights())
    scores = scores_of(ranking, found[0])
    assert len(scores) == len(ranking.ids)
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(scores))
