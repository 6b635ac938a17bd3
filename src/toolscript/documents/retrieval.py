"""A query as the arms are asked it, and what they find."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from toolscript.model.document_points import PassageAsk
from toolscript.model.document_queries import DocumentQuery
from toolscript.model.document_results import Exactness
from toolscript.model.models import Vector
from toolscript.model.passages import passage_query_terms
from toolscript.model.queries import SearchType
from toolscript.ports import Embedder, Spans, TenantDocuments
from toolscript.search.documents.arms import LOOKED_AT, Arms, by_document
from toolscript.search.documents.word_memory import Known, WordMemory
from toolscript.search.fallbacks import Attempt, Part

# Passages an arm is asked for, for each document that is wanted; and how many at most.
PASSAGES_PER_DOCUMENT = 2
DEEPER = 4
MOST_PASSAGES = 10_000
LARGE = 1_000


@dataclass(frozen=True)
class Understood:
    """`terms` are what the word arm is asked, each as heavy as it is rare; `said` is how rare each word is.

    `documents`: how many a tenant has that is too large to be counted by every search.
    """

    vector: Vector | None
    terms: Mapping[int, float] | None
    said: Mapping[int, float]
    documents: int | None


class Retrieval:
    def __init__(self, embedder: Embedder, spans: Spans) -> None:
        self._embedder = embedder
        self._spans = spans
        self._words = WordMemory()

    async def understood(
        self, attempt: Attempt, documents: TenantDocuments, query: DocumentQuery, *, embed: bool
    ) -> Understood:
        """How rare the words are is looked up while the text is embedded."""
        known, vector = await asyncio.gather(
            self._known(documents), self._vector(attempt, query.text) if embed else _no_vector()
        )
        said = {term: known.statistics.rarity(term) for term in passage_query_terms(query.text)}
        by_words = query.search_type is not SearchType.SEMANTIC or (embed and vector is None)
        large = known.documents if known.documents >= LARGE else None
        return Understood(vector, said if by_words else None, said, large)

    async def arms(
        self, documents: TenantDocuments, query: DocumentQuery, understood: Understood, wanted: int
    ) -> Arms:
        """Deeper, where the passages found are of fewer documents than are wanted, and there are more of them."""
        limit = max(LOOKED_AT, PASSAGES_PER_DOCUMENT * wanted)
        arms = await self._searched(documents, query, understood, limit)
        if len(arms.keys) < wanted and arms.is_full:
            there = await documents.count(query.filters)
            wanted = min(wanted, there.value) if there.exactness is Exactness.EXACT else wanted
        while len(arms.keys) < wanted and arms.is_full and limit < MOST_PASSAGES:
            limit = min(limit * DEEPER, MOST_PASSAGES)
            arms = await self._searched(documents, query, understood, limit)
        return arms

    async def _searched(
        self, documents: TenantDocuments, query: DocumentQuery, understood: Understood, limit: int
    ) -> Arms:
        ask = PassageAsk(understood.vector, understood.terms, query.filters, limit)
        with self._spans.span("search.retrieve", limit=limit):
            return by_document(await documents.search(ask), limit)

    async def _known(self, documents: TenantDocuments) -> Known:
        with self._spans.span("search.statistics"):
            return await self._words.of(documents)

    async def _vector(self, attempt: Attempt, text: str) -> Vector | None:
        with self._spans.span("search.embed"):
            return await attempt.or_else(Part.EMBEDDING, self._embedder.embed_query(text), None)


async def _no_vector() -> None:
    return None
