"""A query as the arms are asked it, and what they find."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from toolscript.model.document_points import PassageAsk, WordStatistics
from toolscript.model.document_queries import DocumentQuery
from toolscript.model.models import Vector
from toolscript.model.passages import passage_query_terms
from toolscript.model.queries import SearchType
from toolscript.ports import Embedder, Spans, TenantDocuments
from toolscript.search.documents.arms import LOOKED_AT, Arms, by_document
from toolscript.search.documents.word_memory import WordMemory
from toolscript.search.fallbacks import Attempt, Part

# Passages an arm is asked for, for each document that is wanted; and how many at most.
PASSAGES_PER_DOCUMENT = 2
DEEPER = 4
MOST_PASSAGES = 10_000


@dataclass(frozen=True)
class Understood:
    """`terms` are what the word arm is asked, each as heavy as it is rare; `said` is how rare each word is."""

    vector: Vector | None
    terms: Mapping[int, float] | None
    said: Mapping[int, float]


class Retrieval:
    def __init__(self, embedder: Embedder, spans: Spans) -> None:
        self._embedder = embedder
        self._spans = spans
        self._words = WordMemory()

    async def understood(
        self, attempt: Attempt, documents: TenantDocuments, query: DocumentQuery, *, embed: bool
    ) -> Understood:
        """How rare the words are is looked up while the text is embedded."""
        statistics, vector = await asyncio.gather(
            self._statistics(documents), self._vector(attempt, query.text) if embed else _no_vector()
        )
        said = {term: statistics.rarity(term) for term in passage_query_terms(query.text)}
        words_alone = query.search_type is not SearchType.SEMANTIC or (embed and vector is None)
        return Understood(vector, said if words_alone else None, said)

    async def arms(
        self, documents: TenantDocuments, query: DocumentQuery, understood: Understood, wanted: int
    ) -> Arms:
        """Deeper, where the passages found are of fewer documents than are wanted, and there are more of them."""
        limit = max(LOOKED_AT, PASSAGES_PER_DOCUMENT * wanted)
        while True:
            ask = PassageAsk(understood.vector, understood.terms, query.filters, limit)
            with self._spans.span("search.retrieve", limit=limit):
                arms = by_document(await documents.search(ask), limit)
            if len(arms.keys) >= wanted or not arms.is_full or limit >= MOST_PASSAGES:
                return arms
            limit = min(limit * DEEPER, MOST_PASSAGES)

    async def _statistics(self, documents: TenantDocuments) -> WordStatistics:
        with self._spans.span("search.statistics"):
            return await self._words.of(documents)

    async def _vector(self, attempt: Attempt, text: str) -> Vector | None:
        with self._spans.span("search.embed"):
            return await attempt.or_else(Part.EMBEDDING, self._embedder.embed_query(text), None)


async def _no_vector() -> None:
    return None
