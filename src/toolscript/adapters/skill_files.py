"""Skills in files: a JSON list, or JSON lines."""

import json
from collections.abc import Sequence
from pathlib import Path

from toolscript.errors import InvalidRequest, NotFound
from toolscript.model.skill_json import skill_to_json, skills_from_text
from toolscript.model.skills import Skill

MAX_BYTES = 16 * 1024 * 1024


def read_skills(path: Path) -> list[Skill]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}", hint="give the path of a file of skills") from None
    if len(data) > MAX_BYTES:
        raise InvalidRequest(f"{path} is larger than {MAX_BYTES >> 20} MiB")
    try:
        return skills_from_text(data.decode())
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is not text in UTF-8") from None


def write_skills(path: Path, skills: Sequence[Skill]) -> None:
    try:
        path.write_text(skills_to_text(skills), "utf-8")
    except OSError as error:
        raise InvalidRequest(
            f"cannot write {path}: {error.strerror}", hint="give a path that can be written"
        ) from None


def skills_to_text(skills: Sequence[Skill]) -> str:
    """One skill a line in a list: small to read, and a change of one skill is a change of one line."""
    lines = [json.dumps(skill_to_json(skill), ensure_ascii=False) for skill in skills]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"
