"""Has items classified that nobody has looked at as they are now."""

from collections.abc import Sequence
from dataclasses import replace

from toolscript.model.assignments import Assignment
from toolscript.model.items import StoredItem
from toolscript.model.models import Matrix
from toolscript.model.skills import Classified, Unclassified
from toolscript.ports import Assignments, Classifier, Taxonomy
from toolscript.sync.active_skills import ActiveSkills


class ItemSkills:
    def __init__(self, taxonomy: Taxonomy, assignments: Assignments, classifier: Classifier) -> None:
        self._active_skills = ActiveSkills(taxonomy)
        self._assignments = assignments
        self._classifier = classifier

    async def settled(self, items: Sequence[StoredItem], vectors: Matrix) -> list[StoredItem]:
        """The items with the skills they have now, and the version that gave them those.

        Where there are no skills at all, items wait for the first: `toolscript skills reclassify` calls them.
        """
        waiting = [(stored, vector) for stored, vector in zip(items, vectors, strict=True) if stored.needs_skills]
        skills = await self._active_skills.now() if waiting else ()
        if not skills:
            return list(items)
        said = await self._classifier.classify([Unclassified(one.item, vector) for one, vector in waiting], skills)
        taken = await self._assignments.record(
            [Classified(one.id, one.version, answer) for (one, _), answer in zip(waiting, said, strict=True)]
        )
        return [_now(stored, taken[stored.id]) if stored.id in taken else stored for stored in items]


def _now(stored: StoredItem, taken: tuple[int, tuple[Assignment, ...]]) -> StoredItem:
    version, assignments = taken
    return replace(stored, version=version, assignments=assignments, needs_skills=False)
