"""Metrics of answers: ranking, confidence, calibration and cost, with bootstrap intervals."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolscript.eval.dataset import CalibrationBin, CurvePoint, DatasetQuery, Given, Measure, Route

DEPTH = 10
BINS = 10

Numbers = NDArray[np.float64]
Relevant = Mapping[str, int]

RESAMPLES = 1_000
LOW, HIGH = 2.5, 97.5
# So many numbers are resampled at once at most: a large set must not ask for gigabytes.
MAX_AT_ONCE = 4_000_000

Statistic = Callable[[Numbers], float]

THRESHOLDS = tuple(step / 20 for step in range(20))


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
    at_once = max(1, MAX_AT_ONCE // length)
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


@dataclass(frozen=True)
class Answered:
    query: DatasetQuery
    given: Given

    @property
    def right(self) -> float:
        return first_is_right(self.given.keys, self.query.relevant)


PER_QUERY: Mapping[str, Callable[[Answered], float]] = {
    "ndcg@10": lambda one: ndcg(one.given.keys, one.query.relevant),
    "recall@1": lambda one: recall(one.given.keys, one.query.relevant, 1),
    "recall@5": lambda one: recall(one.given.keys, one.query.relevant, 5),
    "recall@10": lambda one: recall(one.given.keys, one.query.relevant, 10),
    "mrr": lambda one: reciprocal_rank(one.given.keys, one.query.relevant),
    "hit@1": lambda one: one.right,
}


def answerable(answered: Sequence[Answered]) -> list[Answered]:
    return [one for one in answered if one.query.answerable]


def unanswerable(answered: Sequence[Answered]) -> list[Answered]:
    return [one for one in answered if not one.query.answerable]


def ndcg_by_query(answered: Sequence[Answered]) -> dict[str, float]:
    return {one.query.id: PER_QUERY["ndcg@10"](one) for one in answerable(answered)}


def ranking_measures(answered: Sequence[Answered], seed: int) -> dict[str, Measure]:
    """Over the queries that have an answer; steps only over those that have any."""
    dataset = answerable(answered)
    measures = {name: of_mean([value(one) for one in dataset], seed) for name, value in PER_QUERY.items()}
    stepped = [step_recall(one.given.keys, one.query.steps) for one in dataset if one.query.steps]
    return measures | ({"step_recall": of_mean(stepped, seed)} if stepped else {})


def cost_measures(answered: Sequence[Answered], seed: int) -> dict[str, Measure]:
    """Milliseconds of each stage, and the tokens of an answer where somebody counted them."""
    stages = dict.fromkeys(stage for one in answered for stage in one.given.stages)
    measures: dict[str, Measure] = {}
    for stage in stages:
        spent = np.array([one.given.stages[stage] for one in answered if stage in one.given.stages])
        for percent in (50, 95):
            measures[f"p{percent}_ms:{stage}"] = of_statistic(spent, _percentile(percent), seed)
    tokens = [one.given.tokens for one in answered if one.given.tokens is not None]
    return measures | ({"tokens": of_mean(tokens, seed)} if tokens else {})


def routing_measures(answered: Sequence[Answered], seed: int) -> dict[str, Measure]:
    """How far skills narrowed the search, and what that lost; nothing where no query could be routed."""
    routes = [one.given.route for one in answered if one.given.route is not None]
    if not routes:
        return {}
    used = [len(route.skills) for route in routes if route.is_routed]
    gold = np.array([_gold_lost(one, one.given.route) for one in answerable(answered) if one.given.route])
    return {
        "routed": of_mean([float(route.is_routed) for route in routes], seed),
        **({"skills_used": of_mean(used, seed)} if used else {}),
        "catalog_searched": of_mean([route.share for route in routes], seed),
        "gold_lost": of_statistic(gold, lambda rows: float(rows[:, 0].sum() / rows[:, 1].sum()), seed),
    }


def _gold_lost(answered: Answered, route: Route) -> tuple[int, int]:
    """How many of the right items were not searched, and how many there are."""
    return sum(not route.reaches(key) for key in answered.query.relevant), len(answered.query.relevant)


def _percentile(percent: int) -> Callable[[Numbers], float]:
    return lambda spent: float(np.percentile(spent, percent))


def tells_confidence(answered: Sequence[Answered]) -> bool:
    return any(one.given.confidence is not None for one in answered)


def confidences(answered: Sequence[Answered]) -> Numbers:
    """Whoever found nothing is not sure of it at all."""
    return np.array([one.given.confidence or 0.0 for one in answered])


def confidence_measures(answered: Sequence[Answered], seed: int) -> dict[str, Measure]:
    """How well confidence tells right from wrong, and answers from none; nothing where nobody told it."""
    if not tells_confidence(answered):
        return {}
    fits, nothing_fits = answerable(answered), unanswerable(answered)
    calibration = np.column_stack([confidences(answered), [one.right for one in answered]])
    measures = {
        "calibration_error": of_statistic(
            calibration, lambda rows: calibration_error(rows[:, 0], rows[:, 1]), seed
        ),
        **_refusals("false_refusals", fits, seed),
    }
    if nothing_fits:
        labelled = np.column_stack([confidences(answered), [one.query.answerable for one in answered]])
        measures["nothing_fits_auroc"] = of_statistic(labelled, _labelled_auroc, seed)
        measures |= _good_matches("false_answers", nothing_fits, seed)
    return measures


def _labelled_auroc(rows: Numbers) -> float:
    return auroc(rows[rows[:, 1] == 1, 0], rows[rows[:, 1] == 0, 0])


def without_gold_measures(
    with_gold: Sequence[Answered], without: Sequence[Answered], seed: int
) -> dict[str, Measure]:
    """The same queries in the same order, with and without their items in the catalog."""
    if not tells_confidence(with_gold):
        return {}
    pairs = np.column_stack([confidences(with_gold), confidences(without)])
    measured = of_statistic(pairs, lambda rows: auroc(rows[:, 0], rows[:, 1]), seed)
    return {"without_gold_auroc": measured, **_refusals("refused_without_gold", without, seed)}


def _refusals(name: str, answered: Sequence[Answered], seed: int) -> dict[str, Measure]:
    if all(one.given.good_match is None for one in answered):
        return {}
    return {name: of_mean([float(not one.given.good_match) for one in answered], seed)}


def _good_matches(name: str, answered: Sequence[Answered], seed: int) -> dict[str, Measure]:
    if all(one.given.good_match is None for one in answered):
        return {}
    return {name: of_mean([float(bool(one.given.good_match)) for one in answered], seed)}


def calibration_of(answered: Sequence[Answered]) -> tuple[CalibrationBin, ...]:
    if not tells_confidence(answered):
        return ()
    return calibration_bins(confidences(answered), np.array([one.right for one in answered]))


def curve_of(answered: Sequence[Answered], without: Sequence[Answered]) -> tuple[CurvePoint, ...]:
    """What every least confidence would refuse, of each kind of query."""
    if not tells_confidence(answered):
        return ()
    fits, nothing_fits = confidences(answerable(answered)), confidences(unanswerable(answered))
    gone = confidences(without)
    return tuple(
        CurvePoint(minimum, float((fits < minimum).mean()), _below(nothing_fits, minimum), _below(gone, minimum))
        for minimum in THRESHOLDS
    )


def _below(sure: Numbers, minimum: float) -> float | None:
    return float((sure < minimum).mean()) if len(sure) else None
