"""Builds a version of the document index beside the live one, catches up, and makes it live.

    begin -> fill, tenant by tenant -> catch up -> reconcile -> verify -> switch -> wait for open writes

From the first step on, writers record what the other version lacks. So a killed run can resume, a switch loses
nothing, and a rollback has all documents that were put meanwhile. After the switch no writer can start on the
previous version.
"""

import asyncio
import contextlib
import random
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import Conflict
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.results import ChunkId, DocumentKey
from toolscript.core.values import OnProgress, Progress, by_size, silent
from toolscript.documents.model.document import Document, DocumentHeader
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.model.points import DocumentChange, DocumentVersion, FillPosition, IndexedDocument
from toolscript.documents.ports import DocumentIndex, DocumentVersions, TenantDocuments, Tenants
from toolscript.documents.service import Indexing, prepared
from toolscript.documents.tenants import TenantExport
from toolscript.documents.throttle import Throttle

HEADERS_AT_ONCE = 500
# Chunks per embedded and stored batch.
CHUNKS_AT_ONCE = 64
# Minimum cosine of two vectors of one text: a quantized model gives slightly different vectors in another batch.
ALIKE = 0.95

Whole = tuple[DocumentHeader, Document]
Headers = Mapping[DocumentKey, DocumentHeader]

TENANTS_AT_ONCE = 100
CHANGES_AT_ONCE = 200
LEASE_SECONDS = 15.0
LOOK_AGAIN_SECONDS = 0.5
MAX_RECONCILIATIONS = 5
# Documents that are compared in full before the switch.
SAMPLE = 200

MakeLive = Callable[[str], Awaitable[None]]


