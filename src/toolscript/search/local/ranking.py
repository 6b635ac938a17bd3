"""Both arms over every item, and one order out of them."""

from dataclasses import dataclass

import numpy as np

from toolscript.model.models import Vector
from toolscript.search.local.index import LocalIndex, Rows, Scores
from toolscript.search.local.spelling import Wanted

LEAST_SPREAD = 1e-9


@dataclass(frozen=True)
class Ranking:
    """One row per item that may be found. `standing` decides; `semantic` is None where no model had a say."""

    rows: Rows
    standing: Scores
    semantic: Scores | None
    words: Scores
    share: Scores


def rank(index: LocalIndex, rows: Rows, asked: Wanted, vector: Vector | None, alpha: float) -> Ranking:
    """`alpha` is the weight of meaning; an arm with nothing to say leaves the whole word to the other."""
    words, share = (scores[rows] for scores in index.word_scores(asked.terms))
    cosines = None if vector is None else index.similarities(vector)
    semantic = None if cosines is None else cosines[rows]
    if semantic is None or np.isnan(semantic).all():
        return Ranking(rows, _standard(words), None, words, share)
    weight = alpha if words.any() else 1.0
    standing = weight * _standard(semantic) + (1 - weight) * _standard(words)
    return Ranking(rows, standing, semantic, words, share)


def _standard(scores: Scores) -> Scores:
    """How many spreads above the mean; an item an arm does not know stands at its mean."""
    if not len(scores):
        return scores
    mean, spread = float(np.nanmean(scores)), float(np.nanstd(scores))
    if spread < LEAST_SPREAD:
        return np.zeros_like(scores)
    return np.nan_to_num((scores - mean) / spread, nan=0.0)
