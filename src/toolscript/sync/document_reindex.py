"""Builds a version of the documents' index beside the live one, and makes it the live one.

    begin -> fill, tenant by tenant -> catch up -> reconcile -> verify -> switch -> end of open writes

From the first step on, whoever writes records what the other version lacks. So a run that is killed goes on where
it was, a switch loses nothing, and a way back has all that was put meanwhile. After the switch nobody is let in
any more who would write to the version before.
"""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby

from toolscript.errors import Conflict
from toolscript.model.document_versions import DocumentChange, DocumentVersion, FillPosition
from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.model.tenancy import Tenant
from toolscript.ports import DocumentVersions, Tenants
from toolscript.sync.document_copying import DocumentCopy, Sample
from toolscript.sync.tenant_export import TenantExport

TENANTS_AT_ONCE = 100
CHANGES_AT_ONCE = 200
LEASE_SECONDS = 15.0
LOOK_AGAIN_SECONDS = 0.5
MAX_RECONCILIATIONS = 5
# So many documents are read to their end before the switch.
SAMPLE = 200

MakeLive = Callable[[str], Awaitable[None]]


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
    ordered = sorted(changes, key=lambda one: one.tenant.name)
    return [list(same) for _, same in groupby(ordered, key=lambda one: one.tenant.name)]
