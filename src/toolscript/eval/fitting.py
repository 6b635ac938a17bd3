"""Fits the weights of the ranking and of its confidence to judged sets, leaving one set out at a time.

Few weights, none of them below zero, and every set counts the same however many queries it has: what is learned
has to carry over to catalogs nobody has seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.request import Request
from toolscript.core.retrieval.rerank import PART_NAMES, RERANK_DEPTH, FeaturesById, FusedScores, Ranking, rank
from toolscript.core.retrieval.weights import (
    DEFAULT_WEIGHTS,
    EVIDENCE,
    Calibration,
    Evidence,
    RankingWeights,
    as_row,
)
from toolscript.eval.dataset import DatasetQuery
from toolscript.eval.metrics import DEPTH, ndcg

Numbers = NDArray[np.float64]

# The arms share one weight, which the others are measured by.
FITTED = ("wishes", "coverage", "said", "name", "action", "subject")
RIDGE = 1e-3
STEPS = 60
# So many of the queries that have an answer may be told that there is none.
FALSE_REFUSALS = 0.05


@dataclass(frozen=True)
class Case:
    """One query as the usual recipe sees it, with and without a model; `keys` names the candidates' items."""

    query: DatasetQuery
    request: Request
    fused: FusedScores
    by_words: FusedScores
    features: FeaturesById
    features_by_words: FeaturesById
    keys: Mapping[int, str]

    def ranking(self, weights: RankingWeights) -> Ranking:
        return rank(self.request, _looked_with(self.fused, weights), self.features, weights)

    def ranking_by_words(self, weights: RankingWeights) -> Ranking:
        return rank(self.request, _looked_with(self.by_words, weights), self.features_by_words, weights)

    def right(self, ranking: Ranking) -> Numbers:
        """The grade of each candidate."""
        return np.array([self.query.relevant.get(self.keys[id_], 0) for id_ in ranking.ids.tolist()], dtype=float)

    def is_right(self, ranking: Ranking) -> bool:
        return self.query.relevant.get(self.keys[int(ranking.ids[0])], 0) > 0

    def ndcg(self, weights: RankingWeights) -> float:
        best = [self.keys[id_] for id_ in self.ranking(weights).ids[:DEPTH].tolist()]
        return ndcg(best, self.query.relevant)


def _looked_with(fused: FusedScores, weights: RankingWeights) -> FusedScores:
    """The same candidates with the wishes weighed otherwise; which of them are looked at twice stays as it was."""
    wishes = fused.wishes * (weights.wishes / DEFAULT_WEIGHTS.wishes)
    return replace(fused, wishes=wishes, standing=fused.meaning + fused.words + wishes)


CaseSets = Mapping[str, Sequence[Case]]


@dataclass(frozen=True)
class HeldOut:
    """A recipe fitted without a set, and what it reaches there."""

    set: str
    weights: RankingWeights
    ndcg: float
    by_default: float


def fit(cases: CaseSets, start: RankingWeights = DEFAULT_WEIGHTS) -> RankingWeights:
    """The weights that put right answers first, then the confidence of that ranking."""
    if not any(case.query.answerable for one in cases.values() for case in one):
        raise InvalidRequest("nothing to fit to: no query has an answer")
    fitted = fit_weights(cases, start)
    return replace(fitted, calibration=fit_calibration(cases, fitted))


def hold_out(cases: CaseSets, groups: Mapping[str, str], start: RankingWeights = DEFAULT_WEIGHTS) -> list[HeldOut]:
    """Each set with a recipe fitted without it, nor any other set of its group."""
    held = {}
    for group in dict.fromkeys(groups.values()):
        others = {name: one for name, one in cases.items() if groups[name] != group}
        held[group] = fit(others, start)
    return [
        HeldOut(name, held[groups[name]], _mean_ndcg(one, held[groups[name]]), _mean_ndcg(one, start))
        for name, one in cases.items()
    ]


def fit_weights(cases: CaseSets, start: RankingWeights) -> RankingWeights:
    """Right answers compete with the rest of their list, as in a softmax over it."""
    lists = [one for one in (_Lists.of(one, start) for one in cases.values()) if len(one.features)]
    weights = _descend(lists, 1 + len(FITTED)) if lists else np.zeros(1 + len(FITTED))
    if not weights[0] > 0:
        raise InvalidRequest("nothing to fit to: the arms find no right answer", hint="give other or more sets")
    scaled = weights[1:] / weights[0]
    return replace(start, **dict(zip(FITTED, np.round(scaled, 3).tolist(), strict=True)))


@dataclass(frozen=True)
class _Lists:
    """The candidates of each query: what each part says of them, which are right, and which are there."""

    features: Numbers
    right: Numbers
    absent: Numbers

    @classmethod
    def of(cls, cases: Sequence[Case], start: RankingWeights) -> "_Lists":
        rows = [pair for case in cases if case.query.answerable for pair in [_list(case, start)] if pair[1].any()]
        features = np.zeros((len(rows), RERANK_DEPTH, 1 + len(FITTED)))
        right, absent = np.zeros(features.shape[:2]), np.full(features.shape[:2], -1e9)
        for index, (found, grades) in enumerate(rows):
            features[index, : len(found)], absent[index, : len(found)] = found, 0.0
            right[index, : len(found)] = grades / grades.sum()
        return cls(features, right, absent)


