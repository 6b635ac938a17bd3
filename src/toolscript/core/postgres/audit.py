"""The audit in schema `mcp`."""

import asyncio
import json
import logging
import time
from collections.abc import Mapping, Sequence
from itertools import count, takewhile

from psycopg.rows import dict_row

from toolscript.core.audit import Change
from toolscript.core.postgres.pool import Connection, Pool, connection
from toolscript.core.taxonomy import Actor, AuditEntry

_WRITE = """
INSERT INTO mcp.audit (actor, on_behalf_of, action, subject, details, namespace, count)
VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING id
"""
_FINISH = "UPDATE mcp.audit SET count = %s, details = (details::jsonb || %s::jsonb)::json WHERE id = %s"
SELECT_ENTRIES = "SELECT id, at, actor, on_behalf_of, action, subject, details, namespace, count FROM mcp.audit"
_AFTER = f"{SELECT_ENTRIES} WHERE id > %s ORDER BY id LIMIT %s"
# A writer has this lock before it takes a number, and until its entry can be read.
_WRITERS = """
SELECT virtualtransaction FROM pg_locks
WHERE relation = 'mcp.audit'::regclass AND mode = 'RowExclusiveLock' AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
# How long a reader waits for writers that have a number and have not ended.
WAIT_SECONDS, LOOK_AGAIN_SECONDS = 10.0, 0.05

logger = logging.getLogger(__name__)


class PostgresAudit:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def write(self, change: Change, /) -> None:
        async with connection(self._pool) as conn:
            await write_change(conn, change)

    async def after(self, number: int, limit: int, /) -> Sequence[tuple[int, AuditEntry]]:
        """Return no entry while one before it may still come: who goes on after the last then misses none."""
        page = await self._page(number, limit)
        whole = _without_gap(number, page)
        if len(whole) == len(page):
            return page
        if await self._writers_ended():
            # What is missing now was rolled back, up to the last that was seen.
            again, last = await self._page(number, limit), page[-1][0]
            return [entry for entry in again if entry[0] <= last]
        logger.warning("later entries of the audit wait for a write that has not ended", extra={"after": number})
        return whole

    async def _page(self, number: int, limit: int) -> list[tuple[int, AuditEntry]]:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_AFTER, (number, limit))
            return [(row.pop("id"), AuditEntry(**row)) for row in await cursor.fetchall()]

    async def _writers_ended(self) -> bool:
        """Wait for those who write now, and return whether all have ended."""
        before, ends_at = await self._writers(), time.monotonic() + WAIT_SECONDS
        while before and time.monotonic() < ends_at:
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
            before &= await self._writers()
        return not before

    async def _writers(self) -> set[object]:
        async with connection(self._pool) as conn:
            return {row[0] for row in await (await conn.execute(_WRITERS)).fetchall()}


def _without_gap(number: int, page: Sequence[tuple[int, AuditEntry]]) -> Sequence[tuple[int, AuditEntry]]:
    """Return the entries whose numbers follow each other from this one on."""
    numbered = takewhile(lambda both: both[0][0] == both[1], zip(page, count(number + 1), strict=False))
    return [entry for entry, _ in numbered]


async def write_audit(
    conn: Connection,
    actor: Actor,
    action: str,
    subject: object,
    details: Mapping[str, object],
    namespace: str | None = None,
) -> None:
    """Write the entry of one object; `namespace` None for a subject that all namespaces share."""
    await write_change(conn, Change(actor, action, str(subject), namespace, 1, dict(details)))


async def write_change(conn: Connection, change: Change) -> int:
    """Write an entry and return its number."""
    actor = change.actor
    values = (actor.name, actor.on_behalf_of, change.action, change.subject)
    details = json.dumps(change.details, ensure_ascii=False)
    row = await (await conn.execute(_WRITE, (*values, details, change.namespace, change.count))).fetchone()
    return int(str(row[0])) if row else 0


async def finish_change(conn: Connection, number: int, count: int, details: Mapping[str, object]) -> None:
    """Add to the entry of a job what became of it."""
    await conn.execute(_FINISH, (count, json.dumps(details, ensure_ascii=False), number))
