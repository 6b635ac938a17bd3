"""From what a system answered to figures with intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from toolscript.evaluation import metrics
from toolscript.evaluation.bootstrap import of_mean, of_statistic
from toolscript.evaluation.metrics import Numbers
from toolscript.model.judged import CalibrationBin, CurvePoint, Given, JudgedQuery, Measure, Route

THRESHOLDS = tuple(step / 20 for step in range(20))


@dataclass(frozen=True)
class Answered:
    query: JudgedQuery
    given: Given

    @property
    def right(self) -> float:
        return metrics.first_is_right(self.given.keys, self.query.relevant)


PER_QUERY: Mapping[str, Callable[[Answered], float]] = {
    "ndcg@10": lambda one: metrics.ndcg(one.given.keys, one.query.relevant),
    "recall@1": lambda one: metrics.recall(one.given.keys, one.query.relevant, 1),
    "recall@5": lambda one: metrics.recall(one.given.keys, one.query.relevant, 5),
    "recall@10": lambda one: metrics.recall(one.given.keys, one.query.relevant, 10),
    "mrr": lambda one: metrics.reciprocal_rank(one.given.keys, one.query.relevant),
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
    judged = answerable(answered)
    measures = {name: of_mean([value(one) for one in judged], seed) for name, value in PER_QUERY.items()}
    stepped = [metrics.step_recall(one.given.keys, one.query.steps) for one in judged if one.query.steps]
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


def _gold_lost(one: Answered, route: Route) -> tuple[int, int]:
    """How many of the right items were not searched, and how many there are."""
    return sum(not route.reaches(key) for key in one.query.relevant), len(one.query.relevant)


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
            calibration, lambda rows: metrics.calibration_error(rows[:, 0], rows[:, 1]), seed
        ),
        **_refusals("false_refusals", fits, seed),
    }
    if nothing_fits:
        labelled = np.column_stack([confidences(answered), [one.query.answerable for one in answered]])
        measures["nothing_fits_auroc"] = of_statistic(labelled, _labelled_auroc, seed)
        measures |= _good_matches("false_answers", nothing_fits, seed)
    return measures


def _labelled_auroc(rows: Numbers) -> float:
    return metrics.auroc(rows[rows[:, 1] == 1, 0], rows[rows[:, 1] == 0, 0])


def without_gold_measures(
    with_gold: Sequence[Answered], without: Sequence[Answered], seed: int
) -> dict[str, Measure]:
    """The same queries in the same order, with and without their items in the catalog."""
    if not tells_confidence(with_gold):
        return {}
    pairs = np.column_stack([confidences(with_gold), confidences(without)])
    auroc = of_statistic(pairs, lambda rows: metrics.auroc(rows[:, 0], rows[:, 1]), seed)
    return {"without_gold_auroc": auroc, **_refusals("refused_without_gold", without, seed)}


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
    return metrics.calibration_bins(confidences(answered), np.array([one.right for one in answered]))


def curve_of(answered: Sequence[Answered], without: Sequence[Answered]) -> tuple[CurvePoint, ...]:
    """What every least confidence would refuse, of each kind of query."""
    if not tells_confidence(answered):
        return ()
    fits, nothing_fits = confidences(answerable(answered)), confidences(unanswerable(answered))
    gone = confidences(without)
    return tuple(
        CurvePoint(least, float((fits < least).mean()), _below(nothing_fits, least), _below(gone, least))
        for least in THRESHOLDS
    )


def _below(sure: Numbers, least: float) -> float | None:
    return float((sure < least).mean()) if len(sure) else None
