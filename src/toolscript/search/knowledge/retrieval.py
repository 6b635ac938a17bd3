"""A question as two collections are asked it, and what both find: in one list for each arm, on one scale.

Both collections have vectors of one model, so that their cosines can be compared as they are. Words weigh the same
in both, by how rare they are among the chunks, and not what each collection by itself would have them weigh.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from toolscript.errors import IndexUnavailable
from toolscript.model.document_points import FoundPassage, FoundPassages, PassageId
from toolscript.model.index import Ask, Candidate, Candidates, Condition, Where
from toolscript.model.knowledge import KnowledgeQuery
from toolscript.model.library import chunk_of_point, extraction_of_point
from toolscript.model.models import Vector
from toolscript.model.passages import MOST_OF_A_WORD, passage_query_terms
from toolscript.model.queries import SearchType
from toolscript.ports import Embedder, Index
from toolscript.search.documents.arms import Arms, by_document
from toolscript.search.fallbacks import Attempt, Part

# Of each collection and each arm. More is asked for only where more is to be shown.
CANDIDATES = 60
CANDIDATES_PER_RESULT = 2

IdOf = Callable[[int], str]


@dataclass(frozen=True)
class Retrieved:
    """`best_words` is the most that words could have said of anything; `by` is what really ran."""

    arms: Arms
    best_words: float
    by: SearchType


class Retrieval:
    def __init__(self, embedder: Embedder, chunks: Index, extractions: Index) -> None:
        self._embedder = embedder
        self._chunks = chunks
        self._extractions = extractions

    @property
    def fingerprint(self) -> str:
        return self._chunks.card.fingerprint

    async def retrieve(self, attempt: Attempt, query: KnowledgeQuery) -> Retrieved:
        vector, weights = await asyncio.gather(self._vector(attempt, query), self._weights(attempt, query))
        wants_words = query.search_type is not SearchType.SEMANTIC or vector is None
        terms = weights if wants_words else None
        limit = max(CANDIDATES, CANDIDATES_PER_RESULT * query.limit)
        asked = [
            _named(attempt.or_else(Part.INDEX, index.search(Ask(vector, terms, where, limit)), None), id_of)
            for index, where, id_of in self._collections(query)
        ]
        found = [one for one in await asyncio.gather(*asked) if one is not None]
        if asked and not found:
            raise IndexUnavailable("the index does not answer", hint="try again; `/readyz` says what is wrong")
        best_words = math.fsum(weights.values()) * MOST_OF_A_WORD
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
        return await attempt.or_else(Part.EMBEDDING, self._embedder.embed_query(query.text), None)

    async def _weights(self, attempt: Attempt, query: KnowledgeQuery) -> Mapping[int, float]:
        terms = passage_query_terms(query.text)
        return await attempt.or_else(Part.INDEX, self._chunks.rarities(terms), terms)


async def _named(asked: Awaitable[Candidates | None], id_of: IdOf) -> FoundPassages | None:
    found = await asked
    if found is None:
        return None
    return FoundPassages(_passages(found.dense, id_of), _passages(found.words, id_of))


def _passages(hits: Sequence[Candidate] | None, id_of: IdOf) -> list[FoundPassage] | None:
    return None if hits is None else [FoundPassage(PassageId(id_of(hit.id), 0), hit.score) for hit in hits]


def _merged(found: Sequence[FoundPassages], limit: int) -> Arms:
    return by_document(FoundPassages(_joined(found, "dense"), _joined(found, "words")), limit)


def _joined(found: Sequence[FoundPassages], arm: str) -> list[FoundPassage] | None:
    lists = [hits for one in found if (hits := getattr(one, arm)) is not None]
    if not lists:
        return None
    return sorted((hit for hits in lists for hit in hits), key=lambda hit: (-hit.score, hit.id))


def _where(**values: Sequence[str]) -> Where:
    return tuple(Condition(field, tuple(any_of)) for field, any_of in values.items() if any_of)


def _ran(vector: Vector | None, terms: Mapping[int, float] | None) -> SearchType:
    if vector is None:
        return SearchType.KEYWORD
    return SearchType.SEMANTIC if terms is None else SearchType.HYBRID