class DocumentCopy:
    """Copies from one index version to another. `left_out` are documents that are incomplete in the source."""

    def __init__(self, source: DocumentIndex, target: DocumentIndex, embedder: Embedder, pace: Throttle) -> None:
        self.source = source
        self.target = target
        self._indexing = Indexing(embedder)
        self._pace = pace
        self.left_out: set[tuple[Tenant, str]] = set()

    async def restore(self, tenant: Tenant, documents: Sequence[Whole]) -> int:
        """Copy documents into a target without other writers; return the number of chunks."""
        chunks = 0
        for batch in _batches(documents):
            began = time.monotonic()
            indexed = await self._indexed(tenant, batch, {})
            await self.target.of(tenant).restore(indexed)
            chunks += sum(len(document.passages) for document in indexed)
            await self._pace.pause(began)
        return chunks

    async def bring_up_to_date(self, changes: Sequence[DocumentChange]) -> None:
        """Make the target equal to the source for these documents of one tenant. It must have no other writers."""
        in_source, in_target = await self._headers(changes)
        await self._put(changes[0].tenant, in_source, in_target)
        await self.target.of(changes[0].tenant).remove([key for key in in_target if key not in in_source])

    async def bring_live_up_to_date(self, changes: Sequence[DocumentChange], versions: DocumentVersions) -> None:
        """Do the same while clients write to the target: the later write of a document wins."""
        tenant, tenant_documents = changes[0].tenant, self.target.of(changes[0].tenant)
        later = await self._written_later(changes, versions)
        changes = [change for change in changes if change.key not in later]
        in_source, in_target = await self._headers(changes)
        copied = await self._put(tenant, in_source, in_target)
        removed = {key: header.version for key, header in in_target.items() if key not in in_source}
        # A client may have removed a document before its copy arrived: remove the copy too.
        for key in await self._written_later(changes, versions):
            removed.pop(key, None)
            if key in copied:
                removed[key] = copied[key]
        await tenant_documents.remove(list(removed), up_to=removed)

    async def _written_later(
        self, changes: Sequence[DocumentChange], versions: DocumentVersions
    ) -> frozenset[DocumentKey]:
        """Return the documents that were written in the target itself after the change in the source."""
        keys = [change.key for change in changes]
        marked = await versions.marked(self.source.name, changes[0].tenant, keys) if changes else {}
        return frozenset(change.key for change in changes if marked.get(change.key, 0) > change.revision)

    async def _headers(self, changes: Sequence[DocumentChange]) -> tuple[Headers, Headers]:
        keys = [change.key for change in changes]
        if not keys:
            return {}, {}
        tenant = changes[0].tenant
        return await self.source.of(tenant).headers(keys), await self.target.of(tenant).headers(keys)

    async def reconcile(self, tenant: Tenant, sample: "Sample", versions: DocumentVersions) -> int:
        """Compare all documents of a tenant by key and version; copy or remove those that differ.

        Documents with a recorded change may differ: catching up handles them.
        """
        differing = 0
        source, target = self.source.of(tenant), self.target.of(tenant)
        began = time.monotonic()
        async for in_source, in_target in _paired_headers(source, target):
            changed = [
                key
                for key, header in in_source.items()
                if key not in in_target or not _is_same(in_target[key], header)
            ]
            gone = [key for key in in_target if key not in in_source]
            recorded = await versions.marked(self.target.name, tenant, [*changed, *gone])
            stale = [in_source[key] for key in changed if key not in recorded]
            extra = [key for key in gone if key not in recorded]
            copied = await self.whole(tenant, stale)
            # A document that became shorter would leave chunks behind.
            await target.remove([*extra, *(header.key for header, _ in copied if header.key in in_target)])
            await self.restore(tenant, copied)
            differing += len(copied) + len(extra)
            for header in in_source.values():
                sample.see(tenant, header)
            await self._pace.pause(began)
            began = time.monotonic()
        return differing

    async def differs(self, tenant: Tenant, key: DocumentKey) -> bool:
        """Return whether text or vectors differ; False for a document that was changed since."""
        headers = (await self.source.of(tenant).headers([key])).values()
        in_source = await TenantExport(self.source.of(tenant)).of_headers(list(headers))
        in_target = await TenantExport(self.target.of(tenant)).of_headers(list(headers))
        if [header for header, _ in in_source] != [header for header, _ in in_target]:
            return False
        return in_source != in_target or not await self._has_right_vectors(tenant, in_target)

    async def _has_right_vectors(self, tenant: Tenant, documents: Sequence[Whole]) -> bool:
        ready = await prepared({header.key: document for header, document in documents})
        indexed = await self._indexing.as_of({header.key: header.version for header, _ in documents}, ready, {})
        expected = {
            ChunkId(document.header.key, chunk.passage.number): chunk.vector
            for document in indexed
            for chunk in document.passages
        }
        stored = await self.target.of(tenant).vectors(list(expected))
        return expected.keys() == stored.keys() and all(
            float(stored[id_] @ vector) > ALIKE for id_, vector in expected.items()
        )

    async def whole(self, tenant: Tenant, headers: Sequence[DocumentHeader]) -> list[Whole]:
        documents: list[Whole] = []
        export = TenantExport(self.source.of(tenant))
        for batch in by_size(headers, lambda header: header.passages, CHUNKS_AT_ONCE):
            documents += await export.of_headers(batch)
        self.left_out |= {(tenant, id_) for id_ in export.left_out}
        return documents

    async def _put(self, tenant: Tenant, in_source: Headers, in_target: Headers) -> dict[DocumentKey, int]:
        """Copy documents that the target lacks or has in an older version; return the versions put."""
        newer = [
            header
            for key, header in in_source.items()
            if key not in in_target or in_target[key].version < header.version
        ]
        documents = await self.whole(tenant, newer)
        ordered = sorted(documents, key=lambda entry: (entry[0].version, entry[0].key))
        for _, same in groupby(ordered, key=lambda entry: entry[0].version):
            for batch in _batches(list(same)):
                began = time.monotonic()
                await self.target.of(tenant).put(await self._indexed(tenant, batch, in_target))
                await self._pace.pause(began)
        return {header.key: header.version for header, _ in documents}

    async def _indexed(
        self, tenant: Tenant, documents: Sequence[Whole], existing: Headers
    ) -> list[IndexedDocument]:
        ready = await prepared({header.key: document for header, document in documents})
        versions = {header.key: header.version for header, _ in documents}
        vectors: Mapping[ChunkId, Vector] = {}
        if self.source.card == self.target.card:
            ids = [ChunkId(document.key, chunk.number) for document in ready for chunk in document.passages]
            vectors = await self.source.of(tenant).vectors(ids)
        return await self._indexing.as_of(versions, ready, existing, vectors)


