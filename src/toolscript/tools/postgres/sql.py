"""Statements by which assignments are read and written, for whoever holds the items."""

from collections.abc import Collection, Mapping

from toolscript.adapters.postgres.pool import Connection
from toolscript.adapters.postgres.sql import ASSIGNED, assignments_of, mark_changed
from toolscript.model.assignments import SKILL_ID, Assignment

_ACTIVE = "SELECT id FROM mcp.skill_categories WHERE id = ANY(%s) AND is_active ORDER BY id FOR SHARE"

_ASSIGNED = f"SELECT id, {ASSIGNED} FROM mcp.items WHERE id = ANY(%s) AND is_active"  # noqa: S608 - built from constants only

_CLEAR = "DELETE FROM mcp.tool_skill_assignments WHERE tool_id = ANY(%s)"

_ASSIGN = """
INSERT INTO mcp.tool_skill_assignments (tool_id, skill_id, is_primary, confidence, source, reason)
SELECT * FROM unnest(%(items)s::bigint[], %(skills)s::text[], %(primary)s::boolean[],
                     %(confidences)s::double precision[], %(sources)s::text[], %(reasons)s::text[])
"""

_VERSIONS = """
UPDATE mcp.items SET needs_skills = false, version = nextval('mcp.item_version') WHERE id = ANY(%s)
RETURNING id, version
"""

# What a decided suggestion was asked by stays: it is what the decision rests on.
_FORGET_ASKS = """
DELETE FROM mcp.skill_suggestion_items asks USING mcp.skill_suggestions asked
WHERE asks.tool_id = ANY(%(items)s) AND asked.id = asks.suggestion_id AND asked.status = 'pending'
  AND NOT EXISTS (
      SELECT FROM unnest(%(kept)s::bigint[], %(kept_for)s::bigint[]) AS kept (suggestion_id, tool_id)
      WHERE kept.suggestion_id = asks.suggestion_id AND kept.tool_id = asks.tool_id)
"""

_FORGET_ALL_ASKS = "DELETE FROM mcp.skill_suggestion_items WHERE tool_id = ANY(%s)"

_KEEP_ASKS = """
INSERT INTO mcp.skill_suggestion_items (suggestion_id, tool_id)
SELECT * FROM unnest(%(kept)s::bigint[], %(kept_for)s::bigint[]) ON CONFLICT DO NOTHING
"""


async def hold_active_skills(conn: Connection, skill_ids: Collection[str]) -> frozenset[str]:
    """Which of these are active, and stay so until the transaction ends."""
    possible = sorted({one for one in skill_ids if SKILL_ID.fullmatch(one)})
    rows = await (await conn.execute(_ACTIVE, (possible,))).fetchall()
    return frozenset(str(row[0]) for row in rows)


async def assigned(conn: Connection, item_ids: Collection[int]) -> dict[int, tuple[Assignment, ...]]:
    rows = await (await conn.execute(_ASSIGNED, (list(item_ids),))).fetchall()
    return {int(str(id_)): assignments_of(found) for id_, found in rows if isinstance(found, list)}


async def write_assignments(conn: Connection, new: Mapping[int, tuple[Assignment, ...]]) -> dict[int, int]:
    """In place of what the items have; answers their new versions."""
    if not new:
        return {}
    flat = [(item_id, place, one) for item_id, all_ in new.items() for place, one in enumerate(all_)]
    values = {
        "items": [item_id for item_id, _, _ in flat],
        "skills": [one.skill_id for _, _, one in flat],
        "primary": [place == 0 for _, place, _ in flat],
        "confidences": [one.confidence for _, _, one in flat],
        "sources": [str(one.source) for _, _, one in flat],
        "reasons": [one.reason for _, _, one in flat],
    }
    await conn.execute(_CLEAR, (list(new),))
    await conn.execute(_ASSIGN, values)
    rows = await (await conn.execute(_VERSIONS, (list(new),))).fetchall()
    await mark_changed(conn, [(row[0], row[1]) for row in rows])
    return {int(str(row[0])): int(str(row[1])) for row in rows}


async def forget_asks(conn: Connection, item_ids: Collection[int], but: Mapping[int, int] | None = None) -> None:
    """The items no longer ask for any pending suggestion, but each for the one that is named with it."""
    kept = but or {}
    values = {"items": list(item_ids), "kept": list(kept.values()), "kept_for": list(kept)}
    await conn.execute(_FORGET_ASKS, values)
    if kept:
        await conn.execute(_KEEP_ASKS, values)


async def forget_all_asks(conn: Connection, item_ids: Collection[int]) -> None:
    """An item that is another one now, or gone, has asked for nothing."""
    if item_ids:
        await conn.execute(_FORGET_ALL_ASKS, (list(item_ids),))
