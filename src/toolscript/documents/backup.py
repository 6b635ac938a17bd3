"""Documents with their vectors as JSON lines: read from an index version, and put into another one.

A line is one state of one document. While clients write, a document is read again until it is whole.
"""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from toolscript.core.auth.model import Tenant
from toolscript.core.items import JsonObject
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.results import ChunkId, DocumentKey
from toolscript.core.values import by_size
from toolscript.documents.model.document import Document, DocumentHeader, document_key
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.model.points import IndexedDocument
from toolscript.documents.ports import DocumentIndex, DocumentVersions, TenantDocuments, Tenants
from toolscript.documents.service import Indexing, prepared, recorded_write
from toolscript.documents.tenants import TenantExport

PAGE = 500
# Chunks that are read, or put, at once.
CHUNKS_AT_ONCE = 512
TENANTS_AT_ONCE = 100
TRIES = 3
# A write that is open for longer belongs to a killed writer.
WRITE_SECONDS = 60
LOOK_AGAIN_SECONDS = 0.5


@dataclass(frozen=True)
class SavedDocument:
    """A whole document. `vectors` are those of its chunks, in order."""

    tenant: Tenant
    version: int
    document: Document
    vectors: Sequence[Vector]

    @property
    def key(self) -> DocumentKey:
        return document_key(self.tenant, self.document.id)

    def line(self) -> bytes:
        packed = np.asarray(self.vectors, dtype="<f4").tobytes()
        content = {
            "tenant": self.tenant.name,
            "version": self.version,
            "id": self.document.id,
            "text": self.document.text,
            "metadata": self.document.metadata,
            "chunks": len(self.vectors),
            "vectors": base64.b64encode(packed).decode(),
        }
        return json.dumps(content, ensure_ascii=False).encode() + b"\n"


def saved_document(line: bytes) -> SavedDocument:
    content = json.loads(line)
    vectors = np.frombuffer(base64.b64decode(content["vectors"]), dtype="<f4").reshape(content["chunks"], -1)
    metadata: JsonObject = content["metadata"]
    document = Document(content["id"], content["text"], metadata)
    return SavedDocument(Tenant(content["tenant"]), int(content["version"]), document, list(vectors))


def batches_of(lines: Iterable[bytes], tenant: Tenant | None = None) -> Iterator[list[SavedDocument]]:
    """Yield batches of one tenant each, in the order of the lines; `tenant`: of that one only."""
    begin = b"" if tenant is None else json.dumps({"tenant": tenant.name})[:-1].encode() + b","
    saved = (saved_document(line) for line in lines if line.startswith(begin))
    for _, same in groupby(saved, key=lambda entry: entry.tenant):
        yield from by_size(same, lambda entry: len(entry.vectors), CHUNKS_AT_ONCE)


class DocumentReader:
    """Reads whole documents. `left_out` are the ids of those whose writer was killed, or still writes."""

    def __init__(self, index: DocumentIndex) -> None:
        self._index = index
        self.left_out: list[str] = []

    async def documents(self, tenant: Tenant, since: int = 0) -> AsyncIterator[list[SavedDocument]]:
        """Yield the tenant's documents with a version of at least `since`."""
        documents, after = self._index.of(tenant), ""
        being_written: list[DocumentHeader] = []
        while headers := await documents.page(after, PAGE, NO_FILTERS):
            wanted = [header for header in headers if header.version >= since]
            for batch in by_size(wanted, lambda header: header.passages, CHUNKS_AT_ONCE):
                saved, torn = await _read(documents, batch)
                being_written += torn
                yield saved
            after = headers[-1].key
        for header in being_written:
            if saved := await self._when_written(documents, header):
                yield saved

    async def _when_written(self, documents: TenantDocuments, header: DocumentHeader) -> list[SavedDocument]:
        """Wait for the end of a write; return nothing for a document that was removed, or is not finished."""
        while True:
            current = (await documents.headers([header.key])).get(header.key)
            if current is None:
                return []
            saved, torn = await _read(documents, [current])
            if not torn:
                return saved
            if time.time() - current.version / 1e6 > WRITE_SECONDS:
                self.left_out.append(current.id)
                return []
            await asyncio.sleep(LOOK_AGAIN_SECONDS)


