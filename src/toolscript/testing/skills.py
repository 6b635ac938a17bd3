"""What items count as and what skills sum up to, in memory."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from toolscript.model.dirty import Claim
from toolscript.model.models import Vector
from toolscript.model.progress import OnProgress, Progress, silent
from toolscript.model.skill_vectors import Counted, Rebuilt, SkillState, SkillSum, added_up, differences, rebuilt
from toolscript.model.skills import Skill
from toolscript.testing.dirty_set import MemoryDirtySet

ListSkills = Callable[[], Awaitable[Sequence[Skill]]]


@dataclass
class _Skill:
    skill: Skill
    version: int
    point_version: int = 0


class MemorySkillVectors:
    """`skills` tells which there are, however they got there."""

    def __init__(self, dirty: MemoryDirtySet, skills: ListSkills) -> None:
        self._dirty = dirty
        self._list_skills = skills
        self._counted: dict[int, dict[int, Counted]] = {}
        self.sums: dict[int, dict[str, SkillSum]] = {}
        self._skills: dict[int, dict[str, _Skill]] = {}

    async def recall(self, generation: int, text_hashes: Mapping[int, str]) -> Mapping[int, Vector]:
        counted = self._counted.get(generation, {})
        return {
            id_: counted[id_].vector
            for id_, text_hash in text_hashes.items()
            if id_ in counted and counted[id_].text_hash == text_hash
        }

    async def count(self, generation: int, claim: Claim, counted: Sequence[Counted]) -> None:
        ours = self._dirty.held_at_version(generation, claim)
        known = self._counted.setdefault(generation, {})
        before = [known.pop(id_) for id_ in ours if id_ in known]
        now = [one for one in counted if one.item_id in ours]
        known.update((one.item_id, one) for one in now)
        await self._move(generation, differences(added_up(before), added_up(now)))

    async def has_counted(self, generation: int) -> bool:
        return bool(self._counted.get(generation))

    async def behind(self, generation: int, limit: int, only: Collection[str] = ()) -> Sequence[SkillState]:
        rows = await self._rows(generation)
        sums = self.sums.get(generation, {})
        waiting = sorted(
            (row.point_version, id_)
            for id_, row in rows.items()
            if row.point_version < row.version and (not only or id_ in only)
        )
        return [
            SkillState(rows[id_].skill, sums.get(id_, SkillSum.nothing()), rows[id_].version)
            for _, id_ in waiting[:limit]
        ]

    async def followed(self, generation: int, versions: Mapping[str, int]) -> None:
        rows = await self._rows(generation)
        for id_, version in versions.items():
            rows[id_].point_version = max(rows[id_].point_version, version)

    async def written(self, generation: int) -> Mapping[int, tuple[int, int]]:
        rows = await self._rows(generation)
        return {row.skill.point_id: (row.point_version, row.version) for row in rows.values()}

    async def all_behind(self, generation: int) -> None:
        for row in (await self._rows(generation)).values():
            row.point_version, row.version = 0, self._dirty.next_version()

    async def rebuild(
        self, generation: int, only: Collection[str] = (), on_progress: OnProgress = silent
    ) -> Rebuilt:
        items = [
            one
            for one in self._counted.get(generation, {}).values()
            if not only or not one.weights.keys().isdisjoint(only)
        ]
        rows = await self._rows(generation)
        wanted = set(only) or set(rows)
        exact = {skill: one for skill, one in added_up(items).items() if skill in wanted}
        sums = self.sums.get(generation, {})
        kept = {skill: sums.get(skill, SkillSum.nothing()) for skill in wanted}
        on_progress(Progress("add up", len(items)))
        await self._move(generation, differences(kept, exact))
        return rebuilt(kept, exact, len(items))

    async def _move(self, generation: int, moves: Mapping[str, SkillSum]) -> None:
        rows = await self._rows(generation)
        sums = self.sums.setdefault(generation, {})
        for skill, move in moves.items():
            sums[skill] = sums.get(skill, SkillSum.nothing()) + move
            rows[skill].version = self._dirty.next_version()

    async def _rows(self, generation: int) -> dict[str, _Skill]:
        rows = self._skills.setdefault(generation, {})
        for skill in await self._list_skills():
            if skill.id not in rows or rows[skill.id].skill != skill:
                written = rows[skill.id].point_version if skill.id in rows else 0
                rows[skill.id] = _Skill(skill, self._dirty.next_version(), written)
        return rows
