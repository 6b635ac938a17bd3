"""A standing among the others becomes a confidence: how likely this is the tool that was meant.

Two questions are answered, and their answers multiplied. Is there anything to the best match at all? And given
that there is, how far do the others stand behind it? The first keeps nonsense low in a list where something
always comes first; the second was fitted to public judged sets, each set left out in turn.
"""

import numpy as np

from toolscript.search.local.index import Scores
from toolscript.search.local.ranking import Ranking

# How much evidence makes an answer as likely as none: a cosine, or the share of the asked words that is there.
ENOUGH, ENOUGH_WORDS = 0.28, 0.13
STEEPNESS, STEEPNESS_WORDS = 16.0, 20.0
# Where words are all there is, one of the best that has every one of them is worth showing, however many have.
ALL_OF_THEM, HAS_ALL_WORDS, CLOSE_BEHIND = 0.999, 0.4, 0.5
USUAL_LEAD = 1.0


def confidences(ranking: Ranking) -> Scores:
    """One per row, in the order of the standings."""
    if not len(ranking.rows):
        return np.zeros(0)
    best = int(np.argmax(ranking.standing))
    behind = ranking.standing - ranking.standing[best]
    share, margin = float(ranking.share[best]), _margin(ranking.standing)
    # Where all stand alike, one alone too, there is no lead to read: what was found has to speak for itself.
    alike = bool(np.ptp(ranking.standing) == 0)
    if ranking.semantic is None:
        lead = USUAL_LEAD if alike else float(ranking.standing[best]) / np.log(max(2, len(ranking.rows)))
        margin = USUAL_LEAD if alike else margin
        right = -2.0 + 0.88 * behind + 0.54 * share + 0.42 * margin + 0.9 * lead
        fitted = _logistic(right) * _logistic(STEEPNESS_WORDS * (share - ENOUGH_WORDS)) * (ranking.words > 0)
        worth_showing = (ranking.share > ALL_OF_THEM) & (behind > -CLOSE_BEHIND)
        return np.maximum(fitted, np.where(worth_showing, HAS_ALL_WORDS, 0.0))
    cosine = float(np.nan_to_num(ranking.semantic[best]))
    right = -1.34 + 1.79 * behind + 1.6 * cosine + 0.25 * share + 0.96 * margin
    return _logistic(right) * _logistic(STEEPNESS * (max(cosine, share) - ENOUGH))


def _margin(standing: Scores) -> float:
    if len(standing) < 2:
        return 1.0
    second, first = np.partition(standing, -2)[-2:]
    return float(first - second)


def _logistic(value: Scores | float) -> Scores:
    return np.asarray(1 / (1 + np.exp(-np.asarray(value))))
