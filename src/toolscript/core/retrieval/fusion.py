"""Fusion of dense and sparse results: candidates of tool search, documents and knowledge."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolscript.core.retrieval.model import CandidateArrays, Candidates
from toolscript.core.retrieval.query import Fusion
from toolscript.core.retrieval.results import DocumentKey, Exactness, FoundChunk, FoundChunks, Total
from toolscript.core.retrieval.verdict import BASELINE, MAX_NEIGHBOURS
from toolscript.core.retrieval.weights import RankingWeights

# Only the best so many chunks of a retriever decide the fusion, however many more are requested: the first page
# does not depend on how many pages a client reads.
FUSION_DEPTH = 100
# How many candidates tool search requests from each retriever; all of them decide its fusion.
CANDIDATES_PER_RETRIEVER = 100
# The minimum distance of appended candidates to those before them: on a tie the lower id would come first.
MIN_GAP = 1e-3

# How many candidates of one sub-query are reranked as those of a step.
STEP_DEPTH = 10

RETRIEVER_PARTS = ("meaning", "words", "subquery")

Scores = NDArray[np.float64]
Ids = NDArray[np.int64]

RRF_K = 60
# The dense retriever's share of the weight: a half, or more if it is the more certain one.
HALF = 0.5
SURER, MIN_SHARE, MAX_SHARE = 0.05, 0.3, 0.7
MIN_SPREAD = 1e-9

# Scores by the top of the lists, scores by the full lists, and the function that scales scores to 0 to 1.
FusionResult = tuple[Scores, Scores, Callable[[Scores], Scores]]


@dataclass(frozen=True)
class FusedScores:
    """A row per candidate, best first. `similarity` is the cosine to the whole request, `best_similarity` to it or
    one of its sub-queries, less its baseline; NaN without a dense score. `neighbours` are the best of the latter
    among all items, best first.

    `score` is the fused score: the sum of `meaning` (dense), `words` (sparse) and `subquery` (best sub-query).
    `whole` are the candidates of the whole request. `steps` has the best candidates of each sub-query alone.
    """

    ids: Ids
    score: Scores
    meaning: Scores
    words: Scores
    subquery: Scores
    similarity: Scores
    best_similarity: Scores
    neighbours: Scores
    whole: Candidates
    steps: "tuple[FusedScores, ...]" = ()

    @property
    def is_semantic(self) -> bool:
        return self.whole.dense is not None

    def followed_by(self, other: "FusedScores") -> "FusedScores":
        """Append the candidates that only the other list has, in its order."""
        new = ~np.isin(other.ids, self.ids)
        gap = float(self.score.min() - other.score[new].max()) if len(self.ids) and new.any() else 0.0

        def joined(field: str) -> Scores:
            return np.concatenate([getattr(self, field), getattr(other, field)[new]])

        return FusedScores(
            ids=np.concatenate([self.ids, other.ids[new]]),
            score=np.concatenate([self.score, other.score[new] + min(0.0, gap - MIN_GAP)]),
            meaning=joined("meaning"),
            words=joined("words"),
            subquery=joined("subquery"),
            similarity=joined("similarity"),
            best_similarity=joined("best_similarity"),
            neighbours=np.sort(np.concatenate([self.neighbours, other.neighbours]))[: -MAX_NEIGHBOURS - 1 : -1],
            whole=self.whole,
            steps=self.steps,
        )


def fuse_scores(
    candidate_lists: Sequence[Candidates], limit: int, weights: RankingWeights, extra_ids: Iterable[int] = ()
) -> FusedScores:
    """Fuse the candidates of each part of a request, the whole first, by z-scores; for tool search.

    `limit` is that of each retriever. `extra_ids` are further candidates, such as matches by name; they may be in
    no list, and are candidates of every sub-query.
    """
    extra = np.array([*extra_ids], dtype=np.int64)
    lists = [_PartLists.of(candidates) for candidates in candidate_lists]
    ids = _sorted_once(np.concatenate([extra, *(hits.ids for part in lists for hits in part)]))
    whole, *parts = (part.scores(ids, limit, weights) for part in lists)
    subquery = _best_subquery(parts, whole) * weights.subquery
    score = whole.total + subquery
    # Stable, and the ids are sorted: on a tie the lower id comes first.
    order = (-score).argsort(kind="stable")
    baselines = [BASELINE * candidates.baseline for candidates in candidate_lists]
    above = [part.similarity - baseline for part, baseline in zip((whole, *parts), baselines, strict=True)]
    best = np.fmax.reduce(above)
    extra_rows = np.searchsorted(ids, extra).tolist()
    steps = [
        _step(candidates, ids, scores, above_baseline, extra_rows)
        for candidates, scores, above_baseline in zip(candidate_lists[1:], parts, above[1:], strict=True)
    ]
    return FusedScores(
        ids=ids[order],
        score=score[order],
        meaning=whole.meaning[order],
        words=whole.words[order],
        subquery=subquery[order],
        similarity=whole.similarity[order],
        best_similarity=best[order],
        neighbours=_best_of(best),
        whole=candidate_lists[0],
        steps=tuple(steps),
    )


def _step(
    candidates: Candidates, ids: Ids, scores: "_PartScores", above: Scores, extra_rows: Sequence[int]
) -> FusedScores:
    """Return the best candidates of one sub-query, and the extra ones, from the scores of all candidates.

    `above` is how far their cosines are above the baseline.
    """
    order = (-scores.total).argsort(kind="stable")
    kept = order[:STEP_DEPTH]
    if extra_rows:
        further = [row for row in order[STEP_DEPTH:].tolist() if row in extra_rows]
        kept = np.concatenate([kept, np.array(further, dtype=np.int64)])
    return FusedScores(
        ids=ids[kept],
        score=scores.total[kept],
        meaning=scores.meaning[kept],
        words=scores.words[kept],
        subquery=np.zeros(len(kept)),
        similarity=scores.similarity[kept],
        best_similarity=above[kept],
        neighbours=_best_of(above),
        whole=candidates,
    )


def _sorted_once(ids: Ids) -> Ids:
    """Return the ids in order, each once; for a few hundred, `np.unique` takes five times as long."""
    ids = np.sort(ids)
    is_first = np.ones(len(ids), dtype=np.bool_)
    is_first[1:] = ids[1:] != ids[:-1]
    return ids[is_first]


def _best_of(similarity: Scores) -> Scores:
    # NaN is sorted to the end.
    best = np.sort(-similarity)[:MAX_NEIGHBOURS]
    return -best[~np.isnan(best)]


class _PartScores(NamedTuple):
    """Scores of all candidates for one part of a request: weighted dense and sparse ones, and their `total`.

    `similarity` is the cosine; NaN if it is not known.
    """

    meaning: Scores
    words: Scores
    total: Scores
    similarity: Scores


class _PartLists(NamedTuple):
    """What both retrievers found for one part of a request. `unlisted` are dense scores of sparse candidates."""

    dense: CandidateArrays
    words: CandidateArrays
    unlisted: CandidateArrays

    @classmethod
    def of(cls, candidates: Candidates) -> "_PartLists":
        return cls(*map(CandidateArrays.of, (candidates.dense, candidates.words, candidates.unlisted)))

    def scores(self, ids: Ids, limit: int, weights: RankingWeights) -> _PartScores:
        """Score candidates by z-scores within the lists. A retriever without results leaves all weight to the
        other.

        A candidate that is missing in a list gets its minimum, unless its cosine is known. A sparse list shorter
        than the limit is complete: a missing candidate matches no word, and gets zero.
        """
        similarity = np.full(len(ids), np.nan)
        for hits in (self.unlisted, self.dense):
            similarity[np.searchsorted(ids, hits.ids)] = hits.scores
        meaning, words, share = np.zeros(len(ids)), np.zeros(len(ids)), float(len(self.dense) > 0)
        if len(self.dense) and len(self.words):
            share = weights.dense_share
        if len(self.dense):
            known = np.where(np.isnan(similarity), self.dense.scores.min(), similarity)
            meaning = share * _z_scores(known, self.dense.scores)
        if len(self.words):
            is_complete = len(self.words) < limit
            listed = np.full(len(ids), 0.0 if is_complete else self.words.scores.min())
            listed[np.searchsorted(ids, self.words.ids)] = self.words.scores
            words = (1 - share) * _z_scores(listed, listed if is_complete else self.words.scores)
        return _PartScores(meaning, words, meaning + words, similarity)


def _z_scores(scores: Scores, sample: Scores) -> Scores:
    """Return z-scores within a sample. The methods `mean` and `std` take three times as long for a short one."""
    mean = np.add.reduce(sample) / len(sample)
    deviations = sample - mean
    spread = math.sqrt(np.add.reduce(deviations * deviations) / len(sample))
    return (scores - mean) / spread if spread > MIN_SPREAD else np.zeros(len(scores))


def _best_subquery(parts: Sequence[_PartScores], whole: _PartScores) -> Scores:
    """Return how far the best sub-query lifts each candidate over its score for the whole request."""
    if not parts:
        return np.zeros_like(whole.total)
    return np.asarray(np.maximum.reduce([part.total for part in parts]) - whole.total)


@dataclass(frozen=True)
class RankedList:
    """Documents by their best score, best first; `chunks` has the number of the chunk with that score.

    The first `top` documents have one of the chunks that decide the fusion, which are `top_chunks`.
    `is_full`: there may be more results than the limit.
    """

    scores: dict[DocumentKey, float]
    chunks: dict[DocumentKey, int]
    top: int
    top_chunks: int
    is_full: bool

    @classmethod
    def without_chunks(cls, scores: dict[DocumentKey, float], limit: int) -> "RankedList":
        """Return the list of results that have no chunks; `scores` are sorted, best first."""
        top = min(len(scores), FUSION_DEPTH)
        return cls(scores, {}, top, top, len(scores) >= limit)

    @property
    def is_short(self) -> bool:
        """Whether there are fewer chunks than may decide the fusion."""
        return self.top_chunks < FUSION_DEPTH

    @property
    def listed_keys(self) -> list[DocumentKey]:
        return list(islice(self.scores, self.top))

    @property
    def top_scores(self) -> dict[DocumentKey, float]:
        return dict(islice(self.scores.items(), self.top))

    @property
    def chunks_per_document(self) -> float:
        return self.top_chunks / max(1, self.top)


@dataclass(frozen=True)
class RankedLists:
    dense: RankedList | None
    words: RankedList | None

    @property
    def keys(self) -> list[DocumentKey]:
        listed = [*(self.dense.scores if self.dense else ()), *(self.words.scores if self.words else ())]
        return sorted(set(listed))

    @property
    def is_full(self) -> bool:
        return any(ranked_list.is_full for ranked_list in (self.dense, self.words) if ranked_list)

    @property
    def total(self) -> Total | None:
        """The number of matches, if known: in dense retrieval every document that passes the filters."""
        ranked_list = self.dense or self.words
        if ranked_list is None or (ranked_list is self.dense and ranked_list.is_full):
            return None
        return Total(len(ranked_list.scores), Exactness.AT_LEAST if ranked_list.is_full else Exactness.EXACT)

    def best_chunk(self, key: DocumentKey) -> int:
        """Return the number of the best chunk by sparse score, which locates a match best, else by dense score."""
        by_words = self.words.chunks.get(key) if self.words else None
        if by_words is not None:
            return by_words
        return self.dense.chunks.get(key, 0) if self.dense else 0


def by_document(chunks: FoundChunks, limit: int) -> RankedLists:
    """Group chunks by document. `limit` is how many chunks each retriever was to return."""
    return RankedLists(_ranked_list(chunks.dense, limit), _ranked_list(chunks.words, limit))


def _ranked_list(chunks: Sequence[FoundChunk] | None, limit: int) -> RankedList | None:
    if chunks is None:
        return None
    scores: dict[DocumentKey, float] = {}
    numbers: dict[DocumentKey, int] = {}
    top = 0
    for rank, (id_, score) in enumerate(chunks):
        if id_.key not in scores:
            scores[id_.key], numbers[id_.key] = score, id_.number
        if rank < FUSION_DEPTH:
            top = len(scores)
    return RankedList(scores, numbers, top, min(len(chunks), FUSION_DEPTH), len(chunks) >= limit)


class RankedDocument(NamedTuple):
    """A document after the fusion. `passage` is the number of its best chunk."""

    key: DocumentKey
    score: float
    passage: int


def ranked(ranked_lists: RankedLists, fusion: Fusion, max_sparse_score: float) -> list[RankedDocument]:
    """Rank documents, best first, ties by key. `max_sparse_score` bounds a chunk's sparse score."""
    if ranked_lists.dense is None or ranked_lists.words is None:
        return _single_retriever(ranked_lists, max_sparse_score)
    keys = ranked_lists.keys
    top_scores, full_scores, scale = _FUSIONS[fusion](ranked_lists.dense, ranked_lists.words, keys)
    # Documents beyond the top of both lists have equal scores; the full lists order them.
    listed = {*ranked_lists.dense.listed_keys, *ranked_lists.words.listed_keys}
    beyond = np.array([key not in listed for key in keys], dtype=bool)
    order = np.lexsort((np.arange(len(keys)), -full_scores * beyond, beyond, -top_scores))
    scores = scale(top_scores)
    return [
        RankedDocument(keys[row], float(scores[row]), ranked_lists.best_chunk(keys[row])) for row in order.tolist()
    ]


