"""An export of the audit that goes on after its last entry misses none, however late an entry is committed."""

import asyncio

import pytest

from toolscript.core.audit import Change
from toolscript.core.postgres import audit as postgres_audit
from toolscript.core.postgres.audit import PostgresAudit, write_change
from toolscript.core.postgres.pool import Pool, connection, transaction
from toolscript.core.taxonomy import Actor

LATE = 60.0


def _change(subject: str) -> Change:
    return Change(Actor("ann"), "item.release", subject, count=1)


async def _last(pool: Pool) -> int:
    async with connection(pool) as conn:
        row = await (await conn.execute("SELECT coalesce(max(id), 0) FROM mcp.audit")).fetchone()
    return int(str(row[0])) if row else 0


async def _subjects(pool: Pool, after: int) -> list[str]:
    entries = await asyncio.wait_for(PostgresAudit(pool).after(after, 100), LATE)
    return [entry.subject for _, entry in entries]


async def test_an_entry_that_is_committed_late_is_waited_for(pool: Pool) -> None:
    start = await _last(pool)
    async with transaction(pool) as slow:
        await write_change(slow, _change("first"))
        await PostgresAudit(pool).write(_change("second"))
        exporting = asyncio.ensure_future(_subjects(pool, start))
        await asyncio.sleep(0.3)
        assert not exporting.done()
    assert await exporting == ["first", "second"]


async def test_what_follows_a_write_that_does_not_end_is_left_to_the_next_export(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_audit, "WAIT_SECONDS", 0.1)
    start = await _last(pool)
    await PostgresAudit(pool).write(_change("before"))
    async with transaction(pool) as slow:
        await write_change(slow, _change("first"))
        await PostgresAudit(pool).write(_change("second"))
        assert await _subjects(pool, start) == ["before"]
    assert await _subjects(pool, start) == ["before", "first", "second"]


async def test_a_number_that_was_rolled_back_holds_nothing_back(pool: Pool) -> None:
    start = await _last(pool)
    async with transaction(pool) as conn, conn.transaction(force_rollback=True):
        await write_change(conn, _change("never"))
    await PostgresAudit(pool).write(_change("second"))
    assert await _subjects(pool, start) == ["second"]
