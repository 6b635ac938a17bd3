"""Ranking scores on the scale of the cosine: of one retriever unchanged, of both as similarities."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.retrieval.builders import CandidateSets, having, hits_of, id_of, letters
from toolscript.core.retrieval.fusion import fuse_scores
from toolscript.core.retrieval.model import Candidate, Candidates
from toolscript.core.retrieval.request import parse_query
from toolscript.core.retrieval.rerank import Features, RankedCandidates, rank
from toolscript.core.retrieval.weights import SPARSE_SCALE, RankingWeights
from toolscript.tools.item_stage import RankedItems, ScoredItem, ScoredItems
from toolscript.tools.score_scale import (
    HALF_SURE_IDFS,
    MIN_SPREAD,
    SHOWN_STEP,
    WORDS_SPREAD,
    WORDS_TRUST,
    count_reaching,
    reaches,
    retriever_scores,
    scores_of,
    word_similarity,
)

# A catalog in which a BM25 score of 10 maps to one half.
POINTS = round((math.exp(10 / HALF_SURE_IDFS) - 2) / 2)
# Both retrievers count the same.
HALF = RankingWeights(meaning=SPARSE_SCALE / (1 + SPARSE_SCALE), subquery=0.0)


def ranking_of(
    *candidate_lists: Candidates,
    weights: RankingWeights = HALF,
    limit: int = 100,
    features: dict[int, Features] | None = None,
) -> RankedCandidates:
    return rank(parse_query("delete file"), fuse_scores(candidate_lists, limit, weights), features or {}, weights)


def scored(whole: Candidates, limit: int = 100, features: dict[int, Features] | None = None) -> dict[str, float]:
    whole = replace(whole, points=POINTS)
    ranking = ranking_of(whole, limit=limit, features=features)
    return dict(zip(letters(ranking.ids.tolist()), scores_of(ranking, whole), strict=True))


def unlike() -> list[Candidate]:
    return [Candidate(id_, 0.01 * id_) for id_ in range(20, 0, -1)]


@pytest.mark.requirement("BR-009")
@pytest.mark.parametrize("silent", [None, []])
def test_dense_retrieval_alone_keeps_its_cosines(silent: list[Candidate] | None) -> None:
    scores = retriever_scores(Candidates(hits_of(a=0.2, b=0.9, c=-0.1), silent, POINTS))
    assert scores == [(id_of("b"), 0.9), (id_of("a"), 0.2), (id_of("c"), -0.1)]


def test_sparse_scores_alone_are_mapped_between_zero_and_one() -> None:
    scores = retriever_scores(Candidates(None, hits_of(a=10.0, b=30.0, c=0.1), POINTS))
    assert letters([id_ for id_, _ in scores]) == "bac"
    assert dict(scores)[id_of("a")] == pytest.approx(0.5, abs=1e-4)
    assert all(0 < score < 1 for _, score in scores)


@pytest.mark.requirement("BR-001")
def test_ties_of_a_single_retriever_are_ordered_by_id() -> None:
    assert letters([id_ for id_, _ in retriever_scores(Candidates(hits_of(c=0.5, a=0.5, b=0.5)))]) == "abc"
    assert letters([id_ for id_, _ in retriever_scores(Candidates(None, hits_of(b=3.0, a=3.0), POINTS))]) == "ab"


def test_an_empty_ranking_has_no_scores() -> None:
    for nothing in (Candidates(), Candidates([], [])):
        assert retriever_scores(nothing) == []
        assert scores_of(ranking_of(nothing), nothing) == []


@pytest.mark.requirement("BR-009")
def test_with_dense_retrieval_only_all_candidates_keep_their_cosines_clipped_at_zero() -> None:
    assert scored(Candidates(hits_of(a=0.2, b=0.9, c=-0.1), [])) == pytest.approx({"b": 0.9, "a": 0.2, "c": 0.0})


@pytest.mark.requirement("BR-009")
def test_both_retrievers_are_averaged_in_units_of_their_spread() -> None:
    """Dense: mean 0.5, spread 0.327. Sparse: 5, 10 and, as the list is complete, 0: mean 5, spread 4.08."""
    scores = scored(Candidates(hits_of(a=0.9, b=0.5, c=0.1), hits_of(b=10.0, a=5.0)))
    assert scores == pytest.approx({"a": 0.7, "b": 0.7, "c": 0.1})


def test_a_candidate_missing_from_a_full_list_gets_its_minimum_score() -> None:
    """Both lists are cut at two. Dense: mean 0.6, spread 0.2. Sparse: mean 4, spread 2."""
    scores = scored(Candidates(hits_of(a=0.8, b=0.4), hits_of(b=6.0, c=2.0)), limit=2)
    assert scores == pytest.approx({"a": 0.6, "b": 0.6, "c": 0.4})


def test_the_first_of_both_retrievers_keeps_its_cosine_or_better() -> None:
    scores = scored(Candidates(hits_of(a=0.8, b=0.5, c=0.4, d=0.3), hits_of(a=12.0, b=2.0)))
    assert next(iter(scores)) == "a"
    assert 0.75 < scores["a"] < 1.0


def test_the_candidate_that_reranking_puts_first_keeps_its_similarity_and_the_others_follow() -> None:
    whole = Candidates(hits_of(a=0.8, b=0.5, c=0.2), [])
    scores = scored(whole, features={id_of("b"): having("delete_file")})
    assert list(scores) == ["b", "a", "c"]
    assert scores["b"] == pytest.approx(0.5)
    assert scores["b"] > scores["a"] > scores["c"]


def test_a_common_word_does_not_raise_the_scores_of_dissimilar_items() -> None:
    whole = Candidates(unlike(), [Candidate(20, 3.0)], POINTS)
    ranking = ranking_of(whole)
    assert ranking.ids[0] == 20
    assert scores_of(ranking, whole)[0] < 0.3


def test_good_sparse_matches_raise_a_list_that_the_model_cannot_read_and_keep_its_order() -> None:
    """A BM25 score of 30 maps to 0.75, which has a weight of 0.6."""
    whole = Candidates(unlike(), [Candidate(7, 30.0)], POINTS)
    ranking = ranking_of(whole)
    assert ranking.ids.tolist() == [7, *(id_ for id_ in range(20, 0, -1) if id_ != 7)]
    scores = scores_of(ranking, whole)
    assert scores[0] == pytest.approx(WORDS_TRUST * 0.75, abs=1e-4)
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("points", [3, 10, 44, 37_659, 10**6])
def test_a_word_of_a_single_item_counts_the_same_in_catalogs_of_any_size(points: int) -> None:
    idf = math.log(1 + (points - 0.5) / 1.5)
    assert 0.4 < word_similarity(idf * 1.5, points) < 0.65


def test_without_a_model_the_best_sparse_match_is_first_and_the_others_a_step_behind() -> None:
    scores = scored(Candidates(None, hits_of(a=10.0, b=5.0)), limit=2)
    assert scores["a"] == pytest.approx(0.5, abs=1e-4)
    assert scores["a"] - scores["b"] == pytest.approx(2 * WORDS_SPREAD)


def test_with_equal_cosines_the_sparse_scores_decide_the_order() -> None:
    scores = scored(Candidates(hits_of(a=0.5, b=0.5, c=0.5), hits_of(c=9.0, b=4.0)))
    assert list(scores) == ["c", "b", "a"]
    assert scores["a"] < scores["b"] < scores["c"] < scores["a"] + 3 * MIN_SPREAD


@settings(max_examples=100, deadline=None)
@given(CandidateSets)
def test_scores_descend_with_one_per_candidate(candidate_lists: list[Candidates]) -> None:
    ranking = ranking_of(*candidate_lists, weights=RankingWeights())
    scores = scores_of(ranking, candidate_lists[0])
    assert len(scores) == len(ranking.ids)
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(scores))


def test_columns_of_scored_items_read_as_the_items() -> None:
    columns = ScoredItems([3, 1, 2], [0.9, 0.5, 0.1], [0.8, 0.4, 0.2])
    items = [ScoredItem(3, 0.9, 0.8), ScoredItem(1, 0.5, 0.4), ScoredItem(2, 0.1, 0.2)]
    assert list(columns) == [columns[0], columns[1], columns[2]] == items
    assert list(columns[:2]) == items[:2]
    assert (len(columns), bool(columns[3:])) == (3, False)
    assert RankedItems(columns).scores == RankedItems(items).scores == [0.9, 0.5, 0.1]


@given(
    st.lists(st.one_of(st.floats(0, 1), st.floats(0.3 - 3 * SHOWN_STEP, 0.3 + 3 * SHOWN_STEP))),
    st.sampled_from((0.0, 0.3, 1.0)),
)
def test_as_many_scores_reach_a_threshold_as_are_displayed_with_it(scores: list[float], threshold: float) -> None:
    assert count_reaching(scores, threshold) == sum(reaches(score, threshold) for score in scores)