def fused_scores(dense: RankedList, words: RankedList) -> dict[DocumentKey, float]:
    """Return the fused z-score of each document: Fusion.BEST before it is scaled to 0 to 1."""
    keys = sorted({*dense.scores, *words.scores})
    top_scores, _, _ = _best(dense, words, keys)
    return dict(zip(keys, top_scores.tolist(), strict=True))


def _single_retriever(ranked_lists: RankedLists, max_sparse_score: float) -> list[RankedDocument]:
    ranked_list = ranked_lists.dense or ranked_lists.words
    if ranked_list is None:
        return []
    maximum = 1.0 if ranked_lists.dense else max(max_sparse_score, MIN_SPREAD)
    listed = sorted(ranked_list.scores.items(), key=lambda entry: (-entry[1], entry[0]))
    return [
        RankedDocument(key, min(1.0, max(0.0, score / maximum)), ranked_list.chunks.get(key, 0))
        for key, score in listed
    ]


def _rrf(dense: RankedList, words: RankedList, keys: Sequence[DocumentKey]) -> FusionResult:
    top_scores = _reciprocal(dense.listed_keys, keys) + _reciprocal(words.listed_keys, keys)
    full_scores = _reciprocal(list(dense.scores), keys) + _reciprocal(list(words.scores), keys)
    return top_scores, full_scores, lambda scores: scores * (RRF_K + 1) / 2


