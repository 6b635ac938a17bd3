"""Statements that the stores of the catalog share.

A transaction that locks rows of several tables does so in this order: suggestions (by key and namespace), skills,
items (by source, key and id), held changes (by item), dirty items (by index version and id), centroids (by skill
and namespace). This prevents deadlocks.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from psycopg.rows import dict_row

from toolscript.core.items import MAX_ID, SKILL_ID, AssignedBy, Assignment, Item
from toolscript.core.namespaces import Namespaces
from toolscript.core.postgres.audit import SELECT_ENTRIES
from toolscript.core.postgres.pool import Connection
from toolscript.core.taxonomy import AuditEntry
from toolscript.tools.model.catalog import MAX_KEPT_PER_ITEM, ChangeState, Difference, definition_of, difference
from toolscript.tools.postgres.views import SEEN, page_of, seen_of

# A transaction that stores items either sees every index version, or the newest one's fill sees its items.
SHARE_GENERATIONS = "SELECT pg_advisory_xact_lock_shared(7406002)"
LOCK_INDEX_VERSIONS = "SELECT pg_advisory_xact_lock(7406002)"

# Changes of the taxonomy are serialized: a reader that sees a revision has seen all smaller ones.
OWN_TAXONOMY = "SELECT pg_advisory_xact_lock(7406003)"

# A leased item stays leased; the worker that holds it finds the new version when it clears.
_ON_CHANGE = """
ON CONFLICT (generation, item_id) DO UPDATE SET
    version = excluded.version, attempts = 0, last_error = NULL,
    free_at = CASE WHEN dirty.held_by IS NULL THEN '-infinity' ELSE dirty.free_at END
"""

MARK_CHANGED = f"""
INSERT INTO mcp.dirty_items AS dirty (generation, item_id, version, namespace)
SELECT generations.id, changed.id, changed.version, coalesce(items.namespace, 'default')
FROM mcp.index_generations generations, unnest(%(ids)s::bigint[], %(versions)s::bigint[]) AS changed (id, version)
LEFT JOIN mcp.items ON items.id = changed.id
WHERE state <> 'dropped'
ORDER BY generations.id, changed.id
{_ON_CHANGE}
"""  # noqa: S608 - built from constants only

MARK = f"""
INSERT INTO mcp.dirty_items AS dirty (generation, item_id, version, namespace)
SELECT %(generation)s, marked.id, nextval('mcp.item_version'), coalesce(items.namespace, 'default')
FROM unnest(%(ids)s::bigint[]) AS marked (id) LEFT JOIN mcp.items ON items.id = marked.id ORDER BY marked.id
{_ON_CHANGE}
"""  # noqa: S608 - built from constants only

# The assignments of an item as one value, the primary first.
ASSIGNED = """(
    SELECT coalesce(json_agg(json_build_array(skill_id, confidence, source, reason)
                             ORDER BY is_primary DESC, confidence DESC, skill_id), '[]')
    FROM mcp.tool_skill_assignments WHERE tool_id = items.id
)"""

# A changed skill has to be written to every index version, in each namespace where it has items.
MARK_SKILLS = """
INSERT INTO mcp.skill_vectors (generation, namespace, skill_id)
SELECT generations.id, places.namespace, changed.id
FROM mcp.index_generations generations, unnest(%(skills)s::text[]) AS changed (id),
LATERAL (
    SELECT 'default'
    UNION SELECT namespace FROM mcp.skill_vectors WHERE generation = generations.id AND skill_id = changed.id
) AS places (namespace)
WHERE state <> 'dropped'
ORDER BY generations.id, changed.id, places.namespace
ON CONFLICT (generation, namespace, skill_id) DO UPDATE SET version = nextval('mcp.item_version')
"""

_TAKEN = """
INSERT INTO mcp.sources (namespace, name, items) VALUES (%s, %s, %s)
ON CONFLICT (namespace, name) DO UPDATE SET items = sources.items + excluded.items, synced_at = now()
"""

_ADD_TO_SOURCE = "UPDATE mcp.sources SET items = items + %s WHERE namespace = %s AND name = %s"
_FORGET_SOURCE = "DELETE FROM mcp.sources WHERE namespace = %s AND name = %s"

_ACTIVE = "SELECT id FROM mcp.skill_categories WHERE id = ANY(%s) AND is_active ORDER BY id FOR SHARE"
_ASSIGNED = f"SELECT id, {ASSIGNED} FROM mcp.items WHERE id = ANY(%(ids)s) AND is_active AND {SEEN}"  # noqa: S608 - built from constants only
_CLEAR = "DELETE FROM mcp.tool_skill_assignments WHERE tool_id = ANY(%s)"

_ASSIGN = """
INSERT INTO mcp.tool_skill_assignments (tool_id, skill_id, is_primary, confidence, source, reason, namespace)
SELECT new.*, items.namespace
FROM unnest(%(items)s::bigint[], %(skills)s::text[], %(primary)s::boolean[],
            %(confidences)s::double precision[], %(sources)s::text[], %(reasons)s::text[])
     AS new (tool_id, skill_id, is_primary, confidence, source, reason)
