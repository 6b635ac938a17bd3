"""What classifiers said of a batch of items, taken in as many statements for one item as for a thousand."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from psycopg.rows import class_row

from toolscript.adapters.postgres.pool import Connection
from toolscript.adapters.postgres.writing import assigned, forget_asks, hold_active_skills, write_assignments
from toolscript.model.assignments import Assignment
from toolscript.model.decisions import are_same, asked_skill, by_classifier, by_rule
from toolscript.model.skills import Classified, SuggestedSkill, SuggestionState

# What is there already is not touched: the statement after this one locks it.
_SUGGEST = """
INSERT INTO mcp.skill_suggestions (key, suggested_name, suggested_description)
SELECT * FROM unnest(%(keys)s::text[], %(names)s::text[], %(descriptions)s::text[]) AS new (key, name, description)
ORDER BY key
ON CONFLICT (key) DO NOTHING RETURNING id
"""

_HOLD_SUGGESTIONS = """
SELECT id, key, status, skill_id FROM mcp.skill_suggestions WHERE key = ANY(%s) ORDER BY key FOR UPDATE
"""

_FORGET_SUGGESTIONS = "DELETE FROM mcp.skill_suggestions WHERE id = ANY(%s)"

_HOLD_ITEMS = """
SELECT id, version FROM mcp.items WHERE id = ANY(%s) AND is_active AND needs_skills AND NOT skills_by_hand
ORDER BY source, key FOR NO KEY UPDATE
"""

# A person decided about what these items had asked for, and they have not changed since.
_GRANTED = """
SELECT tool_id, suggested_name, skill_id
FROM mcp.skill_suggestion_items JOIN mcp.skill_suggestions suggestions ON suggestions.id = suggestion_id
WHERE tool_id = ANY(%s) AND skill_id IS NOT NULL ORDER BY tool_id, suggestions.key
"""

_LOOKED_AT = "UPDATE mcp.items SET needs_skills = false WHERE id = ANY(%s)"

Recorded = dict[int, tuple[int, tuple[Assignment, ...]]]


@dataclass(frozen=True)
class _Asked:
    """A suggestion as it stands while its row is locked."""

    id: int
    key: str
    status: str
    skill_id: str | None

    @property
    def is_pending(self) -> bool:
        return self.status == SuggestionState.PENDING


async def record(conn: Connection, classified: Sequence[Classified]) -> Recorded:
    """Within a transaction that shares the generations. Of two words about one item the first counts."""
    given = {one.item_id: one for one in reversed(classified)}
    asks = {id_: asked for id_, one in given.items() if (asked := asked_skill(one.classification.suggestion))}
    new, known = await _hold_suggestions(conn, dict(asks.values()))
    granted = await _granted(conn, given)
    for id_, (key, suggested) in asks.items():
        granted.setdefault(id_, []).append((suggested, known[key].skill_id))
    said = {one.skill_id for each in given.values() for one in each.classification.assignments}
    wanted = {skill for grants in granted.values() for _, skill in grants if skill}
    active = await hold_active_skills(conn, said | wanted)
    taken = await _hold_items(conn, given)
    wished = {id_: known[asks[id_][0]] for id_ in taken if id_ in asks}
    pending = {id_: asked.id for id_, asked in wished.items() if asked.is_pending}
    await forget_asks(conn, taken, but=pending)
    unused = new - set(pending.values())
    if unused:
        await conn.execute(_FORGET_SUGGESTIONS, (list(unused),))
    after = {id_: _resolved(given[id_], active, granted.get(id_, ())) for id_ in taken}
    return await _write(conn, taken, after)


def _resolved(
    one: Classified, active: Collection[str], grants: Sequence[tuple[SuggestedSkill, str | None]]
) -> tuple[Assignment, ...]:
    assignments = by_classifier(one.classification.assignments, active)
    for suggested, skill_id in grants:
        if skill_id in active:
            assignments = by_rule(assignments, suggested, skill_id)
    return assignments


async def _granted(conn: Connection, given: Collection[int]) -> dict[int, list[tuple[SuggestedSkill, str | None]]]:
    granted: dict[int, list[tuple[SuggestedSkill, str | None]]] = {}
    for id_, name, skill_id in await (await conn.execute(_GRANTED, (list(given),))).fetchall():
        granted.setdefault(int(str(id_)), []).append((SuggestedSkill(str(name)), str(skill_id)))
    return granted


async def _hold_suggestions(
    conn: Connection, wanted: Mapping[str, SuggestedSkill]
) -> tuple[set[int], dict[str, _Asked]]:
    """The ids of those that are new, and all of them by key; nobody decides about them meanwhile."""
    if not wanted:
        return set(), {}
    values = {
        "keys": list(wanted),
        "names": [one.name for one in wanted.values()],
        "descriptions": [one.description for one in wanted.values()],
    }
    new = await (await conn.execute(_SUGGEST, values)).fetchall()
    async with conn.cursor(row_factory=class_row(_Asked)) as cursor:
        await cursor.execute(_HOLD_SUGGESTIONS, (list(wanted),))
        known = await cursor.fetchall()
    return {int(str(row[0])) for row in new}, {one.key: one for one in known}


async def _hold_items(conn: Connection, given: Mapping[int, Classified]) -> dict[int, int]:
    """Those that are still as they were when they were classified, with their versions."""
    rows = await (await conn.execute(_HOLD_ITEMS, (list(given),))).fetchall()
    found = {int(str(row[0])): int(str(row[1])) for row in rows}
    return {id_: version for id_, version in found.items() if version == given[id_].version}


async def _write(
    conn: Connection, taken: Mapping[int, int], after: Mapping[int, tuple[Assignment, ...]]
) -> Recorded:
    before = await assigned(conn, taken)
    new = {id_: now for id_, now in after.items() if not are_same(before[id_], now)}
    await conn.execute(_LOOKED_AT, ([id_ for id_ in taken if id_ not in new],))
    versions = await write_assignments(conn, new)
    return {id_: (versions[id_], new[id_]) if id_ in new else (taken[id_], before[id_]) for id_ in taken}
