"""Statements by which a store writes down what changed, for whoever owns the source and holds the items."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from toolscript.adapters.postgres.pool import Connection
from toolscript.model.changes import (
    MOST_KEPT_PER_ITEM,
    ChangeState,
    Difference,
    definition_of,
    difference,
)
from toolscript.model.items import Item

# Who changes definitions of a source takes turns with others who do: what is read of it stays true.
_OWN_SOURCE = "SELECT pg_advisory_xact_lock(7406004, hashtext(%s))"

_HOLD = """
SELECT id, item_id, new_fingerprint FROM mcp.item_changes
WHERE item_id = ANY(%s) AND state = 'held' ORDER BY item_id FOR UPDATE
"""

_WITHDRAW = "UPDATE mcp.item_changes SET state = 'withdrawn', definition = NULL WHERE id = ANY(%s)"

_DECIDED = """
SELECT changes.item_id, changes.state
FROM unnest(%(ids)s::bigint[], %(fingerprints)s::text[]) AS seen (item_id, fingerprint)
JOIN mcp.item_changes changes ON changes.item_id = seen.item_id AND changes.new_fingerprint = seen.fingerprint
WHERE changes.state IN ('held', 'rejected')
"""

_RECORD = """
INSERT INTO mcp.item_changes (source, state, item_id, key, old_fingerprint, new_fingerprint, changed_fields,
                              old, new, definition)
SELECT %(source)s, %(state)s, item_id, key, was, is_now, string_to_array(fields, ','), old, new, definition
FROM unnest(%(ids)s::bigint[], %(keys)s::text[], %(was)s::text[], %(is_now)s::text[], %(fields)s::text[],
            %(old)s::json[], %(new)s::json[], %(definitions)s::json[])
AS seen (item_id, key, was, is_now, fields, old, new, definition)
"""

# A held change is always the last of its item, and so is never among these.
_FORGET_OLDER = """
DELETE FROM mcp.item_changes USING (
    SELECT id, row_number() OVER (PARTITION BY item_id ORDER BY id DESC) AS place
    FROM mcp.item_changes WHERE item_id = ANY(%s)
) AS counted
WHERE item_changes.id = counted.id AND counted.place > %s
"""


@dataclass(frozen=True)
class Changed:
    """A known item, as it is in force and as its source has it now."""

    item_id: int
    fingerprint: str
    old: Item
    new: Item
    was_there: bool = True

    @cached_property
    def difference(self) -> Difference:
        return difference(self.old, self.new)


async def own_source(conn: Connection, source: str) -> None:
    await conn.execute(_OWN_SOURCE, (source,))


async def withdraw_outdated(conn: Connection, seen: Mapping[int, str]) -> None:
    """What a source no longer says cannot come into force: held changes to a fingerprint that is not seen now."""
    rows = await (await conn.execute(_HOLD, (list(seen),))).fetchall()
    outdated = [id_ for id_, item_id, fingerprint in rows if seen[int(str(item_id))] != fingerprint]
    if outdated:
        await conn.execute(_WITHDRAW, (outdated,))


async def record(conn: Connection, source: str, changes: Sequence[Changed], state: ChangeState) -> None:
    if not changes:
        return
    held = state is ChangeState.HELD
    values = {
        "source": source,
        "state": state,
        "ids": [one.item_id for one in changes],
        "keys": [one.new.key for one in changes],
        "was": [one.fingerprint for one in changes],
        "is_now": [one.new.fingerprint for one in changes],
        "fields": [",".join(one.difference.fields) for one in changes],
        "old": [_json(one.difference.old) for one in changes],
        "new": [_json(one.difference.new) for one in changes],
        "definitions": [_json(definition_of(one.new)) if held else None for one in changes],
    }
    await conn.execute(_RECORD, values)
    await conn.execute(_FORGET_OLDER, (values["ids"], MOST_KEPT_PER_ITEM))


async def hold(conn: Connection, source: str, changes: Sequence[Changed]) -> int:
    """Has people asked about what they were not asked about before; answers how many wait for them now."""
    if not changes:
        return 0
    values = {"ids": [one.item_id for one in changes], "fingerprints": [one.new.fingerprint for one in changes]}
    rows = await (await conn.execute(_DECIDED, values)).fetchall()
    decided = {row[0]: row[1] for row in rows}
    await record(conn, source, [one for one in changes if one.item_id not in decided], ChangeState.HELD)
    return sum(decided.get(one.item_id) != ChangeState.REJECTED for one in changes)


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False)
