"""Changed definitions of known items, in schema `mcp`."""

from collections.abc import Sequence
from typing import Any

from psycopg.rows import dict_row

from toolscript.core.items import MAX_ID
from toolscript.core.postgres.pool import Connection, Pool, connection, transaction
from toolscript.tools.model.catalog import (
    ChangeDetails,
    ChangeState,
    ItemChange,
    item_of,
    not_held,
    outdated_change,
    unknown_change,
)
from toolscript.tools.model.skills import valid_actor
from toolscript.tools.postgres.catalog import replace_definition
from toolscript.tools.postgres.sql import SHARE_GENERATIONS, add_to_source, mark_changed, own_source, write_audit

_COLUMNS = """
changes.id, item_id, changes.source, changes.key, items.server, items.name, old_fingerprint, new_fingerprint,
changed_fields, state, seen_at, reviewed_by, reviewed_at
"""

_PAGE = f"""
SELECT {_COLUMNS} FROM mcp.item_changes changes JOIN mcp.items ON items.id = item_id
WHERE changes.id < %(before)s ORDER BY changes.id DESC LIMIT %(limit)s
"""  # noqa: S608 - built from constants only
# A separate statement, so that an index finds the few held changes among many applied ones.
_PAGE_OF_STATE = _PAGE.replace("WHERE", "WHERE state = %(state)s AND")

_FIND = f"""
SELECT {_COLUMNS}, old, new FROM mcp.item_changes changes JOIN mcp.items ON items.id = item_id
WHERE changes.id = %s
"""  # noqa: S608 - built from constants only

# The common lock order: the item before its changes.
_HOLD_ITEM = "SELECT fingerprint, is_active FROM mcp.items WHERE id = %s FOR NO KEY UPDATE"
_HOLD = f"""
SELECT {_COLUMNS}, definition FROM mcp.item_changes changes JOIN mcp.items ON items.id = item_id
WHERE changes.id = %s FOR UPDATE OF changes
"""  # noqa: S608 - built from constants only

_DECIDE = """
UPDATE mcp.item_changes SET state = %s, reviewed_by = %s, reviewed_at = now(), definition = NULL WHERE id = %s
"""


class PostgresItemChanges:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def page(self, before: int | None, limit: int, state: ChangeState | None = None) -> Sequence[ItemChange]:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            values = {"before": MAX_ID if before is None else before, "limit": limit, "state": state}
            await cursor.execute(_PAGE if state is None else _PAGE_OF_STATE, values)
            return [_change(row) for row in await cursor.fetchall()]

    async def find(self, change_id: int) -> ChangeDetails:
        async with connection(self._pool) as conn:
            row = await _row(conn, _FIND, change_id)
        return ChangeDetails(_change(row), row["old"], row["new"])

    async def approve(self, change_id: int, by: str) -> ItemChange:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            held, (in_force, was_there), definition = await _hold(conn, change_id)
            if in_force != held.old_fingerprint:
                raise outdated_change(held)
            changed = await replace_definition(conn, held.item_id, item_of(held.key, definition))
            await _decide(conn, held, ChangeState.APPROVED, actor)
            await mark_changed(conn, [changed])
            await add_to_source(conn, held.source, 0 if was_there else 1)
            return _change(await _row(conn, _FIND, change_id))

    async def reject(self, change_id: int, by: str) -> ItemChange:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            held, _, _ = await _hold(conn, change_id)
            await _decide(conn, held, ChangeState.REJECTED, actor)
            return _change(await _row(conn, _FIND, change_id))


async def _hold(conn: Connection, change_id: int) -> tuple[ItemChange, tuple[object, ...], dict[str, object]]:
    """Return the held change, the item's current fingerprint and whether it is active, and the held definition.

    Until the transaction ends, no other one can decide about the change or store items of its source.
    """
    await conn.execute(SHARE_GENERATIONS)
    seen = _change(await _row(conn, _FIND, change_id))
    await own_source(conn, seen.source)
    rows = await (await conn.execute(_HOLD_ITEM, (seen.item_id,))).fetchall()
    row = await _row(conn, _HOLD, change_id)
    held = _change(row)
    if held.state is not ChangeState.HELD:
        raise not_held(held)
    # The item exists: deleting it deletes its changes.
    return held, rows[0], row["definition"]


async def _decide(conn: Connection, held: ItemChange, state: ChangeState, actor: str) -> None:
    await conn.execute(_DECIDE, (state, actor, held.id))
    action = "change.approve" if state is ChangeState.APPROVED else "change.reject"
    details = {
        "item_id": held.item_id,
        "source": held.source,
        "key": held.key,
        "changed_fields": list(held.changed_fields),
        "old_fingerprint": held.old_fingerprint,
        "new_fingerprint": held.new_fingerprint,
    }
    await write_audit(conn, actor, action, held.id, details)


async def _row(conn: Connection, query: str, change_id: int) -> dict[str, Any]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, (change_id,))
        row = await cursor.fetchone()
    if row is None:
        raise unknown_change(change_id)
    return row


def _change(row: dict[str, Any]) -> ItemChange:
    names = ItemChange.__dataclass_fields__
    fields = {name: value for name, value in row.items() if name in names}
    return ItemChange(
        **{**fields, "changed_fields": tuple(row["changed_fields"]), "state": ChangeState(row["state"])}
    )
