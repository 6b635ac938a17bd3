"""The skills of record in schema `mcp`."""

from collections.abc import Sequence
from dataclasses import asdict
from operator import itemgetter
from typing import Any

from psycopg.rows import dict_row

from toolscript.core.items import AssignedBy, Assignment, ItemKind
from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces
from toolscript.core.postgres.audit import write_audit
from toolscript.core.postgres.pool import Connection, Pool, connection, transaction
from toolscript.core.taxonomy import (
    Actor,
    AuditEntry,
    DecidedBy,
    EnhancedDescription,
    Member,
    Skill,
    SkillEntry,
)
from toolscript.core.text import readable
from toolscript.tools.model.skills import (
    CHANGED_SHARE,
    action_of,
    changed_meanwhile,
    difference,
    taken_skill,
    unknown_skill,
    valid_actor,
    valid_skill,
)
from toolscript.tools.postgres.sql import MARK_SKILLS, OWN_TAXONOMY, SHARE_GENERATIONS, read_audit
from toolscript.tools.postgres.views import SEEN, page_of, seen_of

# The number of items of a skill was counted during indexing: a list does not count them again.
_ENTRIES = f"""
SELECT skills.id, name, description, parent_domain, keywords, examples, is_active,
       (SELECT coalesce(sum(members), 0)::bigint
        FROM mcp.skill_vectors sums JOIN mcp.index_generations live ON live.id = sums.generation
        WHERE live.state = 'live' AND sums.skill_id = skills.id AND {SEEN}) AS tool_count,
       skills.created_at, updated_at,
       (SELECT described.description FROM mcp.skill_descriptions described
        WHERE described.skill_id = skills.id AND {SEEN} AND EXISTS (
            SELECT FROM mcp.skill_vectors sums JOIN mcp.index_generations live ON live.id = sums.generation
            WHERE live.state = 'live' AND sums.skill_id = skills.id AND sums.namespace = described.namespace
                  AND sums.members > 0)
        ORDER BY namespace <> '{DEFAULT_NAMESPACE}', namespace LIMIT 1) AS enhanced_description
FROM mcp.skill_categories skills
"""  # noqa: S608 - built from constants only

_FIND = f"{_ENTRIES} WHERE skills.id = %(id)s"

_PAGE = f"""
{_ENTRIES} WHERE skills.id COLLATE "C" > %(after)s
ORDER BY skills.id COLLATE "C" LIMIT %(limit)s
"""
# A separate statement, so that an index finds the active ones among many others.
_PAGE_OF_ACTIVE = _PAGE.replace('WHERE skills.id COLLATE "C"', 'WHERE is_active AND skills.id COLLATE "C"')

_UNDESCRIBED = f"""
SELECT entries.* FROM (
    {_ENTRIES} WHERE is_active AND skills.id COLLATE "C" > %(after)s
) entries LEFT JOIN mcp.skill_descriptions described
  ON described.skill_id = entries.id AND described.namespace = %(namespace)s
WHERE entries.tool_count > 0 AND (
    described.skill_id IS NULL
    OR described.skill_updated_at <> entries.updated_at
    OR abs(described.tool_count - entries.tool_count) >= {CHANGED_SHARE} * described.tool_count
)
ORDER BY entries.id COLLATE "C" LIMIT %(limit)s
"""  # noqa: S608 - built from constants only

_DESCRIBE = """
INSERT INTO mcp.skill_descriptions (skill_id, namespace, description, source, tool_count, skill_updated_at)
VALUES (%(skill)s, %(namespace)s, %(text)s, %(source)s, %(tool_count)s, %(updated_at)s)
ON CONFLICT (skill_id, namespace) DO UPDATE SET description = excluded.description, source = excluded.source,
    tool_count = excluded.tool_count, skill_updated_at = excluded.skill_updated_at, described_at = now()
"""

_ADD = """
INSERT INTO mcp.skill_categories (id, name, description, parent_domain, keywords, examples, is_active)
VALUES (%(id)s, %(name)s, %(description)s, %(parent_domain)s, %(keywords)s, %(examples)s, %(is_active)s)
ON CONFLICT (id) DO NOTHING
"""

_CHANGE = """
UPDATE mcp.skill_categories
SET name = %(name)s, description = %(description)s, parent_domain = %(parent_domain)s, keywords = %(keywords)s,
    examples = %(examples)s, is_active = %(is_active)s, revision = nextval('mcp.skill_revision'),
    updated_at = now()
WHERE id = %(id)s
"""

_MEMBER = "items.*, skill_id, confidence, assigned.source, reason, is_primary"
# OFFSET 0 keeps it from becoming a join: PostgreSQL looks the items up one by one.
_LATER_MEMBERS = """
mcp.tool_skill_assignments assigned CROSS JOIN LATERAL (
    SELECT id, kind, server, name, description FROM mcp.items WHERE id = assigned.tool_id AND is_active OFFSET 0
) AS items
WHERE skill_id = %(skill)s AND tool_id > %(after)s
"""


