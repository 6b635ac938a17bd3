"""Skills in bulk: import and export, the default taxonomy, and reclassification of all items."""

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

# The actor that the audit records for the default taxonomy.
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
    """The number of default skills loaded, and whether there are items to classify."""

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
    """Add each skill, or change it if it differs. `replace_all` deactivates every other skill."""
    if replace_all and not skills:
        raise InvalidRequest(
            "the file contains no skill, and none was deactivated",
            hint="replacing all skills with none would disable routing; leave --replace out",
        )
    done: dict[str, list[str]] = {"added": [], "changed": [], "unchanged": []}
    for number, skill in enumerate(skills, 1):
        done[await _put(taxonomy, skill, by)].append(skill.id)
        on_progress(Progress("import", number, len(skills)))
    kept = frozenset(skill.id for skill in skills)
    ended = await _deactivate_others(taxonomy, kept, by, on_progress) if replace_all else ()
    return SkillImport(tuple(done["added"]), tuple(done["changed"]), ended, len(done["unchanged"]))


async def load_defaults(taxonomy: Taxonomy, skills: Sequence[Skill]) -> int:
    """Load the default skills if no person has made a decision yet; return how many. Resumable."""
    stored = {entry.skill.id for entry in await taxonomy.page("", len(skills) + 1)}
    if stored - {skill.id for skill in skills} or len(stored) >= len(skills):
        return 0
    # The audit has entries of everything else, too, such as of the migration itself.
    latest = await taxonomy.audit(None, 2 * len(skills))
    if any(entry.actor != LOADER for _, entry in latest if entry.action.startswith("skill.")):
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
    """Reclassify every item that no person decided about, or those of a skill or a source."""
    count = after = 0
    while ids := await assignments.reclassify(after, RECLASSIFIED_AT_ONCE, skill_id=skill_id, source=source):
        count += len(ids)
        after = ids[-1]
        on_progress(Progress("reclassify", count, total))
    return count


async def _put(taxonomy: Taxonomy, skill: Skill, by: str) -> str:
    try:
        stored = await taxonomy.find(skill.id)
    except NotFound:
        try:
            await taxonomy.add(skill, by)
        except Conflict:
            # It was added concurrently.
            await taxonomy.change(skill, by)
            return "changed"
        return "added"
    if stored.skill == skill:
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
        raise NotFound(f"cannot read {path}: {error.strerror}", hint="use the path of a file of skills") from None
    if len(data) > MAX_BYTES:
        raise InvalidRequest(f"{path} is larger than {MAX_BYTES >> 20} MiB")
    try:
        return skills_from_text(data.decode())
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path} is not UTF-8 text") from None


def write_skills(path: Path, skills: Sequence[Skill]) -> None:
    try:
        path.write_text(skills_to_text(skills), "utf-8")
    except OSError as error:
        raise InvalidRequest(
            f"cannot write {path}: {error.strerror}", hint="use a path that can be written"
        ) from None


def skills_to_text(skills: Sequence[Skill]) -> str:
    """Return a JSON list with one skill per line: easy to read, and a changed skill is a changed line."""
    lines = [json.dumps(skill_to_json(skill), ensure_ascii=False) for skill in skills]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"
