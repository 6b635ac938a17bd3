"""Confidence: 0 to 1, never rising down a list, and no less for more evidence."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS, EVIDENCE, MAX_LEAD, Calibration, Evidence, as_row

pytestmark = pytest.mark.requirement("TS-003")

BOUNDS = {"one": (1.0, 1.0), "similarity": (-1.0, 1.0), "lead": (-MAX_LEAD, MAX_LEAD), "wishes": (0.0, 6.0)}
Rows = st.builds(Evidence, *(st.floats(*BOUNDS.get(part, (0.0, 1.0))) for part in EVIDENCE))
AnyWeights = st.builds(Evidence, *[st.floats(-10, 10)] * len(EVIDENCE))
# Only what there is of everything, the constant, may speak against a candidate.
PositiveWeights = st.builds(Evidence, st.floats(-10, 10), *[st.floats(0, 10)] * (len(EVIDENCE) - 1))


def confidences(calibration: Calibration, *rows: Evidence, semantic: bool = True) -> list[float]:
    evidence = np.array([as_row(row) for row in rows]).reshape(-1, len(EVIDENCE))
    found: list[float] = calibration.confidences(evidence, semantic=semantic).tolist()
    return found


def test_the_weighed_evidence_becomes_a_likelihood() -> None:
    """-1 + 2 * 0.5 + 3 * 0.5 = 1.5, and without any evidence -1."""
    calibration = Calibration(Evidence(one=-1.0, similarity=2.0, lead=3.0), Evidence(), 0.5)
    found = confidences(calibration, Evidence(one=1.0, similarity=0.5, lead=0.5), Evidence(one=1.0))
    assert found == pytest.approx([1 / (1 + math.exp(-1.5)), 1 / (1 + math.exp(1.0))])


def test_words_alone_are_weighed_in_their_own_way() -> None:
    calibration = Calibration(Evidence(one=-1.0), Evidence(one=2.0), 0.5)
    row = Evidence(one=1.0)
    assert confidences(calibration, row, semantic=True) == pytest.approx([1 / (1 + math.e)])
    assert confidences(calibration, row, semantic=False) == pytest.approx([1 / (1 + math.exp(-2))])


def test_no_candidates_are_no_confidences() -> None:
    assert confidences(Calibration()) == []


def test_the_evidence_of_a_row_is_in_the_order_of_the_weights() -> None:
    numbers = [float(at) for at in range(len(EVIDENCE))]
    assert as_row(Evidence(*numbers)) == numbers
    assert EVIDENCE[0] == "one"


@settings(max_examples=150, deadline=None)
@given(AnyWeights, st.lists(Rows, max_size=8), st.booleans())
def test_confidence_is_0_to_1_and_never_rises_down_the_list(
    weights: Evidence, rows: list[Evidence], semantic: bool
) -> None:
    found = confidences(Calibration(weights, weights, 0.5), *rows, semantic=semantic)
    assert all(0 <= one <= 1 for one in found)
    assert found == sorted(found, reverse=True)


@settings(max_examples=150, deadline=None)
@given(PositiveWeights, Rows, st.sampled_from(EVIDENCE[1:]), st.floats(0, 2))
def test_more_evidence_is_never_less_confidence(weights: Evidence, row: Evidence, part: str, more: float) -> None:
    calibration = Calibration(weights, weights, 0.5)
    stronger = replace(row, **{part: getattr(row, part) + more})
    assert confidences(calibration, stronger)[0] >= confidences(calibration, row)[0] - 1e-12


def evidence(similarity: float, fit: float, lead: float, *, semantic: bool) -> Evidence:
    return Evidence(
        one=1.0, similarity=similarity if semantic else 0.0, said=fit, name=fit, subject=fit, lead=lead
    )


@pytest.mark.parametrize("semantic", [True, False])
def test_as_shipped_what_fits_in_everything_is_a_good_match_and_what_fits_in_nothing_is_none(
    semantic: bool,
) -> None:
    calibration = DEFAULT_WEIGHTS.calibration
    (fits,) = confidences(calibration, evidence(0.9, 1.0, MAX_LEAD, semantic=semantic), semantic=semantic)
    (nothing,) = confidences(calibration, evidence(0.05, 0.0, 0.0, semantic=semantic), semantic=semantic)
    assert fits > calibration.good_match > nothing


@pytest.mark.parametrize("semantic", [True, False])
def test_as_shipped_a_clear_lead_is_surer_than_a_crowd(semantic: bool) -> None:
    (alone,), (crowded,) = (
        confidences(DEFAULT_WEIGHTS.calibration, evidence(0.5, 0.5, lead, semantic=semantic), semantic=semantic)
        for lead in (2.0, 0.0)
    )
    assert alone > crowded
