"""In-memory documents, index versions, tenants and query log."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from operator import attrgetter

import numpy as np

from toolscript.core.auth.model import KnownTenant, Tenant
from toolscript.core.retrieval.model import Terms, Vector
from toolscript.core.retrieval.results import ChunkId, DocumentKey, FoundChunk, Total
from toolscript.core.text import TextChunk
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.filters import NO_FILTERS, Filters, passes
from toolscript.documents.model.points import (
    ChunkQuery,
    DocumentCard,
    FoundWithContent,
    HitContent,
    IndexedChunk,
    IndexedDocument,
    ReadContent,
    TermStatistics,
    no_content,
)
from toolscript.documents.model.query import LoggedQuery

SAMPLE = 2_000

Documents = dict[DocumentKey, IndexedDocument]
Candidate = tuple[ChunkId, IndexedChunk]


class MemoryTenantDocuments:
    def __init__(self, tenant: Tenant, documents: Documents) -> None:
        self._tenant = tenant
        self._documents = documents

    @property
    def tenant(self) -> Tenant:
        return self._tenant

    async def search(self, ask: ChunkQuery) -> FoundWithContent:
        candidates = list(_indexed_chunks(self._passing(ask.filters)))
        dense = None if ask.vector is None else _cosines(candidates, ask.vector)
        sparse = None if ask.terms is None else _shared_terms(candidates, ask.terms)
        found = _best(dense, ask.limit)
        content = _content_of(found, self._documents) if ask.with_content and found is not None else no_content
        return FoundWithContent(found, _best(sparse, ask.limit), content)

    async def statistics(self) -> TermStatistics:
        listed = list(_indexed_chunks(self._in_order()))[:SAMPLE]
        return TermStatistics.of_chunks([list(indexed.terms) for _, indexed in listed])

    async def headers(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, DocumentHeader]:
        return {key: self._documents[key].header for key in keys if key in self._documents}

    async def passages(self, ids: Sequence[ChunkId]) -> Mapping[ChunkId, TextChunk]:
        stored = {id_: indexed.passage for id_, indexed in _indexed_chunks(self._in_order())}
        return {id_: stored[id_] for id_ in ids if id_ in stored}

    async def vectors(self, ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        stored = {id_: indexed.vector for id_, indexed in _indexed_chunks(self._in_order())}
        return {id_: stored[id_] for id_ in ids if id_ in stored}

    async def shown(self, ids: Sequence[ChunkId]) -> HitContent:
        return HitContent(await self.headers([id_.key for id_ in ids]), await self.passages(ids))

    async def page(self, after: DocumentKey, limit: int, filters: Filters) -> Sequence[DocumentHeader]:
        return [document.header for document in self._passing(filters) if document.header.key > after][:limit]

    async def count(self, filters: Filters) -> Total:
        return Total(len(self._passing(filters)))

    async def put(self, documents: Sequence[IndexedDocument]) -> None:
        for document in documents:
            stored = self._documents.get(document.header.key)
            if stored is None or stored.header.version <= document.header.version:
                header = replace(document.header, passages=len(document.passages), complete=True)
                self._documents[header.key] = replace(document, header=header)

    async def restore(self, documents: Sequence[IndexedDocument]) -> None:
        await self.put(documents)

    async def remove(
        self, keys: Sequence[DocumentKey], *, up_to: Mapping[DocumentKey, int] | None = None
    ) -> Sequence[DocumentKey]:
        existing = [key for key in keys if key in self._documents]
        for key in existing:
            if up_to is None or self._documents[key].header.version <= up_to[key]:
                del self._documents[key]
        return existing

    async def erase(self) -> None:
        self._documents.clear()

    def _in_order(self) -> list[IndexedDocument]:
        return sorted(self._documents.values(), key=attrgetter("header.key"))

    def _passing(self, filters: Filters) -> list[IndexedDocument]:
        return [document for document in self._in_order() if passes(filters, document.metadata)]


class MemoryDocuments:
    def __init__(self, card: DocumentCard, name: str = "documents") -> None:
        self._card = card
        self._name = name
        self._by_tenant: defaultdict[Tenant, Documents] = defaultdict(dict)

    @property
    def name(self) -> str:
        return self._name

    @property
    def card(self) -> DocumentCard:
        return self._card

    async def passages(self) -> int:
        return sum(
            len(document.passages) for documents in self._by_tenant.values() for document in documents.values()
        )

    def of(self, tenant: Tenant) -> MemoryTenantDocuments:
        return MemoryTenantDocuments(tenant, self._by_tenant[tenant])

    async def ready(self) -> None:
        """Return at once."""


def _indexed_chunks(documents: Iterable[IndexedDocument]) -> Iterator[Candidate]:
    for document in documents:
        for indexed in document.passages:
            yield ChunkId(document.header.key, indexed.passage.number), indexed


def _cosines(candidates: Sequence[Candidate], vector: Vector) -> list[FoundChunk]:
    length = np.linalg.norm(vector)
    return [
        FoundChunk(id_, float(chunk.vector @ vector / (np.linalg.norm(chunk.vector) * length)))
        for id_, chunk in candidates
    ]


def _shared_terms(candidates: Sequence[Candidate], terms: Terms) -> list[FoundChunk]:
    """Score by shared terms. A chunk without a shared term is not a candidate."""
    shared = ((id_, chunk.terms, terms.keys() & chunk.terms.keys()) for id_, chunk in candidates)
    return [FoundChunk(id_, sum(terms[term] * own[term] for term in both)) for id_, own, both in shared if both]


def _content_of(found: Sequence[FoundChunk], documents: Documents) -> ReadContent:
    chunks = {chunk.id for chunk in found}
    stored = {chunk.id.key: documents[chunk.id.key] for chunk in found}

    def read(ids: Sequence[ChunkId]) -> HitContent | None:
        if not chunks.issuperset({*ids, *(ChunkId(id_.key, 0) for id_ in ids)}):
            return None
        passages = {id_: stored[id_.key].passages[id_.number].passage for id_ in ids}
        return HitContent({id_.key: stored[id_.key].header for id_ in ids}, passages)

    return read


def _best(chunks: list[FoundChunk] | None, limit: int) -> list[FoundChunk] | None:
    return None if chunks is None else sorted(chunks, key=lambda chunk: (-chunk.score, chunk.id))[:limit]


class MemoryTenantPlaces:
    """All tenants share one place."""

    def __init__(self, index: MemoryDocuments) -> None:
        self._index = index

    async def own_shard(self, _: Tenant, /) -> bool:
        return False

    async def passages(self, tenant: Tenant, /) -> int:
        headers = await self._index.of(tenant).page("", sys.maxsize, NO_FILTERS)
        return sum(header.passages for header in headers)


class MemoryQueryLog:
    def __init__(self) -> None:
        self.queries: list[LoggedQuery] = []

    def record(self, query: LoggedQuery) -> None:
        self.queries.append(query)


class MemoryTenants:
    """`forget_queries` is called with every deleted tenant, for a query log that stores queries."""

    def __init__(self, forget_queries: Callable[[Tenant], None] = lambda _: None) -> None:
        self._tenants: dict[str, KnownTenant] = {}
        self._holders: set[str] = set()
        self._forget_queries = forget_queries

    async def seen(self, tenant: Tenant) -> bool:
        self._tenants.setdefault(tenant.name, KnownTenant(tenant, datetime.now(UTC).isoformat()))
        return await self.holds(tenant)

    async def holds(self, tenant: Tenant) -> bool:
        return tenant.name in self._holders

    async def note(self, tenant: Tenant, *, holds: bool) -> bool:
        is_news = tenant.name in self._tenants and holds is not await self.holds(tenant)
        if is_news:
            self._holders ^= {tenant.name}
        return is_news

    async def holders(self, *, or_unknown: bool = False) -> int:  # noqa: ARG002 - all is known in memory
        return len(self._holders)

    async def page(self, after: str, limit: int) -> Sequence[KnownTenant]:
        return [self._tenants[name] for name in sorted(self._tenants) if name > after][:limit]

    async def forget(self, tenant: Tenant) -> None:
        self._forget_queries(tenant)
        self._tenants.pop(tenant.name, None)
        self._holders.discard(tenant.name)
