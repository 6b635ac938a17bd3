"""Dense and sparse retrieval of documents, with an IDF cache per tenant."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from toolscript.core.auth.model import Tenant
from toolscript.core.chunking import terms_of_chunk_query
from toolscript.core.retrieval.deadline import Attempt, Part
from toolscript.core.retrieval.fusion import FUSION_DEPTH, RankedLists, by_document
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.ports import Embedder, Spans
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.results import Exactness
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.model.points import ChunkQuery, ReadContent, TermStatistics
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.ports import TenantDocuments

FRESH_SECONDS = 60.0
# Terms take eight bytes each. A tenant counts as at least MIN_TERMS, for the overhead of its entry.
MAX_TERMS, MIN_TERMS = 20_000_000, 100

# Chunks requested from a retriever per wanted document, and the limit.
CHUNKS_PER_DOCUMENT = 2
DEEPER = 4
MAX_CHUNKS = 10_000
LARGE = 1_000


@dataclass(frozen=True)
class CachedStatistics:
    """Cache entry of a tenant: its term statistics and its number of documents."""

    statistics: TermStatistics
    documents: int
    until: float


class IdfCache:
    """LRU cache of term statistics, one entry per tenant. No entry is shared between tenants."""

    def __init__(self, max_terms: int = MAX_TERMS) -> None:
        self._cached: OrderedDict[Tenant, CachedStatistics] = OrderedDict()
        self._loading: dict[Tenant, asyncio.Task[CachedStatistics]] = {}
        self._max_terms = max_terms
        self._terms = 0

    async def of(self, documents: TenantDocuments) -> CachedStatistics:
        cached = self._cached.get(documents.tenant)
        if cached is not None and cached.until > time.monotonic():
            self._cached.move_to_end(documents.tenant)
            return cached
        return await asyncio.shield(self._load_once(documents))

    def _load_once(self, documents: TenantDocuments) -> asyncio.Task[CachedStatistics]:
        """Share one load among concurrent requests. A cancelled request does not cancel the load."""
        tenant = documents.tenant
        if tenant not in self._loading:
            self._loading[tenant] = asyncio.create_task(self._load(documents))
            self._loading[tenant].add_done_callback(lambda task: self._loaded(tenant, task))
        return self._loading[tenant]

    async def _load(self, documents: TenantDocuments) -> CachedStatistics:
        statistics, total = await asyncio.gather(documents.statistics(), documents.count(NO_FILTERS))
        cached = CachedStatistics(statistics, total.value, time.monotonic() + FRESH_SECONDS)
        # An empty tenant is not cached: it is about to put documents.
        if statistics.sample:
            self._store(documents.tenant, cached)
        return cached

    def _loaded(self, tenant: Tenant, task: asyncio.Task[CachedStatistics]) -> None:
        del self._loading[tenant]
        if not task.cancelled():
            task.exception()

    def _evict(self, tenant: Tenant) -> None:
        cached = self._cached.pop(tenant, None)
        if cached is not None:
            self._terms -= _size(cached.statistics)

    def _store(self, tenant: Tenant, cached: CachedStatistics) -> None:
        self._evict(tenant)
        self._cached[tenant] = cached
        self._terms += _size(cached.statistics)
        while self._terms > self._max_terms and len(self._cached) > 1:
            self._evict(next(iter(self._cached)))


def _size(statistics: TermStatistics) -> int:
    return max(MIN_TERMS, len(statistics.terms))


@dataclass(frozen=True)
class AnalyzedQuery:
    """`terms` is the sparse query, weighted by IDF; `idfs` is the IDF of each term of the query.

    `documents` is the number of documents of a tenant that is too large to count in every search; `is_small`: a
    search finds all chunks of the tenant.
    """

    vector: Vector | None
    terms: Mapping[int, float] | None
    idfs: Mapping[int, float]
    documents: int | None
    is_small: bool = False


@dataclass(frozen=True)
class Retrieved:
    """`content` reads what the chunks brought along."""

    lists: RankedLists
    content: ReadContent


class Retrieval:
    def __init__(self, embedder: Embedder, spans: Spans) -> None:
        self._embedder = embedder
        self._spans = spans
        self._idfs = IdfCache()

    async def analyzed(
        self, attempt: Attempt, documents: TenantDocuments, query: DocumentQuery, *, embed: bool
    ) -> AnalyzedQuery:
        """Analyse the query. The term statistics load while the model embeds the text."""
        cached, vector = await asyncio.gather(
            self._cached_statistics(documents), self._vector(attempt, query.text) if embed else _no_vector()
        )
        idfs = {term: cached.statistics.idf(term) for term in terms_of_chunk_query(query.text)}
        sparse = query.search_type is not SearchType.SEMANTIC or (embed and vector is None)
        large = cached.documents if cached.documents >= LARGE else None
        is_small = cached.statistics.sample <= FUSION_DEPTH
        return AnalyzedQuery(vector, idfs if sparse else None, idfs, large, is_small)

    async def ranked_lists(
        self, documents: TenantDocuments, query: DocumentQuery, analyzed: AnalyzedQuery, depth: int
    ) -> Retrieved:
        """Retrieve candidates; go deeper while chunks cover fewer documents than wanted and more may exist."""
        limit = max(FUSION_DEPTH, CHUNKS_PER_DOCUMENT * depth)
        retrieved = await self._retrieve(documents, query, analyzed, limit)
        if len(retrieved.lists.keys) < depth and retrieved.lists.is_full:
            matching = await documents.count(query.filters)
            depth = min(depth, matching.value) if matching.exactness is Exactness.EXACT else depth
        while len(retrieved.lists.keys) < depth and retrieved.lists.is_full and limit < MAX_CHUNKS:
            limit = min(limit * DEEPER, MAX_CHUNKS)
            retrieved = await self._retrieve(documents, query, analyzed, limit)
        return retrieved

    async def _retrieve(
        self, documents: TenantDocuments, query: DocumentQuery, analyzed: AnalyzedQuery, limit: int
    ) -> Retrieved:
        with_content = analyzed.is_small and query.include_snippets and limit <= FUSION_DEPTH
        chunk_query = ChunkQuery(analyzed.vector, analyzed.terms, query.filters, limit, with_content=with_content)
        with self._spans.span("search.retrieve", limit=limit):
            found = await documents.search(chunk_query)
        return Retrieved(by_document(found, limit), found.content)

    async def _cached_statistics(self, documents: TenantDocuments) -> CachedStatistics:
        with self._spans.span("search.statistics"):
            return await self._idfs.of(documents)

    async def _vector(self, attempt: Attempt, text: str) -> Vector | None:
        with self._spans.span("search.embed"):
            return await attempt.or_else(Part.EMBEDDING, self._embedder.embed_query(text), None)


async def _no_vector() -> None:
    return None
