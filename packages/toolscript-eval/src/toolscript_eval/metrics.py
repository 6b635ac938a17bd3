"""Metrics of answers: ranking, confidence, calibration and cost, with bootstrap intervals."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolscript_eval.dataset import CalibrationBin, CurvePoint, DatasetQuery, EngineAnswer, Measure, Route

DEPTH = 10
BINS = 10

Numbers = NDArray[np.float64]
Relevant = Mapping[str, int]

RESAMPLES = 1_000
LOW, HIGH = 2.5, 97.5
# Maximum numbers per resampling step: a large dataset must not allocate gigabytes.
MAX_AT_ONCE = 4_000_000

Statistic = Callable[[Numbers], float]

# The normal quantile of a two-sided 95 % interval.
Z = 1.959964

THRESHOLDS = tuple(step / 20 for step in range(20))


def ndcg(keys: Sequence[str], relevant: Relevant) -> float:
    """Return nDCG@10, with gains of 2^grade - 1."""
    best = sorted(relevant.values(), reverse=True)[:DEPTH]
    return _gain([relevant.get(key, 0) for key in _distinct(keys)]) / _gain(best)


def _gain(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades))


def recall(keys: Sequence[str], relevant: Relevant, depth: int) -> float:
    """Return the share of all relevant items among the first `depth`."""
    return len(relevant.keys() & set(keys[:depth])) / len(relevant)


def reciprocal_rank(keys: Sequence[str], relevant: Relevant) -> float:
    """Return 1 / rank of the first relevant item among ten; 0 if none is relevant."""
    places = (place for place, key in enumerate(keys[:DEPTH], 1) if key in relevant)
    return 1 / next(places, math.inf)


def first_is_right(keys: Sequence[str], relevant: Relevant) -> float:
    return float(bool(keys) and keys[0] in relevant)


def step_recall(keys: Sequence[str], steps: Sequence[frozenset[str]]) -> float:
    """Return the share of steps that one of the first ten items satisfies."""
    returned = set(keys[:DEPTH])
    return sum(not returned.isdisjoint(step) for step in steps) / len(steps)


def auroc(higher: Numbers, lower: Numbers) -> float:
    """Return how often a value of `higher` exceeds one of `lower`; ties count half. NaN if either is empty."""
    if not len(higher) or not len(lower):
        return math.nan
    ordered = np.sort(lower)
    below, not_above = np.searchsorted(ordered, higher, "left"), np.searchsorted(ordered, higher, "right")
    return float((below + not_above).mean() / (2 * len(ordered)))


def calibration_error(confidences: Numbers, right: Numbers) -> float:
    """Return the mean distance of confidence and accuracy, over ten equally wide bins."""
    bins = _bin_of(confidences)
    gaps = np.bincount(bins, weights=confidences - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(confidences))


def calibration_bins(confidences: Numbers, right: Numbers) -> tuple[CalibrationBin, ...]:
    """Return the non-empty bins, the lowest confidence first."""
    bins = _bin_of(confidences)
    filled = [(confidences[bins == number], right[bins == number]) for number in np.unique(bins)]
    return tuple(CalibrationBin(float(sure.mean()), float(hit.mean()), len(sure)) for sure, hit in filled)


def _bin_of(confidences: Numbers) -> NDArray[np.int64]:
    return np.clip((confidences * BINS).astype(np.int64), 0, BINS - 1)


def _distinct(keys: Sequence[str]) -> list[str]:
    """Return the first ten without duplicates: repeating an item gains nothing."""
    return list(dict.fromkeys(keys[:DEPTH]))


def of_mean(values: Sequence[float] | Numbers, seed: int) -> Measure:
    """Return the mean of one number per query."""
    numbers = np.asarray(values, dtype=np.float64)
    means = np.concatenate([drawn.mean(axis=1) for drawn in _resamples(numbers, seed)])
    return _measure(float(numbers.mean()), means, len(numbers))


def of_percentile(numbers: Numbers, percent: int, seed: int) -> Measure:
    """Return a percentile of one number per query."""
    percentiles = [np.percentile(drawn, percent, axis=1) for drawn in _resamples(numbers, seed)]
    return _measure(float(np.percentile(numbers, percent)), np.concatenate(percentiles), len(numbers))


def of_statistic(rows: Numbers, statistic: Statistic, seed: int) -> Measure:
    """Return any statistic of one row per query; it may be NaN for a resample."""
    chance = np.random.default_rng(seed)
    resampled = [statistic(rows[chance.integers(len(rows), size=len(rows))]) for _ in range(RESAMPLES)]
    return _measure(statistic(rows), np.array(resampled), len(rows))


def wilson_interval(hits: int, trials: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share: unlike a bootstrap's, it has a width where all are right."""
    share, spread = hits / trials, Z * Z / trials
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / trials + spread / (4 * trials)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def paired_difference(before: Sequence[float], after: Sequence[float], seed: int) -> Measure:
    """Return the mean difference query by query: its interval is far narrower than two separate ones."""
    return of_mean(np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64), seed)


