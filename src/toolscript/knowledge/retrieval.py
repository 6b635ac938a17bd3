"""Retrieval in the library: two collections, dense and sparse, fused into one order on one scale.

Both collections have vectors of one model, so that their cosines can be compared as they are. Words weigh the same
in both, by how rare they are among the chunks, and not what each collection by itself would have them weigh.
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
from toolscript.core.retrieval.model import Ask, Candidate, Candidates, Condition, Vector, Where
from toolscript.core.retrieval.ports import Embedder, Index, Spans
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.retrieval.timings import NO_SPANS
from toolscript.knowledge.model.library import chunk_of_point, extraction_of_point, is_extraction, kin, point_of
from toolscript.knowledge.model.query import KnowledgeQuery

# Of each collection and each arm. More is asked for only where more is to be shown.
CANDIDATES = 60
CANDIDATES_PER_RESULT = 2

IdOf = Callable[[int], str]

MIN_STEP = 0.01
# What a match of all words is worth beside a cosine of 1: where the model does not know a word, words alone speak.
WORDS_TRUST = 0.6


@dataclass(frozen=True)
class Retrieved:
    """`best_words` is the most that words could have said of anything; `by` is what really ran."""

    ranked_lists: RankedLists
    best_words: float
    by: SearchType


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

    async def retrieve(self, attempt: Attempt, query: KnowledgeQuery) -> Retrieved:
        vector, weights = await asyncio.gather(self._vector(attempt, query), self._weights(attempt, query))
        if vector is None and query.is_literal:
            raise EmbedderUnavailable("the embedding model does not answer", hint="try again, or ask by words too")
        terms = None if query.is_literal else weights
        limit = _candidates(query)
        collections = self._collections(query)
        asked = (
            attempt.or_else(Part.INDEX, index.search(Ask(vector, terms, where, limit)), None)
            for index, where, _ in collections
        )
        with self._spans.span("search.retrieve", limit=limit):
            answers = zip(await asyncio.gather(*asked), collections, strict=True)
        found = [(answer, id_of) for answer, (_, _, id_of) in answers if answer is not None]
        if collections and not found:
            raise IndexUnavailable("the index does not answer", hint="try again; `/readyz` says what is wrong")
        best_words = math.fsum(weights.values()) * MAX_WORD
        return Retrieved(_merged(found, limit), best_words, _ran(vector, terms))

    def _collections(self, query: KnowledgeQuery) -> list[tuple[Index, Where, IdOf]]:
        shared = _where(source_id=query.source_ids, topics=query.topics)
        asked: list[tuple[Index, Where, IdOf]] = []
        if query.wants_chunks:
            asked.append((self._chunks, shared, chunk_of_point))
        if (types := query.extraction_types) is not None:
            asked.append((self._extractions, (*shared, *_where(type=types)), extraction_of_point))
        return asked

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
    """Of each collection. To the letter no more than are shown, unless some of them are then left out."""
    if query.is_literal and query.both:
        return query.limit
    return max(CANDIDATES, CANDIDATES_PER_RESULT * query.limit)


def _merged(found: Sequence[tuple[Candidates, IdOf]], limit: int) -> RankedLists:
    dense = [(candidates.dense, id_of) for candidates, id_of in found if candidates.dense is not None]
    words = [(candidates.words, id_of) for candidates, id_of in found if candidates.words is not None]
    return RankedLists(_ranked_list(dense, limit), _ranked_list(words, limit))


def _ranked_list(lists: Sequence[tuple[Sequence[Candidate], IdOf]], limit: int) -> RankedList | None:
    """Best first, of equals the lower id."""
    if not lists:
        return None
    scores: dict[str, float] = {}
    for score, id_ in sorted((-hit.score, id_of(hit.id)) for hits, id_of in lists for hit in hits):
        scores.setdefault(id_, -score)
    return RankedList.of_whole(scores, limit)


def _where(**values: Sequence[str]) -> Where:
    return tuple(Condition(field, tuple(any_of)) for field, any_of in values.items() if any_of)


def _ran(vector: Vector | None, terms: Mapping[int, float] | None) -> SearchType:
    if vector is None:
        return SearchType.KEYWORD
    return SearchType.SEMANTIC if terms is None else SearchType.HYBRID


class Placed(NamedTuple):
    id: str
    score: float


def ordered(ranked_lists: RankedLists, best_words: float) -> Iterator[Placed]:
    """Best first, of equals the lower id. Only the first of many are shown: the others are not made."""
    if ranked_lists.dense is None or ranked_lists.words is None or not ranked_lists.dense.scores:
        yield from (Placed(one.key, one.score) for one in ranked(ranked_lists, Fusion.BEST, best_words))
        return
    standing = sorted(
        (-height, id_) for id_, height in fused_scores(ranked_lists.dense, ranked_lists.words).items()
    )
    highest = -standing[0][0]
    first, step = _first_and_step(ranked_lists.dense, ranked_lists.words, highest, best_words)
    for depth, id_ in standing:
        yield Placed(id_, min(1.0, max(0.0, first - step * (highest + depth))))


def collapse_by_chunk(order: Iterable[Placed]) -> Iterator[Placed]:
    """Of a chunk and its extractions, what comes first: the chunk, or what was extracted from it."""
    shown: dict[int, bool] = {}
    for placed in order:
        extracted = is_extraction(placed.id)
        if shown.setdefault(kin(point_of(placed.id)), extracted) == extracted:
            yield placed


def _first_and_step(
    dense: RankedList, words: RankedList, standing: float, best_words: float
) -> tuple[float, float]:
    """A list where nothing is similar stays low, however clear its order is."""
    cosines = np.array([dense.scores[id_] for id_ in dense.listed_keys])
    step = max(float(cosines.std()), MIN_STEP)
    said = max(words.scores.values(), default=0.0) / best_words if best_words else 0.0
    return max(float(cosines.mean()) + step * standing, WORDS_TRUST * said), step
