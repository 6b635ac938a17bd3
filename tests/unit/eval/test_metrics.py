"""Ranking metrics, compared with slow and simple implementations."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from toolscript_eval.dataset import CalibrationBin
from toolscript_eval.metrics import (
    auroc,
    calibration_bins,
    calibration_error,
    first_is_right,
    ndcg,
    recall,
    reciprocal_rank,
    step_recall,
)

KEYS = [f"item {number}" for number in range(15)]
grades = some.dictionaries(some.sampled_from(KEYS), some.integers(1, 3), min_size=1, max_size=12)
orders = some.permutations(KEYS)
# Few different values, so that there are ties.
sure = some.lists(some.sampled_from([0.0, 0.1, 0.35, 0.5, 0.99, 1.0]), min_size=1, max_size=30)


@given(grades)
def test_the_ideal_order_has_an_ndcg_of_one(relevant: dict[str, int]) -> None:
    ideal = sorted(KEYS, key=lambda key: -relevant.get(key, 0))
    assert ndcg(ideal, relevant) == pytest.approx(1.0)


@given(orders, grades)
def test_no_order_is_better_than_the_ideal_one(order: Sequence[str], relevant: dict[str, int]) -> None:
    assert 0.0 <= ndcg(order, relevant) <= 1.0 + 1e-12


def test_ndcg_adds_up_by_hand() -> None:
    value = ndcg(["wrong", "good", "best"], {"best": 3, "good": 1, "missed": 1})
    gained = 1 / math.log2(3) + 7 / math.log2(4)
    best = 7 / math.log2(2) + 1 / math.log2(3) + 1 / math.log2(4)
    assert value == pytest.approx(gained / best)


def test_the_eleventh_place_is_worth_nothing() -> None:
    order = [*KEYS[:10], "right"]
    relevant = {"right": 1}
    assert (ndcg(order, relevant), reciprocal_rank(order, relevant), recall(order, relevant, 10)) == (0, 0, 0)
    assert step_recall(order, [frozenset(relevant)]) == 0


def test_a_repeated_item_gains_nothing() -> None:
    assert ndcg(["right", "right"], {"right": 1, "other": 1}) == ndcg(["right"], {"right": 1, "other": 1})


@given(orders, grades, some.sampled_from([1, 5, 10]))
def test_recall_is_the_share_that_was_found(order: Sequence[str], relevant: dict[str, int], depth: int) -> None:
    count = sum(key in relevant for key in order[:depth])
    assert recall(order, relevant, depth) == count / len(relevant)


@pytest.mark.parametrize(("place", "worth"), [(0, 1.0), (1, 0.5), (3, 0.25), (9, 0.1)])
def test_the_reciprocal_rank_is_that_of_the_first_right_item(place: int, worth: float) -> None:
    order = KEYS[:10]
    assert reciprocal_rank(order, {order[place]: 1, "elsewhere": 1}) == worth


def test_only_the_first_item_can_be_the_right_first_one() -> None:
    assert first_is_right(["a", "b"], {"a": 1}) == 1.0
    assert first_is_right(["b", "a"], {"a": 1}) == 0.0
    assert first_is_right([], {"a": 1}) == 0.0


def test_any_relevant_item_satisfies_a_step() -> None:
    steps = [frozenset({"a", "b"}), frozenset({"c"}), frozenset({"d", "e"}), frozenset({"f"})]
    assert step_recall(["b", "e", "x"], steps) == 0.5


@given(sure, sure)
def test_auroc_equals_counting_all_pairs(higher: list[float], lower: list[float]) -> None:
    pairs = [(higher_score > other) + (higher_score == other) / 2 for higher_score in higher for other in lower]
    assert auroc(np.array(higher), np.array(lower)) == pytest.approx(np.mean(pairs))


def test_auroc_of_nothing_is_not_a_number() -> None:
    assert math.isnan(auroc(np.array([]), np.array([0.5])))
    assert math.isnan(auroc(np.array([0.5]), np.array([])))


def slow_calibration_error(confidences: Sequence[float], right: Sequence[float]) -> float:
    total = 0.0
    for low in range(10):
        inside = [
            number
            for number, confidence in enumerate(confidences)
            if low <= confidence * 10 < low + 1 or (low == 9 and confidence == 1.0)
        ]
        if inside:
            gap = np.mean([confidences[index] for index in inside]) - np.mean([right[index] for index in inside])
            total += abs(float(gap)) * len(inside) / len(confidences)
    return total


@given(some.lists(some.tuples(some.floats(0, 1), some.booleans()), min_size=1, max_size=40))
def test_the_calibration_error_equals_the_one_taken_bin_by_bin(answers: list[tuple[float, bool]]) -> None:
    confidences, right = [answer for answer, _ in answers], [float(hit) for _, hit in answers]
    error = calibration_error(np.array(confidences), np.array(right))
    assert error == pytest.approx(slow_calibration_error(confidences, right))


def test_a_confidence_that_is_always_met_has_no_error() -> None:
    assert calibration_error(np.array([0.75] * 4), np.array([1.0, 1.0, 1.0, 0.0])) == 0.0
    assert calibration_error(np.array([0.9] * 4), np.zeros(4)) == pytest.approx(0.9)


def test_bins_that_hold_nothing_are_not_shown() -> None:
    bins = calibration_bins(np.array([0.92, 0.98, 0.1]), np.array([1.0, 0.0, 0.0]))
    assert bins == (CalibrationBin(0.1, 0.0, 1), CalibrationBin((0.92 + 0.98) / 2, 0.5, 2))
