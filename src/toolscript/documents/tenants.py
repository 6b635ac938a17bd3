"""Lists tenants with their counts, erases a tenant, and exports its documents."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from toolscript.core.auth.model import KnownTenant, Tenant
from toolscript.core.errors import Conflict, NotFound
from toolscript.core.retrieval.results import ChunkId, DocumentKey, Total
from toolscript.core.text import TextChunk
from toolscript.core.values import OnProgress, by_size
from toolscript.documents.model.document import Document, DocumentHeader, rebuild_document
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.ports import DocumentIndex, TenantDocuments, Tenants, TenantShards

PAGE = 200
# Chunks per read. A document with more is read at once.
CHUNKS_AT_ONCE = 1_000
TRIES = 3
# Number of tenants that are counted concurrently.
COUNTED_AT_ONCE = 8


@dataclass(frozen=True)
class TenantUsage:
    """A tenant with the counts of the live index version. `since` is the time of its first write, in ISO 8601."""

    tenant: Tenant
    documents: Total
    passages: int
    own_shard: bool
    since: str


class TenantPlaces(Protocol):
    """The part of TenantShards that only reads."""

    async def own_shard(self, tenant: Tenant, /) -> bool: ...
    async def passages(self, tenant: Tenant, /) -> int: ...


class TenantList:
    def __init__(self, index: DocumentIndex, places: TenantPlaces, tenants: Tenants) -> None:
        self._index = index
        self._places = places
        self._tenants = tenants

    async def page(self, after: str, limit: int) -> list[TenantUsage]:
        """Return the next tenants ordered by name; fewer than `limit` only at the end."""
        known = await self._tenants.page(after, limit)
        counted: list[TenantUsage] = []
        for start in range(0, len(known), COUNTED_AT_ONCE):
            counted += await asyncio.gather(*map(self._counted, known[start : start + COUNTED_AT_ONCE]))
        return counted

    async def tenant(self, name: str) -> TenantUsage:
        known = await _known(self._tenants, name)
        if known is None:
            raise NotFound(
                f"there is no tenant {name}", hint="a tenant exists since it first put a document; names are exact"
            )
        return await self._counted(known)

    async def _counted(self, known: KnownTenant) -> TenantUsage:
        documents, passages, own_shard = await asyncio.gather(
            self._index.of(known.tenant).count(NO_FILTERS),
            self._places.passages(known.tenant),
            self._places.own_shard(known.tenant),
        )
        return TenantUsage(known.tenant, documents, passages, own_shard, known.since)


@dataclass(frozen=True)
class Erased:
    """`documents` is approximate for a very large tenant."""

    documents: int
    passages: int
    was_known: bool


async def erase_tenant(
    tenant_documents: TenantDocuments, places: TenantShards, tenants: Tenants, on_progress: OnProgress
) -> Erased:
    """Erase the tenant, its name last: as long as the tenant is listed, the erasure can be repeated."""
    tenant = tenant_documents.tenant
    was_known = await _known(tenants, tenant.name) is not None
    documents = (await tenant_documents.count(NO_FILTERS)).value
    removed = await places.erase(tenant, on_progress)
    await tenants.forget(tenant)
    left = await places.passages(tenant)
    if left or await _known(tenants, tenant.name) is not None:
        raise Conflict(
            f"tenant {tenant} is being written to: {left} chunks are new, {removed} were deleted",
            hint="revoke its tokens, then run it again",
        )
    return Erased(documents, removed, was_known)


async def _known(tenants: Tenants, name: str) -> KnownTenant | None:
    """Return the tenant if it is listed. No valid name sorts between `just_before` and the name."""
    just_before = f"{name[:-1]}{chr(ord(name[-1]) - 1)}\x7f"
    return next((known for known in await tenants.page(just_before, 1) if known.tenant.name == name), None)


class TenantExport:
    """Reads complete documents. `left_out` are the ids of documents whose write is open or was interrupted."""

    def __init__(self, tenant_documents: TenantDocuments) -> None:
        self._documents = tenant_documents
        self.left_out: list[str] = []

    async def documents(self, after: DocumentKey = "") -> AsyncIterator[Document]:
        async for batch in self.batches(after):
            for _, document in batch:
                yield document

    async def batches(self, after: DocumentKey = "") -> AsyncIterator[list[tuple[DocumentHeader, Document]]]:
        """Yield documents ordered by key, after `after`. Concurrent writes may or may not be included."""
        while headers := await self._documents.page(after, PAGE, NO_FILTERS):
            for batch in by_size(headers, lambda header: header.passages, CHUNKS_AT_ONCE):
                yield await self.of_headers(batch)
            after = headers[-1].key

    async def of_headers(self, headers: Sequence[DocumentHeader]) -> list[tuple[DocumentHeader, Document]]:
        """Return those documents that exist, with the header of the state that was read."""
        whole = await self._whole(headers)
        entries = [whole.get(header.key) or await self._read_again(header) for header in headers]
        return [entry for entry in entries if entry is not None]

    async def _whole(
        self, headers: Sequence[DocumentHeader]
    ) -> Mapping[DocumentKey, tuple[DocumentHeader, Document]]:
        """Return the documents whose chunks are complete and of one state."""
        ids = [ChunkId(header.key, number) for header in headers for number in range(header.passages)]
        chunks = await self._documents.passages(ids)
        by_key: dict[DocumentKey, list[TextChunk]] = {header.key: [] for header in headers}
        for id_, chunk in chunks.items():
            by_key[id_.key].append(chunk)
        documents = [(header, rebuild_document(header, by_key[header.key])) for header in headers]
        return {header.key: (header, document) for header, document in documents if document is not None}

    async def _read_again(self, header: DocumentHeader) -> tuple[DocumentHeader, Document] | None:
        """Retry a document that was changed between two reads, or is being written; None if it was removed."""
        for _ in range(TRIES):
            current = (await self._documents.headers([header.key])).get(header.key)
            if current is None:
                return None
            if entry := (await self._whole([current])).get(current.key):
                return entry
        self.left_out.append(header.id)
        return None