class PostgresTaxonomy:
    def __init__(self, pool: Pool, namespaces: Namespaces = None) -> None:
        self._pool = pool
        self._namespaces = namespaces

    def within(self, namespaces: Namespaces) -> "PostgresTaxonomy":
        return PostgresTaxonomy(self._pool, namespaces)

    async def revision(self) -> int:
        async with connection(self._pool) as conn:
            row = await (await conn.execute("SELECT max(revision) FROM mcp.skill_categories")).fetchone()
        return int(str(row[0])) if row and row[0] is not None else 0

    async def page(self, after: str, limit: int, *, active_only: bool = False) -> Sequence[SkillEntry]:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            query = _PAGE_OF_ACTIVE if active_only else _PAGE
            values = {"after": readable(after), "limit": limit, "seen": seen_of(self._namespaces)}
            await cursor.execute(query, values)
            return [_entry(row) for row in await cursor.fetchall()]

    async def find(self, skill_id: str) -> SkillEntry:
        async with connection(self._pool) as conn:
            return await find_skill(conn, skill_id, self._namespaces)

    async def add(self, skill: Skill, by: DecidedBy) -> SkillEntry:
        actor, skill = valid_actor(by), valid_skill(skill)
        async with transaction(self._pool) as conn:
            await begin_change(conn)
            await add_skill(conn, skill, actor)
            await mark_skill(conn, skill.id)
            return await find_skill(conn, skill.id, self._namespaces)

    async def change(self, skill: Skill, by: DecidedBy, instead_of: Skill | None = None) -> SkillEntry:
        actor, skill = valid_actor(by), valid_skill(skill)
        async with transaction(self._pool) as conn:
            await begin_change(conn)
            before = await find_skill(conn, skill.id, self._namespaces)
            if instead_of not in (None, before.skill):
                raise changed_meanwhile(skill.id)
            if before.skill == skill:
                return before
            await conn.execute(_CHANGE, _values(skill))
            action = action_of(before.skill, skill)
            await write_audit(conn, actor, action, skill.id, difference(before.skill, skill))
            await mark_skill(conn, skill.id)
            return await find_skill(conn, skill.id, self._namespaces)

    async def members(self, skill_id: str, after: int, limit: int) -> Sequence[Member]:
        query = page_of(self._namespaces, _LATER_MEMBERS, key="tool_id", columns=_MEMBER)
        values = {"skill": readable(skill_id), "after": after, "limit": limit, "seen": seen_of(self._namespaces)}
        async with connection(self._pool) as conn:
            async with conn.cursor(row_factory=dict_row) as cursor:
                await cursor.execute(query, values)
                rows = await cursor.fetchall()
            if not rows:
                await find_skill(conn, skill_id)
        return [_member(row) for row in rows]

    async def last_member(self, skill_id: str) -> int:
        query = page_of(self._namespaces, _LATER_MEMBERS, key="tool_id", columns=_MEMBER, latest_first=True)
        values = {"skill": readable(skill_id), "after": 0, "limit": 1, "seen": seen_of(self._namespaces)}
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, values)
            row = await cursor.fetchone()
        return 0 if row is None else int(row["id"])

    async def undescribed(self, namespace: str, after: str, limit: int) -> Sequence[SkillEntry]:
        values = {"namespace": namespace, "seen": [namespace], "after": readable(after), "limit": limit}
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_UNDESCRIBED, values)
            return [_entry(row) for row in await cursor.fetchall()]

    async def describe(self, descriptions: Sequence[EnhancedDescription]) -> None:
        values = [
            {
                "skill": described.entry.skill.id,
                "namespace": described.namespace,
                "text": readable(described.text),
                "source": str(described.source),
                "tool_count": described.entry.tool_count,
                "updated_at": described.entry.updated_at,
            }
            for described in descriptions
        ]
        # In one order everywhere: two who describe the same skills cause no deadlock.
        values.sort(key=itemgetter("skill", "namespace"))
        async with transaction(self._pool) as conn, conn.cursor() as cursor:
            await cursor.executemany(_DESCRIBE, values)

    async def audit(self, before: int | None, limit: int) -> Sequence[tuple[int, AuditEntry]]:
        async with connection(self._pool) as conn:
            return await read_audit(conn, before, limit, self._namespaces)


async def begin_change(conn: Connection) -> None:
    await conn.execute(OWN_TAXONOMY)
    await conn.execute(SHARE_GENERATIONS)


async def add_skill(conn: Connection, skill: Skill, actor: Actor | None = None) -> None:
    """Add a skill, after `begin_change`. The caller also calls `mark_skill`, after all its other locks.

    `actor` None: it is a part of a decision, whose entry the audit has.
    """
    added = await conn.execute(_ADD, _values(skill))
    if not added.rowcount:
        raise taken_skill(skill.id)
    if actor is not None:
        await write_audit(conn, actor, "skill.add", skill.id, {"after": asdict(skill)})


async def mark_skill(conn: Connection, skill_id: str) -> None:
    await conn.execute(MARK_SKILLS, {"skills": [skill_id]})


async def find_skill(conn: Connection, skill_id: str, namespaces: Namespaces = None) -> SkillEntry:
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_FIND, {"id": readable(skill_id), "seen": seen_of(namespaces)})
        row = await cursor.fetchone()
    if row is None:
        raise unknown_skill(skill_id)
    return _entry(row)


def _values(skill: Skill) -> dict[str, object]:
    return {**asdict(skill), "keywords": list(skill.keywords), "examples": list(skill.examples)}


def _entry(row: dict[str, Any]) -> SkillEntry:
    return SkillEntry(
        _skill(row), row["tool_count"], row["created_at"], row["updated_at"], row["enhanced_description"] or ""
    )


def _skill(row: dict[str, Any]) -> Skill:
    return Skill(
        row["id"],
        row["name"],
        row["description"],
        row["parent_domain"],
        tuple(row["keywords"]),
        tuple(row["examples"]),
        row["is_active"],
    )


def _member(row: dict[str, Any]) -> Member:
    assignment = Assignment(row["skill_id"], row["confidence"], AssignedBy(row["source"]), row["reason"])
    return Member(
        row["id"],
        ItemKind(row["kind"]),
        row["server"],
        row["name"],
        row["description"],
        assignment,
        row["is_primary"],
    )
