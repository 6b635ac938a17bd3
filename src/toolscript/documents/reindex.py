"""Copies documents from one version of their index to another, with another model or layout.

Documents are put together from the passages of the source, cut and embedded anew, and keep their versions: so an
older state never replaces a newer one, and a copy that was made twice is the same. Where both are of one model,
vectors are copied as they are.
"""

import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from toolscript.model.document_points import IndexedDocument, PassageId
from toolscript.model.document_versions import DocumentChange
from toolscript.model.documents import Document, DocumentHeader, DocumentKey
from toolscript.model.filters import NO_FILTERS
from toolscript.model.models import Vector
from toolscript.model.tenancy import Tenant
from toolscript.ports import DocumentIndex, DocumentVersions, Embedder, TenantDocuments
from toolscript.sync.document_indexing import Indexing, prepared
from toolscript.sync.pace import Pace
from toolscript.sync.tenant_export import TenantExport

HEADERS_AT_ONCE = 500
# So many passages are embedded and stored at once.
PASSAGES_AT_ONCE = 64
# Cosine of two vectors of one text by one model; a quantized model gives slightly others in another batch.
ALIKE = 0.95

T = TypeVar("T")
Whole = tuple[DocumentHeader, Document]
Headers = Mapping[DocumentKey, DocumentHeader]


class DocumentCopy:
    """From one version of the index to another. `left_out` were not written to their end in the source."""

    def __init__(self, source: DocumentIndex, target: DocumentIndex, embedder: Embedder, pace: Pace) -> None:
        self.source = source
        self.target = target
        self._indexing = Indexing(embedder)
        self._pace = pace
        self.left_out: set[tuple[Tenant, str]] = set()

    async def restore(self, tenant: Tenant, documents: Sequence[Whole]) -> int:
        """For a target that nobody else writes to; answers how many passages there are now."""
        passages = 0
        for batch in _batches(documents):
            began = time.monotonic()
            indexed = await self._indexed(tenant, batch, {})
            await self.target.of(tenant).restore(indexed)
            passages += sum(len(one.passages) for one in indexed)
            await self._pace.pause(began)
        return passages

    async def bring_up_to_date(self, changes: Sequence[DocumentChange]) -> None:
        """Makes the target what the source is in these documents of one tenant, where nobody else writes to it."""
        there, here = await self._headers(changes)
        await self._put(changes[0].tenant, there, here)
        await self.target.of(changes[0].tenant).remove([key for key in here if key not in there])

    async def bring_live_up_to_date(self, changes: Sequence[DocumentChange], versions: DocumentVersions) -> None:
        """The same while others write to the target: of two who wrote one document the later counts."""
        tenant, shelf = changes[0].tenant, self.target.of(changes[0].tenant)
        later = await self._written_later(changes, versions)
        changes = [one for one in changes if one.key not in later]
        there, here = await self._headers(changes)
        copied = await self._put(tenant, there, here)
        removed = {key: header.version for key, header in here.items() if key not in there}
        # A document that was removed before its copy came was not there to be removed.
        for key in await self._written_later(changes, versions):
            removed.pop(key, None)
            if key in copied:
                removed[key] = copied[key]
        await shelf.remove(list(removed), up_to=removed)

    async def _written_later(
        self, changes: Sequence[DocumentChange], versions: DocumentVersions
    ) -> frozenset[DocumentKey]:
        """What was written in the target itself after the change in the source."""
        keys = [one.key for one in changes]
        marked = await versions.marked(self.source.name, changes[0].tenant, keys) if changes else {}
        return frozenset(one.key for one in changes if marked.get(one.key, 0) > one.revision)

    async def _headers(self, changes: Sequence[DocumentChange]) -> tuple[Headers, Headers]:
        keys = [one.key for one in changes]
        if not keys:
            return {}, {}
        tenant = changes[0].tenant
        return await self.source.of(tenant).headers(keys), await self.target.of(tenant).headers(keys)

    async def reconcile(self, tenant: Tenant, sample: "Sample", versions: DocumentVersions) -> int:
        """Compares all documents of a tenant by key and version, and copies or removes those that differ.

        What is recorded as changed may differ: it is brought over with the other changes.
        """
        differing = 0
        source, target = self.source.of(tenant), self.target.of(tenant)
        began = time.monotonic()
        async for there, here in _side_by_side(source, target):
            changed = [key for key, header in there.items() if key not in here or not _is_same(here[key], header)]
            gone = [key for key in here if key not in there]
            recorded = await versions.marked(self.target.name, tenant, [*changed, *gone])
            stale = [there[key] for key in changed if key not in recorded]
            extra = [key for key in gone if key not in recorded]
            copied = await self.whole(tenant, stale)
            # A document that became shorter would leave passages behind.
            await target.remove([*extra, *(header.key for header, _ in copied if header.key in here)])
            await self.restore(tenant, copied)
            differing += len(copied) + len(extra)
            for header in there.values():
                sample.see(tenant, header)
            await self._pace.pause(began)
            began = time.monotonic()
        return differing

    async def differs(self, tenant: Tenant, key: DocumentKey) -> bool:
        """Whether text or vectors are not what they should be; of one that was changed since nobody knows."""
        headers = (await self.source.of(tenant).headers([key])).values()
        there = await TenantExport(self.source.of(tenant)).of_headers(list(headers))
        here = await TenantExport(self.target.of(tenant)).of_headers(list(headers))
        if [header for header, _ in there] != [header for header, _ in here]:
            return False
        return there != here or not await self._has_right_vectors(tenant, here)

    async def _has_right_vectors(self, tenant: Tenant, documents: Sequence[Whole]) -> bool:
        ready = await prepared({header.key: document for header, document in documents})
        right = await self._indexing.as_of({header.key: header.version for header, _ in documents}, ready, {})
        wanted = {PassageId(one.header.key, it.passage.number): it.vector for one in right for it in one.passages}
        found = await self.target.of(tenant).vectors(list(wanted))
        return wanted.keys() == found.keys() and all(
            float(found[id_] @ vector) > ALIKE for id_, vector in wanted.items()
        )

    async def whole(self, tenant: Tenant, headers: Sequence[DocumentHeader]) -> list[Whole]:
        found: list[Whole] = []
        export = TenantExport(self.source.of(tenant))
        for batch in _header_batches(headers):
            found += await export.of_headers(batch)
        self.left_out |= {(tenant, id_) for id_ in export.left_out}
        return found

    async def _put(self, tenant: Tenant, there: Headers, here: Headers) -> dict[DocumentKey, int]:
        """What the target lacks or has an older version of; answers the versions that were put."""
        newer = [header for key, header in there.items() if key not in here or here[key].version < header.version]
        documents = await self.whole(tenant, newer)
        ordered = sorted(documents, key=lambda one: (one[0].version, one[0].key))
        for _, same in groupby(ordered, key=lambda one: one[0].version):
            for batch in _batches(list(same)):
                began = time.monotonic()
                await self.target.of(tenant).put(await self._indexed(tenant, batch, here))
                await self._pace.pause(began)
        return {header.key: header.version for header, _ in documents}

    async def _indexed(self, tenant: Tenant, documents: Sequence[Whole], known: Headers) -> list[IndexedDocument]:
        ready = await prepared({header.key: document for header, document in documents})
        versions = {header.key: header.version for header, _ in documents}
        vectors: Mapping[PassageId, Vector] = {}
        if self.source.card == self.target.card:
            ids = [PassageId(one.key, passage.number) for one in ready for passage in one.passages]
            vectors = await self.source.of(tenant).vectors(ids)
        return await self._indexing.as_of(versions, ready, known, vectors)


