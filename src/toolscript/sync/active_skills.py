"""The skills of the taxonomy, page by page; the active ones remembered until the taxonomy changes."""

from collections.abc import AsyncIterator

from toolscript.model.skills import Skill, SkillEntry
from toolscript.ports import Taxonomy

PAGE = 200


async def all_skills(taxonomy: Taxonomy, *, active_only: bool = False) -> AsyncIterator[SkillEntry]:
    after = ""
    while page := await taxonomy.page(after, PAGE, active_only=active_only):
        for entry in page:
            yield entry
        after = page[-1].skill.id


class ActiveSkills:
    """In order of id, and no more than `most` of them."""

    def __init__(self, taxonomy: Taxonomy, most: int | None = None) -> None:
        self._taxonomy = taxonomy
        self._most = most
        self._revision = -1
        self._skills: tuple[Skill, ...] = ()

    async def now(self) -> tuple[Skill, ...]:
        """The very same tuple for as long as nothing has changed."""
        revision = await self._taxonomy.revision()
        if revision != self._revision:
            self._skills, self._revision = await self._read(), revision
        return self._skills

    async def _read(self) -> tuple[Skill, ...]:
        skills: list[Skill] = []
        async for entry in all_skills(self._taxonomy, active_only=True):
            if len(skills) == self._most:
                break
            skills.append(entry.skill)
        return tuple(skills)
