"""The order of the candidates: what each part gives, who stays behind, and what is said of the best."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.core.ranking.builders import LIMIT, Founds, RequestTexts, arm, having, id_of, letters
from toolscript.core.retrieval.model import Candidate, Candidates
from toolscript.core.retrieval.request import parse_query
from toolscript.core.retrieval.rerank import (
    PART_NAMES,
    RERANK_DEPTH,
    Features,
    Ranking,
    fuse_scores,
    rank,
    unmatched_words,
)
from toolscript.core.retrieval.weights import EVIDENCE, MAX_LEAD, PARTS, Calibration, Evidence, RankingWeights

pytestmark = pytest.mark.requirement("TS-003")

LARGE = 100_000
PLAIN = RankingWeights(meaning=0.5, wishes=0.5, coverage=1.0, said=1.0, name=1.0, action=1.0, subject=1.0)
KNOWN = [having(name) for name in ("get_file", "create_file", "delete_weather", "letter", "")]
Traitss = st.dictionaries(st.integers(1, 60), st.sampled_from(KNOWN))
Weights = st.floats(0, 5)
# Far enough from each other to stay apart whatever is taken from them all.
Hundredths = st.integers(-100, 100).map(lambda value: value / 100)
Recipes = st.builds(RankingWeights, st.floats(0, 1), st.floats(0, 1), Weights, Weights, Weights, Weights, Weights)


def ranked(
    text: str,
    *found: Candidates,
    features: Mapping[int, Features] | None = None,
    weights: RankingWeights = PLAIN,
    also: tuple[int, ...] = (),
) -> Ranking:
    return rank(parse_query(text), fuse_scores(found, LIMIT, weights, also), features or {}, weights)


def tools(**names: str) -> dict[int, Features]:
    """`tools(a="read_file")`: the candidate with id 1 is a tool of that name."""
    return {id_of(letter): having(name) for letter, name in names.items()}


def evidence_of(ranking: Ranking, row: int) -> dict[str, float]:
    return dict(zip(EVIDENCE, ranking.evidence[row].tolist(), strict=True))


def test_each_part_gives_what_it_weighs() -> None:
    """Two cosines stand one spread from their mean; in a catalog of 100,000 a word covered counts 2.5."""
    weights = RankingWeights(1.0, 0.0, coverage=1.0, said=2.0, name=3.0, action=4.0, subject=5.0)
    found = Candidates(arm(a=0.8, b=0.4), None, LARGE)
    ranking = ranked("delete file", found, features=tools(b="delete_file", a="create_xyz"), weights=weights)
    assert letters(ranking.ids.tolist()) == "ba"
    assert ranking.parts(0) == {
        "meaning": -1.0,
        "coverage": 2.5,
        "said": 2.0,
        "name": 3.0,
        "action": 4.0,
        "subject": 5.0,
    }
    assert ranking.parts(1) == {"meaning": 1.0, "action": -4.0}
    assert ranking.standing.tolist() == pytest.approx([15.5, -3.0])
    assert ranking.similarity.tolist() == [0.4, 0.8]
    assert ranking.fits[0].said == 1.0


@pytest.mark.requirement("BR-001")
def test_ties_are_ordered_by_id() -> None:
    ranking = ranked("file", Candidates(arm(c=0.5, a=0.5, b=0.5), None, 10))
    assert letters(ranking.ids.tolist()) == "abc"


def test_nothing_found_is_an_empty_ranking_and_no_good_match() -> None:
    for nothing in (Candidates(), Candidates([], [], 5)):
        ranking = ranked("read a file", nothing)
        assert (len(ranking.ids), len(ranking.confidence), ranking.good_match) == (0, 0, False)
        assert ranking.evidence.shape == (0, len(EVIDENCE))


def test_a_candidate_nothing_is_known_of_keeps_what_the_arms_gave_it() -> None:
    ranking = ranked("delete the file", Candidates(arm(a=0.8, b=0.4), None, LARGE))
    assert ranking.standing.tolist() == pytest.approx([1.0, -1.0])
    assert ranking.parts(0) == {"meaning": 1.0}


def many(count: int) -> Candidates:
    return Candidates([Candidate(count - place, 1 - place / count) for place in range(count)], None, LARGE)


def test_whoever_was_not_looked_at_stays_behind_in_the_old_order() -> None:
    """All that were looked at lose by their action, and so stand lower than the rest did."""
    count = RERANK_DEPTH + 20
    looked_at = [count - place for place in range(RERANK_DEPTH)]
    ranking = ranked("create a file", many(count), features={id_: having("delete_xyz") for id_ in looked_at})
    assert sorted(ranking.ids[:RERANK_DEPTH].tolist()) == sorted(looked_at)
    assert ranking.ids[RERANK_DEPTH:].tolist() == list(range(20, 0, -1))
    assert (np.diff(ranking.standing) <= 1e-9).all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(Hundredths, min_size=RERANK_DEPTH + 1, max_size=RERANK_DEPTH + 15),
    st.dictionaries(st.integers(0, RERANK_DEPTH + 15), st.sampled_from(KNOWN)),
    Recipes,
)
def test_no_second_look_lets_the_rest_come_before_the_looked_at(
    cosines: list[float], features: dict[int, Features], weights: RankingWeights
) -> None:
    hits = sorted((Candidate(*pair) for pair in enumerate(cosines)), key=lambda hit: -hit.score)
    fused = fuse_scores([Candidates(hits, None, LARGE)], LIMIT, weights)
    ranking = rank(parse_query("create the file"), fused, features, weights)
    assert set(ranking.ids[:RERANK_DEPTH].tolist()) == set(fused.ids[:RERANK_DEPTH].tolist())
    assert ranking.ids[RERANK_DEPTH:].tolist() == fused.ids[RERANK_DEPTH:].tolist()


@settings(max_examples=150, deadline=None)
@given(RequestTexts, Founds, Traitss, Recipes)
def test_a_ranking_is_in_order_and_its_parts_make_the_standing(
    text: str, found: list[Candidates], features: dict[int, Features], weights: RankingWeights
) -> None:
    ranking = ranked(text, *found, features=features, weights=weights)
    pairs = zip(ranking.standing.tolist(), ranking.ids.tolist(), strict=True)
    order = [(-standing, id_) for standing, id_ in pairs]
    assert order == sorted(order)
    looked_at = slice(0, RERANK_DEPTH)
    np.testing.assert_allclose(ranking.given[looked_at].sum(axis=1), ranking.standing[looked_at], atol=1e-9)
    for row in range(min(RERANK_DEPTH, len(ranking.ids))):
        parts = ranking.parts(row)
        assert sum(parts.values()) == pytest.approx(ranking.standing[row], abs=1e-3 * len(PART_NAMES))
        assert set(parts) <= set(PART_NAMES)
    assert ((ranking.confidence >= 0) & (ranking.confidence <= 1)).all()
    assert (np.diff(ranking.confidence) <= 0).all()
    best = float(ranking.confidence.max(initial=0.0))
    assert ranking.good_match == (best >= weights.calibration.good_match)


@settings(max_examples=100, deadline=None)
@given(RequestTexts, Founds, Traitss, Recipes, st.sampled_from(PARTS))
def test_a_part_that_is_off_gives_nothing(
    text: str, found: list[Candidates], features: dict[int, Features], weights: RankingWeights, part: str
) -> None:
    """An arm can be switched off only where the other has something to say."""
    ranking = ranked(text, *found, features=features, weights=weights.without(part))
    other = {"meaning": found[0].words, "words": found[0].dense}.get(part, [Candidate(1, 1.0)])
    if other:
        assert not ranking.given[:, PART_NAMES.index(part)].any()
        assert all(part not in ranking.parts(row) for row in range(len(ranking.ids)))


def test_the_evidence_of_a_candidate_is_what_the_looks_found() -> None:
    found = Candidates(arm(a=0.8, b=0.4), None, 10)
    ranking = ranked("delete file", found, features=tools(a="delete_file"))
    first, second = evidence_of(ranking, 0), evidence_of(ranking, 1)
    assert first == pytest.approx(
        {"one": 1, "similarity": 0.8, "said": 1, "name": 1, "subject": 1, "lead": MAX_LEAD, "wishes": 0}
    )
    assert (second["lead"], second["said"], second["similarity"]) == (-MAX_LEAD, 0.0, 0.4)


@pytest.mark.parametrize(
    ("cosines", "leads"),
    [
        ({"a": 0.6, "b": 0.3, "c": 0.0}, [1.2247, -1.2247, -2.4495]),
        ({"a": 0.5, "b": 0.5, "c": 0.5}, [0.0, 0.0, 0.0]),
        ({"a": 0.5}, [MAX_LEAD]),
    ],
)
def test_a_lead_is_the_distance_to_the_best_of_the_others(cosines: dict[str, float], leads: list[float]) -> None:
    ranking = ranked("x", Candidates(arm(**cosines), None, 10))
    assert [evidence_of(ranking, row)["lead"] for row in range(len(leads))] == pytest.approx(leads, abs=1e-4)


def test_a_candidate_the_model_is_silent_about_has_no_similarity_as_evidence() -> None:
    ranking = ranked("x", Candidates(arm(a=0.6, b=0.5), arm(c=9.0), 10))
    row = ranking.ids.tolist().index(id_of("c"))
    assert np.isnan(ranking.similarity[row])
    assert evidence_of(ranking, row)["similarity"] == 0.0


def test_a_request_for_several_things_says_so_in_its_evidence() -> None:
    found = Candidates(arm(a=0.6, b=0.5), None, 10)
    assert evidence_of(ranked("read the notes and send a letter", found, found, found), 0)["wishes"] == 2.0
    assert evidence_of(ranked("read the notes", found), 0)["wishes"] == 0.0


def test_words_alone_are_weighed_as_words_alone() -> None:
    calibration = Calibration(Evidence(one=3.0), Evidence(one=-3.0), good_match=0.5)
    weights = RankingWeights(calibration=calibration)
    semantic, by_words = Candidates(arm(a=0.6), arm(a=3.0), 10), Candidates(None, arm(a=3.0), 10)
    for found, is_semantic in ((semantic, True), (by_words, False)):
        ranking = ranked("x", found, weights=weights)
        assert (ranking.semantic, ranking.good_match) == (is_semantic, is_semantic)


def test_unmatched_are_the_words_as_they_were_said_that_nobody_has() -> None:
    request = parse_query("read the fiel of giraffes", {"fiel": "file"})
    assert unmatched_words(request, [having("read_file")]) == ("giraffes",)
    assert unmatched_words(request, [having("read"), having("giraffe")]) == ("fiel",)
    assert unmatched_words(request, []) == ("read", "fiel", "giraffes")
