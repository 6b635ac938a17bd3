"""Probability and confidence: 0 to 1, never rising down a list, and no less for more evidence."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolscript.core.retrieval.weights import (
    DEFAULT_WEIGHTS,
    EVIDENCE,
    MAX_LEAD,
    SHOWN,
    Calibration,
    Evidence,
    as_row,
    confidence_of,
)

pytestmark = pytest.mark.requirement("TS-003")

BOUNDS = {
    "one": (1.0, 1.0),
    "similarity": (-1.0, 1.0),
    "lead": (-MAX_LEAD, MAX_LEAD),
    "subqueries": (0.0, 6.0),
    "fit": (-6.0, 6.0),
}
Rows = st.builds(Evidence, *(st.floats(*BOUNDS.get(part, (0.0, 1.0))) for part in EVIDENCE))
AnyWeights = st.builds(Evidence, *[st.floats(-10, 10)] * len(EVIDENCE))
# Only the intercept may have a negative weight.
PositiveWeights = st.builds(Evidence, st.floats(-10, 10), *[st.floats(0, 10)] * (len(EVIDENCE) - 1))


def probabilities(calibration: Calibration, *rows: Evidence, semantic: bool = True) -> list[float]:
    evidence = np.array([as_row(row) for row in rows]).reshape(-1, len(EVIDENCE))
    values: list[float] = calibration.probabilities(evidence, semantic=semantic).tolist()
    return values


def test_the_weighted_evidence_becomes_a_probability() -> None:
    """-1 + 2 * 0.5 + 3 * 0.5 = 1.5, and without any evidence -1."""
    calibration = Calibration(Evidence(one=-1.0, similarity=2.0, lead=3.0), Evidence(), 0.5)
    values = probabilities(calibration, Evidence(one=1.0, similarity=0.5, lead=0.5), Evidence(one=1.0))
    assert values == pytest.approx([1 / (1 + math.exp(-1.5)), 1 / (1 + math.exp(1.0))])


def test_sparse_retrieval_alone_has_its_own_weights() -> None:
    calibration = Calibration(Evidence(one=-1.0), Evidence(one=2.0), 0.5)
    row = Evidence(one=1.0)
    assert probabilities(calibration, row, semantic=True) == pytest.approx([1 / (1 + math.e)])
    assert probabilities(calibration, row, semantic=False) == pytest.approx([1 / (1 + math.exp(-2))])


def test_without_candidates_there_are_no_probabilities() -> None:
    assert probabilities(Calibration()) == []


def test_the_evidence_of_a_row_is_in_the_order_of_the_weights() -> None:
    numbers = [float(number) for number in range(len(EVIDENCE))]
    assert as_row(Evidence(*numbers)) == numbers
    assert EVIDENCE[0] == "one"


@settings(max_examples=150, deadline=None)
@given(AnyWeights, st.lists(Rows, max_size=8), st.booleans())
def test_a_probability_is_0_to_1_and_never_rises_down_the_list(
    weights: Evidence, rows: list[Evidence], semantic: bool
) -> None:
    values = probabilities(Calibration(weights, weights, 0.5), *rows, semantic=semantic)
    assert all(0 <= value <= 1 for value in values)
    assert values == sorted(values, reverse=True)


@settings(max_examples=150, deadline=None)
@given(PositiveWeights, Rows, st.sampled_from(EVIDENCE[1:]), st.floats(0, 2))
def test_more_evidence_never_lowers_the_probability(
    weights: Evidence, row: Evidence, part: str, more: float
) -> None:
    calibration = Calibration(weights, weights, 0.5)
    stronger = replace(row, **{part: getattr(row, part) + more})
    assert probabilities(calibration, stronger)[0] >= probabilities(calibration, row)[0] - 1e-12


def evidence(similarity: float, fit: float, lead: float, *, semantic: bool) -> Evidence:
    return Evidence(
        one=1.0,
        similarity=similarity if semantic else 0.0,
        word_match=fit,
        name=fit,
        subject=fit,
        lead=lead,
        fit=fit,
    )


@pytest.mark.parametrize("semantic", [True, False])
def test_by_default_a_full_fit_is_a_good_match_and_no_fit_is_none(
    semantic: bool,
) -> None:
    calibration = DEFAULT_WEIGHTS.calibration
    (fits,) = probabilities(calibration, evidence(0.9, 1.0, MAX_LEAD, semantic=semantic), semantic=semantic)
    (nothing,) = probabilities(calibration, evidence(0.05, 0.0, 0.0, semantic=semantic), semantic=semantic)
    assert fits > calibration.good_match_threshold > nothing


@pytest.mark.parametrize("semantic", [True, False])
def test_by_default_a_clear_lead_has_more_confidence_than_a_tie(semantic: bool) -> None:
    (alone,), (crowded,) = (
        probabilities(DEFAULT_WEIGHTS.calibration, evidence(0.5, 0.5, lead, semantic=semantic), semantic=semantic)
        for lead in (2.0, 0.0)
    )
    assert alone > crowded


Probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=8).map(lambda values: sorted(values, reverse=True))


@given(Probabilities)
def test_where_something_fits_the_first_is_shown_and_the_order_stays(values: list[float]) -> None:
    confidences = confidence_of(np.array(values), good_match=True)
    assert (np.diff(confidences) <= 0).all()
    assert SHOWN <= confidences[0] <= 1


@given(Probabilities)
def test_where_nothing_fits_nothing_passes_the_usual_threshold(values: list[float]) -> None:
    confidences = confidence_of(np.array(values), good_match=False)
    assert (np.diff(confidences) <= 0).all()
    assert confidences.max() < SHOWN


def test_what_is_right_once_in_twenty_times_is_worth_its_place() -> None:
    confidences = confidence_of(np.array([0.9, 0.051, 0.049]), good_match=True)
    assert (confidences >= SHOWN).tolist() == [True, True, False]
