"""Builds a version of the documents' index beside the live one, catches up, and makes it the live one.

    begin -> fill, tenant by tenant -> catch up -> reconcile -> verify -> switch -> end of open writes

From the first step on, whoever writes records what the other version lacks. So a run that is killed goes on where
it was, a switch loses nothing, and a way back has all that was put meanwhile. After the switch nobody is let in
any more who would write to the version before.
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
from typing import TypeVar

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import Conflict
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.results import ChunkId, DocumentKey
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.documents.model.document import Document, DocumentHeader
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.model.points import DocumentChange, DocumentVersion, FillPosition, IndexedDocument
from toolscript.documents.ports import DocumentIndex, DocumentVersions, TenantDocuments, Tenants
from toolscript.documents.service import Indexing, prepared
from toolscript.documents.tenants import TenantExport
from toolscript.documents.throttle import Throttle

HEADERS_AT_ONCE = 500
# So many passages are embedded and stored at once.
CHUNKS_AT_ONCE = 64
# Cosine of two vectors of one text by one model; a quantized model gives slightly others in another batch.
ALIKE = 0.95

T = TypeVar("T")
Whole = tuple[DocumentHeader, Document]
Headers = Mapping[DocumentKey, DocumentHeader]

TENANTS_AT_ONCE = 100
CHANGES_AT_ONCE = 200
LEASE_SECONDS = 15.0
LOOK_AGAIN_SECONDS = 0.5
MAX_RECONCILIATIONS = 5
# So many documents are read to their end before the switch.
SAMPLE = 200

MakeLive = Callable[[str], Awaitable[None]]


class DocumentCopy:
    """From one version of the index to another. `left_out` were not written to their end in the source."""

    def __init__(self, source: DocumentIndex, target: DocumentIndex, embedder: Embedder, pace: Throttle) -> None:
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
            passages += sum(len(document.passages) for document in indexed)
            await self._pace.pause(began)
        return passages

    async def bring_up_to_date(self, changes: Sequence[DocumentChange]) -> None:
        """Makes the target what the source is in these documents of one tenant, where nobody else writes to it."""
        there, here = await self._headers(changes)
        await self._put(changes[0].tenant, there, here)
        await self.target.of(changes[0].tenant).remove([key for key in here if key not in there])

    async def bring_live_up_to_date(self, changes: Sequence[DocumentChange], versions: DocumentVersions) -> None:
        """The same while others write to the target: of two who wrote one document the later counts."""
        tenant, tenant_documents = changes[0].tenant, self.target.of(changes[0].tenant)
        later = await self._written_later(changes, versions)
        changes = [change for change in changes if change.key not in later]
        there, here = await self._headers(changes)
        copied = await self._put(tenant, there, here)
        removed = {key: header.version for key, header in here.items() if key not in there}
        # A document that was removed before its copy came was not there to be removed.
        for key in await self._written_later(changes, versions):
            removed.pop(key, None)
            if key in copied:
                removed[key] = copied[key]
        await tenant_documents.remove(list(removed), up_to=removed)

    async def _written_later(
        self, changes: Sequence[DocumentChange], versions: DocumentVersions
    ) -> frozenset[DocumentKey]:
        """What was written in the target itself after the change in the source."""
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
        wanted = {
            ChunkId(indexed_document.header.key, it.passage.number): it.vector
            for indexed_document in right
            for it in indexed_document.passages
        }
        found = await self.target.of(tenant).vectors(list(wanted))
        return wanted.keys() == found.keys() and all(
            float(found[id_] @ vector) > ALIKE for id_, vector in wanted.items()
        )

    async def whole(self, tenant: Tenant, headers: Sequence[DocumentHeader]) -> list[Whole]:
        found: list[Whole] = []
        export = TenantExport(self.source.of(tenant))
        for batch in _by_size(headers, lambda header: header.passages):
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
        vectors: Mapping[ChunkId, Vector] = {}
        if self.source.card == self.target.card:
            ids = [ChunkId(one.key, passage.number) for one in ready for passage in one.passages]
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


def _is_same(header: DocumentHeader, other: DocumentHeader) -> bool:
    return header.complete and (header.version, header.content_hash) == (other.version, other.content_hash)


def _batches(documents: Sequence[Whole]) -> Iterator[list[Whole]]:
    return _by_size(documents, lambda one: one[0].passages)


def _by_size(many: Sequence[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """A document that is larger than a batch is one by itself."""
    batch: list[T] = []
    held = 0
    for one in many:
        if batch and held + size(one) > CHUNKS_AT_ONCE:
            yield batch
            batch, held = [], 0
        batch.append(one)
        held += size(one)
    if batch:
        yield batch


@dataclass
class Reindexed:
    """`left_out` documents had not been written to their end."""

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
        """A new version, from nothing or from where an earlier run ended."""
        version = await self._versions.begin(self._copy.source.name, self._copy.target.name)
        if not version.position.done:
            await self._fill(version)
        await self._catch_up(is_live=False)
        await self._verify(await self._reconcile())
        return await self._switch()

    async def roll_back(self) -> Reindexed:
        """To the previous version, with all that was put since."""
        await self._catch_up(is_live=False)
        return await self._switch()

    async def finish(self) -> Reindexed:
        """After the switch of a run that was killed."""
        await self._catch_up_with_writers()
        return self._done

    async def _switch(self) -> Reindexed:
        await self._catch_up(is_live=False)
        name = self._copy.target.name
        # The record first: a run that is killed in between is followed by one that moves the alias.
        await self._versions.switch(name)
        await self._make_live(name)
        await self._catch_up_with_writers()
        self._done.left_out = sorted(f"{tenant}: {id_}" for tenant, id_ in self._copy.left_out)
        return self._done

    async def _fill(self, version: DocumentVersion) -> None:
        position = version.position
        total = await self._copy.source.passages()
        self._done.passages = min(await self._copy.target.passages(), total)
        async for tenant in self._from(position.tenant):
            after = position.key if tenant.name == position.tenant else ""
            export = TenantExport(self._copy.source.of(tenant))
            async for batch in export.batches(after):
                self._done.passages += await self._copy.restore(tenant, batch)
                if batch:
                    await self._reached(FillPosition(tenant.name, batch[-1][0].key))
                self._on_progress(Progress("chunks", self._done.passages, max(total, self._done.passages)))
            self._copy.left_out |= {(tenant, id_) for id_ in export.left_out}
        await self._reached(FillPosition(done=True))

    async def _reached(self, position: FillPosition) -> None:
        await self._versions.advance(self._copy.target.name, position)

    async def _from(self, name: str) -> AsyncIterator[Tenant]:
        """This tenant, if it is still there, and all after it."""
        after = name
        if name:
            yield Tenant(name)
        while page := await self._tenants.page(after, TENANTS_AT_ONCE):
            for known in page:
                yield known.tenant
            after = page[-1].tenant.name

    async def _catch_up(self, *, is_live: bool) -> int:
        """Until nothing is recorded that is not being written at the moment."""
        caught_up = 0
        name = self._copy.target.name
        while changes := await self._versions.changes(name, CHANGES_AT_ONCE):
            for of_one_tenant in _by_tenant(changes):
                if is_live:
                    await self._copy.bring_live_up_to_date(of_one_tenant, self._versions)
                else:
                    await self._copy.bring_up_to_date(of_one_tenant)
                await self._versions.clear(of_one_tenant)
            caught_up += len(changes)
            self._on_progress(Progress("changes", caught_up))
        self._done.caught_up += caught_up
        return caught_up

    async def _reconcile(self) -> Sample:
        """A writer that began before the first step recorded nothing: that is found by looking at everything."""
        for _ in range(MAX_RECONCILIATIONS):
            differing, sample = 0, Sample(SAMPLE)
            async for tenant in self._from(""):
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
        """Some documents are read to their end in both versions, before anybody depends on the new one."""
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
                hint="`toolscript reindex documents --cancel` gives the new one up",
            )

    async def _catch_up_with_writers(self) -> None:
        """Who was let in before the switch may still write to the version before."""
        while await self._versions.pending(self._copy.target.name):
            if not await self._catch_up(is_live=True):
                await asyncio.sleep(LOOK_AGAIN_SECONDS)


@asynccontextmanager
async def lease(versions: DocumentVersions, seconds: float = LEASE_SECONDS) -> AsyncIterator[None]:
    """One run at a time. One that was killed is waited for until its lease has ended."""
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
    """A run that has lost its lease stops: another may have begun."""
    while True:
        await asyncio.sleep(seconds / 3)
        if not await versions.hold(holder, seconds) and working is not None:
            working.cancel()
            return


def _by_tenant(changes: Sequence[DocumentChange]) -> list[list[DocumentChange]]:
    ordered = sorted(changes, key=lambda change: change.tenant.name)
    return [list(same) for _, same in groupby(ordered, key=lambda change: change.tenant.name)]
