"""Proposals in the queue of suggestions: submitting them, and moving items once a person has decided.

Items move a page at a time, each page in one transaction. Killed between two of them, the next worker goes on from
the position that the last one stored. An item keeps its skills until it gets the new ones in the same transaction,
and a skill is retired only when the live index has all its items in their new ones.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from psycopg.rows import dict_row

from toolscript.core.items import MAX_ID, Assignment
from toolscript.core.postgres.pool import Connection
from toolscript.core.taxonomy import Actor, ProposalKind, ProposedChange, Skill, Suggestion, SuggestionState
from toolscript.tools.model.proposals import (
    WEAK_CONFIDENCE,
    WORKER,
    EarlierProposal,
    Move,
    Proposal,
    Submitted,
    by_stored_key,
    fallback_of,
    moved_assignments,
    needed_skills,
    no_proposal,
    not_accepted,
    outdated,
    reason_of,
    restored_assignments,
)
from toolscript.tools.model.skills import are_same
from toolscript.tools.postgres.assignments import classify_again
from toolscript.tools.postgres.skills import add_skill, find_skill, mark_skill
from toolscript.tools.postgres.sql import (
    assigned,
    assignments_of,
    hold_active_skills,
    write_assignments,
    write_audit,
)

MOVED_AT_ONCE = 1_000
SUBMITTED_AT_ONCE = 10_000
ALL_MOVED = MAX_ID

_KNOWN = """
SELECT id, key, status, change->>'digest', move_after IS NOT NULL FROM mcp.skill_suggestions
WHERE namespace = %s AND kind <> 'suggestion'
"""
_INSERT = """
INSERT INTO mcp.skill_suggestions (namespace, key, suggested_name, suggested_description, kind, change)
VALUES (%(namespace)s, %(key)s, %(name)s, %(description)s, %(kind)s, %(change)s)
ON CONFLICT (namespace, key) DO UPDATE SET suggested_name = excluded.suggested_name,
    suggested_description = excluded.suggested_description, change = excluded.change
WHERE skill_suggestions.status = 'pending'
RETURNING id
"""
_WITHDRAW = "DELETE FROM mcp.skill_suggestions WHERE id = ANY(%s) AND status = 'pending'"
_CLEAR_ITEMS = "DELETE FROM mcp.skill_suggestion_items WHERE suggestion_id = %s"
# Items may have left the catalog since they were read.
_ADD_ITEMS = """
INSERT INTO mcp.skill_suggestion_items (suggestion_id, tool_id, skill_ids, confidences)
SELECT %(id)s, items.id, string_to_array(moves.skills, ','), string_to_array(moves.confidences, ',')::float8[]
FROM unnest(%(items)s::bigint[], %(skills)s::text[], %(confidences)s::text[]) AS moves (id, skills, confidences)
JOIN mcp.items ON items.id = moves.id AND items.is_active AND items.namespace = %(namespace)s
ON CONFLICT DO NOTHING
"""
_ADD_MEMBERS = """
INSERT INTO mcp.skill_suggestion_items (suggestion_id, tool_id, skill_ids, confidences)
SELECT %(id)s, tool_id, ARRAY[%(target)s], ARRAY[confidence]
FROM mcp.tool_skill_assignments assigned
JOIN mcp.items ON items.id = assigned.tool_id AND items.is_active AND items.namespace = %(namespace)s
WHERE skill_id = %(skill)s ORDER BY tool_id
ON CONFLICT DO NOTHING
"""
_RENAME_TARGET = """
UPDATE mcp.skill_suggestion_items SET skill_ids = array_replace(skill_ids, %(old)s, %(new)s)
WHERE suggestion_id = %(id)s AND %(old)s <> %(new)s
"""
_EARLIER = """
SELECT id, key, kind, status, change FROM mcp.skill_suggestions
WHERE namespace = %s AND kind <> 'suggestion'
  AND (status IN ('pending', 'rejected', 'undone') OR status = 'approved' AND move_after IS NOT NULL) ORDER BY id
