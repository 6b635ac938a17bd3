"""The ranking: the contribution of each part, the rerank depth, and the confidence."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.retrieval.builders import LIMIT, CandidateSets, RequestTexts, having, hits_of, id_of, letters
from toolscript.core.retrieval.fusion import fuse_scores
from toolscript.core.retrieval.model import Candidate, Candidates
from toolscript.core.retrieval.request import parse_query
from toolscript.core.retrieval.rerank import (
    PART_NAMES,
    RERANK_DEPTH,
    Features,
    RankedCandidates,
    rank,
    unmatched_words,
)
from toolscript.core.retrieval.weights import EVIDENCE, MAX_LEAD, PARTS, Calibration, Evidence, RankingWeights

pytestmark = pytest.mark.requirement("TS-003")

LARGE = 100_000
PLAIN = RankingWeights(meaning=0.5, subquery=0.5, coverage=1.0, word_match=1.0, name=1.0, action=1.0, subject=1.0)
KNOWN = [having(name) for name in ("get_file", "create_file", "delete_weather", "letter", "")]
FeatureSets = st.dictionaries(st.integers(1, 60), st.sampled_from(KNOWN))
Weights = st.floats(0, 5)
# Far enough apart to stay so after any common shift.
Hundredths = st.integers(-100, 100).map(lambda value: value / 100)
WeightSets = st.builds(
    RankingWeights, st.floats(0, 1), st.floats(0, 1), Weights, Weights, Weights, Weights, Weights
)


def ranked(
    text: str,
    *candidates: Candidates,
    features: Mapping[int, Features] | None = None,
    weights: RankingWeights = PLAIN,
    extra_ids: tuple[int, ...] = (),
) -> RankedCandidates:
    return rank(parse_query(text), fuse_scores(candidates, LIMIT, weights, extra_ids), features or {}, weights)


def tools(**names: str) -> dict[int, Features]:
    """`tools(a="read_file")`: the candidate with id 1 is a tool of that name."""
    return {id_of(letter): having(name) for letter, name in names.items()}


def evidence_of(ranking: RankedCandidates, row: int) -> dict[str, float]:
    return dict(zip(EVIDENCE, ranking.evidence[row].tolist(), strict=True))


def test_each_part_contributes_its_weight() -> None:
    """Two cosines are one spread from their mean; in a catalog of 100,000 items coverage has weight 2.5."""
    weights = RankingWeights(1.0, 0.0, coverage=1.0, word_match=2.0, name=3.0, action=4.0, subject=5.0)
    candidates = Candidates(hits_of(a=0.8, b=0.4), None, LARGE)
    ranking = ranked("delete file", candidates, features=tools(b="delete_file", a="create_xyz"), weights=weights)
    assert letters(ranking.ids.tolist()) == "ba"
    assert ranking.parts(0) == {
        "meaning": -1.0,
        "coverage": 2.5,
        "word_match": 2.0,
        "name": 3.0,
        "action": 4.0,
        "subject": 5.0,
    }
    assert ranking.parts(1) == {"meaning": 1.0, "action": -4.0}
    assert ranking.score.tolist() == pytest.approx([15.5, -3.0])
    assert ranking.similarity.tolist() == [0.4, 0.8]
    assert ranking.fit_of(0).word_match == 1.0


@pytest.mark.requirement("BR-001")
def test_ties_are_ordered_by_id() -> None:
    ranking = ranked("file", Candidates(hits_of(c=0.5, a=0.5, b=0.5), None, 10))
    assert letters(ranking.ids.tolist()) == "abc"


def test_without_candidates_the_ranking_is_empty_and_no_good_match() -> None:
    for nothing in (Candidates(), Candidates([], [], 5)):
        ranking = ranked("read a file", nothing)
        assert (len(ranking.ids), len(ranking.confidence), ranking.good_match) == (0, 0, False)
        assert ranking.evidence.shape == (0, len(EVIDENCE))


def test_a_candidate_without_features_keeps_its_fused_score() -> None:
    ranking = ranked("delete the file", Candidates(hits_of(a=0.8, b=0.4), None, LARGE))
    assert ranking.score.tolist() == pytest.approx([1.0, -1.0])
    assert ranking.parts(0) == {"meaning": 1.0}


def many(count: int) -> Candidates:
    return Candidates([Candidate(count - place, 1 - place / count) for place in range(count)], None, LARGE)


def test_candidates_beyond_the_rerank_depth_stay_behind_in_their_order() -> None:
    """All reranked candidates lose by their action, so they score lower than the rest did."""
    count = RERANK_DEPTH + 20
    reranked = [count - place for place in range(RERANK_DEPTH)]
    ranking = ranked("create a file", many(count), features={id_: having("delete_xyz") for id_ in reranked})
    assert sorted(ranking.ids[:RERANK_DEPTH].tolist()) == sorted(reranked)
    assert ranking.ids[RERANK_DEPTH:].tolist() == list(range(20, 0, -1))
    assert (np.diff(ranking.score) <= 1e-9).all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(Hundredths, min_size=RERANK_DEPTH + 1, max_size=RERANK_DEPTH + 15),
    st.dictionaries(st.integers(0, RERANK_DEPTH + 15), st.sampled_from(KNOWN)),
    WeightSets,
)
def test_reranking_never_moves_the_rest_before_the_reranked(
    cosines: list[float], features: dict[int, Features], weights: RankingWeights
) -> None:
    hits = sorted((Candidate(*pair) for pair in enumerate(cosines)), key=lambda hit: -hit.score)
    fused = fuse_scores([Candidates(hits, None, LARGE)], LIMIT, weights)
    ranking = rank(parse_query("create the file"), fused, features, weights)
    assert set(ranking.ids[:RERANK_DEPTH].tolist()) == set(fused.ids[:RERANK_DEPTH].tolist())
    assert ranking.ids[RERANK_DEPTH:].tolist() == fused.ids[RERANK_DEPTH:].tolist()


@settings(max_examples=150, deadline=None)
@given(RequestTexts, CandidateSets, FeatureSets, WeightSets)
def test_a_ranking_is_in_order_and_its_parts_add_up_to_the_score(
    text: str, candidates: list[Candidates], features: dict[int, Features], weights: RankingWeights
) -> None:
    ranking = ranked(text, *candidates, features=features, weights=weights)
    pairs = zip(ranking.score.tolist(), ranking.ids.tolist(), strict=True)
    order = [(-score, id_) for score, id_ in pairs]
    assert order == sorted(order)
    reranked = slice(0, RERANK_DEPTH)
    np.testing.assert_allclose(ranking.contributions[reranked].sum(axis=1), ranking.score[reranked], atol=1e-9)
    for row in range(min(RERANK_DEPTH, len(ranking.ids))):
        parts = ranking.parts(row)
        assert sum(parts.values()) == pytest.approx(ranking.score[row], abs=1e-3 * len(PART_NAMES))
        assert set(parts) <= set(PART_NAMES)
    assert ((ranking.confidence >= 0) & (ranking.confidence <= 1)).all()
    assert (np.diff(ranking.confidence) <= 0).all()
    assert (np.diff(ranking.probability) <= 0).all()
    best = float(ranking.probability.max(initial=0.0))
    if ranking.fit is None:
        assert ranking.good_match == (best >= weights.calibration.good_match_threshold)
    else:
        assert not ranking.semantic, "without a scale, cosines do not tell"
        assert ranking.good_match == (ranking.fit > 0)


@settings(max_examples=100, deadline=None)
@given(RequestTexts, CandidateSets, FeatureSets, WeightSets, st.sampled_from(PARTS))
def test_a_part_that_is_off_contributes_nothing(
    text: str, candidates: list[Candidates], features: dict[int, Features], weights: RankingWeights, part: str
) -> None:
    """A retriever can be switched off only if the other has results."""
    ranking = ranked(text, *candidates, features=features, weights=weights.without(part))
    other = {"meaning": candidates[0].words, "words": candidates[0].dense}.get(part, [Candidate(1, 1.0)])
    if other:
        assert not ranking.contributions[:, PART_NAMES.index(part)].any()
        assert all(part not in ranking.parts(row) for row in range(len(ranking.ids)))


def test_the_evidence_of_a_candidate_comes_from_fusion_and_reranking() -> None:
    candidates = Candidates(hits_of(a=0.8, b=0.4), None, 10)
    ranking = ranked("delete file", candidates, features=tools(a="delete_file"))
    first, second = evidence_of(ranking, 0), evidence_of(ranking, 1)
    assert first == pytest.approx(
        {
            "one": 1,
            "similarity": 0.8,
            "word_match": 1,
            "name": 1,
            "subject": 1,
            "lead": MAX_LEAD,
            "subqueries": 0,
            "fit": 0,
        }
    )
    assert (second["lead"], second["word_match"], second["similarity"]) == (-MAX_LEAD, 0.0, 0.4)


@pytest.mark.parametrize(
    ("cosines", "leads"),
    [
        ({"a": 0.6, "b": 0.3, "c": 0.0}, [1.2247, -1.2247, -2.4495]),
        ({"a": 0.5, "b": 0.5, "c": 0.5}, [0.0, 0.0, 0.0]),
        ({"a": 0.5}, [MAX_LEAD]),
    ],
)
def test_a_lead_is_the_distance_to_the_best_of_the_others(cosines: dict[str, float], leads: list[float]) -> None:
    ranking = ranked("x", Candidates(hits_of(**cosines), None, 10))
    assert [evidence_of(ranking, row)["lead"] for row in range(len(leads))] == pytest.approx(leads, abs=1e-4)


def test_a_candidate_without_a_dense_score_has_no_similarity_as_evidence() -> None:
    ranking = ranked("x", Candidates(hits_of(a=0.6, b=0.5), hits_of(c=9.0), 10))
    row = ranking.ids.tolist().index(id_of("c"))
    assert np.isnan(ranking.similarity[row])
    assert evidence_of(ranking, row)["similarity"] == 0.0


def test_the_number_of_subqueries_is_part_of_the_evidence() -> None:
    candidates = Candidates(hits_of(a=0.6, b=0.5), None, 10)
    assert (
        evidence_of(ranked("read the notes and send a letter", candidates, candidates, candidates), 0)[
            "subqueries"
        ]
        == 2.0
    )
    assert evidence_of(ranked("read the notes", candidates), 0)["subqueries"] == 0.0


def test_sparse_retrieval_alone_uses_its_own_calibration() -> None:
    calibration = Calibration(Evidence(one=3.0), Evidence(one=-3.0), good_match_threshold=0.5)
    weights = RankingWeights(calibration=calibration)
    semantic, by_words = Candidates(hits_of(a=0.6), hits_of(a=3.0), 10), Candidates(None, hits_of(a=3.0), 10)
    for candidates, is_semantic in ((semantic, True), (by_words, False)):
        ranking = ranked("x", candidates, weights=weights)
        assert (ranking.semantic, ranking.good_match) == (is_semantic, is_semantic)


def test_unmatched_words_are_those_that_no_candidate_contains() -> None:
    request = parse_query("read the fiel of giraffes", {"fiel": "file"})
    assert unmatched_words(request, [having("read_file")]) == ("giraffes",)
    assert unmatched_words(request, [having("read"), having("giraffe")]) == ("fiel",)
    assert unmatched_words(request, []) == ("read", "fiel", "giraffes")
