"""The weights of the ranking: one part off at a time, and as JSON there and back."""

import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.weights import (
    DEFAULT_WEIGHTS,
    EVIDENCE,
    PARTS,
    Calibration,
    Evidence,
    RankingWeights,
    weights_from_json,
    weights_to_json,
)

Weights = st.floats(-100, 100)
Evidences = st.builds(Evidence, *[Weights] * len(EVIDENCE))
Recipes = st.builds(
    RankingWeights,
    st.floats(0, 1),
    *[st.floats(0, 100)] * (len(fields(RankingWeights)) - 2),
    calibration=st.builds(Calibration, Evidences, Evidences, Weights),
)
NO_EVIDENCE = {"meaning": {}, "words": {}, "good_match": 0.5}


@given(Recipes)
def test_a_recipe_is_read_as_it_was_written(weights: RankingWeights) -> None:
    assert weights_from_json(json.loads(json.dumps(weights_to_json(weights)))) == weights


def test_what_a_person_leaves_out_is_as_usual() -> None:
    assert weights_from_json({}) == RankingWeights()
    assert weights_from_json({"name": 3}) == RankingWeights(name=3.0)
    assert weights_from_json({"calibration": {}}) == RankingWeights()
    assert weights_from_json({"held_out": "some_set"}) == RankingWeights()
    assert weights_from_json({"calibration": NO_EVIDENCE}).calibration == Calibration(Evidence(), Evidence(), 0.5)


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "meaning",
        {"meaning": "much"},
        {"meaning": None},
        {"meaning": float("nan")},
        {"said": float("inf")},
        {"spelling": 1.0},
        {"calibration": 3},
        {"calibration": {"meaning": {}, "good_match": 0.5}},
        {"calibration": {"meaning": {}, "words": {}}},
        {"calibration": {**NO_EVIDENCE, "words": [1.0]}},
        {"calibration": {**NO_EVIDENCE, "words": {"luck": 1.0}}},
        {"calibration": {**NO_EVIDENCE, "words": {"one": "x"}}},
        {"calibration": {**NO_EVIDENCE, "good_match": None}},
    ],
    ids=str,
)
def test_what_is_no_recipe_is_refused(data: object) -> None:
    with pytest.raises(InvalidRequest, match="recipe"):
        weights_from_json(data)


@pytest.mark.parametrize("part", [part for part in PARTS if part != "words"])
def test_a_part_that_is_off_weighs_nothing_and_the_others_stay(part: str) -> None:
    off = DEFAULT_WEIGHTS.without(part)
    assert getattr(off, part) == 0.0
    assert replace(off, **{part: getattr(DEFAULT_WEIGHTS, part)}) == DEFAULT_WEIGHTS


def test_the_words_are_off_when_meaning_has_the_whole_word() -> None:
    assert DEFAULT_WEIGHTS.without("words") == replace(DEFAULT_WEIGHTS, meaning=1.0)


def test_every_part_can_be_switched_off() -> None:
    assert {*PARTS, "calibration"} == {one.name for one in fields(RankingWeights)} | {"words"}
    assert len(set(PARTS)) == len(PARTS)


def test_as_shipped_no_part_counts_against_what_it_speaks_for() -> None:
    assert 0 <= DEFAULT_WEIGHTS.meaning <= 1
    assert 0 <= DEFAULT_WEIGHTS.wishes <= 1
    assert min(getattr(DEFAULT_WEIGHTS, part) for part in PARTS if part != "words") >= 0
    assert 0 < DEFAULT_WEIGHTS.calibration.good_match < 1


@pytest.mark.parametrize("wrong", [{"meaning": 2.8}, {"meaning": -0.1}, {"name": -1}, {"said": 10**400}])
def test_weights_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match="no recipe"):
        weights_from_json(wrong)
