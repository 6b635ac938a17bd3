"""Which items are in which skills, in schema `mcp`."""

from collections.abc import Collection, Mapping, Sequence

from toolscript.adapters.postgres.audit import write_audit
from toolscript.adapters.postgres.pool import Connection, Pool, connection, transaction
from toolscript.adapters.postgres.recording import record
from toolscript.adapters.postgres.sql import SHARE_GENERATIONS, mark_changed
from toolscript.adapters.postgres.taxonomy import find_skill
from toolscript.adapters.postgres.writing import (
    assigned,
    forget_asks,
    hold_active_skills,
    write_assignments,
)
from toolscript.model.assignments import AssignedBy, Assignment
from toolscript.model.decisions import are_same, by_hand, moved, unknown_item, valid_actor
from toolscript.model.skills import Classified

AT_ONCE = 5_000

_HOLD_ONE = "SELECT skills_by_hand FROM mcp.items WHERE id = %s AND is_active FOR NO KEY UPDATE"

_BY_HAND = "UPDATE mcp.items SET skills_by_hand = true, needs_skills = false WHERE id = %s"

_RELEASE = "UPDATE mcp.items SET skills_by_hand = false WHERE id = %s"

# Eligible items only: a page that holds nothing but items of people would look like the end.
_NEXT = """
SELECT id FROM mcp.items WHERE id > %(after)s AND is_active AND NOT skills_by_hand ORDER BY id LIMIT %(limit)s
"""

# Read in order of the index that has the tool first, or the skill and then the tool.
_NEXT_ASSIGNED = """
SELECT DISTINCT tool_id FROM mcp.tool_skill_assignments assigned JOIN mcp.items ON items.id = tool_id
WHERE tool_id > %(after)s AND is_active AND NOT skills_by_hand
"""
_IN_SKILL = " AND skill_id = %(skill)s"
_OF_SOURCE = " AND assigned.source = %(source)s"
_IN_ORDER = " ORDER BY tool_id LIMIT %(limit)s"

_HOLD = """
SELECT id FROM mcp.items WHERE id = ANY(%s) AND is_active AND NOT skills_by_hand
ORDER BY source, key FOR NO KEY UPDATE
"""

_ASK_AGAIN = """
UPDATE mcp.items SET needs_skills = true, version = nextval('mcp.item_version') WHERE id = ANY(%s)
RETURNING id, version
"""


class PostgresAssignments:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def of(self, item_id: int) -> tuple[Assignment, ...]:
        async with connection(self._pool) as conn:
            found = await assigned(conn, [item_id])
        if item_id not in found:
            raise unknown_item(item_id)
        return found[item_id]

    async def record(self, classified: Sequence[Classified]) -> Mapping[int, tuple[int, tuple[Assignment, ...]]]:
        if not classified:
            return {}
        async with transaction(self._pool) as conn:
            await conn.execute(SHARE_GENERATIONS)
            return await record(conn, classified)

    async def set_by_hand(self, item_id: int, skill_ids: Sequence[str], by: str) -> tuple[Assignment, ...]:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            await conn.execute(SHARE_GENERATIONS)
            wanted = by_hand(skill_ids, await hold_active_skills(conn, skill_ids), actor)
            await _hold_one(conn, item_id)
            before = (await assigned(conn, [item_id]))[item_id]
            await conn.execute(_BY_HAND, (item_id,))
            await forget_asks(conn, [item_id])
            if not are_same(before, wanted):
                await write_assignments(conn, {item_id: wanted})
            await write_audit(conn, actor, "item.assign", item_id, moved(before, wanted))
            return (await assigned(conn, [item_id]))[item_id]

    async def release(self, item_id: int, by: str) -> None:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            await conn.execute(SHARE_GENERATIONS)
            if await _hold_one(conn, item_id):
                await conn.execute(_RELEASE, (item_id,))
                await _ask_again(conn, [item_id])
                await write_audit(conn, actor, "item.release", item_id, {})

    async def reclassify(
        self, after: int, limit: int, *, skill_id: str | None = None, source: AssignedBy | None = None
    ) -> Sequence[int]:
        """An empty answer is the end: a page that people took over meanwhile is passed by."""
        values = {"after": after, "limit": limit, "skill": skill_id, "source": source}
        while True:
            async with transaction(self._pool) as conn:
                await conn.execute(SHARE_GENERATIONS)
                if skill_id is not None:
                    await find_skill(conn, skill_id)
                page = _ids(await (await conn.execute(_next(skill_id, source), values)).fetchall())
                marked = await classify_again(conn, page)
            if marked or not page:
                return sorted(marked)
            values["after"] = page[-1]


async def classify_again(conn: Connection, ids: Collection[int]) -> Sequence[int]:
    """Has those of these items classified anew that no person decided about; answers which.

    All are locked before the first is marked: items come before dirty items.
    """
    held = sorted(_ids(await (await conn.execute(_HOLD, (list(ids),))).fetchall()))
    for start in range(0, len(held), AT_ONCE):
        await _ask_again(conn, held[start : start + AT_ONCE])
    return held


async def _ask_again(conn: Connection, ids: Sequence[int]) -> None:
    rows = await (await conn.execute(_ASK_AGAIN, (list(ids),))).fetchall()
    await mark_changed(conn, [(row[0], row[1]) for row in rows])


async def _hold_one(conn: Connection, item_id: int) -> bool:
    """Whether a person decided about it."""
    row = await (await conn.execute(_HOLD_ONE, (item_id,))).fetchone()
    if row is None:
        raise unknown_item(item_id)
    return bool(row[0])


def _next(skill_id: str | None, source: AssignedBy | None) -> str:
    if skill_id is None and source is None:
        return _NEXT
    return _NEXT_ASSIGNED + _IN_SKILL * (skill_id is not None) + _OF_SOURCE * (source is not None) + _IN_ORDER


def _ids(rows: Sequence[Sequence[object]]) -> list[int]:
    return [int(str(row[0])) for row in rows]
