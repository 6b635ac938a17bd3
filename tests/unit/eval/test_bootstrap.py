"""Intervals contain the value, shrink with more queries, and are reproducible by seed."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from toolscript_eval import metrics
from toolscript_eval.dataset import Measure
from toolscript_eval.metrics import Numbers, of_mean, of_statistic, paired_difference

shares = some.lists(some.floats(0, 1), min_size=1, max_size=50)


@settings(max_examples=30)
@given(shares, some.integers(0, 1000))
def test_an_interval_of_a_mean_lies_around_it(values: list[float], seed: int) -> None:
    measured = of_mean(values, seed)
    slack = 1e-9 + float(np.std(values)) / math.sqrt(len(values))
    assert measured.low - slack <= measured.value <= measured.high + slack
    assert min(values) - 1e-9 <= measured.low <= measured.high <= max(values) + 1e-9
    assert measured.value == pytest.approx(float(np.mean(values)))
    assert measured.queries == len(values)


def test_the_interval_is_as_wide_as_theory_predicts() -> None:
    values = np.random.default_rng(1).normal(0.5, 0.2, 400)
    measured = of_mean(values, 0)
    expected = 1.96 * float(values.std()) / 20
    assert (measured.high - measured.low) / 2 == pytest.approx(expected, rel=0.1)


def test_a_seed_decides_and_another_decides_otherwise() -> None:
    values = np.random.default_rng(1).random(40)
    assert of_mean(values, 3) == of_mean(values, 3)
    assert of_mean(values, 3) != of_mean(values, 4)


def test_many_queries_are_resampled_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).random(40)
    at_once = of_mean(values, 3)
    monkeypatch.setattr(metrics, "MAX_AT_ONCE", 40 * 300)
    assert of_mean(values, 3) == at_once


def test_any_statistic_has_an_interval() -> None:
    values = np.random.default_rng(2).random(200)

    def median(rows: Numbers) -> float:
        return float(np.median(rows))

    measured = of_statistic(values, median, 0)
    assert measured.value == median(values)
    assert measured.low < measured.value < measured.high
    assert measured.high - measured.low < 0.3


def test_rows_are_resampled_as_wholes() -> None:
    rows = np.column_stack([np.arange(50.0), np.arange(50.0)])
    measured = of_statistic(rows, lambda some: float(np.abs(some[:, 0] - some[:, 1]).max()), 0)
    assert measured == Measure(0.0, 0.0, 0.0, 50)


def test_resamples_without_a_value_do_not_count() -> None:
    def first_over_zero(rows: Numbers) -> float:
        positive = rows[rows > 0]
        return float(positive.mean()) if len(positive) else math.nan

    measured = of_statistic(np.array([0.0, 0.0, 1.0]), first_over_zero, 0)
    assert measured == Measure(1.0, 1.0, 1.0, 3)


def test_a_difference_is_taken_query_by_query() -> None:
    before = np.random.default_rng(5).random(100)
    better = paired_difference(before.tolist(), (before + 0.01).tolist(), 0)
    assert (better.value, better.low, better.high) == pytest.approx((0.01, 0.01, 0.01))
    apart = of_mean(before, 0)
    assert apart.high - apart.low > 0.05, "side by side it would not be seen"
    with pytest.raises(ValueError, match="broadcast"):
        paired_difference([0.1, 0.2], [0.1, 0.2, 0.3], 0)
