"""Statements that the parts of the catalog share.

Whoever locks rows of several tables takes them in this order: suggestions, skills, items (by source and key), held
changes (by item), dirty items (by generation and id), skill sums (by id). Two that meet then wait for each
other, never in a ring.
"""

from collections.abc import Sequence
from typing import Any

from toolscript.adapters.postgres.pool import Connection
from toolscript.model.assignments import AssignedBy, Assignment

# A store sees either all of the generations or is seen by the newest one's fill: never neither.
SHARE_GENERATIONS = "SELECT pg_advisory_xact_lock_shared(7406002)"
OWN_GENERATIONS = "SELECT pg_advisory_xact_lock(7406002)"

# Changes of the taxonomy take turns: a reader that has seen one revision has seen all that are smaller.
OWN_TAXONOMY = "SELECT pg_advisory_xact_lock(7406003)"

# An item that somebody holds stays held; its holder finds the new version when it clears.
_ON_CHANGE = """
ON CONFLICT (generation, item_id) DO UPDATE SET
    version = excluded.version, attempts = 0, last_error = NULL,
    free_at = CASE WHEN dirty.held_by IS NULL THEN '-infinity' ELSE dirty.free_at END
"""

MARK_CHANGED = f"""
INSERT INTO mcp.dirty_items AS dirty (generation, item_id, version)
SELECT generations.id, changed.id, changed.version
FROM mcp.index_generations generations, unnest(%(ids)s::bigint[], %(versions)s::bigint[]) AS changed (id, version)
WHERE state <> 'dropped'
ORDER BY generations.id, changed.id
{_ON_CHANGE}
"""  # noqa: S608 - built from constants only

MARK = f"""
INSERT INTO mcp.dirty_items AS dirty (generation, item_id, version)
SELECT %(generation)s, id, nextval('mcp.item_version') FROM unnest(%(ids)s::bigint[]) AS id ORDER BY id
{_ON_CHANGE}
"""  # noqa: S608 - built from constants only

# An item's assignments as one value, the primary first.
ASSIGNED = """(
    SELECT coalesce(json_agg(json_build_array(skill_id, confidence, source, reason)
                             ORDER BY is_primary DESC, confidence DESC, skill_id), '[]')
    FROM mcp.tool_skill_assignments WHERE tool_id = items.id
)"""

# A skill that changed has to be written to the index of every generation.
MARK_SKILLS = """
INSERT INTO mcp.skill_vectors (generation, skill_id)
SELECT generations.id, changed.id
FROM mcp.index_generations generations, unnest(%(skills)s::text[]) AS changed (id)
WHERE state <> 'dropped'
ORDER BY generations.id, changed.id
ON CONFLICT (generation, skill_id) DO UPDATE SET version = nextval('mcp.item_version')
"""


def assignments_of(rows: Sequence[Sequence[Any]]) -> tuple[Assignment, ...]:
    return tuple(Assignment(skill, float(sure), AssignedBy(by), reason) for skill, sure, by, reason in rows)


async def mark_changed(conn: Connection, changed: Sequence[tuple[object, object]]) -> None:
    """Items with their new versions."""
    if changed:
        ids, versions = zip(*changed, strict=True)
        await conn.execute(MARK_CHANGED, {"ids": list(ids), "versions": list(versions)})
