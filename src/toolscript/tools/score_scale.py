"""Converts ranking scores to similarities, so that a score of 0.6 means the same as a cosine of 0.6.

The first item of a ranking gets its own similarity, and the others keep their distance to it; the distances are
scaled down until the ranking has the spread of the retrievers' scores alone. A list without similar items stays
low, however clear its order is. When the model does not know the language and the words match all the same, the
whole list is raised to the value of the word match.
"""

import math
from collections.abc import Collection, Sequence

import numpy as np

from toolscript.core.retrieval.fusion import RETRIEVER_PARTS
from toolscript.core.retrieval.model import Candidate, Candidates
from toolscript.core.retrieval.rerank import RankedCandidates

# BM25 scores have no upper bound. This many times the IDF of a word that only one item has maps to a similarity
# of one half: a larger catalog has larger IDFs, so a match needs a higher score.
HALF_SURE_IDFS = 0.9
MIN_SPREAD = 0.01
SHOWN_DIGITS = 6
SHOWN_STEP = 10.0**-SHOWN_DIGITS
# Without dense scores, a distance of one in the ranking score is this distance in similarity.
WORDS_SPREAD = 0.05
# The weight of the best word similarity when it competes with the best cosine for the first place's score.
WORDS_TRUST = 0.6
# The number of columns for the whole query; the contribution of sub-queries is no similarity to it.
WHOLE_QUERY_COLUMNS = RETRIEVER_PARTS.index("subquery")


def scores_of(ranking: RankedCandidates, whole: Candidates, among: Collection[int] | None = None) -> list[float]:
    """Return one score per ranked candidate, best first, 0 to 1. `whole` holds the candidates of the whole query.

    Only the ids in `among` count for the spread, by default all: candidates that a second, filtered search adds
    do not change the scores of the first.
    """
    if not len(ranking.ids):
        return []
    by_retrievers = ranking.contributions[:, :WHOLE_QUERY_COLUMNS].sum(axis=1)
    best, step = _first_and_step(whole, float(by_retrievers[0]))
    counted = slice(None) if among is None else np.isin(ranking.ids, list(among))
    spread = float(ranking.score[counted].std())
    scale = min(1.0, float(by_retrievers[counted].std()) / spread) if spread > 0 else 1.0
    behind = (ranking.score - ranking.score[0]) * scale
    scores: list[float] = np.clip(best + step * behind, 0.0, 1.0).tolist()
    return scores


def retriever_scores(whole: Candidates) -> list[tuple[int, float]]:
    """Return the scores of a single retriever in its own order: cosines unchanged, BM25 scores as similarities."""
    dense, words = whole.dense or (), whole.words or ()
    scored = [(hit.id, hit.score) for hit in dense] or [
        (hit.id, word_similarity(hit.score, whole.points)) for hit in words
    ]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def reaches(score: float, threshold: float) -> bool:
    """Compare the score as it is displayed: an item displayed with 0.3 passes a threshold of 0.3."""
    return round(score, SHOWN_DIGITS) >= threshold


def count_reaching(scores: Sequence[float], threshold: float) -> int:
    """Return how many scores reach the threshold; only those close to it are rounded."""
    values = np.array(scores)
    sure = int(np.count_nonzero(values > threshold + SHOWN_STEP))
    close = values[np.abs(values - threshold) <= SHOWN_STEP].tolist()
    return sure + sum(reaches(score, threshold) for score in close)


def word_similarity(score: float, points: int) -> float:
    return score / (score + HALF_SURE_IDFS * math.log(2 * points + 2))


def _first_and_step(whole: Candidates, score: float) -> tuple[float, float]:
    words = _best_words(whole.words or (), whole.points)
    if not whole.dense:
        return words, WORDS_SPREAD
    cosines = np.array([hit.score for hit in whole.dense])
    step = max(float(cosines.std()), MIN_SPREAD)
    return max(float(cosines.mean()) + step * score, WORDS_TRUST * words), step


def _best_words(hits: Sequence[Candidate], points: int) -> float:
    return word_similarity(max((hit.score for hit in hits), default=0.0), points)
