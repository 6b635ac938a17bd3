"""How much of a figure is chance: 95 % percentile intervals over resampled queries, the same for the same seed."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from toolscript.evaluation.metrics import Numbers
from toolscript.model.judged import Measure

RESAMPLES = 1_000
LOW, HIGH = 2.5, 97.5
# So many numbers are resampled at once at most: a large set must not ask for gigabytes.
MOST_AT_ONCE = 4_000_000

Statistic = Callable[[Numbers], float]


def of_mean(values: Sequence[float] | Numbers, seed: int) -> Measure:
    """The mean of one number per query."""
    numbers = np.asarray(values, dtype=np.float64)
    chance = np.random.default_rng(seed)
    means = np.concatenate([_means(numbers, count, chance) for count in _portions(len(numbers))])
    return _measure(float(numbers.mean()), means, len(numbers))


def of_statistic(rows: Numbers, statistic: Statistic, seed: int) -> Measure:
    """Any figure made of one row per query; NaN where a resample happens to have no such figure."""
    chance = np.random.default_rng(seed)
    found = [statistic(rows[chance.integers(len(rows), size=len(rows))]) for _ in range(RESAMPLES)]
    return _measure(statistic(rows), np.array(found), len(rows))


def paired_difference(before: Sequence[float], after: Sequence[float], seed: int) -> Measure:
    """What changed on average, query by query: far narrower than two intervals side by side."""
    return of_mean(np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64), seed)


def _portions(length: int) -> list[int]:
    at_once = max(1, MOST_AT_ONCE // length)
    return [min(at_once, RESAMPLES - done) for done in range(0, RESAMPLES, at_once)]


def _means(numbers: Numbers, count: int, chance: np.random.Generator) -> Numbers:
    drawn = chance.integers(len(numbers), size=(count, len(numbers)))
    return np.asarray(numbers[drawn].mean(axis=1))


def _measure(value: float, resampled: Numbers, queries: int) -> Measure:
    known = resampled[np.isfinite(resampled)]
    if not math.isfinite(value) or not len(known):
        return Measure(value, value, value, queries)
    low, high = np.percentile(known, [LOW, HIGH])
    return Measure(value, float(low), float(high), queries)