class Sample:
    """Some documents of all that were seen, each with the same chance."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._seen = 0
        self.chosen: list[tuple[Tenant, DocumentHeader]] = []

    def see(self, tenant: Tenant, header: DocumentHeader) -> None:
        self._seen += 1
        if len(self.chosen) < self._size:
            self.chosen.append((tenant, header))
        elif (at := random.randrange(self._seen)) < self._size:  # noqa: S311 - no secret
            self.chosen[at] = (tenant, header)


async def _side_by_side(
    source: TenantDocuments, target: TenantDocuments
) -> AsyncIterator[tuple[dict[DocumentKey, DocumentHeader], dict[DocumentKey, DocumentHeader]]]:
    """The headers of both in one order, page by page: both pages of a pair end at the same key."""
    after = ""
    while True:
        pages = [await one.page(after, HEADERS_AT_ONCE, NO_FILTERS) for one in (source, target)]
        if not any(pages):
            return
        ends = [page[-1].key for page in pages if len(page) == HEADERS_AT_ONCE]
        end = min(ends) if ends else max(page[-1].key for page in pages if page)
        there, here = ({one.key: one for one in page if one.key <= end} for page in pages)
        yield there, here
        after = end


def _is_same(one: DocumentHeader, other: DocumentHeader) -> bool:
    return one.complete and (one.version, one.content_hash) == (other.version, other.content_hash)


def _batches(documents: Sequence[Whole]) -> Iterator[list[Whole]]:
    return _by_size(documents, lambda one: one[0].passages)


def _header_batches(headers: Sequence[DocumentHeader]) -> Iterator[list[DocumentHeader]]:
    return _by_size(headers, lambda one: one.passages)


def _by_size(many: Sequence[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """A document that is larger than a batch is one by itself."""
    batch: list[T] = []
    held = 0
    for one in many:
        if batch and held + size(one) > PASSAGES_AT_ONCE:
            yield batch
            batch, held = [], 0
        batch.append(one)
        held += size(one)
    if batch:
        yield batch
