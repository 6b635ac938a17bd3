"""What one answer is worth, and how far confidences can be believed. Pure functions of keys and numbers."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from toolscript.model.judged import CalibrationBin

DEPTH = 10
BINS = 10

Numbers = NDArray[np.float64]
Relevant = Mapping[str, int]


def ndcg(keys: Sequence[str], relevant: Relevant) -> float:
    """At ten, with gains of 2^grade - 1."""
    best = sorted(relevant.values(), reverse=True)[:DEPTH]
    return _gain([relevant.get(key, 0) for key in _distinct(keys)]) / _gain(best)


def _gain(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades))


def recall(keys: Sequence[str], relevant: Relevant, depth: int) -> float:
    """The share of all relevant items among the first `depth`."""
    return len(relevant.keys() & set(keys[:depth])) / len(relevant)


def reciprocal_rank(keys: Sequence[str], relevant: Relevant) -> float:
    """1 when the first item is relevant, 1/2 when the second is the first that is, 0 when none of ten is."""
    places = (place for place, key in enumerate(keys[:DEPTH], 1) if key in relevant)
    return 1 / next(places, math.inf)


def first_is_right(keys: Sequence[str], relevant: Relevant) -> float:
    return float(bool(keys) and keys[0] in relevant)


def step_recall(keys: Sequence[str], steps: Sequence[frozenset[str]]) -> float:
    """The share of the steps for which one of the first ten will do."""
    found = set(keys[:DEPTH])
    return sum(not found.isdisjoint(step) for step in steps) / len(steps)


def auroc(higher: Numbers, lower: Numbers) -> float:
    """How often one of `higher` is above one of `lower`; equal ones count half. NaN when either is empty."""
    if not len(higher) or not len(lower):
        return math.nan
    ordered = np.sort(lower)
    below, not_above = np.searchsorted(ordered, higher, "left"), np.searchsorted(ordered, higher, "right")
    return float((below + not_above).mean() / (2 * len(ordered)))


def calibration_error(confidences: Numbers, right: Numbers) -> float:
    """The mean distance of confidence and share of right answers, bin by bin of ten equally wide ones."""
    bins = _bin_of(confidences)
    gaps = np.bincount(bins, weights=confidences - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(confidences))


def calibration_bins(confidences: Numbers, right: Numbers) -> tuple[CalibrationBin, ...]:
    """The bins that have anything in them, the least sure first."""
    bins = _bin_of(confidences)
    filled = [(confidences[bins == at], right[bins == at]) for at in np.unique(bins)]
    return tuple(CalibrationBin(float(sure.mean()), float(hit.mean()), len(sure)) for sure, hit in filled)


def _bin_of(confidences: Numbers) -> NDArray[np.int64]:
    return np.clip((confidences * BINS).astype(np.int64), 0, BINS - 1)


def _distinct(keys: Sequence[str]) -> list[str]:
    """The first ten, each once: an engine that says a thing twice gains nothing by it."""
    return list(dict.fromkeys(keys[:DEPTH]))
