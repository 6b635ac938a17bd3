"""Two ranked lists into one, on the scale of the dense arm's cosine.

Each arm's scores become z-scores and are averaged; the average is then read back as a similarity with the dense
arm's own mean and spread. So a fused score of 0.6 means what a cosine of 0.6 means, and a list where nothing
is similar stays low however well it is spread. Where the model does not know the language and the words match
all the same, the whole list is lifted to what the words are worth; its order stays.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolscript.model.index import Candidate, Candidates

Scores = NDArray[np.float64]

DENSE_WEIGHT = 0.5

# A word score has no upper end. About this many times the rarity of a word that only one item has reads as a
# similarity of one half: the rarer words can be, in a larger catalog, the more a match has to show.
HALF_SURE_RARITIES = 0.9
LEAST_SPREAD = 0.01
# What a match of words alone is worth beside a cosine.
WORDS_TRUST = 0.6


@dataclass(frozen=True)
class Ranked:
    candidate: Candidate
    score: float


def fuse(candidates: Candidates, limit: int) -> list[Ranked]:
    """All candidates, best first, ties by id. `limit` is how many each arm was asked for."""
    dense, words = candidates.dense or (), candidates.words or ()
    if not words:
        return _ranked(dense, [hit.score for hit in dense])
    if not dense:
        return _ranked(words, [_word_similarity(hit.score, candidates.points) for hit in words])
    everyone = {hit.id: hit for hit in (*words, *dense)}
    z_dense, mean, spread = _z_scores(dense, everyone, complete=False)
    z_words, _, _ = _z_scores(words, everyone, complete=len(words) < limit)
    standing = DENSE_WEIGHT * z_dense + (1 - DENSE_WEIGHT) * z_words
    # A dense arm that finds all alike has no spread to read the words with; some keeps their order.
    fused = mean + max(spread, LEAST_SPREAD) * standing
    return _ranked(list(everyone.values()), (fused + _lift(fused, candidates)).tolist())


def _lift(fused: Scores, candidates: Candidates) -> float:
    best = max(hit.score for hit in candidates.words or ())
    worth = WORDS_TRUST * _word_similarity(best, candidates.points)
    return max(0.0, worth - float(fused.max()))


def _z_scores(
    arm: Sequence[Candidate], everyone: Mapping[int, Candidate], *, complete: bool
) -> tuple[Scores, float, float]:
    """A complete arm has named all it knows, and the rest score 0; the rest of a cut one score as its last."""
    known = {hit.id: hit.score for hit in arm}
    missing = 0.0 if complete else min(known.values())
    scores = np.array([known.get(id_, missing) for id_ in everyone])
    sample = scores if complete else np.array(list(known.values()))
    mean, spread = float(sample.mean()), float(sample.std())
    z = (scores - mean) / spread if spread > 1e-9 else np.zeros_like(scores)
    return z, mean, spread


def _ranked(hits: Sequence[Candidate], scores: Sequence[float]) -> list[Ranked]:
    ranked = [Ranked(hit, score) for hit, score in zip(hits, scores, strict=True)]
    return sorted(ranked, key=lambda one: (-one.score, one.candidate.id))


def _word_similarity(score: float, points: int) -> float:
    return score / (score + HALF_SURE_RARITIES * math.log(2 * points + 2))
