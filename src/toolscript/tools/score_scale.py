"""A ranking read as similarities: so that a score of 0.6 means what a cosine of 0.6 means, whoever comes first.

The first of a ranking gets its own similarity, and the others follow it as far behind as they stand; the
distances are drawn together until the ranking is spread as the arms alone would have it. A list where nothing is
similar stays low, however clear its order is; where the model does not know the language and the words match all
the same, the whole list is lifted to what the words are worth.
"""

import math
from collections.abc import Collection, Sequence

import numpy as np

from toolscript.core.retrieval.model import Candidate, Candidates
from toolscript.core.retrieval.rerank import RETRIEVER_PARTS, Ranking

# A word score has no upper end. About this many times the rarity of a word that only one item has reads as a
# similarity of one half: the rarer words can be, in a larger catalog, the more a match has to show.
HALF_SURE_IDFS = 0.9
MIN_SPREAD = 0.01
SHOWN_DIGITS = 6
# How far apart two candidates are when words alone tell them apart, and what their match is worth beside a cosine.
WORDS_SPREAD = 0.05
WORDS_TRUST = 0.6
# The columns of what the arms gave for the whole request; what single wishes added is no similarity to it.
ARMS = RETRIEVER_PARTS.index("wishes")


def scores_of(ranking: Ranking, whole: Candidates, among: Collection[int] | None = None) -> list[float]:
    """One per ranked candidate, best first, 0 to 1. `whole` is what the arms said of the whole request.

    `among` are those whose spread counts, all unless told: whom a second route adds moves no score of the first.
    """
    if not len(ranking.ids):
        return []
    by_arms = ranking.given[:, :ARMS].sum(axis=1)
    best, step = _first_and_step(whole, float(by_arms[0]))
    counted = slice(None) if among is None else np.isin(ranking.ids, list(among))
    spread = float(ranking.standing[counted].std())
    drawn_together = min(1.0, float(by_arms[counted].std()) / spread) if spread > 0 else 1.0
    behind = (ranking.standing - ranking.standing[0]) * drawn_together
    return [float(one) for one in np.clip(best + step * behind, 0.0, 1.0).tolist()]


def retriever_scores(whole: Candidates) -> list[tuple[int, float]]:
    """One arm alone, in its own order: cosines as they are, words as what they are worth."""
    dense, words = whole.dense or (), whole.words or ()
    scored = [(hit.id, hit.score) for hit in dense] or [
        (hit.id, word_similarity(hit.score, whole.points)) for hit in words
    ]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def reaches(score: float, threshold: float) -> bool:
    """As the score is shown: whoever is shown with 0.3 is not cut by a threshold of 0.3."""
    return round(score, SHOWN_DIGITS) >= threshold


def word_similarity(score: float, points: int) -> float:
    return score / (score + HALF_SURE_IDFS * math.log(2 * points + 2))


def _first_and_step(whole: Candidates, standing: float) -> tuple[float, float]:
    words = _best_words(whole.words or (), whole.points)
    if not whole.dense:
        return words, WORDS_SPREAD
    cosines = np.array([hit.score for hit in whole.dense])
    step = max(float(cosines.std()), MIN_SPREAD)
    return max(float(cosines.mean()) + step * standing, WORDS_TRUST * words), step


def _best_words(hits: Sequence[Candidate], points: int) -> float:
    return word_similarity(max((hit.score for hit in hits), default=0.0), points)