"""
_MEMBERS = """
SELECT tool_id, skill_ids, confidences FROM mcp.skill_suggestion_items WHERE suggestion_id = %s ORDER BY tool_id
"""
_SET_CHANGE = "UPDATE mcp.skill_suggestions SET change = %s WHERE id = %s"
_BEGIN_MOVE = "UPDATE mcp.skill_suggestions SET move_after = 0 WHERE id = %s"
_SET_POSITION = "UPDATE mcp.skill_suggestions SET move_after = %s WHERE id = %s"
_UNDO = "UPDATE mcp.skill_suggestions SET status = 'undone', move_after = 0 WHERE id = %s"

# A skill whose point was never written would hide its items: the point comes first. What waits for the index, to
# retire a skill, holds up no other move.
_HOLD_MOVING = """
SELECT id, namespace, kind, status, suggested_name, change, move_after FROM mcp.skill_suggestions suggestions
WHERE move_after IS NOT NULL
  AND NOT (move_after = %(all)s AND EXISTS (
      SELECT FROM mcp.skill_suggestion_items asks
      JOIN mcp.dirty_items dirty ON dirty.item_id = asks.tool_id
      JOIN mcp.index_generations live ON live.id = dirty.generation AND live.state = 'live'
      WHERE asks.suggestion_id = suggestions.id))
  AND NOT EXISTS (
      SELECT FROM mcp.skill_vectors written JOIN mcp.index_generations live ON live.id = written.generation
      WHERE live.state = 'live' AND written.point_version = 0 AND written.namespace = 'default'
        AND written.skill_id IN (SELECT value->>'id' FROM json_array_elements(change->'creates') AS value))
ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
"""
_NEXT_MOVES = """
SELECT tool_id, skill_ids, confidences, previous FROM mcp.skill_suggestion_items
WHERE suggestion_id = %s AND tool_id > %s ORDER BY tool_id LIMIT %s
"""
_HOLD_ITEMS = """
SELECT id FROM mcp.items WHERE id = ANY(%s) AND is_active AND NOT skills_by_hand
ORDER BY source, key, id FOR NO KEY UPDATE
"""
_REMEMBER = """
UPDATE mcp.skill_suggestion_items SET previous = moved.previous
FROM unnest(%(items)s::bigint[], %(previous)s::json[]) AS moved (id, previous)
WHERE suggestion_id = %(id)s AND tool_id = moved.id AND skill_suggestion_items.previous IS NULL
"""
_HOLD_SKILLS = "SELECT id, is_active FROM mcp.skill_categories WHERE id = ANY(%s) ORDER BY id FOR UPDATE"
# Items of a skill that may leave it.
_LOOSE = """
SELECT assigned.tool_id FROM mcp.tool_skill_assignments assigned
JOIN mcp.items ON items.id = assigned.tool_id AND items.is_active AND NOT items.skills_by_hand
    AND items.namespace = %(namespace)s
WHERE assigned.skill_id = %(skill)s AND assigned.tool_id > %(after)s ORDER BY assigned.tool_id LIMIT %(limit)s
"""
# Items that stay: those that a person put there, and those of other namespaces, about which this does not decide.
_STAYING = """
SELECT EXISTS (
    SELECT FROM mcp.tool_skill_assignments assigned
    JOIN mcp.items ON items.id = assigned.tool_id AND items.is_active
    WHERE assigned.skill_id = %(skill)s AND (items.skills_by_hand OR items.namespace <> %(namespace)s))
"""
_HAS_ITEMS = """
SELECT EXISTS (
    SELECT FROM mcp.tool_skill_assignments assigned
    JOIN mcp.items ON items.id = assigned.tool_id AND items.is_active WHERE assigned.skill_id = ANY(%s))
