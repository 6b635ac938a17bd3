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
WeightSets = st.builds(
    RankingWeights,
    st.floats(0, 1),
    *[st.floats(0, 100)] * (len(fields(RankingWeights)) - 2),
    calibration=st.builds(Calibration, Evidences, Evidences, Weights),
)
NO_EVIDENCE = {"meaning": {}, "words": {}, "good_match_threshold": 0.5}


@given(WeightSets)
def test_weights_survive_a_round_trip_through_json(weights: RankingWeights) -> None:
    assert weights_from_json(json.loads(json.dumps(weights_to_json(weights)))) == weights


def test_missing_weights_have_their_defaults() -> None:
    assert weights_from_json({}) == RankingWeights()
    assert weights_from_json({"name": 3}) == RankingWeights(name=3.0)
    assert weights_from_json({"calibration": {}}) == RankingWeights()
    assert weights_from_json({"held_out": "some_set"}) == RankingWeights()
    assert weights_from_json({"calibration": NO_EVIDENCE}).calibration == Calibration(Evidence(), Evidence(), 0.5)


INVALID: list[object] = [
    None,
    [],
    "meaning",
    {"meaning": "much"},
    {"meaning": None},
    {"meaning": float("nan")},
    {"word_match": float("inf")},
    {"spelling": 1.0},
    {"calibration": 3},
    {"calibration": {"meaning": {}, "good_match_threshold": 0.5}},
    {"calibration": {"meaning": {}, "words": {}}},
    {"calibration": {**NO_EVIDENCE, "words": [1.0]}},
    {"calibration": {**NO_EVIDENCE, "words": {"luck": 1.0}}},
    {"calibration": {**NO_EVIDENCE, "words": {"one": "x"}}},
    {"calibration": {**NO_EVIDENCE, "good_match_threshold": None}},
]


def test_invalid_weights_are_refused(subtests: pytest.Subtests) -> None:
    for data in INVALID:
        with subtests.test(data=data), pytest.raises(InvalidRequest, match="ranking weights"):
            weights_from_json(data)


@pytest.mark.parametrize("part", [part for part in PARTS if part != "words"])
def test_a_part_that_is_off_has_weight_zero_and_the_others_stay(part: str) -> None:
    off = DEFAULT_WEIGHTS.without(part)
    assert getattr(off, part) == 0.0
    assert replace(off, **{part: getattr(DEFAULT_WEIGHTS, part)}) == DEFAULT_WEIGHTS


def test_sparse_scores_are_off_when_dense_scores_have_all_weight() -> None:
    assert DEFAULT_WEIGHTS.without("words") == replace(DEFAULT_WEIGHTS, meaning=1.0)


def test_every_part_can_be_switched_off() -> None:
    assert {*PARTS, "calibration"} == {field.name for field in fields(RankingWeights)} | {"words"}
    assert len(set(PARTS)) == len(PARTS)


def test_by_default_no_weight_is_negative() -> None:
    assert 0 <= DEFAULT_WEIGHTS.meaning <= 1
    assert 0 <= DEFAULT_WEIGHTS.subquery <= 1
    assert min(getattr(DEFAULT_WEIGHTS, part) for part in PARTS if part != "words") >= 0
    assert 0 < DEFAULT_WEIGHTS.calibration.good_match_threshold < 1


@pytest.mark.parametrize("wrong", [{"meaning": 2.8}, {"meaning": -0.1}, {"name": -1}, {"word_match": 10**400}])
def test_weights_out_of_range_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match="no ranking weights"):
        weights_from_json(wrong)


def test_a_version_is_the_same_for_equal_weights_and_differs_for_others() -> None:
    again = weights_from_json(weights_to_json(DEFAULT_WEIGHTS))
    assert again.version == DEFAULT_WEIGHTS.version
    others = {DEFAULT_WEIGHTS.without(part).version for part in PARTS}
    recalibrated = replace(DEFAULT_WEIGHTS, calibration=Calibration(good_match_threshold=0.5))
    assert DEFAULT_WEIGHTS.version not in others | {recalibrated.version}
    assert len(others) == len(PARTS)