class Sample:
    """A uniform random sample of all documents seen (reservoir sampling)."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._seen = 0
        self.chosen: list[tuple[Tenant, DocumentHeader]] = []

    def see(self, tenant: Tenant, header: DocumentHeader) -> None:
        self._seen += 1
        if len(self.chosen) < self._size:
            self.chosen.append((tenant, header))
        elif (position := random.randrange(self._seen)) < self._size:  # noqa: S311 - no secret
            self.chosen[position] = (tenant, header)


async def _paired_headers(
    source: TenantDocuments, target: TenantDocuments
) -> AsyncIterator[tuple[dict[DocumentKey, DocumentHeader], dict[DocumentKey, DocumentHeader]]]:
    """Yield the headers of both, ordered by key, page by page: both pages of a pair end at the same key."""
    after = ""
    while True:
        pages = [await documents.page(after, HEADERS_AT_ONCE, NO_FILTERS) for documents in (source, target)]
        if not any(pages):
            return
        ends = [page[-1].key for page in pages if len(page) == HEADERS_AT_ONCE]
        end = min(ends) if ends else max(page[-1].key for page in pages if page)
        in_source, in_target = ({header.key: header for header in page if header.key <= end} for page in pages)
        yield in_source, in_target
        after = end


def _is_same(header: DocumentHeader, other: DocumentHeader) -> bool:
    return header.complete and (header.version, header.content_hash) == (other.version, other.content_hash)


def _batches(documents: Sequence[Whole]) -> Iterator[list[Whole]]:
    return by_size(documents, lambda entry: entry[0].passages, CHUNKS_AT_ONCE)


@dataclass
class Reindexed:
    """The result of a reindex. `left_out` are documents that were incomplete."""

    live: str
    previous: str
    passages: int = 0
    caught_up: int = 0
    reconciled: int = 0
    verified: int = 0
    left_out: list[str] = field(default_factory=list)


class DocumentReindex:
    def __init__(
        self,
        versions: DocumentVersions,
        tenants: Tenants,
        copy: DocumentCopy,
        make_live: MakeLive,
        *,
        on_progress: OnProgress = silent,
    ) -> None:
        self._versions = versions
        self._tenants = tenants
        self._copy = copy
        self._make_live = make_live
        self._on_progress = on_progress
        self._done = Reindexed(copy.target.name, copy.source.name)

    async def build(self) -> Reindexed:
        """Build a new version, from the start or from where an earlier run ended."""
        version = await self._versions.begin(self._copy.source.name, self._copy.target.name)
        if not version.position.done:
            await self._fill(version)
        await self._catch_up(is_live=False)
        await self._verify(await self._reconcile())
        return await self._switch()

    async def roll_back(self) -> Reindexed:
        """Return to the previous version, with all documents that were put since."""
        await self._catch_up(is_live=False)
        return await self._switch()

    async def finish(self) -> Reindexed:
        """Finish a run that was killed after its switch."""
        await self._catch_up_with_writers()
        return self._done

    async def _switch(self) -> Reindexed:
        await self._catch_up(is_live=False)
        name = self._copy.target.name
        # The record comes first: after a kill in between, the next run moves the alias.
        await self._versions.switch(name)
        await self._make_live(name)
        await self._catch_up_with_writers()
        self._done.left_out = sorted(f"{tenant}: {id_}" for tenant, id_ in self._copy.left_out)
        return self._done

    async def _fill(self, version: DocumentVersion) -> None:
        position = version.position
        total = await self._copy.source.passages()
        self._done.passages = min(await self._copy.target.passages(), total)
        async for tenant in self._tenants_from(position.tenant):
            after = position.key if tenant.name == position.tenant else ""
            export = TenantExport(self._copy.source.of(tenant))
            async for batch in export.batches(after):
                self._done.passages += await self._copy.restore(tenant, batch)
                if batch:
                    await self._save_position(FillPosition(tenant.name, batch[-1][0].key))
                self._on_progress(Progress("chunks", self._done.passages, max(total, self._done.passages)))
            self._copy.left_out |= {(tenant, id_) for id_ in export.left_out}
        await self._save_position(FillPosition(done=True))

    async def _save_position(self, position: FillPosition) -> None:
        await self._versions.advance(self._copy.target.name, position)

    async def _tenants_from(self, name: str) -> AsyncIterator[Tenant]:
        """Yield this tenant and all after it."""
        after = name
        if name:
            yield Tenant(name)
        while page := await self._tenants.page(after, TENANTS_AT_ONCE):
            for entry in page:
                yield entry.tenant
            after = page[-1].tenant.name

    async def _catch_up(self, *, is_live: bool) -> int:
        """Apply recorded changes until only open writes are left; return how many were applied."""
        caught_up = 0
        name = self._copy.target.name
        while changes := await self._versions.changes(name, CHANGES_AT_ONCE):
            for tenant_changes in _by_tenant(changes):
                if is_live:
                    await self._copy.bring_live_up_to_date(tenant_changes, self._versions)
                else:
                    await self._copy.bring_up_to_date(tenant_changes)
                await self._versions.clear(tenant_changes)
            caught_up += len(changes)
            self._on_progress(Progress("changes", caught_up))
        self._done.caught_up += caught_up
        return caught_up

    async def _reconcile(self) -> Sample:
        """Compare everything: a writer that started before the first step recorded nothing."""
        for _ in range(MAX_RECONCILIATIONS):
            differing, sample = 0, Sample(SAMPLE)
            async for tenant in self._tenants_from(""):
                differing += await self._copy.reconcile(tenant, sample, self._versions)
                self._on_progress(Progress("documents that differed", self._done.reconciled + differing))
            await self._catch_up(is_live=False)
            self._done.reconciled += differing
            if not differing:
                return sample
        raise Conflict(
            "documents keep changing faster than they are copied",
            hint="run it again with a higher --share; nothing is lost",
        )

    async def _verify(self, sample: Sample) -> None:
        """Compare a sample of documents in full in both versions, before clients depend on the new one."""
        wrong = [
            f"{tenant}: {header.id}"
            for tenant, header in sample.chosen
            if await self._copy.differs(tenant, header.key)
        ]
        self._done.verified = len(sample.chosen)
        if wrong:
            raise Conflict(
                f"of {len(sample.chosen)} documents {len(wrong)} are not in the new index as they should be, "
                f"among them {wrong[0]}; the live one was left as it is",
                hint="`toolscript reindex documents --cancel` drops the new one",
            )

    async def _catch_up_with_writers(self) -> None:
        """Wait for writers that started before the switch: they still write to the previous version."""
        while await self._versions.pending(self._copy.target.name):
            if not await self._catch_up(is_live=True):
                await asyncio.sleep(LOOK_AGAIN_SECONDS)


@asynccontextmanager
async def lease(versions: DocumentVersions, seconds: float = LEASE_SECONDS) -> AsyncIterator[None]:
    """Allow one run at a time. Wait for the lease of a killed run to expire."""
    holder = secrets.token_hex(8)
    ends_at = time.monotonic() + 2 * seconds
    while not await versions.hold(holder, seconds):
        if time.monotonic() > ends_at:
            raise Conflict("another reindex of documents is running", hint="wait until it has ended")
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    renewing = asyncio.create_task(_renew(versions, holder, seconds, asyncio.current_task()))
    try:
        yield
    finally:
        renewing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await renewing
        await versions.release(holder)


async def _renew(
    versions: DocumentVersions, holder: str, seconds: float, working: "asyncio.Task[object] | None"
) -> None:
    """Renew the lease. A run that lost its lease is cancelled: another may have started."""
    while True:
        await asyncio.sleep(seconds / 3)
        if not await versions.hold(holder, seconds) and working is not None:
            working.cancel()
            return


def _by_tenant(changes: Sequence[DocumentChange]) -> list[list[DocumentChange]]:
    ordered = sorted(changes, key=lambda change: change.tenant.name)
    return [list(same) for _, same in groupby(ordered, key=lambda change: change.tenant.name)]