def _list(case: Case, start: RankingWeights) -> tuple[Numbers, Numbers]:
    """What the parts say, before they are weighed."""
    ranking = case.ranking(start)
    given = dict(zip(PART_NAMES, ranking.given[:RERANK_DEPTH].T, strict=True))
    raw = [given[part] / max(getattr(start, part), 1e-6) for part in FITTED]
    return np.column_stack([given["meaning"] + given["words"], *raw]), case.right(ranking)[:RERANK_DEPTH]


def _descend(lists: Sequence[_Lists], count: int) -> Numbers:
    """Newton's steps, kept at or above zero."""
    weights = np.zeros(count)
    weights[0] = 1.0
    for _ in range(STEPS):
        slope, curve = 2 * RIDGE * weights, 2 * RIDGE * np.eye(count)
        for one in lists:
            steep, bend = _softmax_slope(one, weights)
            slope, curve = slope + steep / len(lists), curve + bend / len(lists)
        held = (weights <= 0) & (slope > 0)
        slope[held] = 0.0
        step = np.linalg.solve(curve + 1e-6 * np.eye(count), slope)
        weights = np.maximum(0.0, weights - step)
        if np.abs(step).max() < 1e-6:
            break
    return weights


def _softmax_slope(lists: _Lists, weights: Numbers) -> tuple[Numbers, Numbers]:
    scores = lists.features @ weights + lists.absent
    likely = np.exp(scores - scores.max(axis=1, keepdims=True))
    likely /= likely.sum(axis=1, keepdims=True)
    slope = np.einsum("qi,qik->k", likely - lists.right, lists.features)
    means = np.einsum("qi,qik->qk", likely, lists.features)
    curve = np.einsum("qi,qik,qil->kl", likely, lists.features, lists.features) - means.T @ means
    return slope / len(scores), curve / len(scores)


def fit_calibration(cases: CaseSets, weights: RankingWeights) -> Calibration:
    """Is the first of a ranking right?"""
    by_meaning = {name: [(case, case.ranking(weights)) for case in one] for name, one in cases.items()}
    by_words = {name: [(case, case.ranking_by_words(weights)) for case in one] for name, one in cases.items()}
    meaning = _logistic([_firsts(one) for one in by_meaning.values() if _any_found(one)])
    words = _logistic([_firsts(one) for one in by_words.values() if _any_found(one)])
    fitted = Calibration(_as_evidence(meaning), _as_evidence(words))
    return replace(fitted, good_match=_least_good(list(by_meaning.values()), fitted))


def _any_found(rankings: Sequence[tuple[Case, Ranking]]) -> bool:
    return any(len(ranking.ids) for _, ranking in rankings)


def _firsts(rankings: Sequence[tuple[Case, Ranking]]) -> tuple[Numbers, Numbers]:
    """The evidence for the first of each ranking, and whether it is right."""
    found = [(case, ranking) for case, ranking in rankings if len(ranking.ids)]
    evidence = np.array([ranking.evidence[0] for _, ranking in found]).reshape(-1, len(EVIDENCE))
    return evidence, np.array([case.is_right(ranking) for case, ranking in found], dtype=float)


def _logistic(sets: Sequence[tuple[Numbers, Numbers]]) -> Numbers:
    """Every set counts the same."""
    weights = np.zeros(len(EVIDENCE))
    ridge = 2 * RIDGE * np.eye(len(EVIDENCE))
    for _ in range(STEPS):
        slope, curve = ridge @ weights, ridge.copy()
        for evidence, right in sets:
            likely = 1 / (1 + np.exp(-(evidence @ weights)))
            spread = likely * (1 - likely)
            slope = slope + evidence.T @ (likely - right) / len(right) / len(sets)
            curve = curve + (evidence * spread[:, None]).T @ evidence / len(right) / len(sets)
        step = np.linalg.solve(curve, slope)
        weights = weights - step
        if np.abs(step).max() < 1e-8:
            break
    return weights


def _as_evidence(weights: Numbers) -> Evidence:
    return Evidence(*np.round(weights, 4).tolist())


def _least_good(rankings: Sequence[Sequence[tuple[Case, Ranking]]], fitted: Calibration) -> float:
    """The confidence that refuses, on average over the sets, so many answers that are there."""
    weights = np.array(as_row(fitted.meaning))
    firsts = [
        np.array([one.evidence[0] @ weights for case, one in ranking if case.query.answerable and len(one.ids)])
        for ranking in rankings
    ]
    levels = np.linspace(0.01, 0.6, 60)
    limits = np.log(levels / (1 - levels))
    refused = np.array([np.mean([np.mean(one < limit) for one in firsts if len(one)]) for limit in limits])
    allowed = levels[refused <= FALSE_REFUSALS]
    return round(float(allowed[-1]) if len(allowed) else float(levels[0]), 3)


def _mean_ndcg(cases: Sequence[Case], weights: RankingWeights) -> float:
    return float(np.mean([case.ndcg(weights) for case in cases if case.query.answerable]))