def _portions(length: int) -> list[int]:
    at_once = max(1, MAX_AT_ONCE // length)
    return [min(at_once, RESAMPLES - done) for done in range(0, RESAMPLES, at_once)]


def _resamples(numbers: Numbers, seed: int) -> Iterator[Numbers]:
    """Yield resamples as rows, as many at once as memory allows."""
    chance = np.random.default_rng(seed)
    for count in _portions(len(numbers)):
        yield numbers[chance.integers(len(numbers), size=(count, len(numbers)))]


def _measure(value: float, resampled: Numbers, queries: int) -> Measure:
    finite = resampled[np.isfinite(resampled)]
    if not math.isfinite(value) or not len(finite):
        return Measure(value, value, value, queries)
    low, high = np.percentile(finite, [LOW, HIGH])
    return Measure(value, float(low), float(high), queries)


@dataclass(frozen=True)
class JudgedAnswer:
    query: DatasetQuery
    answer: EngineAnswer

    @property
    def right(self) -> float:
        return first_is_right(self.answer.keys, self.query.relevant)


PER_QUERY: Mapping[str, Callable[[JudgedAnswer], float]] = {
    "ndcg@10": lambda judged: ndcg(judged.answer.keys, judged.query.relevant),
    "recall@1": lambda judged: recall(judged.answer.keys, judged.query.relevant, 1),
    "recall@5": lambda judged: recall(judged.answer.keys, judged.query.relevant, 5),
    "recall@10": lambda judged: recall(judged.answer.keys, judged.query.relevant, 10),
    "mrr": lambda judged: reciprocal_rank(judged.answer.keys, judged.query.relevant),
    "hit@1": lambda judged: judged.right,
}


def answerable(answered: Sequence[JudgedAnswer]) -> list[JudgedAnswer]:
    return [judged for judged in answered if judged.query.answerable]


def unanswerable(answered: Sequence[JudgedAnswer]) -> list[JudgedAnswer]:
    return [judged for judged in answered if not judged.query.answerable]


def ndcg_by_query(answered: Sequence[JudgedAnswer]) -> dict[str, float]:
    return {judged.query.id: PER_QUERY["ndcg@10"](judged) for judged in answerable(answered)}


def ranking_measures(answered: Sequence[JudgedAnswer], seed: int) -> dict[str, Measure]:
    """Return metrics over the answerable queries; step recall over those with steps."""
    dataset = answerable(answered)
    measures = {name: of_mean([value(judged) for judged in dataset], seed) for name, value in PER_QUERY.items()}
    stepped = [step_recall(judged.answer.keys, judged.query.steps) for judged in dataset if judged.query.steps]
    return measures | ({"step_recall": of_mean(stepped, seed)} if stepped else {})


# From this confidence on, a person takes an answer for one.
CONFIDENT = 0.5


def shown_measures(answered: Sequence[JudgedAnswer], seed: int) -> dict[str, Measure]:
    """Return what a person gets to see at default settings, in the words of `report.SHOWN`."""
    with_gold = [_Seen.of(judged) for judged in answerable(answered) if judged.answer.shown]
    every = [_Seen.of(judged) for judged in answered if judged.answer.shown]
    measures = {
        "empty": [float(not seen.anything) for seen in every],
        "misleading": [float(seen.good_match and not seen.is_right) for seen in every],
        "contradiction": [float(not seen.good_match and seen.confidence >= CONFIDENT) for seen in every],
    }
    if with_gold:
        measures = {
            "useful@3": [seen.useful for seen in with_gold],
            "trusted@3": [float(seen.good_match and seen.is_right) for seen in with_gold],
            "refused_there": [float(not seen.good_match and seen.is_right) for seen in with_gold],
            **measures,
        }
    return {name: of_mean(values, seed) for name, values in measures.items() if values}


@dataclass(frozen=True)
class _Seen:
    """An answer at default settings; `useful` is the share of steps of which a right item is shown."""

    anything: bool
    good_match: bool
    confidence: float
    useful: float

    @property
    def is_right(self) -> bool:
        return self.useful > 0

    @classmethod
    def of(cls, judged: JudgedAnswer) -> "_Seen":
        shown, query = judged.answer.shown, judged.query
        assert shown is not None  # noqa: S101
        steps = query.steps or ([frozenset(query.relevant)] if query.relevant else [])
        right = [not shown.keys.isdisjoint(step) for step in steps]
        return cls(bool(shown.keys), shown.good_match, shown.confidence, float(np.mean(right)) if right else 0.0)


def cost_measures(answered: Sequence[JudgedAnswer], seed: int) -> dict[str, Measure]:
    """Return milliseconds of each stage, and the tokens of an answer if they were counted."""
    stages = dict.fromkeys(stage for judged in answered for stage in judged.answer.stages)
    measures: dict[str, Measure] = {}
    for stage in stages:
        spent = np.array([judged.answer.stages[stage] for judged in answered if stage in judged.answer.stages])
        for percent in (50, 95):
            measures[f"p{percent}_ms:{stage}"] = of_percentile(spent, percent, seed)
    tokens = [judged.answer.tokens for judged in answered if judged.answer.tokens is not None]
    return measures | ({"tokens": of_mean(tokens, seed)} if tokens else {})


def routing_measures(answered: Sequence[JudgedAnswer], seed: int) -> dict[str, Measure]:
    """Return how far skills narrowed the search, and what that lost; empty without routing."""
    routes = [judged.answer.route for judged in answered if judged.answer.route is not None]
    if not routes:
        return {}
    used = [len(route.skills) for route in routes if route.is_routed]
    gold = np.array(
        [_gold_lost(judged, judged.answer.route) for judged in answerable(answered) if judged.answer.route]
    )
    return {
        "routed": of_mean([float(route.is_routed) for route in routes], seed),
        **({"skills_used": of_mean(used, seed)} if used else {}),
        "catalog_searched": of_mean([route.share for route in routes], seed),
        "gold_lost": of_statistic(gold, lambda rows: float(rows[:, 0].sum() / rows[:, 1].sum()), seed),
    }


def _gold_lost(answered: JudgedAnswer, route: Route) -> tuple[int, int]:
    """Return the number of relevant items that were not searched, and of all relevant items."""
    return sum(not route.reaches(key) for key in answered.query.relevant), len(answered.query.relevant)


def has_confidence(answered: Sequence[JudgedAnswer]) -> bool:
    return any(judged.answer.confidence is not None for judged in answered)


def confidences(answered: Sequence[JudgedAnswer]) -> Numbers:
    """Return the confidences; an answer without results has 0."""
    return np.array([judged.answer.confidence or 0.0 for judged in answered])


def verdict_score(answer: EngineAnswer) -> float:
    """Return the number that the good-match verdict compares with its threshold; 0 without results."""
    return (answer.confidence or 0.0) if answer.fit is None else answer.fit


def verdict_scores(answered: Sequence[JudgedAnswer]) -> Numbers:
    return np.array([verdict_score(judged.answer) for judged in answered])


def confidence_measures(answered: Sequence[JudgedAnswer], seed: int) -> dict[str, Measure]:
    """Return how well confidence separates right from wrong answers, and answerable queries; empty without it."""
    if not has_confidence(answered):
        return {}
    fits, nothing_fits = answerable(answered), unanswerable(answered)
    calibration = np.column_stack([confidences(answered), [judged.right for judged in answered]])
    measures = {
        "calibration_error": of_statistic(
            calibration, lambda rows: calibration_error(rows[:, 0], rows[:, 1]), seed
        ),
    }
    return measures | verdict_measures(fits, nothing_fits, seed)


def verdict_measures(
    fits: Sequence[JudgedAnswer], nothing_fits: Sequence[JudgedAnswer], seed: int
) -> dict[str, Measure]:
    """Return how often the verdict is wrong about either, and how well its score separates them."""
    measures = _refusals("false_refusals", fits, seed)
    if not nothing_fits:
        return measures
    labelled = np.column_stack([verdict_scores([*fits, *nothing_fits]), [1] * len(fits) + [0] * len(nothing_fits)])
    measures["nothing_fits_auroc"] = of_statistic(labelled, _labelled_auroc, seed)
    return measures | _good_matches("false_answers", nothing_fits, seed)


def slice_measures(answered: Sequence[JudgedAnswer], seed: int) -> dict[str, Measure]:
    """Return ranking over the answerable queries of a slice, and the verdict over each kind."""
    fits, nothing_fits = answerable(answered), unanswerable(answered)
    ranking = ranking_measures(fits, seed) if fits else {}
    ranking |= shown_measures(answered, seed)
    refused = _refusals("false_refusals", fits, seed) if fits else {}
    return ranking | refused | (_good_matches("false_answers", nothing_fits, seed) if nothing_fits else {})


def _labelled_auroc(rows: Numbers) -> float:
    return auroc(rows[rows[:, 1] == 1, 0], rows[rows[:, 1] == 0, 0])


def without_gold_measures(
    with_gold: Sequence[JudgedAnswer], without: Sequence[JudgedAnswer], seed: int
) -> dict[str, Measure]:
    """Compare the same queries in the same order, with and without their relevant items in the catalog."""
    if not has_confidence(with_gold):
        return {}
    pairs = np.column_stack([verdict_scores(with_gold), verdict_scores(without)])
    measured = of_statistic(pairs, lambda rows: auroc(rows[:, 0], rows[:, 1]), seed)
    return {"without_gold_auroc": measured, **_refusals("refused_without_gold", without, seed)}


def _refusals(name: str, answered: Sequence[JudgedAnswer], seed: int) -> dict[str, Measure]:
    if all(judged.answer.good_match is None for judged in answered):
        return {}
    return {name: of_mean([float(not judged.answer.good_match) for judged in answered], seed)}


def _good_matches(name: str, answered: Sequence[JudgedAnswer], seed: int) -> dict[str, Measure]:
    if all(judged.answer.good_match is None for judged in answered):
        return {}
    return {name: of_mean([float(bool(judged.answer.good_match)) for judged in answered], seed)}


def calibration_of(answered: Sequence[JudgedAnswer]) -> tuple[CalibrationBin, ...]:
    if not has_confidence(answered):
        return ()
    return calibration_bins(confidences(answered), np.array([judged.right for judged in answered]))


def curve_of(answered: Sequence[JudgedAnswer], without: Sequence[JudgedAnswer]) -> tuple[CurvePoint, ...]:
    """Return what every confidence threshold would refuse, of each kind of query."""
    if not has_confidence(answered):
        return ()
    fits, nothing_fits = confidences(answerable(answered)), confidences(unanswerable(answered))
    gone = confidences(without)
    return tuple(
        CurvePoint(minimum, float((fits < minimum).mean()), _below(nothing_fits, minimum), _below(gone, minimum))
        for minimum in THRESHOLDS
    )


def _below(sure: Numbers, minimum: float) -> float | None:
    return float((sure < minimum).mean()) if len(sure) else None
