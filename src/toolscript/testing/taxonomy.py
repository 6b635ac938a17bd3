"""The skills of record in memory, and the audit of what people decided."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import count

from toolscript.model.decisions import (
    action_of,
    changed_meanwhile,
    difference,
    taken_skill,
    unknown_skill,
    valid_actor,
    valid_skill,
)
from toolscript.model.skills import AuditEntry, Member, Skill, SkillEntry
from toolscript.testing.catalog import MemoryCatalog


@dataclass(frozen=True)
class _Kept:
    skill: Skill
    revision: int
    created_at: datetime
    updated_at: datetime


class MemoryTaxonomy:
    """`count_tools` tells how many items of a skill are indexed: whoever counts them says so here."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog
        self._revisions = count(1)
        self._kept: dict[str, _Kept] = {}
        self._audit: list[AuditEntry] = []
        self.count_tools: Callable[[str], int] = lambda _skill_id: 0

    async def revision(self) -> int:
        return max((one.revision for one in self._kept.values()), default=0)

    async def page(self, after: str, limit: int, *, active_only: bool = False) -> Sequence[SkillEntry]:
        shown = [one.skill.id for one in self._kept.values() if one.skill.is_active or not active_only]
        return [self._entry(skill_id) for skill_id in sorted(shown) if skill_id > after][:limit]

    async def find(self, skill_id: str) -> SkillEntry:
        if skill_id not in self._kept:
            raise unknown_skill(skill_id)
        return self._entry(skill_id)

    async def add(self, skill: Skill, by: str) -> SkillEntry:
        return self.add_now(skill, by)

    def add_now(self, skill: Skill, by: str) -> SkillEntry:
        actor, skill = valid_actor(by), valid_skill(skill)
        if skill.id in self._kept:
            raise taken_skill(skill.id)
        now = datetime.now(UTC)
        self._kept[skill.id] = _Kept(skill, next(self._revisions), now, now)
        self.write_audit(actor, "skill.add", skill.id, {"after": asdict(skill)})
        return self._entry(skill.id)

    async def change(self, skill: Skill, by: str, instead_of: Skill | None = None) -> SkillEntry:
        actor, skill = valid_actor(by), valid_skill(skill)
        before = (await self.find(skill.id)).skill
        if instead_of not in (None, before):
            raise changed_meanwhile(skill.id)
        if skill != before:
            kept = self._kept[skill.id]
            self._kept[skill.id] = replace(
                kept, skill=skill, revision=next(self._revisions), updated_at=datetime.now(UTC)
            )
            self.write_audit(actor, action_of(before, skill), skill.id, difference(before, skill))
        return self._entry(skill.id)

    async def members(self, skill_id: str, after: int, limit: int) -> Sequence[Member]:
        await self.find(skill_id)
        ids = [seen.id for seen in await self._catalog.scan(after, await self._catalog.count())]
        return [
            Member(
                stored.id,
                stored.item.kind,
                stored.item.server,
                stored.item.name,
                stored.item.description,
                assignment,
                is_primary=assignment.skill_id == stored.primary_skill_id,
            )
            for stored in await self._catalog.items(ids)
            for assignment in stored.assignments
            if assignment.skill_id == skill_id
        ][:limit]

    async def audit(self, before: int | None, limit: int) -> Sequence[tuple[int, AuditEntry]]:
        numbered = list(enumerate(self._audit, 1))
        return [(number, one) for number, one in reversed(numbered) if before is None or number < before][:limit]

    def write_audit(self, actor: str, action: str, subject: object, details: Mapping[str, object]) -> None:
        kept = json.loads(json.dumps(details))
        self._audit.append(AuditEntry(datetime.now(UTC), actor, action, str(subject), kept))

    async def skills(self) -> Sequence[Skill]:
        return [kept.skill for kept in self._kept.values()]

    def active(self) -> frozenset[str]:
        return frozenset(skill_id for skill_id, kept in self._kept.items() if kept.skill.is_active)

    def _entry(self, skill_id: str) -> SkillEntry:
        kept = self._kept[skill_id]
        return SkillEntry(kept.skill, self.count_tools(skill_id), kept.created_at, kept.updated_at)
