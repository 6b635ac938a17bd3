"""Fits the weights of the ranking and of its confidence to datasets, with leave-one-out validation.

There are few weights, none is negative, and every dataset counts the same, however many queries it has: the
fit has to generalise to unseen catalogs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.fusion import FusedScores
from toolscript.core.retrieval.request import Request
from toolscript.core.retrieval.rerank import PART_NAMES, RERANK_DEPTH, FeaturesById, RankedCandidates, rank
from toolscript.core.retrieval.weights import (
    DEFAULT_WEIGHTS,
    EVIDENCE,
    Calibration,
    Evidence,
    RankingWeights,
    as_row,
)
from toolscript_eval.dataset import DatasetQuery
from toolscript_eval.metrics import DEPTH, ndcg

Numbers = NDArray[np.float64]

# Dense and sparse share one weight, the unit of the others.
FITTED = ("subquery", "coverage", "word_match", "name", "action", "subject")
RIDGE = 1e-3
STEPS = 60
# Maximum share of answerable queries that may be refused.
FALSE_REFUSALS = 0.05


@dataclass(frozen=True)
class Case:
    """One query with scores fused by the default weights, with and without a model; `keys` has the item keys."""

    query: DatasetQuery
    request: Request
    fused: FusedScores
    by_words: FusedScores
    features: FeaturesById
    features_by_words: FeaturesById
    keys: Mapping[int, str]

    def ranking(self, weights: RankingWeights) -> RankedCandidates:
        return rank(self.request, _with_weights(self.fused, weights), self.features, weights)

    def ranking_by_words(self, weights: RankingWeights) -> RankedCandidates:
        return rank(self.request, _with_weights(self.by_words, weights), self.features_by_words, weights)

    def right(self, ranking: RankedCandidates) -> Numbers:
        """Return the relevance grade of each candidate."""
        return np.array([self.query.relevant.get(self.keys[id_], 0) for id_ in ranking.ids.tolist()], dtype=float)

    def is_right(self, ranking: RankedCandidates) -> bool:
        return self.query.relevant.get(self.keys[int(ranking.ids[0])], 0) > 0

    def ndcg(self, weights: RankingWeights) -> float:
        best = [self.keys[id_] for id_ in self.ranking(weights).ids[:DEPTH].tolist()]
        return ndcg(best, self.query.relevant)


def _with_weights(fused: FusedScores, weights: RankingWeights) -> FusedScores:
    """Return the same candidates with other weights of the sub-queries; which are reranked does not change."""
    subquery = fused.subquery * (weights.subquery / DEFAULT_WEIGHTS.subquery)
    return replace(fused, subquery=subquery, score=fused.meaning + fused.words + subquery)


CaseSets = Mapping[str, Sequence[Case]]


@dataclass(frozen=True)
class HeldOut:
    """Weights fitted without a dataset, and their nDCG on it."""

    set: str
    weights: RankingWeights
    ndcg: float
    by_default: float


def fit(cases: CaseSets, start: RankingWeights = DEFAULT_WEIGHTS) -> RankingWeights:
    """Fit the weights that rank relevant items first, then the confidence of that ranking."""
    if not any(case.query.answerable for dataset in cases.values() for case in dataset):
        raise InvalidRequest("nothing to fit to: no query has an answer")
    fitted = fit_weights(cases, start)
    return replace(fitted, calibration=fit_calibration(cases, fitted))


def hold_out(cases: CaseSets, groups: Mapping[str, str], start: RankingWeights = DEFAULT_WEIGHTS) -> list[HeldOut]:
    """Evaluate each dataset with weights fitted without it and without the others of its group."""
    held = {}
    for group in dict.fromkeys(groups.values()):
        training = {name: dataset for name, dataset in cases.items() if groups[name] != group}
        held[group] = fit(training, start)
    return [
        HeldOut(name, held[groups[name]], _mean_ndcg(dataset, held[groups[name]]), _mean_ndcg(dataset, start))
        for name, dataset in cases.items()
    ]


def fit_weights(cases: CaseSets, start: RankingWeights) -> RankingWeights:
    """Fit with a softmax over each candidate list: relevant items compete with the rest."""
    lists = [
        lists_ for lists_ in (_Lists.of(dataset, start) for dataset in cases.values()) if len(lists_.features)
    ]
    weights = _descend(lists, 1 + len(FITTED)) if lists else np.zeros(1 + len(FITTED))
    if not weights[0] > 0:
        raise InvalidRequest(
            "nothing to fit to: the retrievers find no relevant item", hint="give other or more datasets"
        )
    scaled = weights[1:] / weights[0]
    return replace(start, **dict(zip(FITTED, np.round(scaled, 3).tolist(), strict=True)))


@dataclass(frozen=True)
class _Lists:
    """The candidates of each query as padded arrays: features, relevance, and a mask of absent ones."""

    features: Numbers
    right: Numbers
    absent: Numbers

    @classmethod
    def of(cls, cases: Sequence[Case], start: RankingWeights) -> "_Lists":
        rows = [pair for case in cases if case.query.answerable for pair in [_list(case, start)] if pair[1].any()]
        features = np.zeros((len(rows), RERANK_DEPTH, 1 + len(FITTED)))
        right, absent = np.zeros(features.shape[:2]), np.full(features.shape[:2], -1e9)
        for index, (row_features, grades) in enumerate(rows):
            features[index, : len(row_features)], absent[index, : len(row_features)] = row_features, 0.0
            right[index, : len(row_features)] = grades / grades.sum()
        return cls(features, right, absent)


def _list(case: Case, start: RankingWeights) -> tuple[Numbers, Numbers]:
    """Return the unweighted features of the candidates, and their grades."""
    ranking = case.ranking(start)
    contributions = dict(zip(PART_NAMES, ranking.contributions[:RERANK_DEPTH].T, strict=True))
    raw = [contributions[part] / max(getattr(start, part), 1e-6) for part in FITTED]
    return np.column_stack([contributions["meaning"] + contributions["words"], *raw]), case.right(ranking)[
        :RERANK_DEPTH
    ]


def _descend(lists: Sequence[_Lists], count: int) -> Numbers:
    """Minimise with Newton steps, projected to weights of at least zero."""
    weights = np.zeros(count)
    weights[0] = 1.0
    for _ in range(STEPS):
        slope, curve = 2 * RIDGE * weights, 2 * RIDGE * np.eye(count)
        for dataset in lists:
            steep, bend = _softmax_slope(dataset, weights)
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
    """Fit the probability that the first item of a ranking is relevant."""
    by_meaning = {name: [(case, case.ranking(weights)) for case in dataset] for name, dataset in cases.items()}
    by_words = {
        name: [(case, case.ranking_by_words(weights)) for case in dataset] for name, dataset in cases.items()
    }
    meaning = _logistic([_firsts(dataset) for dataset in by_meaning.values() if _any_found(dataset)])
    words = _logistic([_firsts(dataset) for dataset in by_words.values() if _any_found(dataset)])
    fitted = Calibration(_as_evidence(meaning), _as_evidence(words))
    return replace(fitted, good_match_threshold=_good_match_threshold(list(by_meaning.values()), fitted))


def _any_found(rankings: Sequence[tuple[Case, RankedCandidates]]) -> bool:
    return any(len(ranking.ids) for _, ranking in rankings)


def _firsts(rankings: Sequence[tuple[Case, RankedCandidates]]) -> tuple[Numbers, Numbers]:
    """Return the evidence for the first item of each ranking, and whether it is relevant."""
    ranked = [(case, ranking) for case, ranking in rankings if len(ranking.ids)]
    evidence = np.array([ranking.evidence[0] for _, ranking in ranked]).reshape(-1, len(EVIDENCE))
    return evidence, np.array([case.is_right(ranking) for case, ranking in ranked], dtype=float)


def _logistic(sets: Sequence[tuple[Numbers, Numbers]]) -> Numbers:
    """Fit a logistic regression in which every dataset counts the same."""
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


def _good_match_threshold(
    rankings: Sequence[Sequence[tuple[Case, RankedCandidates]]], fitted: Calibration
) -> float:
    """Return the highest threshold within the allowed share of false refusals, averaged over datasets."""
    weights = np.array(as_row(fitted.meaning))
    firsts = [
        np.array(
            [
                ranking.evidence[0] @ weights
                for case, ranking in dataset
                if case.query.answerable and len(ranking.ids)
            ]
        )
        for dataset in rankings
    ]
    levels = np.linspace(0.01, 0.6, 60)
    limits = np.log(levels / (1 - levels))
    refused = np.array(
        [np.mean([np.mean(scores < limit) for scores in firsts if len(scores)]) for limit in limits]
    )
    allowed = levels[refused <= FALSE_REFUSALS]
    return round(float(allowed[-1]) if len(allowed) else float(levels[0]), 3)


def _mean_ndcg(cases: Sequence[Case], weights: RankingWeights) -> float:
    return float(np.mean([case.ndcg(weights) for case in cases if case.query.answerable]))
