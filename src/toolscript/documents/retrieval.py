"""Dense and sparse retrieval of documents, with a cache of IDF for each tenant."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from toolscript.core.auth.model import Tenant
from toolscript.core.chunking import terms_of_chunk_query
from toolscript.core.retrieval.deadline import Attempt, Part
from toolscript.core.retrieval.fusion import RERANK_DEPTH, RankedLists, by_document
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.ports import Embedder, Spans
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.results import Exactness
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.model.points import ChunkQuery, TermStatistics
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.ports import TenantDocuments

FRESH_SECONDS = 60.0
# Eight bytes each; of a tenant at least so many are reckoned, for what it takes to remember it at all.
MAX_TERMS, MIN_TERMS = 20_000_000, 100

# Passages an arm is asked for, for each document that is wanted; and how many at most.
CHUNKS_PER_DOCUMENT = 2
DEEPER = 4
MAX_PASSAGES = 10_000
LARGE = 1_000


@dataclass(frozen=True)
class CachedStatistics:
    """What is remembered of a tenant: how common its words are, and how many documents it has."""

    statistics: TermStatistics
    documents: int
    until: float


class IdfCache:
    """Of the tenants that asked last. What is remembered of one is that one's alone."""

    def __init__(self, max_terms: int = MAX_TERMS) -> None:
        self._known: OrderedDict[Tenant, CachedStatistics] = OrderedDict()
        self._asked: dict[Tenant, asyncio.Task[CachedStatistics]] = {}
        self._max_terms = max_terms
        self._terms = 0

    async def of(self, documents: TenantDocuments) -> CachedStatistics:
        known = self._known.get(documents.tenant)
        if known is not None and known.until > time.monotonic():
            self._known.move_to_end(documents.tenant)
            return known
        return await asyncio.shield(self._asking(documents))

    def _asking(self, documents: TenantDocuments) -> asyncio.Task[CachedStatistics]:
        """Those who ask at the same moment wait for the same answer; one who gives up leaves it to the others."""
        tenant = documents.tenant
        if tenant not in self._asked:
            self._asked[tenant] = asyncio.create_task(self._ask(documents))
            self._asked[tenant].add_done_callback(lambda task: self._answered(tenant, task))
        return self._asked[tenant]

    async def _ask(self, documents: TenantDocuments) -> CachedStatistics:
        statistics, total = await asyncio.gather(documents.statistics(), documents.count(NO_FILTERS))
        known = CachedStatistics(statistics, total.value, time.monotonic() + FRESH_SECONDS)
        # Whoever has nothing yet is about to put something.
        if statistics.sample:
            self._remember(documents.tenant, known)
        return known

    def _answered(self, tenant: Tenant, task: asyncio.Task[CachedStatistics]) -> None:
        del self._asked[tenant]
        if not task.cancelled():
            task.exception()

    def _forget(self, tenant: Tenant) -> None:
        known = self._known.pop(tenant, None)
        if known is not None:
            self._terms -= _size(known.statistics)

    def _remember(self, tenant: Tenant, known: CachedStatistics) -> None:
        self._forget(tenant)
        self._known[tenant] = known
        self._terms += _size(known.statistics)
        while self._terms > self._max_terms and len(self._known) > 1:
            self._forget(next(iter(self._known)))


def _size(statistics: TermStatistics) -> int:
    return max(MIN_TERMS, len(statistics.terms))


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
        self._words = IdfCache()

    async def understood(
        self, attempt: Attempt, documents: TenantDocuments, query: DocumentQuery, *, embed: bool
    ) -> Understood:
        """How rare the words are is looked up while the text is embedded."""
        known, vector = await asyncio.gather(
            self._known(documents), self._vector(attempt, query.text) if embed else _no_vector()
        )
        said = {term: known.statistics.idf(term) for term in terms_of_chunk_query(query.text)}
        by_words = query.search_type is not SearchType.SEMANTIC or (embed and vector is None)
        large = known.documents if known.documents >= LARGE else None
        return Understood(vector, said if by_words else None, said, large)

    async def ranked_lists(
        self, documents: TenantDocuments, query: DocumentQuery, understood: Understood, wanted: int
    ) -> RankedLists:
        """Deeper, where the passages found are of fewer documents than are wanted, and there are more of them."""
        limit = max(RERANK_DEPTH, CHUNKS_PER_DOCUMENT * wanted)
        ranked_lists = await self._searched(documents, query, understood, limit)
        if len(ranked_lists.keys) < wanted and ranked_lists.is_full:
            there = await documents.count(query.filters)
            wanted = min(wanted, there.value) if there.exactness is Exactness.EXACT else wanted
        while len(ranked_lists.keys) < wanted and ranked_lists.is_full and limit < MAX_PASSAGES:
            limit = min(limit * DEEPER, MAX_PASSAGES)
            ranked_lists = await self._searched(documents, query, understood, limit)
        return ranked_lists

    async def _searched(
        self, documents: TenantDocuments, query: DocumentQuery, understood: Understood, limit: int
    ) -> RankedLists:
        ask = ChunkQuery(understood.vector, understood.terms, query.filters, limit)
        with self._spans.span("search.retrieve", limit=limit):
            return by_document(await documents.search(ask), limit)

    async def _known(self, documents: TenantDocuments) -> CachedStatistics:
        with self._spans.span("search.statistics"):
            return await self._words.of(documents)

    async def _vector(self, attempt: Attempt, text: str) -> Vector | None:
        with self._spans.span("search.embed"):
            return await attempt.or_else(Part.EMBEDDING, self._embedder.embed_query(text), None)


async def _no_vector() -> None:
    return None