JOIN mcp.items ON items.id = new.tool_id
"""

_VERSIONS = """
UPDATE mcp.items SET needs_skills = needs_skills AND NOT %(classified)s, version = nextval('mcp.item_version')
WHERE id = ANY(%(items)s) RETURNING id, version
"""

# The items of a decided suggestion stay: they are the evidence of the decision.
_FORGET_ASKS = """
DELETE FROM mcp.skill_suggestion_items asks USING mcp.skill_suggestions asked
WHERE asks.tool_id = ANY(%(items)s) AND asked.id = asks.suggestion_id AND asked.status = 'pending'
  AND asked.kind = 'suggestion'
  AND NOT EXISTS (
      SELECT FROM unnest(%(kept)s::bigint[], %(kept_for)s::bigint[]) AS kept (suggestion_id, tool_id)
      WHERE kept.suggestion_id = asks.suggestion_id AND kept.tool_id = asks.tool_id)
"""

_FORGET_ALL_ASKS = "DELETE FROM mcp.skill_suggestion_items WHERE tool_id = ANY(%s)"

_KEEP_ASKS = """
INSERT INTO mcp.skill_suggestion_items (suggestion_id, tool_id)
SELECT * FROM unnest(%(kept)s::bigint[], %(kept_for)s::bigint[]) ON CONFLICT DO NOTHING
"""

_EARLIER = "mcp.audit WHERE id < %(before)s"
_EARLIER_SHARED = f"{_EARLIER} AND namespace IS NULL"

# Changes of the definitions of a source are serialized: rows read in the transaction stay valid.
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
INSERT INTO mcp.item_changes (namespace, source, state, item_id, key, old_fingerprint, new_fingerprint,
                              changed_fields, old, new, definition)
SELECT %(namespace)s, %(source)s, %(state)s, item_id, key, was, is_now, string_to_array(fields, ','), old, new,
       definition
FROM unnest(%(ids)s::bigint[], %(keys)s::text[], %(was)s::text[], %(is_now)s::text[], %(fields)s::text[],
            %(old)s::json[], %(new)s::json[], %(definitions)s::json[])
AS seen (item_id, key, was, is_now, fields, old, new, definition)
"""

# A held change is always the last of its item, so this never deletes it.
_DELETE_OLDER = """
DELETE FROM mcp.item_changes USING (
    SELECT id, row_number() OVER (PARTITION BY item_id ORDER BY id DESC) AS place
    FROM mcp.item_changes WHERE item_id = ANY(%s)
) AS counted
WHERE item_changes.id = counted.id AND counted.place > %s
"""


class SourceKey(NamedTuple):
    """A source: two namespaces may have sources of one name."""

    namespace: str
    name: str


def assignments_of(rows: Sequence[Sequence[Any]]) -> tuple[Assignment, ...]:
    return tuple(Assignment(skill, float(sure), AssignedBy(by), reason) for skill, sure, by, reason in rows)


async def mark_changed(conn: Connection, changed: Sequence[tuple[object, object]]) -> None:
    """Mark items dirty in every index version, with their new versions."""
    if changed:
        ids, versions = zip(*changed, strict=True)
        await conn.execute(MARK_CHANGED, {"ids": list(ids), "versions": list(versions)})


async def taken_from_source(conn: Connection, source: SourceKey, difference: int) -> None:
    """Record a sync of the source, and the change of its number of items."""
    await conn.execute(_TAKEN, (*source, difference))


async def add_to_source(conn: Connection, source: SourceKey, difference: int) -> None:
    if difference:
        await conn.execute(_ADD_TO_SOURCE, (difference, *source))


async def forget_source(conn: Connection, source: SourceKey) -> None:
    await conn.execute(_FORGET_SOURCE, source)


async def hold_active_skills(conn: Connection, skill_ids: Collection[str]) -> frozenset[str]:
    """Lock those of these skills that are active, until the transaction ends; return their ids."""
    possible = sorted({skill_id for skill_id in skill_ids if SKILL_ID.fullmatch(skill_id)})
    rows = await (await conn.execute(_ACTIVE, (possible,))).fetchall()
    return frozenset(str(row[0]) for row in rows)


async def assigned(
    conn: Connection, item_ids: Collection[int], namespaces: Namespaces = None
) -> dict[int, tuple[Assignment, ...]]:
    values = {"ids": list(item_ids), "seen": seen_of(namespaces)}
    rows = await (await conn.execute(_ASSIGNED, values)).fetchall()
    return {int(str(id_)): assignments_of(values) for id_, values in rows if isinstance(values, list)}


