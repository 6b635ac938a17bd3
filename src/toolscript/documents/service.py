"""Puts, removes and returns one tenant's documents: cut into chunks, embedded, written."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType

from toolscript.core.auth.model import Principal, Tenant
from toolscript.core.chunking import passage_text, split_into_chunks, terms_of_chunk
from toolscript.core.errors import IndexReplaced, InvalidRequest, NotFound, Unavailable
from toolscript.core.retrieval.model import Terms, Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.results import ChunkId, DocumentKey
from toolscript.core.text import Passage
from toolscript.documents.model.document import (
    Document,
    DocumentHeader,
    PutOutcome,
    PutResult,
    StoredDocument,
    as_put,
    document_key,
)
from toolscript.documents.model.filters import NO_FILTERS, filterable
from toolscript.documents.model.points import IndexedChunk, IndexedDocument
from toolscript.documents.ports import DocumentIndex, DocumentVersions, TenantDocuments, Tenants

# Queries are embedded by the same model: none of them waits for more than so many passages.
EMBEDDED_AT_ONCE = 16
# Versions of two who write at the same moment differ, as a rule.
STEPS = 1_000

MAX_AT_ONCE = 256
# So many passages are stored at once, however many a batch has.
CHUNKS_AT_ONCE = 128
# A document that is being written is looked at again, so often.
READ_TRIES, READ_AGAIN_SECONDS = 5, 0.1


@dataclass(frozen=True)
class Prepared:
    """A document on its way into the index, without vectors yet."""

    key: DocumentKey
    document: Document
    passages: Sequence[Passage]
    terms: Sequence[Terms]


async def prepared(documents: Mapping[DocumentKey, Document]) -> list[Prepared]:
    """On a thread: a long text takes seconds, and everybody else would wait."""
    return await asyncio.to_thread(lambda: [_prepared(key, document) for key, document in documents.items()])


class Indexing:
    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._turn = asyncio.Semaphore(1)

    async def indexed(
        self, batch: Sequence[Prepared], known: Mapping[DocumentKey, DocumentHeader]
    ) -> list[IndexedDocument]:
        """`known` are those of them that were there before."""
        version = _version_after([known[prepared.key].version for prepared in batch if prepared.key in known])
        return await self.as_of({prepared.key: version for prepared in batch}, batch, known)

    async def as_of(
        self,
        versions: Mapping[DocumentKey, int],
        batch: Sequence[Prepared],
        known: Mapping[DocumentKey, DocumentHeader],
        vectors: Mapping[ChunkId, Vector] = MappingProxyType({}),
    ) -> list[IndexedDocument]:
        """With versions that they have already, and passages with vectors that are known."""
        vectors = {**vectors, **await self._missing(batch, vectors)}
        return [
            IndexedDocument(
                _header(prepared, versions[prepared.key]),
                filterable(prepared.document.metadata),
                [
                    IndexedChunk(passage, vectors[ChunkId(prepared.key, passage.number)], terms)
                    for passage, terms in zip(prepared.passages, prepared.terms, strict=True)
                ],
                replaces=known[prepared.key].passages if prepared.key in known else 0,
            )
            for prepared in batch
        ]

    async def _missing(self, batch: Sequence[Prepared], known: Mapping[ChunkId, Vector]) -> dict[ChunkId, Vector]:
        texts = {id_: text for prepared in batch for id_, text in _texts(prepared).items() if id_ not in known}
        return dict(zip(texts, await self._vectors(list(texts.values())), strict=True))

    async def _vectors(self, texts: Sequence[str]) -> list[Vector]:
        """One tenant's at a time, and a few: nobody's many documents keep others from being embedded."""
        found: list[Vector] = []
        for start in range(0, len(texts), EMBEDDED_AT_ONCE):
            async with self._turn:
                found += list(await self._embedder.embed_passages(texts[start : start + EMBEDDED_AT_ONCE]))
        return found


def _prepared(key: DocumentKey, document: Document) -> Prepared:
    passages = split_into_chunks(document.text)
    return Prepared(
        key, document, passages, [terms_of_chunk(document.title, passage.text) for passage in passages]
    )


def _texts(prepared: Prepared) -> dict[ChunkId, str]:
    title = prepared.document.title
    return {ChunkId(prepared.key, passage.number): passage_text(title, passage) for passage in prepared.passages}


def _version_after(versions: Sequence[int]) -> int:
    """Newer than what it replaces, however far the clocks of two machines are apart; else by the clock."""
    latest = max([time.time_ns() // 1_000, *versions])
    return latest + random.randint(1, STEPS)  # noqa: S311 - no secret


def _header(prepared: Prepared, version: int) -> DocumentHeader:
    document = prepared.document
    return DocumentHeader(
        prepared.key, document.id, document.metadata, document.content_hash, len(prepared.passages), version
    )


class DocumentService:
    """`versions` records what is written, for another version of the index; None: there is no other."""

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
        """What became of each, in their order. What has not changed costs nothing; of one id the last counts."""
        _require_few(documents)
        tenant_documents = self._index.of(principal.tenant)
        wanted = {document_key(principal.tenant, one.id): one for one in documents}
        known = await tenant_documents.headers(list(wanted))
        changed = {key: one for key, one in wanted.items() if not _is_same(known.get(key), one)}
        refused = await self._beyond_plan(
            principal, tenant_documents, [key for key in changed if key not in known]
        )
        ready = await prepared({key: one for key, one in changed.items() if key not in refused})
        if ready:
            await self._tenants.seen(principal.tenant)
        for batch in _batches(ready):
            indexed = await self._indexing.indexed(batch, known)
            async with self._recorded(principal.tenant, [one.key for one in batch]):
                await tenant_documents.put(indexed)
        stored = {one.key: len(one.passages) for one in ready}
        results = {key: _result(key, one, known, stored, refused) for key, one in wanted.items()}
        return [results[document_key(principal.tenant, one.id)] for one in documents]

    async def remove(self, principal: Principal, ids: Sequence[str]) -> list[str]:
        """Answers which of them were there."""
        keys = {document_key(principal.tenant, id_): id_ for id_ in ids}
        async with self._recorded(principal.tenant, list(keys)):
            return [keys[key] for key in await self._index.of(principal.tenant).remove(list(keys))]

    async def document(self, principal: Principal, id_: str) -> StoredDocument:
        """As much of it as the plan lets see."""
        document = await stored_document(self._index.of(principal.tenant), document_key(principal.tenant, id_))
        if document is None:
            raise NotFound("there is no such document", hint="`toolscript documents search` finds those there are")
        return replace(document, metadata=principal.plan.visible(document.metadata))

    @asynccontextmanager
    async def _recorded(self, tenant: Tenant, keys: Sequence[DocumentKey]) -> AsyncIterator[None]:
        """Before and after: a writer that is killed in between has said what it may have changed."""
        if self._versions is None:
            yield
            return
        if not await self._versions.mark(self._index.name, tenant, keys):
            raise IndexReplaced("documents are moving to another index", hint="try again in a moment")
        try:
            yield
        finally:
            await self._versions.written(self._index.name, tenant, keys)

    async def _beyond_plan(
        self, principal: Principal, tenant_documents: TenantDocuments, new: Sequence[DocumentKey]
    ) -> frozenset[DocumentKey]:
        """New documents that the plan has no room for. Whoever puts several at a time may get a few more."""
        maximum = principal.plan.max_documents
        if maximum is None or not new:
            return frozenset()
        room = max(0, maximum - (await tenant_documents.count(NO_FILTERS)).value)
        return frozenset(new[room:])


async def stored_document(tenant_documents: TenantDocuments, key: DocumentKey) -> StoredDocument | None:
    """The whole of one state of it; None where there is none."""
    for _ in range(READ_TRIES):
        header = (await tenant_documents.headers([key])).get(key)
        if header is None:
            return None
        found = await tenant_documents.passages([ChunkId(key, number) for number in range(header.passages)])
        passages = tuple(found[id_] for id_ in sorted(found))
        if (document := as_put(header, passages)) is not None:
            return StoredDocument(document.id, document.text, document.metadata, passages)
        await asyncio.sleep(READ_AGAIN_SECONDS)
    raise Unavailable("the document is being written, or was not written to its end", hint="put it again")


def _batches(ready: Sequence[Prepared]) -> Iterator[Sequence[Prepared]]:
    batch: list[Prepared] = []
    for prepared in ready:
        if batch and sum(len(each.passages) for each in [*batch, prepared]) > CHUNKS_AT_ONCE:
            yield batch
            batch = []
        batch.append(prepared)
    if batch:
        yield batch


def _is_same(known: DocumentHeader | None, document: Document) -> bool:
    return known is not None and known.complete and known.content_hash == document.content_hash


def _result(
    key: DocumentKey,
    document: Document,
    known: Mapping[DocumentKey, DocumentHeader],
    stored: Mapping[DocumentKey, int],
    refused: frozenset[DocumentKey],
) -> PutResult:
    if key in refused:
        return PutResult(document.id, PutOutcome.REFUSED, problem="the plan has no room for more documents")
    if key not in stored:
        return PutResult(document.id, PutOutcome.UNCHANGED, known[key].passages)
    outcome = PutOutcome.UPDATED if key in known else PutOutcome.CREATED
    return PutResult(document.id, outcome, stored[key])


def _require_few(documents: Sequence[Document]) -> None:
    if len(documents) > MAX_AT_ONCE:
        raise InvalidRequest(f"at most {MAX_AT_ONCE} documents at once")