def _reciprocal(ranked_list: Sequence[DocumentKey], keys: Sequence[DocumentKey]) -> Scores:
    rank = {key: index for index, key in enumerate(ranked_list, 1)}
    return np.array([1 / (RRF_K + rank[key]) if key in rank else 0.0 for key in keys])


def _zscore(dense: RankedList, words: RankedList, keys: Sequence[DocumentKey]) -> FusionResult:
    return _fuse_z_scores(dense, words, keys, lambda _dense, _sparse: HALF)


def _best(dense: RankedList, words: RankedList, keys: Sequence[DocumentKey]) -> FusionResult:
    return _fuse_z_scores(dense, words, keys, _dense_share)


def _dense_share(dense: Scores, sparse: Scores) -> float:
    """Return the weight of the dense scores: a retriever is certain if its best is far ahead of the others."""
    ahead = float(dense.max(initial=0.0) - sparse.max(initial=0.0))
    return min(MAX_SHARE, max(MIN_SHARE, HALF + SURER * ahead))


def _fuse_z_scores(
    dense: RankedList, words: RankedList, keys: Sequence[DocumentKey], share_of: Callable[[Scores, Scores], float]
) -> FusionResult:
    among = sorted({*dense.listed_keys, *words.listed_keys})
    dense_top, dense_full = _document_z_scores(dense, keys, among, missing_is_zero=False)
    sparse_top, sparse_full = _document_z_scores(words, keys, among, missing_is_zero=True)
    share = share_of(dense_top, sparse_top) if words.scores else 1.0
    top_scores = share * dense_top + (1 - share) * sparse_top
    return top_scores, share * dense_full + (1 - share) * sparse_full, _logistic


