"""Puts, removes, returns and lists one tenant's documents: cut into chunks, embedded, written."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType

from toolscript.core.auth.model import Principal, Tenant
from toolscript.core.chunking import split_into_chunks, terms_of_chunk, text_to_embed
from toolscript.core.errors import IndexReplaced, InvalidRequest, NotFound, Unavailable
from toolscript.core.retrieval.model import Terms, Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.results import ChunkId, DocumentKey
from toolscript.core.text import TextChunk
from toolscript.documents.lost import note_before_removal, note_removed, note_written, require_kept
from toolscript.documents.model.document import (
    Document,
    DocumentHeader,
    PutOutcome,
    PutResult,
    StoredDocument,
    document_key,
    rebuild_document,
)
from toolscript.documents.model.filters import NO_FILTERS, Filters, filterable
from toolscript.documents.model.points import IndexedChunk, IndexedDocument
from toolscript.documents.plan_limits import require_filters_within
from toolscript.documents.ports import DocumentIndex, DocumentVersions, TenantDocuments, Tenants

# Queries share the model with uploads: a query waits for at most this many chunks.
EMBEDDED_AT_ONCE = 16
# Random step, so that two concurrent writers rarely choose the same version.
STEPS = 1_000

MAX_AT_ONCE = 256
# Chunks per write, whatever the size of a batch.
CHUNKS_AT_ONCE = 128
# A document that is being written is read again, at most this often.
READ_TRIES, READ_AGAIN_SECONDS = 5, 0.1


@dataclass(frozen=True)
class Prepared:
    """A document split into chunks, without vectors yet."""

    key: DocumentKey
    document: Document
    passages: Sequence[TextChunk]
    terms: Sequence[Terms]


async def prepared(documents: Mapping[DocumentKey, Document]) -> list[Prepared]:
    """Split documents into chunks and terms. It runs on a thread: a long text takes seconds."""
    return await asyncio.to_thread(lambda: [_prepared(key, document) for key, document in documents.items()])


class Indexing:
    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._turn = asyncio.Semaphore(1)

    async def indexed(
        self, batch: Sequence[Prepared], existing: Mapping[DocumentKey, DocumentHeader]
    ) -> list[IndexedDocument]:
        """Embed the batch. `existing` holds the headers of documents that are stored already."""
        version = _version_after(
            [existing[prepared.key].version for prepared in batch if prepared.key in existing]
        )
        return await self.as_of({prepared.key: version for prepared in batch}, batch, existing)

    async def as_of(
        self,
        versions: Mapping[DocumentKey, int],
        batch: Sequence[Prepared],
        existing: Mapping[DocumentKey, DocumentHeader],
        vectors: Mapping[ChunkId, Vector] = MappingProxyType({}),
    ) -> list[IndexedDocument]:
        """Embed the batch with given versions. Chunks in `vectors` are not embedded again."""
        vectors = {**vectors, **await self._missing(batch, vectors)}
        return [
            IndexedDocument(
                _header(prepared, versions[prepared.key]),
                filterable(prepared.document.metadata),
                [
                    IndexedChunk(chunk, vectors[ChunkId(prepared.key, chunk.number)], terms)
                    for chunk, terms in zip(prepared.passages, prepared.terms, strict=True)
                ],
                replaces=existing[prepared.key].passages if prepared.key in existing else 0,
            )
            for prepared in batch
        ]

    async def _missing(
        self, batch: Sequence[Prepared], vectors: Mapping[ChunkId, Vector]
    ) -> dict[ChunkId, Vector]:
        texts = {id_: text for prepared in batch for id_, text in _texts(prepared).items() if id_ not in vectors}
        return dict(zip(texts, await self._vectors(list(texts.values())), strict=True))

    async def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Embed a few texts per turn, so that a large upload does not block other tenants."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), EMBEDDED_AT_ONCE):
            async with self._turn:
                vectors += list(await self._embedder.embed_texts(texts[start : start + EMBEDDED_AT_ONCE]))
        return vectors


def _prepared(key: DocumentKey, document: Document) -> Prepared:
    chunks = split_into_chunks(document.text)
    return Prepared(key, document, chunks, [terms_of_chunk(document.title, chunk.text) for chunk in chunks])


def _texts(prepared: Prepared) -> dict[ChunkId, str]:
    title = prepared.document.title
    return {ChunkId(prepared.key, chunk.number): text_to_embed(title, chunk) for chunk in prepared.passages}


def _version_after(versions: Sequence[int]) -> int:
    """Return a version by the clock, but above `versions` even if the clocks of two machines differ."""
    latest = max([time.time_ns() // 1_000, *versions])
    return latest + random.randint(1, STEPS)  # noqa: S311 - no secret


def _header(prepared: Prepared, version: int) -> DocumentHeader:
    document = prepared.document
    return DocumentHeader(
        prepared.key, document.id, document.metadata, document.content_hash, len(prepared.passages), version
    )


class DocumentService:
    """`versions` puts the live version on record, and writes for the other one; None: there is no record."""

    def __init__(
        self,
        embedder: Embedder,
        index: DocumentIndex,
        tenants: Tenants,
        versions: DocumentVersions | None = None,
    ) -> None:
        self._indexing = Indexing(embedder)
        self._index = index
        self._tenants = tenants
        self._versions = versions

    async def put(self, principal: Principal, documents: Sequence[Document]) -> list[PutResult]:
        """Store documents and return one result each, in their order.

        Unchanged documents are not embedded. Of several documents with one id the last one counts.
        """
        _require_few(documents)
        tenant_documents = self._index.of(principal.tenant)
        by_key = {document_key(principal.tenant, document.id): document for document in documents}
        existing = await tenant_documents.headers(list(by_key))
        changed = {key: document for key, document in by_key.items() if not _is_same(existing.get(key), document)}
        refused = await self._beyond_plan(
            principal, tenant_documents, [key for key in changed if key not in existing]
        )
        prepared_documents = await prepared(
            {key: document for key, document in changed.items() if key not in refused}
        )
        is_noted = bool(prepared_documents) and await self._tenants.seen(principal.tenant)
        if is_noted and not existing:
            await require_kept(tenant_documents, self._tenants)
        for batch in _batches(prepared_documents):
            indexed = await self._indexing.indexed(batch, existing)
            async with recorded_write(
                self._versions, self._index, principal.tenant, [entry.key for entry in batch]
            ):
                await tenant_documents.put(indexed)
            if not is_noted:
                await note_written(tenant_documents, self._tenants)
                is_noted = True
        stored = {entry.key: len(entry.passages) for entry in prepared_documents}
        results = {key: _result(key, document, existing, stored, refused) for key, document in by_key.items()}
        return [results[document_key(principal.tenant, document.id)] for document in documents]

    async def remove(self, principal: Principal, ids: Sequence[str]) -> list[str]:
        """Remove documents and return the ids of those that existed."""
        keys = {document_key(principal.tenant, id_): id_ for id_ in ids}
        documents = self._index.of(principal.tenant)
        await note_before_removal(documents, self._tenants, keys)
        async with recorded_write(self._versions, self._index, principal.tenant, list(keys)):
            removed = await documents.remove(list(keys))
        await note_removed(documents, self._tenants)
        return [keys[key] for key in removed]

    async def document(self, principal: Principal, id_: str) -> StoredDocument:
        """Return a document with the metadata that the plan allows."""
        documents = self._index.of(principal.tenant)
        document = await stored_document(documents, document_key(principal.tenant, id_))
        if document is None:
            await require_kept(documents, self._tenants)
            raise NotFound("there is no such document", hint="`toolscript documents search` finds documents")
        return replace(document, metadata=principal.plan.visible(document.metadata))

    async def page(
        self, principal: Principal, after: DocumentKey, limit: int, filters: Filters
    ) -> list[DocumentHeader]:
        """Return the next documents ordered by key, with the metadata that the plan allows."""
        require_filters_within(principal.plan, filters)
        documents = self._index.of(principal.tenant)
        headers = await documents.page(after, limit, filters)
        if not headers:
            await require_kept(documents, self._tenants)
        return [replace(header, metadata=principal.plan.visible(header.metadata)) for header in headers]

    async def _beyond_plan(
        self, principal: Principal, tenant_documents: TenantDocuments, new: Sequence[DocumentKey]
    ) -> frozenset[DocumentKey]:
        """Return the new documents beyond the plan's limit. Concurrent uploads may exceed it by a few."""
        maximum = principal.plan.max_documents
        if maximum is None or not new:
            return frozenset()
        room = max(0, maximum - (await tenant_documents.count(NO_FILTERS)).value)
        return frozenset(new[room:])


