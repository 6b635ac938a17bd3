"""Skills proposed from the catalog of a dataset, beside given ones or alone; all approved as they come."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from toolscript.core.embedding.items import embed_items
from toolscript.core.items import MAX_ASSIGNMENTS, AssignedBy, Assignment, StoredItem
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.taxonomy import Skill, Unclassified
from toolscript.core.values import OnProgress, silent
from toolscript.tools.classify.rules import RulesClassifier
from toolscript.tools.model.proposals import Observed, Proposal
from toolscript.tools.skills.proposer import propose

BATCH = 500


@dataclass(frozen=True)
class AssignedSkills:
    """Skills, and the assignments of each item by id."""

    skills: Sequence[Skill]
    assignments: Mapping[int, tuple[Assignment, ...]]

    @property
    def largest_share(self) -> float:
        sizes = Counter(one.skill_id for assigned in self.assignments.values() for one in assigned)
        return max(sizes.values(), default=0) / max(1, len(self.assignments))

    @property
    def unassigned_share(self) -> float:
        return sum(not assigned for assigned in self.assignments.values()) / max(1, len(self.assignments))


async def assigned_skills(
    items: Sequence[StoredItem], embedder: Embedder, skills: Sequence[Skill], on_progress: OnProgress = silent
) -> AssignedSkills:
    """Classify items with these skills, perhaps none, and approve what is proposed."""
    observed = await _observed(items, embedder, skills)

    async def pages() -> AsyncIterator[Sequence[Observed]]:
        for start in range(0, len(observed), BATCH):
            yield observed[start : start + BATCH]

    return approved(skills, observed, await propose(pages, skills, on_progress=on_progress))


def approved(
    skills: Sequence[Skill], observed: Sequence[Observed], proposals: Sequence[Proposal]
) -> AssignedSkills:
    assignments = {one.id: one.assignments for one in observed}
    for proposal in proposals:
        for item_id, confidence in proposal.members.items():
            new = Assignment(proposal.skill.id, confidence, AssignedBy.RULES, proposal.skill.name)
            ordered = sorted((new, *assignments[item_id]), key=lambda one: -one.confidence)
            assignments[item_id] = tuple(ordered[:MAX_ASSIGNMENTS])
    return AssignedSkills([*skills, *(proposal.skill for proposal in proposals)], assignments)


async def _observed(items: Sequence[StoredItem], embedder: Embedder, skills: Sequence[Skill]) -> list[Observed]:
    classifier = RulesClassifier(embedder)
    observed: list[Observed] = []
    for start in range(0, len(items), BATCH):
        batch = items[start : start + BATCH]
        vectors = await embed_items(embedder, [stored.item for stored in batch])
        pairs = list(zip(batch, vectors, strict=True))
        answers = await classifier.classify(
            [Unclassified(stored.item, vector) for stored, vector in pairs], skills
        )
        observed += [
            Observed(stored.id, stored.item, vector, answer.assignments)
            for (stored, vector), answer in zip(pairs, answers, strict=True)
        ]
    return observed