"""
_SET_ACTIVE = """
UPDATE mcp.skill_categories
SET is_active = %(active)s, revision = nextval('mcp.skill_revision'), updated_at = now()
WHERE id = %(id)s AND is_active <> %(active)s
"""


def change_json(change: ProposedChange, digest: str = "") -> str:
    return json.dumps(
        {
            "creates": [asdict(skill) for skill in change.creates],
            "retires": list(change.retires),
            "evidence": change.evidence,
            "digest": digest,
        },
        ensure_ascii=False,
    )


def change_of(data: Mapping[str, Any] | None, *, is_moving: bool) -> ProposedChange | None:
    if data is None:
        return None
    skills = [
        Skill(**{**skill, "keywords": tuple(skill["keywords"]), "examples": tuple(skill["examples"])})
        for skill in data["creates"]
    ]
    return ProposedChange(tuple(skills), tuple(data["retires"]), data["evidence"], is_moving)


async def submit(conn: Connection, proposals: Sequence[Proposal], namespace: str) -> Submitted:
    """Store the proposals, each in a transaction of its own. One that is stored as it is costs no write.

    Killed in the middle, the next run stores the rest.
    """
    rows = await (await conn.execute(_KNOWN, (namespace,))).fetchall()
    known = {str(key): (int(str(id_)), str(status), before) for id_, key, status, before, _ in rows}
    done = {
        str(key): int(str(id_))
        for id_, key, status, _, is_moving in rows
        if status == SuggestionState.APPROVED and not is_moving
    }
    wanted = by_stored_key(proposals, done)
    added = changed = 0
    for key, proposal in wanted.items():
        _, status, before = known.get(key, (0, SuggestionState.PENDING, None))
        digest = _digest(proposal)
        if status != SuggestionState.PENDING or before == digest:
            continue
        async with conn.transaction():
            await _put(conn, proposal, digest, namespace)
        added, changed = added + (key not in known), changed + (key in known)
    gone = [id_ for key, (id_, status, _) in known.items() if status == "pending" and key not in wanted]
    async with conn.transaction():
        await conn.execute(_WITHDRAW, (gone,))
    return Submitted(added, changed, len(gone))


def _digest(proposal: Proposal) -> str:
    """Return a digest of what would be done. The evidence is that of the last time this changed."""
    found = hashlib.blake2b(digest_size=16)
    change = replace(proposal.change, evidence={})
    found.update(json.dumps([proposal.name, proposal.description, change_json(change)]).encode())
    for move in proposal.moves:
        found.update(repr((move.item_id, move.skill_ids, move.confidences)).encode())
    return found.hexdigest()


async def _put(conn: Connection, proposal: Proposal, digest: str, namespace: str) -> None:
    values = {
        "namespace": namespace,
        "key": proposal.key,
        "name": proposal.name,
        "description": proposal.description,
        "kind": proposal.kind,
        "change": change_json(proposal.change, digest),
    }
    row = await (await conn.execute(_INSERT, values)).fetchone()
    if row is None:
        # A person decided about it meanwhile.
        return
    suggestion_id = int(str(row[0]))
    await conn.execute(_CLEAR_ITEMS, (suggestion_id,))
    for start in range(0, len(proposal.moves), SUBMITTED_AT_ONCE):
        moves = proposal.moves[start : start + SUBMITTED_AT_ONCE]
        page = {
            "id": suggestion_id,
            "namespace": namespace,
            "items": [move.item_id for move in moves],
            "skills": [",".join(move.skill_ids) for move in moves],
            "confidences": [",".join(map(str, move.confidences)) for move in moves],
        }
        await conn.execute(_ADD_ITEMS, page)


async def earlier(conn: Connection, namespace: str) -> list[EarlierProposal]:
    found = []
    for id_, key, kind, status, data in await (await conn.execute(_EARLIER, (namespace,))).fetchall():
        change = change_of(data if isinstance(data, dict) else None, is_moving=False) or ProposedChange()
        rows = await (await conn.execute(_MEMBERS, (id_,))).fetchall()
        moves = [_move_of(row) for row in rows]
        members = {move.item_id: move.skills for move in moves if move.skill_ids}
        is_rejected = status != SuggestionState.PENDING
        found.append(
            EarlierProposal(
                str(key), ProposalKind(str(kind)), is_rejected, change.creates, change.retires, members
            )
        )
    return found


async def accept(conn: Connection, suggestion: Suggestion, actor: Actor, skill: Skill | None) -> Sequence[str]:
    """Add the skills and begin the move, after `begin_change`, with the suggestion locked; return their ids."""
    change = suggestion.change
    if change is None:
        raise no_proposal(suggestion)
    await _require_current(conn, suggestion, change)
    if skill is not None and suggestion.kind is ProposalKind.NEW:
        names = {"id": suggestion.id, "old": change.creates[0].id, "new": skill.id}
        await conn.execute(_RENAME_TARGET, names)
        change = replace(change, creates=(skill,))
    for created in change.creates:
        await add_skill(conn, created, actor)
    if suggestion.kind is ProposalKind.MERGE:
        target = {"id": suggestion.id, "skill": change.retires[0], "target": fallback_of(change)}
        await conn.execute(_ADD_MEMBERS, {**target, "namespace": suggestion.namespace})
    await conn.execute(_SET_CHANGE, (change_json(change), suggestion.id))
    await conn.execute(_BEGIN_MOVE, (suggestion.id,))
    return [created.id for created in change.creates]


async def _require_current(conn: Connection, suggestion: Suggestion, change: ProposedChange) -> None:
    """Raise if a skill of the proposal is gone, or if one to be retired for having no items has some."""
    needed = needed_skills(change)
    rows = await (await conn.execute(_HOLD_SKILLS, (sorted(needed),))).fetchall()
    if missing := needed - {skill_id for skill_id, is_active in rows if is_active}:
        raise outdated(suggestion, f"skill {missing.pop()} is not active")
    if suggestion.kind is ProposalKind.RETIRE:
        row = await (await conn.execute(_HAS_ITEMS, (list(change.retires),))).fetchone()
        if row and row[0]:
            raise outdated(suggestion, f"skill {change.retires[0]} has items")


async def undo(conn: Connection, suggestion: Suggestion, actor: Actor) -> None:
    """Bring retired skills back, and begin to move the items back."""
    change = suggestion.change
    if change is None or suggestion.state is not SuggestionState.APPROVED:
        raise not_accepted(suggestion)
    for skill_id in change.retires:
        await _set_active(conn, skill_id, actor, is_active=True)
    await conn.execute(_UNDO, (suggestion.id,))
    details = {"name": suggestion.suggested.name, "asked_by": suggestion.asked_by}
    await write_audit(conn, actor, "suggestion.undo", suggestion.id, details, suggestion.namespace)
    for skill_id in change.retires:
        await mark_skill(conn, skill_id)


async def move_more(conn: Connection) -> int:
    """Move the next page of items of a decided proposal, or retire the skills that it leaves empty."""
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_HOLD_MOVING, {"all": ALL_MOVED})
        row = await cursor.fetchone()
    if row is None:
        return 0
    change = change_of(row["change"], is_moving=True) or ProposedChange()
    is_undone = row["status"] == SuggestionState.UNDONE
    if row["move_after"] == ALL_MOVED:
        return await _retire(conn, row, change, is_undone=is_undone)
    values = (row["id"], row["move_after"], MOVED_AT_ONCE)
    moves = await (await conn.execute(_NEXT_MOVES, values)).fetchall()
    if is_undone:
        await _restore(conn, change, moves)
    else:
        await _move(conn, row, change, [_move_of(move) for move in moves])
    position = int(str(moves[-1][0])) if len(moves) == MOVED_AT_ONCE else ALL_MOVED
    await conn.execute(_SET_POSITION, (position, row["id"]))
    return max(1, len(moves))


def _move_of(row: Sequence[Any]) -> Move:
    return Move(int(row[0]), tuple(row[1] or ()), tuple(row[2] or ()))


async def _move(conn: Connection, row: Mapping[str, Any], change: ProposedChange, moves: Sequence[Move]) -> int:
    """Move items that no person decided about; return how many."""
    targets = {skill_id for move in moves for skill_id in move.skill_ids}
    active = await hold_active_skills(conn, targets)
    before = await _held(conn, [move.item_id for move in moves])
    reason = reason_of(row["id"], row["suggested_name"])
    after: dict[int, tuple[Assignment, ...]] = {}
    for move in moves:
        if move.item_id in before and (usable := move.within(active)).skill_ids:
            after[move.item_id] = moved_assignments(before[move.item_id], usable, change.retires, reason)
    await _remember(conn, int(row["id"]), {item_id: before[item_id] for item_id in after})
    changed = {item_id: now for item_id, now in after.items() if not are_same(before[item_id], now)}
    await write_assignments(conn, changed, are_classified=False)
    return len(after)


async def _held(conn: Connection, ids: Sequence[int]) -> dict[int, tuple[Assignment, ...]]:
    """Lock those of these items that no person decided about; return their assignments."""
    rows = await (await conn.execute(_HOLD_ITEMS, (list(ids),))).fetchall()
    return await assigned(conn, [int(str(row[0])) for row in rows])


async def _remember(conn: Connection, suggestion_id: int, before: Mapping[int, Sequence[Assignment]]) -> None:
    """Store the assignments of items before their move. An item that moves twice keeps its first ones."""
    previous = [
        json.dumps([[one.skill_id, one.confidence, one.source, one.reason] for one in assignments])
        for assignments in before.values()
    ]
    await conn.execute(_REMEMBER, {"id": suggestion_id, "items": list(before), "previous": previous})


async def _restore(conn: Connection, change: ProposedChange, moves: Sequence[Sequence[Any]]) -> None:
    """Take from items what their move gave them, and give them back what they had."""
    previous = {int(row[0]): assignments_of(row[3]) for row in moves if row[3] is not None}
    wanted = {assignment.skill_id for old in previous.values() for assignment in old}
    active = await hold_active_skills(conn, wanted)
    by_id = {move.item_id: move for move in map(_move_of, moves)}
    restored: dict[int, tuple[Assignment, ...]] = {}
    again = []
    for item_id, now in (await _held(conn, list(previous))).items():
        old = restored_assignments(now, previous[item_id], by_id[item_id], change, active)
        if previous[item_id] and not old:
            again.append(item_id)
        elif not are_same(now, old):
            restored[item_id] = old
    await write_assignments(conn, restored, are_classified=False)
    await classify_again(conn, again)


async def _retire(conn: Connection, row: Mapping[str, Any], change: ProposedChange, *, is_undone: bool) -> int:
    """Deactivate the skills that the items have left. The live index has all of them in their new ones."""
    left = sorted(skill.id for skill in change.creates) if is_undone else sorted(change.retires)
    await conn.execute(_HOLD_SKILLS, (left,))
    fallback = None if is_undone else fallback_of(change)
    for skill_id in left:
        if fallback is not None and (loose := await _loose(conn, row, skill_id)):
            if moved := await _move_latecomers(conn, row, change, loose, fallback):
                return moved
            # They cannot move: their new skill was deactivated. The old one stays.
            continue
        await _leave(conn, row, skill_id)
    await conn.execute(_SET_POSITION, (None, row["id"]))
    return 1


async def _loose(conn: Connection, row: Mapping[str, Any], skill_id: str, after: int = 0) -> list[int]:
    """Return the next items that may leave a skill."""
    values = {"skill": skill_id, "namespace": row["namespace"], "after": after, "limit": MOVED_AT_ONCE}
    rows = await (await conn.execute(_LOOSE, values)).fetchall()
    return [int(str(one[0])) for one in rows]


async def _leave(conn: Connection, row: Mapping[str, Any], skill_id: str) -> None:
    """Deactivate a skill unless items stay in it; those that came to it meanwhile are classified again."""
    page = await _loose(conn, row, skill_id)
    while page:
        await classify_again(conn, page)
        page = await _loose(conn, row, skill_id, page[-1])
    staying = await (await conn.execute(_STAYING, {"skill": skill_id, "namespace": row["namespace"]})).fetchone()
    if not (staying and staying[0]):
        await _set_active(conn, skill_id, Actor(WORKER), is_active=False)
    await mark_skill(conn, skill_id)


async def _move_latecomers(
    conn: Connection, row: Mapping[str, Any], change: ProposedChange, ids: Sequence[int], fallback: str
) -> int:
    """Move items that came to a skill while others left it, before it is retired; return how many moved."""
    page = {
        "id": row["id"],
        "namespace": row["namespace"],
        "items": list(ids),
        "skills": [fallback] * len(ids),
        "confidences": [str(WEAK_CONFIDENCE)] * len(ids),
    }
    await conn.execute(_ADD_ITEMS, page)
    return await _move(conn, row, change, [Move(item_id, (fallback,), (WEAK_CONFIDENCE,)) for item_id in ids])


async def _set_active(conn: Connection, skill_id: str, actor: Actor, *, is_active: bool) -> None:
    changed = await conn.execute(_SET_ACTIVE, {"id": skill_id, "active": is_active})
    if changed.rowcount:
        skill = (await find_skill(conn, skill_id)).skill
        action = "skill.activate" if is_active else "skill.deactivate"
        details = {"before": {"is_active": not skill.is_active}, "after": {"is_active": skill.is_active}}
        await write_audit(conn, actor, action, skill_id, details)
