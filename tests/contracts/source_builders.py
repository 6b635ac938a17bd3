"""A catalog with recorded changes, and jobs, for contract tests."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from tests.conftest import PATIENCE
from toolscript.core.items import Item, StoredItem
from toolscript.core.postgres.pool import Pool, connection, open_pool
from toolscript.core.taxonomy import AuditEntry
from toolscript.testing import MemoryCatalog, MemoryDirtySet
from toolscript.testing.catalog import MemorySyncJobs
from toolscript.tools.ports import Catalog, DirtySet, ItemChanges, SyncJobs
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.changes import PostgresItemChanges
from toolscript.tools.postgres.dirty_set import PostgresDirtySet
from toolscript.tools.postgres.jobs import PostgresSyncJobs
from toolscript.tools.postgres.sql import read_audit

FIRST = 1  # the index version that is live from the start


@dataclass(frozen=True)
class Changing:
    """`open_` returns the catalog, holding changes or not; `by_hand` assigns skills manually."""

    open_: Callable[[bool], Catalog]
    dirty: DirtySet
    changes: ItemChanges
    audit: Callable[[], Awaitable[Sequence[AuditEntry]]]
    by_hand: Callable[[int], Awaitable[None]]

    @property
    def applying(self) -> Catalog:
        return self.open_(False)

    @property
    def holding(self) -> Catalog:
        return self.open_(True)

    async def everything(self) -> Sequence[StoredItem]:
        catalog = self.open_(False)
        return await catalog.items([seen.id for seen in await catalog.scan(0, 1000)])

    async def description(self) -> str:
        (only,) = await self.everything()
        return only.item.description

    async def known(self, *items: Item) -> None:
        """Store these items; every index has followed."""
        await self.applying.store("file", list(items))
        await self.settle()

    async def settle(self) -> None:
        await self.dirty.clear(FIRST, await self.dirty.claim(FIRST, 1000, 60))

    async def dirty_ids(self) -> set[int]:
        return set((await self.dirty.claim(FIRST, 1000, 60)).versions)


@dataclass(frozen=True)
class Working:
    jobs: SyncJobs
    let_pass: Callable[[float], Awaitable[None]]


@asynccontextmanager
async def open_changing(request: pytest.FixtureRequest) -> AsyncIterator[Changing]:
    """Open it in memory or on PostgreSQL, by the fixture's parameter."""
    if request.param == "memory":
        yield changing_in_memory()
        return
    async with open_pool(request.getfixturevalue("postgres_url"), size=8, wait_seconds=PATIENCE) as pool:
        yield changing_in_postgres(pool)


def changing_in_memory() -> Changing:
    dirty = MemoryDirtySet()
    catalog = MemoryCatalog(dirty)

    def open_(hold: bool) -> Catalog:
        catalog.hold_changes = hold
        return catalog

    async def audit() -> Sequence[AuditEntry]:
        return catalog.changes.audited

    async def by_hand(item_id: int) -> None:
        catalog.by_hand.add(item_id)

    return Changing(open_, dirty, catalog.changes, audit, by_hand)


def changing_in_postgres(pool: Pool) -> Changing:
    async def audit() -> Sequence[AuditEntry]:
        async with connection(pool) as conn:
            return [entry for _, entry in reversed(await read_audit(conn, None, 100))]

    async def by_hand(item_id: int) -> None:
        async with connection(pool) as conn:
            await conn.execute("UPDATE mcp.items SET skills_by_hand = true WHERE id = %s", (item_id,))

    return Changing(
        lambda hold: PostgresCatalog(pool, hold_changes=hold),
        PostgresDirtySet(pool),
        PostgresItemChanges(pool),
        audit,
        by_hand,
    )


def working_in_memory() -> Working:
    time = [0.0]

    async def let_pass(seconds: float) -> None:
        time[0] += seconds

    return Working(MemorySyncJobs(lambda: time[0]), let_pass)


def working_in_postgres(pool: Pool) -> Working:
    async def let_pass(seconds: float) -> None:
        async with connection(pool) as conn:
            await conn.execute(
                "UPDATE mcp.sync_jobs SET heartbeat_at = heartbeat_at - make_interval(secs => %s)", (seconds,)
            )

    return Working(PostgresSyncJobs(pool), let_pass)
