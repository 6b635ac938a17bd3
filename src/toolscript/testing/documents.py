"""In-memory documents, index versions, tenants and query log."""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from operator import attrgetter

import numpy as np

from toolscript.core.auth.model import KnownTenant, Tenant
from toolscript.core.errors import Conflict, NotFound
from toolscript.core.retrieval.model import Terms, Vector
from toolscript.core.retrieval.results import ChunkId, DocumentKey, FoundChunk, Total
from toolscript.core.text import TextChunk
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.filters import NO_FILTERS, Filters, passes
from toolscript.documents.model.points import (
    ChunkQuery,
    DocumentCard,
    DocumentChange,
    DocumentVersion,
    FillPosition,
    FoundWithContent,
    HitContent,
    IndexedChunk,
    IndexedDocument,
    ReadContent,
    TermStatistics,
    VersionState,
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


class MemoryDocumentVersions:
    """Waits for an open write without a limit: no writer is killed in memory."""

    def __init__(self) -> None:
        self._versions: dict[str, DocumentVersion] = {}
        self._changes: dict[tuple[str, Tenant, DocumentKey], DocumentChange] = {}
        self._open: dict[tuple[str, Tenant, DocumentKey], int] = {}
        self._revisions = count(1)
        self._lease = ("", 0.0)

    async def all(self) -> Sequence[DocumentVersion]:
        return list(self._versions.values())

    async def begin(self, live: str, building: str) -> DocumentVersion:
        expected = {live: VersionState.LIVE, building: VersionState.BUILDING}
        for version in self._versions.values():
            if expected.get(version.name) is not version.state:
                raise Conflict(
                    f"there is a version {version.name} of the documents' index already ({version.state})"
                )
        for name, state in expected.items():
            self._versions.setdefault(name, DocumentVersion(name, state))
        return self._versions[building]

    async def advance(self, name: str, position: FillPosition) -> None:
        self._versions[name] = replace(self._versions[name], position=position)

    async def switch(self, name: str) -> None:
        if name not in self._versions:
            raise NotFound(f"no version {name} of the documents' index is known")
        for version in self._versions.values():
            state = VersionState.LIVE if version.name == name else VersionState.PREVIOUS
            self._versions[version.name] = replace(version, state=state)

    async def forget(self, name: str) -> None:
        self._versions.pop(name, None)
        if len(self._versions) == 1:
            self._versions.clear()
        self._changes = {key: change for key, change in self._changes.items() if change.target in self._versions}

    async def mark(self, source: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> bool:
        if self._versions and self._versions[source].state is not VersionState.LIVE:
            return False
        for target in self._versions:
            for key in keys if target != source else ():
                self._record(target, source, tenant, key)
                self._open[target, tenant, key] = self._open.get((target, tenant, key), 0) + 1
        return True

    async def written(self, source: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> None:
        for target in self._versions:
            for key in keys if target != source else ():
                self._record(target, source, tenant, key)
                self._open[target, tenant, key] = max(0, self._open.get((target, tenant, key), 0) - 1)

    async def changes(self, target: str, limit: int) -> Sequence[DocumentChange]:
        ready = [
            change for key, change in self._changes.items() if change.target == target and not self._open.get(key)
        ]
        return sorted(ready, key=lambda change: change.revision)[:limit]

    async def marked(self, target: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, int]:
        recorded = {key: self._changes.get((target, tenant, key)) for key in keys}
        return {key: change.revision for key, change in recorded.items() if change is not None}

    async def pending(self, target: str) -> int:
        return sum(change.target == target for change in self._changes.values())

    async def clear(self, changes: Sequence[DocumentChange]) -> None:
        for change in changes:
            key = (change.target, change.tenant, change.key)
            recorded = self._changes.get(key)
            if recorded is not None and recorded.revision == change.revision:
                del self._changes[key]
                self._open.pop(key, None)

    async def hold(self, holder: str, seconds: float) -> bool:
        held_by, expires_at = self._lease
        if held_by not in ("", holder) and expires_at > time.monotonic():
            return False
        self._lease = (holder, time.monotonic() + seconds)
        return True

    async def release(self, holder: str) -> None:
        if self._lease[0] == holder:
            self._lease = ("", 0.0)

    def _record(self, target: str, source: str, tenant: Tenant, key: DocumentKey) -> None:
        self._changes[target, tenant, key] = DocumentChange(target, source, tenant, key, next(self._revisions))


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
        self._forget_queries = forget_queries

    async def seen(self, tenant: Tenant) -> None:
        self._tenants.setdefault(tenant.name, KnownTenant(tenant, datetime.now(UTC).isoformat()))

    async def page(self, after: str, limit: int) -> Sequence[KnownTenant]:
        return [self._tenants[name] for name in sorted(self._tenants) if name > after][:limit]

    async def forget(self, tenant: Tenant) -> None:
        self._forget_queries(tenant)
        self._tenants.pop(tenant.name, None)