async def _read(
    documents: TenantDocuments, headers: Sequence[DocumentHeader]
) -> tuple[list[SavedDocument], list[DocumentHeader]]:
    """Return the documents that are whole, and the headers of those that are being written."""
    saved: list[SavedDocument] = []
    torn = list(headers)
    for _ in range(TRIES):
        if not torn:
            break
        complete = [header for header in torn if header.complete]
        entries = await TenantExport(documents).of_headers(complete)
        ids = [ChunkId(header.key, number) for header, _ in entries for number in range(header.passages)]
        vectors = await documents.vectors(ids)
        # Read last: nothing of a document that still has this header was written meanwhile.
        now = await documents.headers([header.key for header in torn])
        for header, document in entries:
            own = [vectors.get(ChunkId(header.key, number)) for number in range(header.passages)]
            whole = [vector for vector in own if vector is not None]
            if now.get(header.key) == header and header.complete and len(whole) == len(own):
                saved.append(SavedDocument(documents.tenant, header.version, document, whole))
        done = {entry.key for entry in saved}
        torn = [header for key, header in now.items() if key not in done]
    return saved, torn


async def tenants_in_order(tenants: Tenants) -> AsyncIterator[Tenant]:
    after = ""
    while page := await tenants.page(after, TENANTS_AT_ONCE):
        for known in page:
            yield known.tenant
        after = page[-1].tenant.name


class DocumentWriter:
    """Puts saved documents into an index version. Their vectors are used where its card is the same.

    `versions` records them for another version of the index; None: there is none.
    """

    def __init__(
        self,
        index: DocumentIndex,
        embedder: Embedder,
        *,
        same_card: bool,
        versions: DocumentVersions | None = None,
    ) -> None:
        self._index = index
        self._indexing = Indexing(embedder)
        self._same_card = same_card
        self._versions = versions
        self.documents = self.chunks = 0

    async def replace(self, batch: Sequence[SavedDocument]) -> None:
        """Store the documents as they were saved, in place of any other state. There must be no other writer."""
        documents = self._index.of(batch[0].tenant)
        existing = await documents.headers([entry.key for entry in batch])
        differing = [key for key, version in _versions(batch).items() if _differs(existing.get(key), version)]
        await documents.remove([key for key in differing if key in existing])
        wanted = [entry for entry in batch if entry.key in set(differing)]
        if wanted:
            await documents.restore(await self._indexed(wanted, {}))
        self._count(batch)

    async def put(self, batch: Sequence[SavedDocument]) -> None:
        """Put the documents while clients write: what is there in this version, or a later one, stays."""
        tenant, documents = batch[0].tenant, self._index.of(batch[0].tenant)
        existing = await documents.headers([entry.key for entry in batch])
        wanted = [entry for entry in batch if _is_older(existing.get(entry.key), entry.version)]
        ordered = sorted(wanted, key=lambda entry: (entry.version, entry.key))
        for _, same in groupby(ordered, key=lambda entry: entry.version):
            entries = list(same)
            indexed = await self._indexed(entries, existing)
            async with recorded_write(self._versions, self._index, tenant, [entry.key for entry in entries]):
                await documents.put(indexed)
        self._count(wanted)

    async def settle(self, tenants: Tenants, since: int) -> tuple[int, list[str]]:
        """Remove documents whose write began at `since` or later and is not complete, and note who holds some.

        Return how many there were, and the tenants that hold documents on record and none here.
        """
        dropped, without = 0, list[str]()
        async for tenant in tenants_in_order(tenants):
            documents, after, kept = self._index.of(tenant), "", 0
            while headers := await documents.page(after, PAGE, NO_FILTERS):
                torn = [header.key for header in headers if header.version >= since and not header.complete]
                if torn:
                    dropped += len(await documents.remove(torn))
                kept += len(headers) - len(torn)
                after = headers[-1].key
            if kept:
                await tenants.note(tenant, holds=True)
            elif await tenants.holds(tenant):
                without.append(tenant.name)
        return dropped, without

    async def _indexed(
        self, batch: Sequence[SavedDocument], existing: Mapping[DocumentKey, DocumentHeader]
    ) -> list[IndexedDocument]:
        ready = await prepared({entry.key: entry.document for entry in batch})
        vectors = {
            ChunkId(entry.key, number): vector
            for entry in batch
            if self._same_card
            for number, vector in enumerate(entry.vectors)
        }
        return await self._indexing.as_of(_versions(batch), ready, existing, vectors)

    def _count(self, batch: Sequence[SavedDocument]) -> None:
        self.documents += len(batch)
        self.chunks += sum(len(entry.vectors) for entry in batch)


def _versions(batch: Sequence[SavedDocument]) -> dict[DocumentKey, int]:
    return {entry.key: entry.version for entry in batch}


def _is_older(header: DocumentHeader | None, version: int) -> bool:
    return header is None or header.version < version or (header.version == version and not header.complete)


def _differs(header: DocumentHeader | None, version: int) -> bool:
    return header is None or not header.complete or header.version != version
