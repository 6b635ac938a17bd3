"""Assignments of items to skills, and the results of classifiers, in schema `mcp`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from psycopg.rows import class_row

from toolscript.core.items import MIN_CONFIDENCE, AssignedBy, Assignment
from toolscript.core.namespaces import Namespaces, seen_in
from toolscript.core.postgres.audit import write_audit
from toolscript.core.postgres.pool import Connection, Pool, connection, transaction
from toolscript.core.taxonomy import Classified, DecidedBy, SuggestedSkill, SuggestionState
from toolscript.tools.model.skills import (
    are_same,
    by_classifier,
    by_hand,
    by_rule,
    moved,
    stored_suggestion,
    unknown_item,
    valid_actor,
)
from toolscript.tools.postgres.skills import find_skill
from toolscript.tools.postgres.sql import (
    SHARE_GENERATIONS,
    assigned,
    detach_suggestions,
    hold_active_skills,
    mark_changed,
    write_assignments,
)
from toolscript.tools.postgres.views import SEEN, page_of, seen_of

# Existing rows are not touched: the statement after this one locks them.
_SUGGEST = """
INSERT INTO mcp.skill_suggestions (namespace, key, suggested_name, suggested_description)
SELECT *
FROM unnest(%(namespaces)s::text[], %(keys)s::text[], %(names)s::text[], %(descriptions)s::text[])
     AS new (namespace, key, name, description)
ORDER BY key, namespace
ON CONFLICT (namespace, key) DO NOTHING RETURNING id
"""

_HOLD_SUGGESTIONS = """
SELECT id, suggestions.namespace, suggestions.key, status, skill_id
FROM mcp.skill_suggestions suggestions
JOIN unnest(%(namespaces)s::text[], %(keys)s::text[]) AS wanted (namespace, key)
  ON suggestions.namespace = wanted.namespace AND suggestions.key = wanted.key
ORDER BY suggestions.key, suggestions.namespace FOR UPDATE OF suggestions
"""

_FORGET_SUGGESTIONS = "DELETE FROM mcp.skill_suggestions WHERE id = ANY(%s)"

_HOLD_ITEMS = """
SELECT id, version, namespace FROM mcp.items
WHERE id = ANY(%s) AND is_active AND needs_skills AND NOT skills_by_hand
ORDER BY source, key, id FOR NO KEY UPDATE
"""

# Suggestions of these items that a person accepted; the items have not changed since.
_GRANTED = """
SELECT tool_id, suggested_name, granted.skill_id, coalesce(granted.confidence, %(least)s)
FROM mcp.skill_suggestion_items asks JOIN mcp.skill_suggestions suggestions ON suggestions.id = suggestion_id,
LATERAL unnest(coalesce(asks.skill_ids, ARRAY[suggestions.skill_id]), asks.confidences)
    AS granted (skill_id, confidence)
WHERE tool_id = ANY(%(items)s) AND granted.skill_id IS NOT NULL AND status IN ('approved', 'merged')
ORDER BY tool_id, suggestions.key
"""

_CLASSIFIED = "UPDATE mcp.items SET needs_skills = false WHERE id = ANY(%s)"

_SuggestionKey = tuple[str, str]  # namespace and key
_Grant = tuple[SuggestedSkill, str | None, float]  # with the skill that was decided on, and its confidence
Recorded = dict[int, tuple[int, tuple[Assignment, ...]]]

AT_ONCE = 5_000
_HOLD_ONE = f"""
SELECT skills_by_hand, namespace FROM mcp.items WHERE id = %(id)s AND is_active AND {SEEN} FOR NO KEY UPDATE
"""  # noqa: S608 - built from constants only
_BY_HAND = "UPDATE mcp.items SET skills_by_hand = true, needs_skills = false WHERE id = %s"
_RELEASE = "UPDATE mcp.items SET skills_by_hand = false WHERE id = %s"

# Eligible items only: a page with nothing but items decided by hand would look like the end.
_ELIGIBLE = "is_active AND NOT skills_by_hand"
_NEXT = f"mcp.items WHERE id > %(after)s AND {_ELIGIBLE}"

# Read in order of the index that has the skill first and then the item.
_NEXT_IN_SKILL = f"""
mcp.tool_skill_assignments WHERE skill_id = %(skill)s AND tool_id > %(after)s
  AND (SELECT {_ELIGIBLE} FROM mcp.items WHERE id = tool_id)
"""  # noqa: S608 - built from constants only
_ASSIGNED_BY = """
 AND (SELECT true FROM mcp.tool_skill_assignments assigned
      WHERE assigned.tool_id = items.id AND assigned.source = %(source)s LIMIT 1)
