"""Skills of a judged set: items classified by the rules, with what a catalog keeps of skills kept in memory."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from toolscript.model.assignments import Assignment
from toolscript.model.items import StoredItem
from toolscript.model.models import Matrix, Vector
from toolscript.model.skill_vectors import Counted, SkillState, SkillSum, added_up, differences
from toolscript.model.skills import Skill, Unclassified
from toolscript.ports import Embedder, Index
from toolscript.sync.classify.rules import RulesClassifier
from toolscript.sync.skill_points import SkillPoints

# There is one index of skills, made once.
GENERATION = 1


class JudgedSkills:
    """Skills sum up the items that are there now: whoever goes is taken away, and skill points follow."""

    def __init__(self, embedder: Embedder, skills: Sequence[Skill]) -> None:
        self._embedder = embedder
        self._classifier = RulesClassifier(embedder)
        self._skills = {skill.id: skill for skill in skills}
        self._said: dict[int, tuple[Assignment, ...]] = {}
        self._counted: dict[int, Counted] = {}
        self._sums: dict[str, SkillSum] = {}
        self._versions = dict.fromkeys(self._skills, 1)
        self._written: dict[tuple[int, str], int] = {}

    async def settled(self, items: Sequence[StoredItem], vectors: Matrix) -> list[StoredItem]:
        """The items with their skills, counted from now on. Whoever comes back is not classified again."""
        new = [(one, vector) for one, vector in zip(items, vectors, strict=True) if one.id not in self._said]
        asked = [Unclassified(one.item, vector) for one, vector in new]
        said = await self._classifier.classify(asked, tuple(self._skills.values()))
        self._said |= {one.id: its.assignments for (one, _), its in zip(new, said, strict=True)}
        settled = [replace(one, assignments=self._said[one.id]) for one in items]
        counted = [_counted(one, vector) for one, vector in zip(settled, vectors, strict=True)]
        self._counted |= {one.item_id: one for one in counted}
        self._move(differences({}, added_up(counted)))
        return settled

    def forget(self, ids: Sequence[int]) -> None:
        """They are gone from the catalog."""
        self._move(differences(added_up([self._counted.pop(id_) for id_ in ids]), {}))

    async def follow(self, index: Index) -> None:
        """Writes the points of the skills that moved, as a worker writes them."""
        points = SkillPoints(self, self._embedder, index, GENERATION)
        while await points.follow():
            pass

    def of_items(self) -> dict[int, frozenset[str]]:
        """The skills of every item that is there now."""
        return {id_: frozenset(one.weights) for id_, one in self._counted.items()}

    async def behind(self, generation: int, limit: int, only: Collection[str] = ()) -> Sequence[SkillState]:
        written = self._written
        waiting = [id_ for id_, version in self._versions.items() if written.get((generation, id_), 0) < version]
        wanted = [id_ for id_ in waiting if not only or id_ in only]
        return [
            SkillState(self._skills[id_], self._sums.get(id_, SkillSum.nothing()), self._versions[id_])
            for id_ in wanted[:limit]
        ]

    async def followed(self, generation: int, versions: Mapping[str, int]) -> None:
        self._written |= {(generation, id_): version for id_, version in versions.items()}

    def _move(self, moves: Mapping[str, SkillSum]) -> None:
        for skill, move in moves.items():
            self._sums[skill] = self._sums.get(skill, SkillSum.nothing()) + move
            self._versions[skill] += 1


class ItemsBySkill:
    """The skills of items by key. Few sets of skills differ, so that counting by them is fast for every query."""

    def __init__(self, skills: Mapping[str, frozenset[str]]) -> None:
        self.skills = skills
        self._alike = Counter(skills.values())

    def share(self, any_of: Collection[str]) -> float:
        """Of all items, those that have any of these skills."""
        having = sum(count for skills, count in self._alike.items() if not skills.isdisjoint(any_of))
        return having / len(self.skills) if self.skills else 0.0


def _counted(stored: StoredItem, vector: Vector) -> Counted:
    """Nobody recalls its vector by its text here."""
    return Counted(stored.id, "", vector, {its.skill_id: its.weight for its in stored.assignments})
