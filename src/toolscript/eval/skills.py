"""Skills proposed from the catalog of a dataset, beside given ones or alone; all approved as they come."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass

from toolscript.core.embedding.items import embed_items
from toolscript.core.items import Assignment, StoredItem
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.taxonomy import ProposalKind, Skill, Unclassified
from toolscript.core.values import OnProgress, silent
from toolscript.tools.classify.rules import RulesClassifier
from toolscript.tools.model.proposals import Observed, Proposal, SkillSizes, moved_assignments
from toolscript.tools.skills.proposals import ProposalInput, propose

BATCH = 500


@dataclass(frozen=True)
class AssignedSkills:
    """Skills, and the assignments of each item by id."""

    skills: Sequence[Skill]
    assignments: Mapping[int, tuple[Assignment, ...]]

    @property
    def largest_share(self) -> float:
        sizes = _sizes(self.assignments.values())
        return max(sizes.values(), default=0) / max(1, len(self.assignments))

    @property
    def unassigned_share(self) -> float:
        return sum(not assigned for assigned in self.assignments.values()) / max(1, len(self.assignments))


async def assigned_skills(
    items: Sequence[StoredItem],
    embedder: Embedder,
    skills: Sequence[Skill],
    on_progress: OnProgress = silent,
) -> AssignedSkills:
    """Classify items with these skills, perhaps none, and approve what is proposed."""
    observed = await _observed(items, embedder, skills)

    async def pages() -> AsyncIterator[Sequence[Observed]]:
        for start in range(0, len(observed), BATCH):
            yield observed[start : start + BATCH]

    sizes = _sizes(one.assignments for one in observed)
    request = ProposalInput(pages, SkillSizes(len(observed), sizes), skills)
    return approved(skills, observed, await propose(request, on_progress=on_progress))


def approved(
    skills: Sequence[Skill], observed: Sequence[Observed], proposals: Sequence[Proposal]
) -> AssignedSkills:
    """Approve new skills and splits as they are proposed."""
    taken = [proposal for proposal in proposals if proposal.kind in (ProposalKind.NEW, ProposalKind.SPLIT)]
    retired = {skill_id for proposal in taken for skill_id in proposal.retires}
    assignments = {one.id: one.assignments for one in observed}
    for proposal in taken:
        for move in proposal.moves:
            before = assignments[move.item_id]
            assignments[move.item_id] = moved_assignments(before, move, proposal.retires, proposal.name)
    kept = [skill for skill in skills if skill.id not in retired]
    return AssignedSkills([*kept, *(skill for one in taken for skill in one.creates)], assignments)


def _sizes(assigned: Iterable[Sequence[Assignment]]) -> Counter[str]:
    return Counter(assignment.skill_id for assignments in assigned for assignment in assignments)


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
