"""Skill management, in memory."""

from collections.abc import Collection
from dataclasses import dataclass, field

from tests.unit.tools.indexing.builders import Scene, tool
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.taxonomy import Classification, Classified, SuggestedSkill
from toolscript.tools.skills.management import NearestSkills, SkillManagement


@dataclass
class Managed(Scene):
    """A scene for skill management; the faults are errors of the index and the model."""

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
        """Record a suggestion for these items; return its id."""
        await self.catalog.store("file", [tool(item) for item in items])
        stored_items = await self.catalog.items([seen.id for seen in await self.catalog.scan(0, 1000)])
        classification = Classification(suggestion=SuggestedSkill(name, description))
        classified = [
            Classified(stored.id, stored.version, classification)
            for stored in stored_items
            if stored.item.name in items
        ]
        await self.assignments.record(classified)
        return (await self.suggestions.page(0, 1000, None))[-1].id
