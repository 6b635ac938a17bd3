"""The audit in schema `mcp`."""

import json
from collections.abc import Mapping, Sequence

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


class PostgresAudit:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def write(self, change: Change, /) -> None:
        async with connection(self._pool) as conn:
            await write_change(conn, change)

    async def after(self, number: int, limit: int, /) -> Sequence[tuple[int, AuditEntry]]:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_AFTER, (number, limit))
            return [(row.pop("id"), AuditEntry(**row)) for row in await cursor.fetchall()]


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
