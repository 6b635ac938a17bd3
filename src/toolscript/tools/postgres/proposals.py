"""Proposed skills in the queue of suggestions, where their items wait with the confidences they would have."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from toolscript.core.postgres.pool import Connection
from toolscript.core.taxonomy import ProposedChange, Skill
from toolscript.tools.model.proposals import Proposal, Submitted

MEMBERS_AT_ONCE = 10_000

_KNOWN = """
SELECT key, id, status, change FROM mcp.skill_suggestions WHERE namespace = %s AND kind = 'new' FOR UPDATE
"""
_PUT = """
INSERT INTO mcp.skill_suggestions (namespace, key, suggested_name, suggested_description, kind, change)
VALUES (%(namespace)s, %(key)s, %(name)s, %(description)s, 'new', %(change)s)
ON CONFLICT (namespace, key) DO UPDATE SET suggested_name = excluded.suggested_name,
    suggested_description = excluded.suggested_description, change = excluded.change
WHERE skill_suggestions.status = 'pending'
RETURNING id
"""
_WITHDRAW = "DELETE FROM mcp.skill_suggestions WHERE id = ANY(%s)"
_CLEAR_MEMBERS = "DELETE FROM mcp.skill_suggestion_items WHERE suggestion_id = %s"
# Items may have left the catalog since they were read.
_ADD_MEMBERS = """
INSERT INTO mcp.skill_suggestion_items (suggestion_id, tool_id, confidences)
SELECT %(id)s, items.id, ARRAY[members.confidence]
FROM unnest(%(items)s::bigint[], %(confidences)s::float8[]) AS members (id, confidence)
JOIN mcp.items ON items.id = members.id AND items.is_active AND items.namespace = %(namespace)s
"""


async def submit(conn: Connection, proposals: Sequence[Proposal], namespace: str) -> Submitted:
    """Put proposals into the queue, in place of the pending ones, in one transaction."""
    wanted = {proposal.key: proposal for proposal in proposals}
    rows = await (await conn.execute(_KNOWN, (namespace,))).fetchall()
    pending = {str(key): (int(str(id_)), data) for key, id_, status, data in rows if status == "pending"}
    decided = {str(key) for key, *_ in rows} - pending.keys()
    gone = [id_ for key, (id_, _) in pending.items() if key not in wanted]
    await conn.execute(_WITHDRAW, (gone,))
    added = changed = 0
    for key, proposal in wanted.items():
        if key in decided or not await _put(conn, proposal, namespace):
            continue
        added += key not in pending
        changed += key in pending and _read(pending[key][1]) != _stored(proposal.change)
    return Submitted(added, changed, len(gone))


async def _put(conn: Connection, proposal: Proposal, namespace: str) -> bool:
    """Store a proposal with its members; return whether nobody has decided about it meanwhile."""
    values = {
        "namespace": namespace,
        "key": proposal.key,
        "name": proposal.skill.name,
        "description": proposal.skill.description,
        "change": _json_of(proposal.change),
    }
    row = await (await conn.execute(_PUT, values)).fetchone()
    if row is None:
        return False
    await conn.execute(_CLEAR_MEMBERS, (row[0],))
    members = sorted(proposal.members.items())
    for start in range(0, len(members), MEMBERS_AT_ONCE):
        page = members[start : start + MEMBERS_AT_ONCE]
        ids, confidences = [id_ for id_, _ in page], [confidence for _, confidence in page]
        await conn.execute(
            _ADD_MEMBERS, {"id": row[0], "items": ids, "confidences": confidences, "namespace": namespace}
        )
    return True


def _json_of(change: ProposedChange) -> str:
    return json.dumps({"creates": [asdict(skill) for skill in change.creates], "evidence": change.evidence})


def _stored(change: ProposedChange) -> ProposedChange:
    """Return a change as it is after it was stored: JSON has no tuples."""
    return _read(json.loads(_json_of(change)))


def _read(data: object) -> ProposedChange:
    return (change_of(data, is_moving=False) if isinstance(data, dict) else None) or ProposedChange()


def change_of(data: Mapping[str, Any] | None, *, is_moving: bool) -> ProposedChange | None:
    if data is None:
        return None
    creates = tuple(
        Skill(**{**skill, "keywords": tuple(skill["keywords"]), "examples": tuple(skill["examples"])})
        for skill in data["creates"]
    )
    return ProposedChange(creates, data["evidence"], is_moving)
