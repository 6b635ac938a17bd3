"""Changed definitions of known items, in schema `mcp`."""

from collections.abc import Sequence
from typing import Any

from psycopg.rows import dict_row

from toolscript.core.items import MAX_ID
from toolscript.core.namespaces import Namespaces
from toolscript.core.postgres.audit import write_audit
from toolscript.core.postgres.pool import Connection, Pool, connection, transaction
from toolscript.core.taxonomy import Actor, DecidedBy
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
from toolscript.tools.postgres.sql import (
    SHARE_GENERATIONS,
    SourceKey,
    add_to_source,
    mark_changed,
    own_source,
)
from toolscript.tools.postgres.views import page_of, seen_in_view, seen_of

_COLUMNS = """
changes.id, item_id, changes.namespace, changes.source, changes.key, items.server, items.name, old_fingerprint,
new_fingerprint, changed_fields, state, seen_at, reviewed_by, on_behalf_of, reviewed_at
"""

_LISTED = f"SELECT {_COLUMNS} FROM mcp.item_changes changes JOIN mcp.items ON items.id = item_id"  # noqa: S608 - built from constants only
_EARLIER = "mcp.item_changes WHERE id < %(before)s"
# Only if it is set, so that an index finds the few held changes among many applied ones.
_OF_STATE = " AND state = %(state)s"

_FIND = f"""
SELECT {_COLUMNS}, old, new FROM mcp.item_changes changes JOIN mcp.items ON items.id = item_id
WHERE changes.id = %(id)s AND {seen_in_view("changes.namespace")}
"""  # noqa: S608 - built from constants only

# The common lock order: the item before its changes.
_HOLD_ITEM = "SELECT fingerprint, is_active FROM mcp.items WHERE id = %s FOR NO KEY UPDATE"
_HOLD = f"""
SELECT {_COLUMNS}, definition FROM mcp.item_changes changes JOIN mcp.items ON items.id = item_id
WHERE changes.id = %(id)s FOR UPDATE OF changes
"""  # noqa: S608 - built from constants only

_DECIDE = """
UPDATE mcp.item_changes
SET state = %s, reviewed_by = %s, on_behalf_of = %s, reviewed_at = now(), definition = NULL WHERE id = %s
"""


class PostgresItemChanges:
    def __init__(self, pool: Pool, namespaces: Namespaces = None) -> None:
        self._pool = pool
        self._namespaces = namespaces

    def within(self, namespaces: Namespaces) -> "PostgresItemChanges":
        return PostgresItemChanges(self._pool, namespaces)

    async def page(self, before: int | None, limit: int, state: ChangeState | None = None) -> Sequence[ItemChange]:
        ids = page_of(self._namespaces, _EARLIER + _OF_STATE * (state is not None), latest_first=True)
        values = {"before": MAX_ID if before is None else before, "limit": limit, "state": state}
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            query = f"{_LISTED} WHERE changes.id IN ({ids}) ORDER BY changes.id DESC"
            await cursor.execute(query, {**values, "seen": seen_of(self._namespaces)})
            return [_change(row) for row in await cursor.fetchall()]

    async def find(self, change_id: int) -> ChangeDetails:
        async with connection(self._pool) as conn:
            row = await self._find(conn, change_id)
        return ChangeDetails(_change(row), row["old"], row["new"])

    async def approve(self, change_id: int, by: DecidedBy) -> ItemChange:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            held, (in_force, was_there), definition = await self._hold(conn, change_id)
            if in_force != held.old_fingerprint:
                raise outdated_change(held)
            changed = await replace_definition(conn, held.item_id, item_of(held.key, definition))
            await _decide(conn, held, ChangeState.APPROVED, actor)
            await mark_changed(conn, [changed])
            await add_to_source(conn, SourceKey(held.namespace, held.source), 0 if was_there else 1)
            return _change(await self._find(conn, change_id))

    async def reject(self, change_id: int, by: DecidedBy) -> ItemChange:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            held, _, _ = await self._hold(conn, change_id)
            await _decide(conn, held, ChangeState.REJECTED, actor)
            return _change(await self._find(conn, change_id))

    async def _find(self, conn: Connection, change_id: int) -> dict[str, Any]:
        return await _row(conn, _FIND, {"id": change_id, "seen": seen_of(self._namespaces)})

    async def _hold(
        self, conn: Connection, change_id: int
    ) -> tuple[ItemChange, tuple[object, ...], dict[str, object]]:
        """Return the held change, the item's current fingerprint, whether it is active, and the held definition.

        Until the transaction ends, no other one can decide about the change or store items of its source.
        """
        await conn.execute(SHARE_GENERATIONS)
        seen = _change(await self._find(conn, change_id))
        await own_source(conn, SourceKey(seen.namespace, seen.source))
        rows = await (await conn.execute(_HOLD_ITEM, (seen.item_id,))).fetchall()
        row = await _row(conn, _HOLD, {"id": change_id})
        held = _change(row)
        if held.state is not ChangeState.HELD:
            raise not_held(held)
        # The item exists: deleting it deletes its changes.
        return held, rows[0], row["definition"]


async def _decide(conn: Connection, held: ItemChange, state: ChangeState, actor: Actor) -> None:
    await conn.execute(_DECIDE, (state, actor.name, actor.on_behalf_of, held.id))
    action = "change.approve" if state is ChangeState.APPROVED else "change.reject"
    details = {
        "item_id": held.item_id,
        "source": held.source,
        "key": held.key,
        "changed_fields": list(held.changed_fields),
        "old_fingerprint": held.old_fingerprint,
        "new_fingerprint": held.new_fingerprint,
    }
    await write_audit(conn, actor, action, held.id, details, held.namespace)


async def _row(conn: Connection, query: str, values: dict[str, Any]) -> dict[str, Any]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(query, values)
        row = await cursor.fetchone()
    if row is None:
        raise unknown_change(values["id"])
    return row


def _change(row: dict[str, Any]) -> ItemChange:
    names = ItemChange.__dataclass_fields__
    fields = {name: value for name, value in row.items() if name in names}
    return ItemChange(
        **{**fields, "changed_fields": tuple(row["changed_fields"]), "state": ChangeState(row["state"])}
    )
