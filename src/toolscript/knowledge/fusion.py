"""What both arms say of chunks and extractions, in one order, with scores that mean what a cosine means."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from toolscript.core.retrieval.fusion import Arm, Arms, ranked, standings
from toolscript.core.retrieval.query import Fusion
from toolscript.knowledge.model.library import is_extraction, kin, point_of

LEAST_STEP = 0.01
# What a match of all words is worth beside a cosine of 1: where the model does not know a word, words alone speak.
WORDS_TRUST = 0.6


class Placed(NamedTuple):
    id: str
    score: float


def ordered(arms: Arms, best_words: float) -> Iterator[Placed]:
    """Best first, of equals the lower id. Only the first of many are shown: the others are not made."""
    if arms.dense is None or arms.words is None or not arms.dense.scores:
        yield from (Placed(one.key, one.score) for one in ranked(arms, Fusion.BEST, best_words))
        return
    standing = sorted((-height, id_) for id_, height in standings(arms.dense, arms.words).items())
    highest = -standing[0][0]
    first, step = _first_and_step(arms.dense, arms.words, highest, best_words)
    for depth, id_ in standing:
        yield Placed(id_, min(1.0, max(0.0, first - step * (highest + depth))))


def without_kin(order: Iterable[Placed]) -> Iterator[Placed]:
    """Of a chunk and its extractions, what comes first: the chunk, or what was extracted from it."""
    shown: dict[int, bool] = {}
    for one in order:
        extracted = is_extraction(one.id)
        if shown.setdefault(kin(point_of(one.id)), extracted) == extracted:
            yield one


def _first_and_step(dense: Arm, words: Arm, standing: float, best_words: float) -> tuple[float, float]:
    """A list where nothing is similar stays low, however clear its order is."""
    cosines = np.array([dense.scores[id_] for id_ in dense.heard_keys])
    step = max(float(cosines.std()), LEAST_STEP)
    said = max(words.scores.values(), default=0.0) / best_words if best_words else 0.0
    return max(float(cosines.mean()) + step * standing, WORDS_TRUST * said), step
