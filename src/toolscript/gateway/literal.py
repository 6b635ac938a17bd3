"""Literal mode (`search_type` semantic): the weighted sum of two scores. With keyword, only the fuzzy score."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from toolscript.core.retrieval.curation import Rule
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.request import CORRECTION_WEIGHT, SYNONYM_WEIGHT, Request
from toolscript.gateway.capabilities import Inferred
from toolscript.gateway.index import LocalIndex, Rows, Scores
from toolscript.gateway.model import LocalHit, ScoreParts
from toolscript.gateway.reasons import matched_words, reason
from toolscript.gateway.twins import Twins, fold_twins


@dataclass(frozen=True)
class LiteralScores:
    """One score per item, 0 to 1. An item without a vector has `semantic` NaN, and its fuzzy score is final.

    The fuzzy score is the maximum of the share of matched query `words`, the `likeness` of the name and the
    `boost` of a general tool that can do the task. `promoted` has the items that a person's rule puts first.
    """

    alpha: float
    semantic: Scores
    words: Scores
    likeness: Scores
    boost: Scores
    promoted: Mapping[int, Rule]

    @cached_property
    def fuzzy(self) -> Scores:
        return np.maximum(np.maximum(self.words, self.likeness), self.boost)

    @cached_property
    def final(self) -> Scores:
        weighted = self.alpha * self.semantic + (1 - self.alpha) * self.fuzzy
        final: Scores = np.where(np.isnan(self.semantic), self.fuzzy, weighted)
        final[[*self.promoted]] = 1.0
        return final.round(4)

    @property
    def descending(self) -> Scores:
        """Sort keys: promoted items first, then the best score."""
        keys = -self.final
        keys[[*self.promoted]] = -np.inf
        return keys

    def first(self, index: LocalIndex, rows: Rows, limit: int) -> list[Twins]:
        """Return the first of these rows, twins as one. Scores alone decide here, not what is deprecated."""
        promoted = {place for place, row in enumerate(rows.tolist()) if row in self.promoted}
        twins = fold_twins(rows.tolist(), index.twins[rows].tolist(), index.items, limit, preferred=promoted)
        return [replace(hit, place=int(rows[hit.place]), best=int(rows[hit.best])) for hit in twins]

    def contributions(self, row: int) -> dict[str, float]:
        """Return the contribution of each score to the sum."""
        semantic, fuzzy = float(self.semantic[row]), float(self.fuzzy[row])
        if math.isnan(semantic):
            return {"words": round(fuzzy, 4)}
        return {"meaning": round(self.alpha * semantic, 4), "words": round((1 - self.alpha) * fuzzy, 4)}


def semantic_scores(index: LocalIndex, vector: Vector | None) -> Scores:
    """Return the cosines; negative ones count as 0."""
    cosines = None if vector is None else index.similarities(vector[np.newaxis])
    if cosines is None:
        return np.full(len(index), np.nan)
    return np.where(index.is_embedded, np.clip(cosines[0].astype(np.float64), 0.0, 1.0), np.nan)


def word_shares(request: Request, index: LocalIndex) -> Scores:
    """Return the share of query words each item has, weighted by IDF; a correction or a synonym counts less."""
    shares, total = np.zeros(len(index)), 0.0
    for word, stem in request.stems_of_words.items():
        rows, idf = index.rows_with(stem), index.idf(stem)
        shares[rows] += idf * (CORRECTION_WEIGHT if word in request.corrections else 1.0)
        shares[_rows_by_synonym(stem, request, index)] += idf * SYNONYM_WEIGHT
        total += idf
    return shares / total if total else shares


def _rows_by_synonym(stem: int, request: Request, index: LocalIndex) -> list[int]:
    """Return the items that have not the word, but what it means."""
    rows = {
        row
        for meaning in request.meanings_of(stem)
        for near in meaning.stems
        for row in index.rows_with(near).tolist()
        if meaning.is_in(index.features(row).stems)
    }
    return sorted(rows.difference(index.rows_with(stem).tolist())) if rows else []


def boosts(general: Iterable[tuple[Rows, Inferred]], items: int) -> tuple[Scores, dict[int, Inferred]]:
    """Return the boost of each item, and the best reason for each general tool."""
    boost, inferred = np.zeros(items), dict[int, Inferred]()
    for rows, capability in general:
        for row in rows[boost[rows] < capability.confidence].tolist():
            boost[row], inferred[row] = capability.confidence, capability
    return boost, inferred


def literal_hit(
    index: LocalIndex, scores: LiteralScores, hit: Twins, inferred: Inferred | None, request: Request
) -> LocalHit:
    row = hit.place
    semantic = float(scores.semantic[row])
    parts = ScoreParts(
        semantic=None if math.isnan(semantic) else round(semantic, 4),
        words=round(float(scores.words[row]), 4),
        fuzzy=round(float(scores.likeness[row]), 4),
        boost=round(float(scores.boost[row]), 4),
        matched=matched_words(index.stems(row), request),
        contributions=scores.contributions(row),
    )
    is_boosted = parts.boost > max(parts.words, parts.fuzzy)
    cause = scores.promoted.get(row) or (inferred if is_boosted else None)
    why = reason(parts, cause, index.domain(row))
    final = float(scores.final[hit.best])
    item = index.items[row]
    return LocalHit(item, final, why, parts, final, also=hit.also, deprecated=item.is_deprecated)