async def write_assignments(
    conn: Connection, new: Mapping[int, tuple[Assignment, ...]], *, are_classified: bool = True
) -> dict[int, int]:
    """Replace the assignments of the items; return their new versions. Unless they are classified with this, those
    that wait for a classifier go on waiting."""
    if not new:
        return {}
    flat = [(item_id, place, assignment) for item_id, all_ in new.items() for place, assignment in enumerate(all_)]
    values = {
        "items": [item_id for item_id, _, _ in flat],
        "skills": [assignment.skill_id for _, _, assignment in flat],
        "primary": [place == 0 for _, place, _ in flat],
        "confidences": [assignment.confidence for _, _, assignment in flat],
        "sources": [str(assignment.source) for _, _, assignment in flat],
        "reasons": [assignment.reason for _, _, assignment in flat],
    }
    await conn.execute(_CLEAR, (list(new),))
    await conn.execute(_ASSIGN, values)
    rows = await (await conn.execute(_VERSIONS, {"items": list(new), "classified": are_classified})).fetchall()
    await mark_changed(conn, [(row[0], row[1]) for row in rows])
    return {int(str(row[0])): int(str(row[1])) for row in rows}


async def detach_suggestions(
    conn: Connection, item_ids: Collection[int], but: Mapping[int, int] | None = None
) -> None:
    """Detach the items from all pending suggestions; `but` maps an item to the suggestion it requests."""
    kept = but or {}
    values = {"items": list(item_ids), "kept": list(kept.values()), "kept_for": list(kept)}
    await conn.execute(_FORGET_ASKS, values)
    if kept:
        await conn.execute(_KEEP_ASKS, values)


async def detach_all_suggestions(conn: Connection, item_ids: Collection[int]) -> None:
    """Detach items that changed or were removed from all suggestions."""
    if item_ids:
        await conn.execute(_FORGET_ALL_ASKS, (list(item_ids),))


async def read_audit(
    conn: Connection, before: int | None, limit: int, namespaces: Namespaces = None
) -> Sequence[tuple[int, AuditEntry]]:
    """Return the latest entries of these namespaces and the shared ones."""
    ids = page_of(namespaces, _EARLIER, latest_first=True)
    if namespaces is not None:
        ids = f"({ids}) UNION ALL ({page_of(None, _EARLIER_SHARED, latest_first=True)})"
    values = {"before": MAX_ID if before is None else before, "limit": limit, "seen": seen_of(namespaces)}
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(f"{SELECT_ENTRIES} WHERE id IN ({ids}) ORDER BY id DESC LIMIT %(limit)s", values)
        rows = await cursor.fetchall()
    return [(row.pop("id"), AuditEntry(**row)) for row in rows]


@dataclass(frozen=True)
class Changed:
    """A known item: its current definition, and the new one from its source."""

    item_id: int
    fingerprint: str
    old: Item
    new: Item
    was_there: bool = True

    @cached_property
    def difference(self) -> Difference:
        return difference(self.old, self.new)


async def own_source(conn: Connection, source: SourceKey) -> None:
    await conn.execute(_OWN_SOURCE, ("/".join(source),))


async def withdraw_outdated(conn: Connection, seen: Mapping[int, str]) -> None:
    """Withdraw held changes whose new fingerprint is not the one that the source has now."""
    rows = await (await conn.execute(_HOLD, (list(seen),))).fetchall()
    outdated = [id_ for id_, item_id, fingerprint in rows if seen[int(str(item_id))] != fingerprint]
    if outdated:
        await conn.execute(_WITHDRAW, (outdated,))


async def record(conn: Connection, source: SourceKey, changes: Sequence[Changed], state: ChangeState) -> None:
    if not changes:
        return
    held = state is ChangeState.HELD
    values = {
        "namespace": source.namespace,
        "source": source.name,
        "state": state,
        "ids": [changed.item_id for changed in changes],
        "keys": [changed.new.key for changed in changes],
        "was": [changed.fingerprint for changed in changes],
        "is_now": [changed.new.fingerprint for changed in changes],
        "fields": [",".join(changed.difference.fields) for changed in changes],
        "old": [_json(changed.difference.old) for changed in changes],
        "new": [_json(changed.difference.new) for changed in changes],
        "definitions": [_json(definition_of(changed.new)) if held else None for changed in changes],
    }
    await conn.execute(_RECORD, values)
    await conn.execute(_DELETE_OLDER, (values["ids"], MAX_KEPT_PER_ITEM))


async def hold(conn: Connection, source: SourceKey, changes: Sequence[Changed]) -> int:
    """Hold the changes that are neither held nor rejected yet; return how many are held now."""
    if not changes:
        return 0
    values = {
        "ids": [changed.item_id for changed in changes],
        "fingerprints": [changed.new.fingerprint for changed in changes],
    }
    rows = await (await conn.execute(_DECIDED, values)).fetchall()
    decided = {row[0]: row[1] for row in rows}
    await record(
        conn, source, [changed for changed in changes if changed.item_id not in decided], ChangeState.HELD
    )
    return sum(decided.get(changed.item_id) != ChangeState.REJECTED for changed in changes)


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False)
