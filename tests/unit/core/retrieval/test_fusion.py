"""Fusion of two retrievers into one score: arithmetic by hand, and properties for any lists."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.core.retrieval.builders import LIMIT, CandidateSets, hits_of, id_of, letters
from toolscript.core.retrieval.fusion import FusedScores, fuse_scores
from toolscript.core.retrieval.model import Candidate, Candidates
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, SPARSE_SCALE, RankingWeights

# Both retrievers have the same weight.
HALF = RankingWeights(meaning=SPARSE_SCALE / (1 + SPARSE_SCALE), subquery=0.5)
# The z-score of the highest of three evenly spaced scores.
EVENLY = math.sqrt(1.5)
Weights = st.floats(0, 1)


def fused(
    *candidates: Candidates, weights: RankingWeights = HALF, limit: int = LIMIT, extra_ids: tuple[int, ...] = ()
) -> FusedScores:
    return fuse_scores(candidates, limit, weights, extra_ids)


def fused_scores(result: FusedScores) -> dict[str, float]:
    return dict(zip(letters(result.ids.tolist()), result.score.tolist(), strict=True))


@pytest.mark.requirement("BR-009", "TS-003")
def test_each_retriever_is_standardized_and_weighted() -> None:
    """Dense: mean 0.5, spread 0.327. Sparse: 10, 5 and, as the list is complete, 0: mean 5, spread 4.08."""
    result = fused(
        Candidates(hits_of(a=0.9, b=0.5, c=0.1), hits_of(b=10.0, a=5.0)), weights=RankingWeights(meaning=0.7)
    )
    assert fused_scores(result) == pytest.approx({"a": 0.6 * EVENLY, "b": 0.4 * EVENLY, "c": -EVENLY})
    assert result.meaning.tolist() == pytest.approx([0.6 * EVENLY, 0.0, -0.6 * EVENLY])
    assert result.words.tolist() == pytest.approx([0.0, 0.4 * EVENLY, -0.4 * EVENLY])
    assert result.subquery.tolist() == [0.0, 0.0, 0.0]


def test_a_candidate_missing_from_a_full_list_gets_its_minimum() -> None:
    """Both lists are cut at two. Dense: mean 0.6, spread 0.2. Sparse: mean 4, spread 2."""
    result = fused(Candidates(hits_of(a=0.8, b=0.4), hits_of(b=6.0, c=2.0)), limit=2)
    assert fused_scores(result) == pytest.approx({"a": 0.0, "b": 0.0, "c": -1.0})


def test_a_candidate_missing_from_a_complete_sparse_list_counts_as_zero() -> None:
    """6 and 3 alone would be one spread from their mean; with the 0 of `c` the scores are 6, 3 and 0."""
    result = fused(Candidates(None, hits_of(a=6.0, b=3.0)), extra_ids=(id_of("c"),))
    assert fused_scores(result) == pytest.approx({"a": EVENLY, "b": 0.0, "c": -EVENLY})
    cut = fused(Candidates(None, hits_of(a=6.0, b=3.0)), extra_ids=(id_of("c"),), limit=2)
    assert fused_scores(cut) == pytest.approx({"a": 1.0, "b": -1.0, "c": -1.0})


def test_a_dense_list_is_never_complete_because_all_points_have_a_cosine() -> None:
    result = fused(Candidates(hits_of(a=0.8, b=0.4), None), extra_ids=(id_of("c"),))
    assert fused_scores(result) == pytest.approx({"a": 1.0, "b": -1.0, "c": -1.0})


@pytest.mark.requirement("TS-003")
@pytest.mark.parametrize("meaning", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("no_hits", [None, []])
def test_a_retriever_without_results_leaves_all_weight_to_the_other(
    meaning: float, no_hits: list[Candidate] | None
) -> None:
    weights = RankingWeights(meaning=meaning)
    by_words = fused(Candidates(no_hits, hits_of(a=6.0, b=3.0, c=0.0)), weights=weights)
    assert fused_scores(by_words) == pytest.approx({"a": EVENLY, "b": 0.0, "c": -EVENLY})
    assert not by_words.meaning.any()
    by_meaning = fused(Candidates(hits_of(a=0.6, b=0.3, c=0.0), no_hits), weights=weights)
    assert fused_scores(by_meaning) == pytest.approx({"a": EVENLY, "b": 0.0, "c": -EVENLY})
    assert not by_meaning.words.any()


def test_dense_scores_are_weighted_against_sparse_scores() -> None:
    candidates = Candidates(hits_of(a=0.9, b=0.5, c=0.1), hits_of(c=9.0, b=4.0))
    firsts = [
        letters(fused(candidates, weights=RankingWeights(meaning=share)).ids.tolist())[0] for share in (1.0, 0.0)
    ]
    assert firsts == ["a", "c"]
    of_a = [
        fused_scores(fused(candidates, weights=RankingWeights(meaning=share)))["a"]
        for share in (0.0, 0.3, 0.6, 1.0)
    ]
    assert of_a == sorted(of_a)


@pytest.mark.requirement("BR-001")
def test_ties_are_ordered_by_id() -> None:
    for candidates in (
        Candidates(hits_of(c=0.5, a=0.5, b=0.5), None),
        Candidates(hits_of(c=0.5, a=0.5, b=0.5), hits_of(c=3.0, a=3.0, b=3.0)),
        Candidates(None, hits_of(b=3.0, a=3.0)),
    ):
        assert letters(fused(candidates).ids.tolist()) == "".join(sorted(letters(fused(candidates).ids.tolist())))


def test_a_retriever_with_equal_scores_leaves_the_order_to_the_other() -> None:
    alike_words = Candidates(hits_of(a=0.2, b=0.9, c=0.5), hits_of(a=3.0, b=3.0, c=3.0))
    assert letters(fused(alike_words).ids.tolist()) == "bca"
    alike_meaning = Candidates(hits_of(a=0.5, b=0.5, c=0.5), hits_of(c=9.0, b=4.0))
    assert letters(fused(alike_meaning).ids.tolist()) == "cba"


def test_the_best_subquery_replaces_the_whole_by_its_weight() -> None:
    """Scores 1 and -1 for the whole, -1 and 1 for a sub-query: the sub-query lifts `b` from -1 towards 1."""
    whole, subquery = Candidates(hits_of(a=0.8, b=0.4), None), Candidates(hits_of(a=0.4, b=0.8), None)
    same = Candidates(hits_of(a=0.8, b=0.4), None)
    for weight in (0.0, 0.25, 1.0):
        result = fused(whole, subquery, same, weights=RankingWeights(subquery=weight))
        assert fused_scores(result) == pytest.approx({"a": 1.0, "b": -1.0 + 2 * weight})
        assert sorted(result.subquery.tolist()) == pytest.approx([0.0, 2 * weight])


def test_a_candidate_that_fits_the_whole_better_than_any_subquery_falls() -> None:
    whole, subquery = Candidates(hits_of(a=0.8, b=0.4), None), Candidates(hits_of(a=0.4, b=0.8), None)
    result = fused(whole, subquery, weights=RankingWeights(subquery=0.25))
    assert fused_scores(result) == pytest.approx({"a": 0.5, "b": -0.5})


def test_a_subquery_alone_can_add_a_candidate() -> None:
    result = fused(Candidates(None, hits_of(a=5.0)), Candidates(None, hits_of(b=5.0)))
    assert sorted(letters(result.ids.tolist())) == ["a", "b"]


def test_similarities_are_the_cosines_of_the_whole() -> None:
    whole, subquery = Candidates(hits_of(a=0.8, b=-0.2), hits_of(c=4.0)), Candidates(hits_of(c=0.9, a=0.1), None)
    result = fused(whole, subquery)
    similarity = dict(zip(letters(result.ids.tolist()), result.similarity.tolist(), strict=True))
    assert (similarity["a"], similarity["b"]) == (0.8, -0.2)
    assert math.isnan(similarity["c"])
    assert result.is_semantic
    assert result.whole is whole


def test_a_search_without_dense_retrieval_is_not_semantic() -> None:
    assert not fused(Candidates(None, hits_of(a=1.0))).is_semantic
    assert fused(Candidates([], hits_of(a=1.0))).is_semantic


def test_without_candidates_the_fusion_is_empty() -> None:
    for nothing in (Candidates(), Candidates([], [])):
        assert len(fused(nothing, nothing).ids) == 0


@settings(max_examples=150, deadline=None)
@given(CandidateSets, Weights, Weights, st.sets(st.integers(1, 60), max_size=3))
def test_each_candidate_comes_once_best_first_and_the_parts_add_up_to_the_score(
    candidates: list[Candidates], meaning: float, subquery: float, extra_ids: set[int]
) -> None:
    result = fuse_scores(candidates, 5, replace(DEFAULT_WEIGHTS, meaning=meaning, subquery=subquery), extra_ids)
    ids = {hit.id for part in candidates for hit in (*(part.dense or ()), *(part.words or ()))} | extra_ids
    assert sorted(result.ids.tolist()) == sorted(ids)
    order = [(-score, id_) for score, id_ in zip(result.score.tolist(), result.ids.tolist(), strict=True)]
    assert order == sorted(order)
    np.testing.assert_allclose(result.meaning + result.words + result.subquery, result.score, atol=1e-9)
    assert np.isfinite(result.score).all()


@pytest.mark.requirement("TS-003")
@settings(max_examples=150, deadline=None)
@given(CandidateSets.map(lambda candidates: candidates[0]), Weights, st.integers(1, 20))
def test_a_candidate_better_in_both_retrievers_ranks_no_lower(
    candidates: Candidates, meaning: float, limit: int
) -> None:
    result = fused(candidates, weights=RankingWeights(meaning=meaning), limit=limit)
    dense = {hit.id: hit.score for hit in candidates.dense or ()}
    words = {hit.id: hit.score for hit in candidates.words or ()}
    scores = dict(zip(result.ids.tolist(), result.score.tolist(), strict=True))
    for better in dense.keys() & words.keys():
        for worse in dense.keys() & words.keys():
            if dense[better] >= dense[worse] and words[better] >= words[worse]:
                assert scores[better] >= scores[worse] - 1e-9


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-100, 100), min_size=2, max_size=8), st.floats(0.1, 5), st.floats(-1, 1))
def test_scaled_or_shifted_cosines_give_the_same_scores(hundredths: list[int], scale: float, shift: float) -> None:
    assume(len(set(hundredths)) > 1)
    cosines = [value / 100 for value in hundredths]
    words = [Candidate(1, 3.0)]
    plain = fused(Candidates([Candidate(id_, value) for id_, value in enumerate(cosines)], words))
    shifted = fused(
        Candidates([Candidate(id_, scale * value + shift) for id_, value in enumerate(cosines)], words)
    )
    by_id = [dict(zip(result.ids.tolist(), result.score.tolist(), strict=True)) for result in (plain, shifted)]
    assert by_id[0] == pytest.approx(by_id[1], abs=1e-6)
