"""Decisions about skills and suggestions: their validation and their evidence."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from toolscript.core.errors import Conflict, InvalidRequest, NotFound
from toolscript.core.items import (
    MAX_ASSIGNMENTS,
    MAX_MANUAL_ASSIGNMENTS,
    MAX_REASON,
    MIN_CONFIDENCE,
    SKILL_ID,
    AssignedBy,
    Assignment,
    StoredItem,
    valid_assignments,
)
from toolscript.core.taxonomy import (
    Actor,
    DecidedBy,
    EnhancedDescription,
    Skill,
    SkillEntry,
    SuggestedSkill,
    Suggestion,
    SuggestionState,
)
from toolscript.core.text import readable

SKILLS_HINT = "`toolscript skills list` and GET /api/v1/skills list what is there"
SUGGESTIONS_HINT = "`toolscript skills suggestions` and GET /api/v1/suggestions list the pending ones"

MAX_ACTOR = 200
MAX_SUGGESTED_KEY = 120
MAX_SUGGESTED_NAME = 120
MAX_SUGGESTED_DESCRIPTION = 500
# A skill whose number of items has changed by this share is described again.
CHANGED_SHARE = 0.2


def unknown_skill(skill_id: str) -> NotFound:
    return NotFound(
        f"there is no skill {skill_id[:80]!r}", hint=SKILLS_HINT, details={"skill_id": readable(skill_id)}
    )


def taken_skill(skill_id: str) -> Conflict:
    hint = "choose another id, or use the skill that has it"
    return Conflict(f"there is a skill {skill_id!r} already", hint=hint, details={"skill_id": skill_id})


def changed_meanwhile(skill_id: str) -> Conflict:
    hint = "read it again, and change what it is now"
    return Conflict(f"skill {skill_id!r} has changed meanwhile", hint=hint, details={"skill_id": skill_id})


def is_outdated(described: EnhancedDescription, entry: SkillEntry) -> bool:
    """Return whether a skill was changed since it was described, or has many more or fewer items."""
    before = described.entry
    return (
        before.updated_at != entry.updated_at
        or abs(before.tool_count - entry.tool_count) >= CHANGED_SHARE * before.tool_count
    )


def unknown_item(item_id: int) -> NotFound:
    hint = "it may have left the catalog; `toolscript tools list` and GET /api/v1/tools list what is in it"
    return NotFound(f"there is no item {item_id}", hint=hint, details={"tool_id": item_id})


def unknown_suggestion(suggestion_id: int) -> NotFound:
    details = {"suggestion_id": suggestion_id}
    return NotFound(f"there is no suggestion {suggestion_id}", hint=SUGGESTIONS_HINT, details=details)


def decided_already(suggestion: Suggestion) -> Conflict:
    details = {"suggestion_id": suggestion.id, "state": str(suggestion.state), "skill_id": suggestion.skill_id}
    message = f"suggestion {suggestion.id} was {suggestion.state} by {suggestion.reviewed_by}"
    return Conflict(message, hint=SUGGESTIONS_HINT, details=details)


def inactive_skill(skill_id: str) -> InvalidRequest:
    hint = "activate it first, or choose another"
    return InvalidRequest(f"skill {skill_id!r} is not active", hint=hint, details={"skill_id": skill_id})


def valid_actor(by: DecidedBy) -> Actor:
    """Return who decides. Raise when a name is blank: the audit needs it later."""
    actor = Actor(by) if isinstance(by, str) else by
    person = None if actor.on_behalf_of is None else _valid_name(actor.on_behalf_of)
    return Actor(_valid_name(actor.name), person)


def _valid_name(name: str) -> str:
    name = readable(name.strip())
    if not 1 <= len(name) <= MAX_ACTOR:
        raise InvalidRequest(
            f"the name of the reviewer must have 1 to {MAX_ACTOR} characters", details={"field": "on_behalf_of"}
        )
    return name


def valid_skill(skill: Skill) -> Skill:
    """Return the skill with text that can be stored. Raise when its id is invalid."""
    if not SKILL_ID.fullmatch(skill.id):
        raise InvalidRequest(
            f"{skill.id[:80]!r} cannot be the id of a skill",
            hint="an id is 1 to 64 small letters, digits and _, and begins with a letter",
            details={"field": "id"},
        )
    return replace(
        skill,
        name=readable(skill.name),
        description=readable(skill.description),
        parent_domain=None if skill.parent_domain is None else readable(skill.parent_domain),
        keywords=tuple(map(readable, skill.keywords)),
        examples=tuple(map(readable, skill.examples)),
    )


def action_of(before: Skill, after: Skill) -> str:
    """Return the audit's name of this change."""
    if before.is_active == after.is_active:
        return "skill.change"
    return "skill.activate" if after.is_active else "skill.deactivate"


