"""Who decided what, written in the transaction that did it."""

import json
from collections.abc import Mapping, Sequence

from psycopg.rows import dict_row

from toolscript.adapters.postgres.pool import Connection
from toolscript.model.skills import AuditEntry

_WRITE = "INSERT INTO mcp.audit (actor, action, subject, details) VALUES (%s, %s, %s, %s)"

_READ = """
SELECT id, at, actor, action, subject, details FROM mcp.audit
WHERE %(before)s::bigint IS NULL OR id < %(before)s ORDER BY id DESC LIMIT %(limit)s
"""


async def write_audit(
    conn: Connection, actor: str, action: str, subject: object, details: Mapping[str, object]
) -> None:
    await conn.execute(_WRITE, (actor, action, str(subject), json.dumps(details, ensure_ascii=False)))


async def read_audit(conn: Connection, before: int | None, limit: int) -> Sequence[tuple[int, AuditEntry]]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_READ, {"before": before, "limit": limit})
        rows = await cursor.fetchall()
    return [(row.pop("id"), AuditEntry(**row)) for row in rows]
