"""Fusion of dense and sparse results into one ranked list of documents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolscript.core.retrieval.query import Fusion
from toolscript.core.retrieval.results import DocumentKey, Exactness, FoundChunk, FoundChunks, Total

# What the best so many passages of an arm say decides how it is weighed, however many more are asked for: the
# first page is the same whether somebody wants the tenth or not.
RERANK_DEPTH = 100

Scores = NDArray[np.float64]

RRF_K = 60
# What the dense arm has of the two arms' common weight: a half, or more where it is the surer one.
HALF = 0.5
SURER, MIN_SHARE, MAX_SHARE = 0.05, 0.3, 0.7
MIN_SPREAD = 1e-9

Fused = tuple[Scores, Scores, Callable[[Scores], Scores]]


@dataclass(frozen=True)
class RankedList:
    """Documents by their best score, best first. `passages` is the number of the one that has it.

    The first `heard` of them are in the best passages. `few`: there are fewer passages than those.
    `is_full`: there may be more than were asked for.
    """

    scores: dict[DocumentKey, float]
    passages: dict[DocumentKey, int]
    heard: int
    few: bool
    is_full: bool

    @classmethod
    def of_whole(cls, scores: dict[DocumentKey, float], limit: int) -> "RankedList":
        """Of what has no passages, best first."""
        found = len(scores)
        return cls(scores, {}, min(found, RERANK_DEPTH), found < RERANK_DEPTH, found >= limit)

    @property
    def listed_keys(self) -> list[DocumentKey]:
        return list(islice(self.scores, self.heard))


@dataclass(frozen=True)
class RankedLists:
    dense: RankedList | None
    words: RankedList | None

    @property
    def keys(self) -> list[DocumentKey]:
        named = [*(self.dense.scores if self.dense else ()), *(self.words.scores if self.words else ())]
        return sorted(set(named))

    @property
    def is_full(self) -> bool:
        return any(ranked_list.is_full for ranked_list in (self.dense, self.words) if ranked_list)

    @property
    def total(self) -> Total | None:
        """How many documents match, where that is known: by meaning all do that pass the filters."""
        ranked_list = self.dense or self.words
        if ranked_list is None or (ranked_list is self.dense and ranked_list.is_full):
            return None
        return Total(len(ranked_list.scores), Exactness.AT_LEAST if ranked_list.is_full else Exactness.EXACT)

    def best_passage(self, key: DocumentKey) -> int:
        """Words say where in a text something is; where they are silent, its meaning does."""
        by_words = self.words.passages.get(key) if self.words else None
        if by_words is not None:
            return by_words
        return self.dense.passages.get(key, 0) if self.dense else 0


def by_document(found: FoundChunks, limit: int) -> RankedLists:
    """`limit` is how many passages each arm was asked for."""
    return RankedLists(_ranked_list(found.dense, limit), _ranked_list(found.words, limit))


def _ranked_list(passages: Sequence[FoundChunk] | None, limit: int) -> RankedList | None:
    if passages is None:
        return None
    scores: dict[DocumentKey, float] = {}
    numbers: dict[DocumentKey, int] = {}
    heard = 0
    for rank, (id_, score) in enumerate(passages):
        if id_.key not in scores:
            scores[id_.key], numbers[id_.key] = score, id_.number
        if rank < RERANK_DEPTH:
            heard = len(scores)
    return RankedList(scores, numbers, heard, len(passages) < RERANK_DEPTH, len(passages) >= limit)


class Ranked(NamedTuple):
    """A document in its place. `passage` is the number of the one that speaks for it."""

    key: DocumentKey
    score: float
    passage: int


def ranked(ranked_lists: RankedLists, fusion: Fusion, best_words: float) -> list[Ranked]:
    """Best first, of equals the lower key. `best_words` is the most that words could have said of a passage."""
    if ranked_lists.dense is None or ranked_lists.words is None:
        return _single_retriever(ranked_lists, best_words)
    keys = ranked_lists.keys
    heard, whole, scale = _FUSIONS[fusion](ranked_lists.dense, ranked_lists.words, keys)
    # Those beyond what the arms were heard of are all alike; among them the rest of the lists decides.
    named = {*ranked_lists.dense.listed_keys, *ranked_lists.words.listed_keys}
    beyond = np.array([key not in named for key in keys], dtype=bool)
    order = np.lexsort((np.arange(len(keys)), -whole * beyond, beyond, -heard))
    scores = scale(heard)
    return [Ranked(keys[at], float(scores[at]), ranked_lists.best_passage(keys[at])) for at in order.tolist()]


def fused_scores(dense: RankedList, words: RankedList) -> dict[DocumentKey, float]:
    """How far each stands above the middle of what the arms have named, in spreads: BEST before it is scaled."""
    keys = sorted({*dense.scores, *words.scores})
    heard, _, _ = _best(dense, words, keys)
    return dict(zip(keys, heard.tolist(), strict=True))


def _single_retriever(ranked_lists: RankedLists, best_words: float) -> list[Ranked]:
    ranked_list = ranked_lists.dense or ranked_lists.words
    if ranked_list is None:
        return []
    maximum = 1.0 if ranked_lists.dense else max(best_words, MIN_SPREAD)
    listed = sorted(ranked_list.scores.items(), key=lambda one: (-one[1], one[0]))
    return [
        Ranked(key, min(1.0, max(0.0, score / maximum)), ranked_list.passages.get(key, 0)) for key, score in listed
    ]


def _rrf(dense: RankedList, words: RankedList, keys: Sequence[DocumentKey]) -> Fused:
    heard = _reciprocal(dense.listed_keys, keys) + _reciprocal(words.listed_keys, keys)
    whole = _reciprocal(list(dense.scores), keys) + _reciprocal(list(words.scores), keys)
    return heard, whole, lambda scores: scores * (RRF_K + 1) / 2


def _reciprocal(ranked_list: Sequence[DocumentKey], keys: Sequence[DocumentKey]) -> Scores:
    rank = {key: index for index, key in enumerate(ranked_list, 1)}
    return np.array([1 / (RRF_K + rank[key]) if key in rank else 0.0 for key in keys])


def _zscore(dense: RankedList, words: RankedList, keys: Sequence[DocumentKey]) -> Fused:
    return _weighed(dense, words, keys, lambda _meaning, _said: HALF)


def _best(dense: RankedList, words: RankedList, keys: Sequence[DocumentKey]) -> Fused:
    return _weighed(dense, words, keys, _share_of_the_surer)


def _share_of_the_surer(meaning: Scores, said: Scores) -> float:
    """An arm is sure whose best is far ahead of its others."""
    ahead = float(meaning.max(initial=0.0) - said.max(initial=0.0))
    return min(MAX_SHARE, max(MIN_SHARE, HALF + SURER * ahead))


def _weighed(
    dense: RankedList, words: RankedList, keys: Sequence[DocumentKey], share_of: Callable[[Scores, Scores], float]
) -> Fused:
    among = sorted({*dense.listed_keys, *words.listed_keys})
    meaning, all_meaning = _z_scores(dense, keys, among, silent_is_zero=False)
    said, all_said = _z_scores(words, keys, among, silent_is_zero=True)
    share = share_of(meaning, said) if words.scores else 1.0
    heard = share * meaning + (1 - share) * said
    return heard, share * all_meaning + (1 - share) * all_said, _logistic


def _z_scores(
    ranked_list: RankedList, keys: Sequence[DocumentKey], among: Sequence[DocumentKey], *, silent_is_zero: bool
) -> tuple[Scores, Scores]:
    """As far as the arm was heard, and all it said. Whom it did not name stands at its end.

    A word arm of few passages has named all it knows: the rest have no word of the query, which counts.
    """
    if not ranked_list.scores:
        return np.zeros(len(keys)), np.zeros(len(keys))
    known = np.array([ranked_list.scores[key] for key in ranked_list.listed_keys])
    counts = silent_is_zero and ranked_list.few
    sample = np.array([ranked_list.scores.get(key, 0.0) for key in among]) if counts else known
    floor = 0.0 if counts else float(known.min())
    spread = float(sample.std())
    if spread <= MIN_SPREAD:
        return np.zeros(len(keys)), np.zeros(len(keys))
    scores = np.array([ranked_list.scores.get(key, floor) for key in keys])
    return (np.maximum(scores, floor) - sample.mean()) / spread, (scores - sample.mean()) / spread


def _logistic(scores: Scores) -> Scores:
    return np.asarray(1 / (1 + np.exp(-scores)))


_FUSIONS: Mapping[Fusion, Callable[[RankedList, RankedList, Sequence[DocumentKey]], Fused]] = {
    Fusion.RRF: _rrf,
    Fusion.ZSCORE: _zscore,
    Fusion.BEST: _best,
}