def difference(before: Skill, after: Skill) -> dict[str, object]:
    """Return the fields that changed, with their values before and after."""
    was, now = asdict(before), asdict(after)
    changed = [name for name in was if was[name] != now[name]]
    return {"before": {name: was[name] for name in changed}, "after": {name: now[name] for name in changed}}


def stored_suggestion(suggested: SuggestedSkill | None) -> tuple[str, SuggestedSkill] | None:
    """Return a suggestion as it is stored, with its key; None when its name is empty."""
    if suggested is None:
        return None
    kept = SuggestedSkill(
        readable(suggested.name.strip())[:MAX_SUGGESTED_NAME],
        readable(suggested.description.strip())[:MAX_SUGGESTED_DESCRIPTION],
    )
    key = kept.key[:MAX_SUGGESTED_KEY]
    return (key, kept) if key else None


def by_rule(
    own: Sequence[Assignment],
    suggested: SuggestedSkill,
    skill_id: str | None,
    confidence: float = MIN_CONFIDENCE,
) -> tuple[Assignment, ...]:
    """Return a classifier's assignments, plus the skill that a person decided on for the item.

    It replaces a weaker assignment to the same skill and, where there are as many as there can be, the weakest.
    """
    rivals = [assignment.confidence for assignment in own if assignment.skill_id == skill_id]
    if not rivals and len(own) >= MAX_ASSIGNMENTS:
        rivals = [assignment.confidence for assignment in own]
    if skill_id is None or confidence <= min(rivals, default=0.0):
        return tuple(own)
    kind = own[0].source if own else AssignedBy.LLM
    reason = f"asked for {suggested.name!r}, reviewed"
    assignments = (*own, Assignment(skill_id, confidence, kind, reason))
    return valid_assignments(assignments, frozenset(assignment.skill_id for assignment in assignments))


def by_classifier(assignments: Sequence[Assignment], active: Collection[str]) -> tuple[Assignment, ...]:
    """Return those of a classifier's assignments that are valid with the skills active now."""
    readable_assignments = [replace(assignment, reason=readable(assignment.reason)) for assignment in assignments]
    return valid_assignments(readable_assignments, frozenset(active))


def by_hand(skill_ids: Sequence[str], active: Collection[str], by: Actor) -> tuple[Assignment, ...]:
    """Return the assignments of a person's decision, the first skill primary."""
    unique_ids = list(dict.fromkeys(skill_ids))
    if len(unique_ids) > MAX_MANUAL_ASSIGNMENTS:
        raise InvalidRequest(
            f"an item can be in at most {MAX_MANUAL_ASSIGNMENTS} skills, not {len(unique_ids)}",
            details={"field": "skill_ids"},
        )
    missing = [skill_id for skill_id in unique_ids if skill_id not in active]
    if missing:
        raise InvalidRequest(
            f"no active skill is called {', '.join(repr(skill_id[:80]) for skill_id in missing)}",
            hint=SKILLS_HINT,
            details={"field": "skill_ids", "unknown": missing},
        )
    reason = f"set by {by}"[:MAX_REASON]
    return tuple(Assignment(skill_id, 1.0, AssignedBy.HUMAN, reason) for skill_id in unique_ids)


def moved(before: Sequence[Assignment], after: Sequence[Assignment]) -> dict[str, object]:
    """Return the audit details of a person's decision about an item."""
    return {
        "before": [assignment.skill_id for assignment in before],
        "after": [assignment.skill_id for assignment in after],
    }


def audit_action(decision: SuggestionState) -> str:
    """Return the audit's name of a decision about a suggestion."""
    actions = {
        SuggestionState.APPROVED: "suggestion.approve",
        SuggestionState.REJECTED: "suggestion.reject",
        SuggestionState.MERGED: "suggestion.merge",
    }
    return actions[decision]


def are_same(before: Sequence[Assignment], after: Sequence[Assignment]) -> bool:
    """Return whether only reasons differ. The primary skill matters, the order of the others does not."""
    return _essence(before) == _essence(after)


def _essence(assignments: Sequence[Assignment]) -> tuple[str | None, Mapping[str, tuple[float, AssignedBy]]]:
    primary = assignments[0].skill_id if assignments else None
    return primary, {assignment.skill_id: (assignment.confidence, assignment.source) for assignment in assignments}


@dataclass(frozen=True)
class NearSkill:
    """`score` is the cosine of the two texts."""

    skill: Skill
    score: float


@dataclass(frozen=True)
class Evidence:
    """`nearest` is None, for this reason, when no model answered; `more_after` is None at the last item."""

    suggestion: Suggestion
    items: Sequence[StoredItem]
    more_after: int | None
    nearest: tuple[NearSkill, ...] | None
    reason: str = ""
