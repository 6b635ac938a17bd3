"""Skills as plain JSON data: validation on reading, and writing."""

import json
from collections.abc import Mapping
from typing import Any

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import SKILL_ID, JsonObject
from toolscript.core.taxonomy import Skill
from toolscript.core.text import readable

MAX_NAME = 255
MAX_DESCRIPTION = 2_000
MAX_WORDS = 50
MAX_WORD = 100
MAX_EVIDENCE = 300

# Path segments that routes use in the place of a skill id.
RESERVED_IDS = frozenset({"search"})
ID_HINT = "an id is like calendar_management: lower case, digits and _, at most 64 characters"

_FIELDS = frozenset({"id", "name", "description", "parent_domain", "keywords", "examples", "is_active"})
# Computed fields, ignored on reading, so that a listing can be imported unchanged.
_COMPUTED = frozenset({"tool_count", "created_at", "updated_at"})


def skill_from_json(data: object) -> Skill:
    if not isinstance(data, Mapping):
        raise InvalidRequest("a skill must be a JSON object")
    unknown = sorted(str(field) for field in data.keys() - _FIELDS - _COMPUTED)
    if unknown:
        raise InvalidRequest(f"{unknown[0][:40]!r} is not a field of a skill", details={"field": unknown[0][:40]})
    return Skill(
        id=_new_id(data),
        name=_text(data, "name", MAX_NAME, required=True),
        description=_text(data, "description", MAX_DESCRIPTION),
        parent_domain=None if data.get("parent_domain") is None else _id(data, "parent_domain"),
        keywords=_words(data, "keywords"),
        examples=_words(data, "examples"),
        is_active=_is_active(data),
    )


def skill_to_json(skill: Skill) -> dict[str, object]:
    return {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "parent_domain": skill.parent_domain,
        "keywords": list(skill.keywords),
        "examples": list(skill.examples),
        "is_active": skill.is_active,
    }


def changed_skill(skill: Skill, changes: JsonObject) -> Skill:
    """Return the skill with these fields changed. Raise when the id would change."""
    if changes.get("id", skill.id) != skill.id:
        raise _invalid("id", "of a skill cannot change")
    return skill_from_json({**skill_to_json(skill), **changes})


def skills_from_text(text: str) -> list[Skill]:
    """Parse a JSON list of skills, or JSON lines. One invalid skill rejects all: half a taxonomy is no use."""
    skills: dict[str, Skill] = {}
    for where, data in _listed(text) if text.lstrip("\ufeff \t\r\n").startswith("[") else _lines(text):
        try:
            skill = skill_from_json(data)
        except InvalidRequest as error:
            raise InvalidRequest(f"{where}: {error.message}", hint=error.hint, details=error.details) from None
        if skill.id in skills:
            raise InvalidRequest(f"{where}: id {skill.id} appears twice", details={"field": "id"})
        skills[skill.id] = skill
    return list(skills.values())


def _listed(text: str) -> list[tuple[str, object]]:
    return [(f"skill {number}", data) for number, data in enumerate(_json(text.lstrip("\ufeff"), "the list"), 1)]


def _lines(text: str) -> list[tuple[str, object]]:
    lines = [(f"line {number}", line) for number, line in enumerate(text.lstrip("\ufeff").split("\n"), 1)]
    return [(where, _json(line, where)) for where, line in lines if line.strip()]


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"{where} is not JSON: {str(error)[:80]}",
            hint="use a JSON list of skills, or one skill per line; `toolscript skills export` writes such a file",
        ) from None


def _invalid(field: str, problem: str, hint: str = "") -> InvalidRequest:
    return InvalidRequest(f"{field} {problem}", hint=hint, details={"field": field})


def _new_id(data: JsonObject) -> str:
    skill_id = _id(data, "id")
    if skill_id in RESERVED_IDS:
        raise _invalid("id", f"may not be {skill_id}: that word is reserved", "choose another")
    return skill_id


def _id(data: JsonObject, field: str) -> str:
    value = data.get(field)
    if value is None or value == "":
        raise _invalid(field, "is missing", ID_HINT)
    if not isinstance(value, str) or SKILL_ID.fullmatch(value) is None:
        raise _invalid(field, f"cannot be {str(value)[:40]!r}", ID_HINT)
    return value


def _text(data: JsonObject, field: str, maximum: int, *, required: bool = False) -> str:
    value = data.get(field, "")
    if not isinstance(value, str):
        raise _invalid(field, "must be text")
    text = readable(value).strip()
    if required and not text:
        raise _invalid(field, "is blank" if value else "is missing")
    if len(text) > maximum:
        raise _invalid(field, f"is longer than {maximum:,} characters")
    return text


def _words(data: JsonObject, field: str) -> tuple[str, ...]:
    """Return each word once, in the given order."""
    values = data.get(field, ())
    if not isinstance(values, list | tuple):
        raise _invalid(field, "must be a list of words")
    words = dict.fromkeys(_text({field: value}, field, MAX_WORD, required=True) for value in values)
    if len(words) > MAX_WORDS:
        raise _invalid(field, f"are more than {MAX_WORDS}")
    return tuple(words)


def _is_active(data: JsonObject) -> bool:
    value = data.get("is_active", True)
    if not isinstance(value, bool):
        raise _invalid("is_active", "must be true or false")
    return value
