"""Skills that classifiers suggest, and people's decisions about them, in schema `mcp`."""

from collections.abc import Sequence
from typing import Any

from psycopg.rows import dict_row

from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces
from toolscript.core.postgres.audit import write_audit
from toolscript.core.postgres.pool import Connection, Pool, connection, transaction
from toolscript.core.taxonomy import (
    MAX_COUNTED,
    Actor,
    DecidedBy,
    ProposalKind,
    Skill,
    SuggestedSkill,
    Suggestion,
    SuggestionState,
)
from toolscript.tools.model.proposals import Proposal, Submitted, not_accepted
from toolscript.tools.model.skills import (
    audit_action,
    decided_already,
    inactive_skill,
    unknown_suggestion,
    valid_actor,
    valid_skill,
)
from toolscript.tools.postgres import proposals as stored
from toolscript.tools.postgres.assignments import classify_again
from toolscript.tools.postgres.skills import add_skill, begin_change, find_skill, mark_skill
from toolscript.tools.postgres.sql import SHARE_GENERATIONS, hold_active_skills
from toolscript.tools.postgres.views import SEEN, page_of, seen_of

CALLED_AT_ONCE = 1_000

_COLUMNS = f"""
id, namespace, suggested_name, suggested_description, status, created_at, reviewed_by, on_behalf_of,
       reviewed_at, skill_id, kind, change, call_after,
       (SELECT count(*) FROM (SELECT FROM mcp.skill_suggestion_items WHERE suggestion_id = suggestions.id
                              LIMIT {MAX_COUNTED}) AS asking) AS asked_by
"""  # noqa: S608 - built from constants only

# A suggestion that no item requests any more needs no decision.
_LATER = """
mcp.skill_suggestions suggestions WHERE id > %(after)s
  AND (status <> 'pending' OR kind <> 'suggestion'
       OR (SELECT true FROM mcp.skill_suggestion_items WHERE suggestion_id = id LIMIT 1))
"""
_IN_STATE = " AND status = %(state)s"

_FIND = f"SELECT {_COLUMNS} FROM mcp.skill_suggestions suggestions WHERE id = %(id)s AND {SEEN}"  # noqa: S608 - of constants

_HOLD = f"SELECT FROM mcp.skill_suggestions WHERE id = %(id)s AND {SEEN} FOR UPDATE"

_HOLD_UNFINISHED = f"""
SELECT id, call_after FROM mcp.skill_suggestions
WHERE call_after IS NOT NULL AND {SEEN} ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
"""  # noqa: S608 - built from constants only

_SET_POSITION = "UPDATE mcp.skill_suggestions SET call_after = %s WHERE id = %s"

_ASKED_BY = """
SELECT tool_id FROM mcp.skill_suggestion_items WHERE suggestion_id = %s AND tool_id > %s ORDER BY tool_id LIMIT %s
"""

_DECIDE = """
UPDATE mcp.skill_suggestions
SET status = %(state)s, skill_id = %(skill)s, reviewed_by = %(actor)s, on_behalf_of = %(person)s,
    reviewed_at = now()
WHERE id = %(id)s
"""

_DEACTIVATE = """
UPDATE mcp.skill_categories SET is_active = false, revision = nextval('mcp.skill_revision'), updated_at = now()
WHERE id = %s AND is_active
"""
_UNDO = "UPDATE mcp.skill_suggestions SET status = 'undone' WHERE id = %s"


