"""Retrieval in the library: two collections, dense and sparse, fused into one order on one scale.

Both collections have vectors of one model, so that their cosines are comparable. Both use the IDFs of the chunks
instead of their own, so that their sparse scores are comparable, too.
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from toolscript.core.chunking import MAX_WORD, terms_of_chunk_query
from toolscript.core.errors import EmbedderUnavailable, IndexUnavailable
from toolscript.core.retrieval.deadline import Attempt, Part
from toolscript.core.retrieval.fusion import RankedList, RankedLists, fused_scores, ranked
from toolscript.core.retrieval.model import Candidate, Candidates, Condition, IndexQuery, Vector, Where
from toolscript.core.retrieval.ports import Embedder, Index, Spans
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.retrieval.timings import NO_SPANS
from toolscript.knowledge.model.library import (
    chunk_key,
    chunk_of_point,
    extraction_of_point,
    is_extraction,
    point_of,
)
from toolscript.knowledge.model.query import KnowledgeQuery

# Per collection and retriever. More only for a larger limit.
CANDIDATES = 60
CANDIDATES_PER_RESULT = 2

IdOf = Callable[[int], str]

MIN_STEP = 0.01
# Weight of a full sparse match beside a cosine of 1; it decides where the model does not know a word.
WORDS_TRUST = 0.6


@dataclass(frozen=True)
class RetrievalResult:
    """The ranked lists of the retrievers, not fused yet.

    `max_sparse_score` is the highest possible sparse score; `by` is the search type that ran; `searched` is about
    how many chunks and extractions pass the filters.
    """

    ranked_lists: RankedLists
    max_sparse_score: float
    by: SearchType
    searched: float


class Retrieval:
    def __init__(self, embedder: Embedder, chunks: Index, extractions: Index, *, spans: Spans = NO_SPANS) -> None:
        self._embedder = embedder
        self._spans = spans
        self._chunks = chunks
        self._extractions = extractions

    @property
    def fingerprint(self) -> str:
        return self._chunks.card.fingerprint

    async def is_empty(self) -> bool:
        return not await self._chunks.scan(0, 1)

    async def retrieve(self, attempt: Attempt, query: KnowledgeQuery) -> RetrievalResult:
        vector, weights = await asyncio.gather(self._vector(attempt, query), self._weights(attempt, query))
        if vector is None and query.is_literal:
            raise EmbedderUnavailable("the embedding model does not answer", hint="try again, or ask by words too")
        terms = None if query.is_literal else weights
        limit = _candidates(query)
        collections = self._collections(query)
        searches = (
            attempt.or_else(Part.INDEX, index.search(IndexQuery(vector, terms, where, limit)), None)
            for index, where, _ in collections
        )
        with self._spans.span("search.retrieve", limit=limit):
            answers = zip(await asyncio.gather(*searches), collections, strict=True)
        answered = [(answer, where, id_of) for answer, (_, where, id_of) in answers if answer is not None]
        if collections and not answered:
            raise IndexUnavailable("the index does not answer", hint="try again; `/readyz` says what is wrong")
        max_sparse_score = math.fsum(weights.values()) * MAX_WORD
        ranked_lists = _merged([(candidates, id_of) for candidates, _, id_of in answered], limit)
        searched = math.fsum(_searched(candidates, where, limit) for candidates, where, _ in answered)
        return RetrievalResult(ranked_lists, max_sparse_score, _ran(vector, terms), searched)

    def _collections(self, query: KnowledgeQuery) -> list[tuple[Index, Where, IdOf]]:
        shared = _where(source_id=query.source_ids, topics=query.topics)
        collections: list[tuple[Index, Where, IdOf]] = []
        if query.wants_chunks:
            collections.append((self._chunks, shared, chunk_of_point))
        if (types := query.extraction_types) is not None:
            collections.append((self._extractions, (*shared, *_where(type=types)), extraction_of_point))
        return collections

    async def _vector(self, attempt: Attempt, query: KnowledgeQuery) -> Vector | None:
        if query.search_type is SearchType.KEYWORD:
            return None
        with self._spans.span("search.embed"):
            return await attempt.or_else(Part.EMBEDDING, self._embedder.embed_query(query.text), None)

    async def _weights(self, attempt: Attempt, query: KnowledgeQuery) -> Mapping[int, float]:
        if query.is_literal:
            return {}
        terms = terms_of_chunk_query(query.text)
        with self._spans.span("search.statistics"):
            return await attempt.or_else(Part.INDEX, self._chunks.idfs(terms), terms)


def _candidates(query: KnowledgeQuery) -> int:
    """Return the candidates per collection: `limit` for the cosine alone, unless collapsing removes some."""
    if query.is_literal and query.both:
        return query.limit
    return max(CANDIDATES, CANDIDATES_PER_RESULT * query.limit)


def _searched(candidates: Candidates, where: Where, limit: int) -> float:
    """Return about how many points of a collection pass the filter.

    How many more pass than were returned is not known; the geometric mean of the bounds is never far off in powers
    of ten, which are what counts.
    """
    listed = len(candidates.dense or ())
    if listed < limit:
        return listed
    points = max(candidates.points, listed)
    return math.sqrt(listed * points) if where else points


def _merged(retrieved: Sequence[tuple[Candidates, IdOf]], limit: int) -> RankedLists:
    dense = [(candidates.dense, id_of) for candidates, id_of in retrieved if candidates.dense is not None]
    words = [(candidates.words, id_of) for candidates, id_of in retrieved if candidates.words is not None]
    return RankedLists(_ranked_list(dense, limit), _ranked_list(words, limit))


def _ranked_list(lists: Sequence[tuple[Sequence[Candidate], IdOf]], limit: int) -> RankedList | None:
    """Merge lists into one, best first, ties by id."""
    if not lists:
        return None
    scores: dict[str, float] = {}
    for score, id_ in sorted((-hit.score, id_of(hit.id)) for hits, id_of in lists for hit in hits):
        scores.setdefault(id_, -score)
    return RankedList.without_chunks(scores, limit)


def _where(**values: Sequence[str]) -> Where:
    return tuple(Condition(field, tuple(any_of)) for field, any_of in values.items() if any_of)


def _ran(vector: Vector | None, terms: Mapping[int, float] | None) -> SearchType:
    if vector is None:
        return SearchType.KEYWORD
    return SearchType.SEMANTIC if terms is None else SearchType.HYBRID


class RankedHit(NamedTuple):
    """A ranked chunk or extraction, before it is read from the library."""

    id: str
    score: float


def ordered(ranked_lists: RankedLists, max_sparse_score: float) -> Iterator[RankedHit]:
    """Yield hits best first, ties by id. Lazy: callers consume only the first of many."""
    if ranked_lists.dense is None or ranked_lists.words is None or not ranked_lists.dense.scores:
        yield from (RankedHit(hit.key, hit.score) for hit in ranked(ranked_lists, Fusion.BEST, max_sparse_score))
        return
    ranking = sorted((-fused, id_) for id_, fused in fused_scores(ranked_lists.dense, ranked_lists.words).items())
    highest = -ranking[0][0]
    first, step = _first_and_step(ranked_lists.dense, ranked_lists.words, highest, max_sparse_score)
    for negative, id_ in ranking:
        yield RankedHit(id_, min(1.0, max(0.0, first - step * (highest + negative))))


def collapse_by_chunk(order: Iterable[RankedHit]) -> Iterator[RankedHit]:
    """Yield for each chunk either the chunk or its extractions: the kind of its first hit."""
    kinds: dict[int, bool] = {}
    for ranked_hit in order:
        is_extracted = is_extraction(ranked_hit.id)
        if kinds.setdefault(chunk_key(point_of(ranked_hit.id)), is_extracted) == is_extracted:
            yield ranked_hit


def _first_and_step(
    dense: RankedList, words: RankedList, highest: float, max_sparse_score: float
) -> tuple[float, float]:
    """Return the first score and the step. A list without similar hits stays low, however clear its order."""
    cosines = np.array([dense.scores[id_] for id_ in dense.listed_keys])
    step = max(float(cosines.std()), MIN_STEP)
    sparse_share = max(words.scores.values(), default=0.0) / max_sparse_score if max_sparse_score else 0.0
    return max(float(cosines.mean()) + step * highest, WORDS_TRUST * sparse_share), step