def _document_z_scores(
    ranked_list: RankedList, keys: Sequence[DocumentKey], among: Sequence[DocumentKey], *, missing_is_zero: bool
) -> tuple[Scores, Scores]:
    """Return the z-scores by the top of the list, and by the full list. A missing document gets the minimum.

    A short sparse list is complete: a missing document matches no word of the query and counts as zero.
    """
    if not ranked_list.scores:
        return np.zeros(len(keys)), np.zeros(len(keys))
    listed = np.array([ranked_list.scores[key] for key in ranked_list.listed_keys])
    is_complete = missing_is_zero and ranked_list.is_short
    sample = np.array([ranked_list.scores.get(key, 0.0) for key in among]) if is_complete else listed
    floor = 0.0 if is_complete else float(listed.min())
    spread = float(sample.std())
    if spread <= MIN_SPREAD:
        return np.zeros(len(keys)), np.zeros(len(keys))
    scores = np.array([ranked_list.scores.get(key, floor) for key in keys])
    return (np.maximum(scores, floor) - sample.mean()) / spread, (scores - sample.mean()) / spread


def _logistic(scores: Scores) -> Scores:
    return np.asarray(1 / (1 + np.exp(-scores)))


_FUSIONS: Mapping[Fusion, Callable[[RankedList, RankedList, Sequence[DocumentKey]], FusionResult]] = {
    Fusion.RRF: _rrf,
    Fusion.ZSCORE: _zscore,
    Fusion.BEST: _best,
}