"""
_ASSIGNED_IN_SKILL_BY = " AND source = %(source)s"

_HOLD = """
SELECT id FROM mcp.items WHERE id = ANY(%s) AND is_active AND NOT skills_by_hand
ORDER BY source, key, id FOR NO KEY UPDATE
"""

_NEEDS_SKILLS = """
UPDATE mcp.items SET needs_skills = true, version = nextval('mcp.item_version') WHERE id = ANY(%s)
RETURNING id, version
"""


@dataclass(frozen=True)
class _SuggestionRow:
    """A suggestion, read while its row is locked."""

    id: int
    namespace: str
    key: str
    status: str
    skill_id: str | None

    @property
    def is_pending(self) -> bool:
        return self.status == SuggestionState.PENDING


async def record(conn: Connection, classified: Sequence[Classified]) -> Recorded:
    """Store results, in a transaction with SHARE_GENERATIONS. Of two results for one item the first counts."""
    by_item = {result.item_id: result for result in reversed(classified)}
    suggested = {
        id_: ((result.namespace, row[0]), row[1])
        for id_, result in by_item.items()
        if (row := stored_suggestion(result.classification.suggestion))
    }
    new, rows = await _hold_suggestions(conn, dict(suggested.values()))
    granted = await _granted(conn, by_item)
    for id_, (key, skill) in suggested.items():
        granted.setdefault(id_, []).append((skill, rows[key].skill_id, MIN_CONFIDENCE))
    classified_ids = {
        assignment.skill_id for result in by_item.values() for assignment in result.classification.assignments
    }
    granted_ids = {skill_id for grants in granted.values() for _, skill_id, _ in grants if skill_id}
    active = await hold_active_skills(conn, classified_ids | granted_ids)
    taken = await _hold_items(conn, by_item)
    requested = {id_: rows[suggested[id_][0]] for id_ in taken if id_ in suggested}
    pending = {id_: row.id for id_, row in requested.items() if row.is_pending}
    await detach_suggestions(conn, taken, but=pending)
    unused = new - set(pending.values())
    if unused:
        await conn.execute(_FORGET_SUGGESTIONS, (list(unused),))
    after = {id_: _resolve(by_item[id_], active, granted.get(id_, ())) for id_ in taken}
    return await _write(conn, taken, after)


def _resolve(classified: Classified, active: Collection[str], grants: Sequence[_Grant]) -> tuple[Assignment, ...]:
    assignments = by_classifier(classified.classification.assignments, active)
    for suggested, skill_id, confidence in grants:
        if skill_id in active:
            assignments = by_rule(assignments, suggested, skill_id, confidence)
    return assignments


async def _granted(conn: Connection, item_ids: Collection[int]) -> dict[int, list[_Grant]]:
    granted: dict[int, list[_Grant]] = {}
    values = {"items": list(item_ids), "least": MIN_CONFIDENCE}
    for id_, name, skill_id, confidence in await (await conn.execute(_GRANTED, values)).fetchall():
        grant = SuggestedSkill(str(name)), str(skill_id), float(str(confidence))
        granted.setdefault(int(str(id_)), []).append(grant)
    return granted


async def _hold_suggestions(
    conn: Connection, by_key: Mapping[_SuggestionKey, SuggestedSkill]
) -> tuple[set[int], dict[_SuggestionKey, _SuggestionRow]]:
    """Lock the suggestions; return the ids of new ones, and all by namespace and key."""
    if not by_key:
        return set(), {}
    values = {
        "namespaces": [namespace for namespace, _ in by_key],
        "keys": [key for _, key in by_key],
        "names": [skill.name for skill in by_key.values()],
        "descriptions": [skill.description for skill in by_key.values()],
    }
    new = await (await conn.execute(_SUGGEST, values)).fetchall()
    async with conn.cursor(row_factory=class_row(_SuggestionRow)) as cursor:
        await cursor.execute(_HOLD_SUGGESTIONS, values)
        rows = await cursor.fetchall()
    return {int(str(row[0])) for row in new}, {(row.namespace, row.key): row for row in rows}


async def _hold_items(conn: Connection, by_item: Mapping[int, Classified]) -> dict[int, int]:
    """Lock the items; return the versions of those that have not changed since they were classified."""
    rows = await (await conn.execute(_HOLD_ITEMS, (list(by_item),))).fetchall()
    current = {int(str(row[0])): (int(str(row[1])), row[2]) for row in rows}
    return {
        id_: version
        for id_, (version, namespace) in current.items()
        if (version, namespace) == (by_item[id_].version, by_item[id_].namespace)
    }


async def _write(
    conn: Connection, taken: Mapping[int, int], after: Mapping[int, tuple[Assignment, ...]]
) -> Recorded:
    before = await assigned(conn, taken)
    new = {id_: now for id_, now in after.items() if not are_same(before[id_], now)}
    await conn.execute(_CLASSIFIED, ([id_ for id_ in taken if id_ not in new],))
    versions = await write_assignments(conn, new)
    return {id_: (versions[id_], new[id_]) if id_ in new else (taken[id_], before[id_]) for id_ in taken}


class PostgresAssignments:
    def __init__(self, pool: Pool, namespaces: Namespaces = None) -> None:
        self._pool = pool
        self._namespaces = namespaces

    def within(self, namespaces: Namespaces) -> "PostgresAssignments":
        return PostgresAssignments(self._pool, namespaces)

    async def of(self, item_id: int) -> tuple[Assignment, ...]:
        async with connection(self._pool) as conn:
            by_item = await assigned(conn, [item_id], self._namespaces)
        if item_id not in by_item:
            raise unknown_item(item_id)
        return by_item[item_id]

    async def record(self, classified: Sequence[Classified]) -> Mapping[int, tuple[int, tuple[Assignment, ...]]]:
        seen = [result for result in classified if seen_in(self._namespaces, result.namespace)]
        if not seen:
            return {}
        async with transaction(self._pool) as conn:
            await conn.execute(SHARE_GENERATIONS)
            return await record(conn, seen)

    async def set_by_hand(self, item_id: int, skill_ids: Sequence[str], by: DecidedBy) -> tuple[Assignment, ...]:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            await conn.execute(SHARE_GENERATIONS)
            after = by_hand(skill_ids, await hold_active_skills(conn, skill_ids), actor)
            _, namespace = await self._hold(conn, item_id)
            before = (await assigned(conn, [item_id]))[item_id]
            await conn.execute(_BY_HAND, (item_id,))
            await detach_suggestions(conn, [item_id])
            if not are_same(before, after):
                await write_assignments(conn, {item_id: after})
            await write_audit(conn, actor, "item.assign", item_id, moved(before, after), namespace)
            return (await assigned(conn, [item_id]))[item_id]

    async def release(self, item_id: int, by: DecidedBy) -> None:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            await conn.execute(SHARE_GENERATIONS)
            is_by_hand, namespace = await self._hold(conn, item_id)
            if is_by_hand:
                await conn.execute(_RELEASE, (item_id,))
                await _require_classification(conn, [item_id])
                await write_audit(conn, actor, "item.release", item_id, {}, namespace)

    async def reclassify(
        self, after: int, limit: int, *, skill_id: str | None = None, source: AssignedBy | None = None
    ) -> Sequence[int]:
        """Skip a page if people decided about all its items meanwhile, so that an empty result means the end."""
        query = _next(self._namespaces, skill_id, source)
        seen = seen_of(self._namespaces)
        values = {"after": after, "limit": limit, "skill": skill_id, "source": source, "seen": seen}
        while True:
            async with transaction(self._pool) as conn:
                await conn.execute(SHARE_GENERATIONS)
                if skill_id is not None:
                    await find_skill(conn, skill_id)
                page = _ids(await (await conn.execute(query, values)).fetchall())
                marked = await classify_again(conn, page)
            if marked or not page:
                return sorted(marked)
            values["after"] = page[-1]

    async def _hold(self, conn: Connection, item_id: int) -> tuple[bool, str]:
        """Lock the item; return whether a person decided about it, and its namespace."""
        values = {"id": item_id, "seen": seen_of(self._namespaces)}
        row = await (await conn.execute(_HOLD_ONE, values)).fetchone()
        if row is None:
            raise unknown_item(item_id)
        return bool(row[0]), str(row[1])


async def classify_again(conn: Connection, ids: Collection[int]) -> Sequence[int]:
    """Schedule those of these items for classification that no person decided about; return their ids.

    All items are locked before the first is marked dirty: the lock order is items before dirty items.
    """
    held = sorted(_ids(await (await conn.execute(_HOLD, (list(ids),))).fetchall()))
    for start in range(0, len(held), AT_ONCE):
        await _require_classification(conn, held[start : start + AT_ONCE])
    return held


async def _require_classification(conn: Connection, ids: Sequence[int]) -> None:
    rows = await (await conn.execute(_NEEDS_SKILLS, (list(ids),))).fetchall()
    await mark_changed(conn, [(row[0], row[1]) for row in rows])


def _next(namespaces: Namespaces, skill_id: str | None, source: AssignedBy | None) -> str:
    if skill_id is None:
        return page_of(namespaces, _NEXT + _ASSIGNED_BY * (source is not None))
    rows = _NEXT_IN_SKILL + _ASSIGNED_IN_SKILL_BY * (source is not None)
    return page_of(namespaces, rows, key="tool_id")


def _ids(rows: Sequence[Sequence[object]]) -> list[int]:
    return [int(str(row[0])) for row in rows]
