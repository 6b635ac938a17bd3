"""Decisions about skills and suggestions: what may be decided, and its evidence."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from toolscript.core.errors import Conflict, InvalidRequest, NotFound
from toolscript.core.items import (
    MAX_ASSIGNMENTS,
    MAX_BY_HAND,
    MAX_REASON,
    MIN_CONFIDENCE,
    SKILL_ID,
    AssignedBy,
    Assignment,
    StoredItem,
    valid_assignments,
)
from toolscript.core.taxonomy import Skill, SuggestedSkill, Suggestion, SuggestionState
from toolscript.core.text import readable

SKILLS_HINT = "see which there are with `toolscript skills list`"

MAX_ACTOR = 200
MAX_SUGGESTED_KEY = 120
MAX_SUGGESTED_NAME = 120
MAX_SUGGESTED_DESCRIPTION = 500


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


def unknown_item(item_id: int) -> NotFound:
    hint = "it may have left the catalog; see what is in it with `toolscript search`"
    return NotFound(f"there is no item {item_id}", hint=hint, details={"item_id": item_id})


def unknown_suggestion(suggestion_id: int) -> NotFound:
    hint = "see which there are with `toolscript skills suggestions`"
    return NotFound(f"there is no suggestion {suggestion_id}", hint=hint, details={"suggestion_id": suggestion_id})


def decided_already(one: Suggestion) -> Conflict:
    hint = "see which are left with `toolscript skills suggestions`"
    details = {"suggestion_id": one.id, "state": str(one.state), "skill_id": one.skill_id}
    return Conflict(f"suggestion {one.id} was {one.state} by {one.reviewed_by}", hint=hint, details=details)


def inactive_skill(skill_id: str) -> InvalidRequest:
    hint = "activate it first, or choose another"
    return InvalidRequest(f"skill {skill_id!r} is not active", hint=hint, details={"skill_id": skill_id})


def valid_actor(by: str) -> str:
    """Who decides has a name: a decision of nobody cannot be asked about later."""
    actor = readable(by.strip())
    if not 1 <= len(actor) <= MAX_ACTOR:
        raise InvalidRequest(
            f"who decides must have a name of 1 to {MAX_ACTOR} characters", details={"field": "by"}
        )
    return actor


def valid_skill(skill: Skill) -> Skill:
    """The skill with text that can be stored."""
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
    """What the audit calls this change."""
    if before.is_active == after.is_active:
        return "skill.change"
    return "skill.activate" if after.is_active else "skill.deactivate"


def difference(before: Skill, after: Skill) -> dict[str, object]:
    """The fields that changed, as they were and as they are."""
    was, now = asdict(before), asdict(after)
    changed = [name for name in was if was[name] != now[name]]
    return {"before": {name: was[name] for name in changed}, "after": {name: now[name] for name in changed}}


def asked_skill(suggested: SuggestedSkill | None) -> tuple[str, SuggestedSkill] | None:
    """A suggestion as it is kept, with the key it gathers on; None when its name has nothing in it."""
    if suggested is None:
        return None
    kept = SuggestedSkill(
        readable(suggested.name.strip())[:MAX_SUGGESTED_NAME],
        readable(suggested.description.strip())[:MAX_SUGGESTED_DESCRIPTION],
    )
    key = kept.key[:MAX_SUGGESTED_KEY]
    return (key, kept) if key else None


def by_rule(own: Sequence[Assignment], asked: SuggestedSkill, skill_id: str | None) -> tuple[Assignment, ...]:
    """What a classifier said, with the skill that a decided suggestion gives to those who ask for it."""
    if skill_id is None or len(own) >= MAX_ASSIGNMENTS or skill_id in {assignment.skill_id for assignment in own}:
        return tuple(own)
    kind = own[0].source if own else AssignedBy.LLM
    reason = f"asked for {asked.name!r}, reviewed"
    assignments = (*own, Assignment(skill_id, MIN_CONFIDENCE, kind, reason))
    return valid_assignments(assignments, frozenset(assignment.skill_id for assignment in assignments))


def by_classifier(given: Sequence[Assignment], active: Collection[str]) -> tuple[Assignment, ...]:
    """What of a classifier's word holds among the skills that are active now."""
    assignments = [replace(assignment, reason=readable(assignment.reason)) for assignment in given]
    return valid_assignments(assignments, frozenset(active))


def by_hand(skill_ids: Sequence[str], active: Collection[str], by: str) -> tuple[Assignment, ...]:
    """A person's word about an item, the first skill primary."""
    wanted = list(dict.fromkeys(skill_ids))
    if len(wanted) > MAX_BY_HAND:
        raise InvalidRequest(
            f"an item can be in at most {MAX_BY_HAND} skills, not {len(wanted)}", details={"field": "skill_ids"}
        )
    missing = [skill_id for skill_id in wanted if skill_id not in active]
    if missing:
        raise InvalidRequest(
            f"no active skill is called {', '.join(repr(one[:80]) for one in missing)}",
            hint=SKILLS_HINT,
            details={"field": "skill_ids", "unknown": missing},
        )
    reason = f"set by {by}"[:MAX_REASON]
    return tuple(Assignment(skill_id, 1.0, AssignedBy.HUMAN, reason) for skill_id in wanted)


def moved(before: Sequence[Assignment], after: Sequence[Assignment]) -> dict[str, object]:
    """What the audit keeps of a person's word about an item."""
    return {
        "before": [assignment.skill_id for assignment in before],
        "after": [assignment.skill_id for assignment in after],
    }


def audit_action(decision: SuggestionState) -> str:
    """What the audit calls a decision about a suggestion."""
    actions = {
        SuggestionState.APPROVED: "suggestion.approve",
        SuggestionState.REJECTED: "suggestion.reject",
        SuggestionState.MERGED: "suggestion.merge",
    }
    return actions[decision]


def are_same(before: Sequence[Assignment], after: Sequence[Assignment]) -> bool:
    """Whether nothing but reasons differs; which skill is primary counts, the order of the others does not."""
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
    """`nearest` is None, for this reason, when no model could be asked; `more_after` is None at the last item."""

    suggestion: Suggestion
    items: Sequence[StoredItem]
    more_after: int | None
    nearest: tuple[NearSkill, ...] | None
    reason: str = ""