@asynccontextmanager
async def recorded_write(
    versions: DocumentVersions | None, index: DocumentIndex, tenant: Tenant, keys: Sequence[DocumentKey]
) -> AsyncIterator[None]:
    """Mark the keys before and after a write, so that changes of a killed writer are recorded."""
    if versions is None:
        yield
        return
    if not await versions.mark(index.name, tenant, keys):
        raise IndexReplaced("documents are moving to another index", hint="try again in a moment")
    try:
        yield
    finally:
        await versions.written(index.name, tenant, keys)


async def stored_document(tenant_documents: TenantDocuments, key: DocumentKey) -> StoredDocument | None:
    """Return one consistent state of a document; None if there is no such document."""
    for _ in range(READ_TRIES):
        header = (await tenant_documents.headers([key])).get(key)
        if header is None:
            return None
        by_id = await tenant_documents.passages([ChunkId(key, number) for number in range(header.passages)])
        chunks = tuple(by_id[id_] for id_ in sorted(by_id))
        if (document := rebuild_document(header, chunks)) is not None:
            return StoredDocument(document.id, document.text, document.metadata, chunks, header.version)
        await asyncio.sleep(READ_AGAIN_SECONDS)
    raise Unavailable("the document is being written, or its write was interrupted", hint="put it again")


def _batches(prepared_documents: Sequence[Prepared]) -> Iterator[Sequence[Prepared]]:
    batch: list[Prepared] = []
    for prepared in prepared_documents:
        if batch and sum(len(each.passages) for each in [*batch, prepared]) > CHUNKS_AT_ONCE:
            yield batch
            batch = []
        batch.append(prepared)
    if batch:
        yield batch


def _is_same(existing: DocumentHeader | None, document: Document) -> bool:
    return existing is not None and existing.complete and existing.content_hash == document.content_hash


def _result(
    key: DocumentKey,
    document: Document,
    existing: Mapping[DocumentKey, DocumentHeader],
    stored: Mapping[DocumentKey, int],
    refused: frozenset[DocumentKey],
) -> PutResult:
    if key in refused:
        return PutResult(document.id, PutOutcome.REFUSED, problem="the plan has no room for more documents")
    if key not in stored:
        return PutResult(document.id, PutOutcome.UNCHANGED, existing[key].passages)
    outcome = PutOutcome.UPDATED if key in existing else PutOutcome.CREATED
    return PutResult(document.id, outcome, stored[key])


def _require_few(documents: Sequence[Document]) -> None:
    if len(documents) > MAX_AT_ONCE:
        raise InvalidRequest(f"at most {MAX_AT_ONCE} documents at once")
