"""Two scores and their weighted sum, nothing else: `search_type` semantic. With keyword, the fuzzy score alone."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.request import TRUST_IN_A_CORRECTION, Request
from toolscript.core.retrieval.terms import terms_of_word
from toolscript.gateway.capabilities import Inferred
from toolscript.gateway.index import LocalIndex, Rows, Scores
from toolscript.gateway.model import LocalHit, ScoreParts
from toolscript.gateway.reasons import matched_words, reason


@dataclass(frozen=True)
class LiteralScores:
    """A number per item, 0 to 1. `semantic` is NaN for an item without a vector, whose fuzzy score stands alone.

    The fuzzy score is the largest of the share of the asked `words`, the `likeness` of the name and the `boost` of
    a general tool that can do what is asked.
    """

    alpha: float
    semantic: Scores
    words: Scores
    likeness: Scores
    boost: Scores

    @cached_property
    def fuzzy(self) -> Scores:
        return np.maximum(np.maximum(self.words, self.likeness), self.boost)

    @cached_property
    def final(self) -> Scores:
        weighed = self.alpha * self.semantic + (1 - self.alpha) * self.fuzzy
        final: Scores = np.where(np.isnan(self.semantic), self.fuzzy, weighed)
        return final.round(4)

    def given(self, row: int) -> dict[str, float]:
        """What each score gave to the sum."""
        semantic, fuzzy = float(self.semantic[row]), float(self.fuzzy[row])
        if math.isnan(semantic):
            return {"words": round(fuzzy, 4)}
        return {"meaning": round(self.alpha * semantic, 4), "words": round((1 - self.alpha) * fuzzy, 4)}


def semantic_scores(index: LocalIndex, vector: Vector | None) -> Scores:
    """Cosines; what points away from the request is as far from it as what has nothing to do with it."""
    cosines = None if vector is None else index.similarities(vector[np.newaxis])
    if cosines is None:
        return np.full(len(index), np.nan)
    return np.where(index.is_embedded, np.clip(cosines[0].astype(np.float64), 0.0, 1.0), np.nan)


def shares_of_words(request: Request, index: LocalIndex) -> Scores:
    """How many of the asked words each item has, the rare ones counting more, a corrected one less."""
    shares, total = np.zeros(len(index)), 0.0
    for word in request.words:
        stem = terms_of_word(request.meant.get(word, word))[0]
        rows, idf = index.rows_with(stem), index.idf(stem)
        shares[rows] += idf * (TRUST_IN_A_CORRECTION if word in request.meant else 1.0)
        total += idf
    return shares / total if total else shares


def boosts(general: Iterable[tuple[Rows, Inferred]], items: int) -> tuple[Scores, dict[int, Inferred]]:
    """What general tools can do, and for each of them the best reason."""
    boost, inferred = np.zeros(items), dict[int, Inferred]()
    for rows, one in general:
        for row in rows[boost[rows] < one.confidence].tolist():
            boost[row], inferred[row] = one.confidence, one
    return boost, inferred


def literal_hit(
    index: LocalIndex, scores: LiteralScores, row: int, inferred: Inferred | None, request: Request
) -> LocalHit:
    semantic = float(scores.semantic[row])
    parts = ScoreParts(
        semantic=None if math.isnan(semantic) else round(semantic, 4),
        words=round(float(scores.words[row]), 4),
        fuzzy=round(float(scores.likeness[row]), 4),
        boost=round(float(scores.boost[row]), 4),
        matched=matched_words(index.words(row), request),
        standing=scores.given(row),
    )
    is_why = parts.boost > max(parts.words, parts.fuzzy)
    why = reason(parts, inferred if is_why else None, request, index.domain(row))
    return LocalHit(index.items[row], float(scores.final[row]), why, parts)
