"""Skills in bulk: from a file, from the taxonomy that ships, and all items to be classified anew."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from toolscript.core.errors import Conflict, InvalidRequest, NotFound
from toolscript.core.items import AssignedBy
from toolscript.core.taxonomy import Skill
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.tools.model.skill_json import skill_to_json, skills_from_text
from toolscript.tools.ports import Assignments, Taxonomy
from toolscript.tools.skills.management import all_skills

RECLASSIFIED_AT_ONCE = 1_000

# Who the audit says has loaded the taxonomy that ships.
LOADER = "toolscript migrate"
MAX_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class SkillImport:
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deactivated: tuple[str, ...] = ()
    unchanged: int = 0

    @property
    def written(self) -> list[str]:
        return [*self.added, *self.changed, *self.deactivated]


@dataclass(frozen=True)
class LoadedSkills:
    """How many of the skills that ship were loaded, and whether there are items that may belong to them."""

    count: int
    items: bool


async def import_skills(
    taxonomy: Taxonomy,
    skills: Sequence[Skill],
    by: str,
    *,
    replace_all: bool = False,
    on_progress: OnProgress = silent,
) -> SkillImport:
    """Each is added, or changed where it differs. With `replace_all`, every other skill is deactivated."""
    if replace_all and not skills:
        raise InvalidRequest(
            "there is no skill in it, and none was deactivated",
            hint="replacing with nothing would end all routing; leave --replace out if that is a mistake",
        )
    done: dict[str, list[str]] = {"added": [], "changed": [], "unchanged": []}
    for number, skill in enumerate(skills, 1):
        done[await _put(taxonomy, skill, by)].append(skill.id)
        on_progress(Progress("import", number, len(skills)))
    kept = frozenset(skill.id for skill in skills)
    ended = await _deactivate_others(taxonomy, kept, by, on_progress) if replace_all else ()
    return SkillImport(tuple(done["added"]), tuple(done["changed"]), ended, len(done["unchanged"]))


async def load_defaults(taxonomy: Taxonomy, skills: Sequence[Skill]) -> int:
    """Loads what ships where nobody has decided anything yet; what was cut short is finished. Answers how many."""
    decided = await taxonomy.audit(None, len(skills) + 1)
    if any(entry.actor != LOADER for _, entry in decided) or len(decided) >= len(skills):
        return 0
    added = 0
    for skill in skills:
        try:
            await taxonomy.add(skill, LOADER)
        except Conflict:
            continue
        added += 1
    return added


async def reclassify_all(
    assignments: Assignments,
    *,
    skill_id: str | None = None,
    source: AssignedBy | None = None,
    total: int | None = None,
    on_progress: OnProgress = silent,
) -> int:
    """Has every item classified anew that no person decided about, or those of a skill or a source."""
    count = after = 0
    while ids := await assignments.reclassify(after, RECLASSIFIED_AT_ONCE, skill_id=skill_id, source=source):
        count += len(ids)
        after = ids[-1]
        on_progress(Progress("reclassify", count, total))
    return count


async def _put(taxonomy: Taxonomy, skill: Skill, by: str) -> str:
    try:
        known = await taxonomy.find(skill.id)
    except NotFound:
        try:
            await taxonomy.add(skill, by)
        except Conflict:
            # Somebody else has added it meanwhile.
            await taxonomy.change(skill, by)
            return "changed"
        return "added"
    if known.skill == skill:
        return "unchanged"
    await taxonomy.change(skill, by)
    return "changed"


async def _deactivate_others(
    taxonomy: Taxonomy, kept: frozenset[str], by: str, on_progress: OnProgress
) -> tuple[str, ...]:
    ended: list[str] = []
    async for entry in all_skills(taxonomy, active_only=True):
        if entry.skill.id not in kept:
            await taxonomy.change(replace(entry.skill, is_active=False), by)
            ended.append(entry.skill.id)
            on_progress(Progress("deactivate", len(ended)))
    return tuple(ended)


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
