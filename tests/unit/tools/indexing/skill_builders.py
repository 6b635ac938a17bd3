"""People manage skills, in memory."""

from collections.abc import Collection
from dataclasses import dataclass, field

from tests.unit.tools.indexing.builders import Scene, tool
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.taxonomy import Classification, Classified, SuggestedSkill
from toolscript.tools.skills.management import NearestSkills, SkillManagement


@dataclass
class Managed(Scene):
    """A scene in which people manage skills; the faults are what index and model do instead."""

    index_fault: Exception | None = None
    model_fault: Exception | None = None
    followed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.management = SkillManagement(
            self.taxonomy,
            self.assignments,
            self.suggestions,
            self.catalog,
            NearestSkills(self.taxonomy, self._model),
            self._follow,
        )

    async def _model(self) -> Embedder:
        if self.model_fault:
            raise self.model_fault
        return self.embedder

    async def _follow(self, only: Collection[str]) -> int:
        if self.index_fault:
            raise self.index_fault
        self.followed += only
        return len(only)

    async def suggest(self, name: str, *items: str, description: str = "") -> int:
        """The number of a suggestion that these items ask for."""
        await self.catalog.store("file", [tool(item) for item in items])
        found = await self.catalog.items([seen.id for seen in await self.catalog.scan(0, 1000)])
        said = Classification(suggestion=SuggestedSkill(name, description))
        asking = [Classified(one.id, one.version, said) for one in found if one.item.name in items]
        await self.assignments.record(asking)
        return (await self.suggestions.page(0, 1000, None))[-1].id