class PostgresSuggestions:
    def __init__(self, pool: Pool, namespaces: Namespaces = None) -> None:
        self._pool = pool
        self._namespaces = namespaces

    def within(self, namespaces: Namespaces) -> "PostgresSuggestions":
        return PostgresSuggestions(self._pool, namespaces)

    async def page(
        self, after: int, limit: int, state: SuggestionState | None = SuggestionState.PENDING
    ) -> Sequence[Suggestion]:
        query = page_of(self._namespaces, _LATER + _IN_STATE * (state is not None), columns=_COLUMNS)
        values = {"after": after, "limit": limit, "state": state, "seen": seen_of(self._namespaces)}
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query, values)
            return [_suggestion(row) for row in await cursor.fetchall()]

    async def find(self, suggestion_id: int) -> Suggestion:
        async with connection(self._pool) as conn:
            return await self._find(conn, suggestion_id)

    async def asked_by(self, suggestion_id: int, after: int, limit: int) -> Sequence[int]:
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_ASKED_BY, (suggestion_id, after, limit))).fetchall()
            if not rows or self._namespaces is not None:
                await self._find(conn, suggestion_id)
        return [int(str(row[0])) for row in rows]

    async def approve(self, suggestion_id: int, skill: Skill, by: DecidedBy) -> Suggestion:
        actor, skill = valid_actor(by), valid_skill(skill)
        async with transaction(self._pool) as conn:
            await begin_change(conn)
            suggestion = await self._hold_pending(conn, suggestion_id)
            await add_skill(conn, skill)
            await _decide(conn, suggestion, SuggestionState.APPROVED, actor, skill.id)
            await _reclassify_next(conn, suggestion_id)
            await mark_skill(conn, skill.id)
            return await self._find(conn, suggestion_id)

    async def reject(self, suggestion_id: int, by: DecidedBy) -> Suggestion:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            suggestion = await self._hold_pending(conn, suggestion_id)
            await _decide(conn, suggestion, SuggestionState.REJECTED, actor)
            return await self._find(conn, suggestion_id)

    async def merge(self, suggestion_id: int, into: str, by: DecidedBy) -> Suggestion:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            await conn.execute(SHARE_GENERATIONS)
            suggestion = await self._hold_pending(conn, suggestion_id)
            if into not in await hold_active_skills(conn, [into]):
                await find_skill(conn, into)
                raise inactive_skill(into)
            await _decide(conn, suggestion, SuggestionState.MERGED, actor, into)
            await _reclassify_next(conn, suggestion_id)
            return await self._find(conn, suggestion_id)

    async def reclassify_more(self) -> int:
        async with transaction(self._pool) as conn:
            await conn.execute(SHARE_GENERATIONS)
            row = await (await conn.execute(_HOLD_UNFINISHED, {"seen": seen_of(self._namespaces)})).fetchone()
            return await _reclassify_next(conn, int(str(row[0])), int(str(row[1]))) if row else 0

    async def submit(self, proposals: Sequence[Proposal], namespace: str = DEFAULT_NAMESPACE) -> Submitted:
        async with transaction(self._pool) as conn:
            return await stored.submit(conn, proposals, namespace)

    async def undo(self, suggestion_id: int, by: DecidedBy) -> Suggestion:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            await begin_change(conn)
            await conn.execute(_HOLD, {"id": suggestion_id, "seen": seen_of(self._namespaces)})
            suggestion = await self._find(conn, suggestion_id)
            if suggestion.change is None or suggestion.state is not SuggestionState.APPROVED:
                raise not_accepted(suggestion)
            await conn.execute(_UNDO, (suggestion_id,))
            await conn.execute(_DEACTIVATE, (suggestion.skill_id,))
            details = {"name": suggestion.suggested.name, "asked_by": suggestion.asked_by}
            await write_audit(conn, actor, "suggestion.undo", suggestion_id, details, suggestion.namespace)
            await _reclassify_next(conn, suggestion_id)
            if suggestion.skill_id is not None:
                await mark_skill(conn, suggestion.skill_id)
            return await self._find(conn, suggestion_id)

    async def _hold_pending(self, conn: Connection, suggestion_id: int) -> Suggestion:
        await conn.execute(_HOLD, {"id": suggestion_id, "seen": seen_of(self._namespaces)})
        suggestion = await self._find(conn, suggestion_id)
        if suggestion.state is not SuggestionState.PENDING:
            raise decided_already(suggestion)
        return suggestion

    async def _find(self, conn: Connection, suggestion_id: int) -> Suggestion:
        async with conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_FIND, {"id": suggestion_id, "seen": seen_of(self._namespaces)})
            row = await cursor.fetchone()
        if row is None:
            raise unknown_suggestion(suggestion_id)
        return _suggestion(row)


async def _decide(
    conn: Connection, suggestion: Suggestion, state: SuggestionState, actor: Actor, skill_id: str | None = None
) -> None:
    by = {"actor": actor.name, "person": actor.on_behalf_of}
    await conn.execute(_DECIDE, {"id": suggestion.id, "state": state, "skill": skill_id, **by})
    details = {"name": suggestion.suggested.name, "asked_by": suggestion.asked_by, "skill_id": skill_id}
    await write_audit(conn, actor, audit_action(state), suggestion.id, details, suggestion.namespace)


async def _reclassify_next(conn: Connection, suggestion_id: int, after: int = 0) -> int:
    """Reclassify the next items that requested the suggestion, and store the position for the next call."""
    rows = await (await conn.execute(_ASKED_BY, (suggestion_id, after, CALLED_AT_ONCE))).fetchall()
    ids = [int(str(row[0])) for row in rows]
    await conn.execute(_SET_POSITION, (ids[-1] if len(ids) == CALLED_AT_ONCE else None, suggestion_id))
    await classify_again(conn, ids)
    return len(ids)


def _suggestion(row: dict[str, Any]) -> Suggestion:
    return Suggestion(
        id=row["id"],
        suggested=SuggestedSkill(row["suggested_name"], row["suggested_description"]),
        state=SuggestionState(row["status"]),
        asked_by=row["asked_by"],
        created_at=row["created_at"],
        reviewed_by=row["reviewed_by"],
        reviewed_at=row["reviewed_at"],
        skill_id=row["skill_id"],
        namespace=row["namespace"],
        on_behalf_of=row["on_behalf_of"],
        kind=ProposalKind(row["kind"]),
        change=stored.change_of(row["change"], is_moving=row["call_after"] is not None),
    )
