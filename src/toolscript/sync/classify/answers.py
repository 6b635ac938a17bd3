"""What of a language model's answer can be used. It is a guest: nothing it says is taken as it is."""

from collections.abc import Mapping

from toolscript.errors import Rejected
from toolscript.model.assignments import AssignedBy, Assignment, valid_assignments
from toolscript.model.items import JsonObject
from toolscript.model.skills import Classification, SuggestedSkill
from toolscript.model.text import readable

MOST_ASSIGNMENTS_READ = 100
MAX_SUGGESTED_NAME, MAX_SUGGESTED_DESCRIPTION = 80, 300


def answers_in(reply: JsonObject, items: int, known: frozenset[str]) -> list[Classification | None]:
    """One an item, by number; None where there is no answer, or more than one, or nothing that can be read."""
    given = reply.get("items")
    if not isinstance(given, list):
        raise Rejected("the text model gave no list of items", hint="try a larger model")
    found: dict[int, list[Classification | None]] = {}
    for one in given[: 2 * items]:
        number = one.get("item") if isinstance(one, Mapping) else None
        if isinstance(number, int) and not isinstance(number, bool):
            found.setdefault(number, []).append(_answer(one, known))
    return [found[number][0] if len(found.get(number, ())) == 1 else None for number in range(1, items + 1)]


def _answer(one: Mapping[str, object], known: frozenset[str]) -> Classification | None:
    given = one.get("assignments")
    if not isinstance(given, list):
        return None
    read = [
        assignment for entry in given[:MOST_ASSIGNMENTS_READ] if (assignment := _assignment(entry)) is not None
    ]
    assignments = valid_assignments(read, known)
    suggestion = None if assignments else _suggestion(one.get("suggested_new_skill"))
    return Classification(assignments, suggestion) if assignments or suggestion else None


def _assignment(entry: object) -> Assignment | None:
    if not isinstance(entry, Mapping):
        return None
    skill_id, confidence = entry.get("skill_id"), entry.get("confidence")
    if not isinstance(skill_id, str) or not isinstance(confidence, int | float) or isinstance(confidence, bool):
        return None
    # A number may be too long to be one with a point.
    sure = float(confidence) if 0 <= confidence <= 1 else 0.0
    return Assignment(skill_id, sure, AssignedBy.LLM, _line(entry.get("reason")))


def _suggestion(given: object) -> SuggestedSkill | None:
    if not isinstance(given, Mapping):
        return None
    name = _line(given.get("name"))[:MAX_SUGGESTED_NAME].strip()
    suggested = SuggestedSkill(name, _line(given.get("description"))[:MAX_SUGGESTED_DESCRIPTION].strip())
    return suggested if suggested.key else None


def _line(text: object) -> str:
    return " ".join(readable(text).split()) if isinstance(text, str) else ""
