"""Skills proposed from the catalog, with their evidence. A person decides about each, as about a suggestion."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from toolscript.core.errors import Conflict
from toolscript.core.items import AssignedBy, Assignment, Item
from toolscript.core.retrieval.model import Vector
from toolscript.core.taxonomy import ProposalKind, ProposedChange, Skill, Suggestion
from toolscript.tools.model.skills import SUGGESTIONS_HINT


@dataclass(frozen=True)
class ProposalLimits:
    """When a skill is too large, or too small to propose; and how sure an assignment must be to fit well."""

    max_share: float = 0.15
    min_members: int = 3
    weak_confidence: float = 0.7
    sample: int = 20_000


@dataclass(frozen=True)
class Observed:
    """An item of the catalog with its vector and its skills; `skills_by_hand`: a person chose them, even none."""

    id: int
    item: Item
    vector: Vector
    assignments: tuple[Assignment, ...] = ()
    skills_by_hand: bool = False

    @property
    def is_by_hand(self) -> bool:
        return self.skills_by_hand or any(assignment.source is AssignedBy.HUMAN for assignment in self.assignments)


@dataclass(frozen=True)
class NearExisting:
    """`cosine` is that of the mean of a skill's items and the mean of the proposed members."""

    skill_id: str
    cosine: float


@dataclass(frozen=True)
class ProposalEvidence:
    """The number of members, of all items, the names of the most central members, and the nearest skills."""

    members: int
    catalog: int
    samples: tuple[str, ...] = ()
    nearest: tuple[NearExisting, ...] = ()
    named_by: AssignedBy = AssignedBy.RULES


@dataclass(frozen=True)
class Proposal:
    """A new skill for these items, with the confidence of each. Approving it gives it to them."""

    skill: Skill
    members: Mapping[int, float] = field(repr=False)
    evidence: ProposalEvidence

    @property
    def key(self) -> str:
        return f"new:{self.skill.id}"

    @property
    def change(self) -> ProposedChange:
        evidence = {**asdict(self.evidence), "named_by": str(self.evidence.named_by)}
        return ProposedChange((self.skill,), evidence)


@dataclass(frozen=True)
class Submitted:
    """The effect on the queue: proposals added, changed and withdrawn; those unchanged count nowhere."""

    added: int = 0
    changed: int = 0
    withdrawn: int = 0


def proposals_json(proposals: Sequence[Proposal]) -> list[dict[str, object]]:
    """Return proposals as plain data, with the number of their members."""
    return [
        {
            "kind": str(ProposalKind.NEW),
            "key": proposal.key,
            "name": proposal.skill.name,
            "description": proposal.skill.description,
            "creates": [asdict(skill) for skill in proposal.change.creates],
            "evidence": dict(proposal.change.evidence),
        }
        for proposal in proposals
    ]


def not_accepted(suggestion: Suggestion) -> Conflict:
    message = f"suggestion {suggestion.id} is {suggestion.state}: only an approved proposal can be undone"
    return Conflict(message, hint=SUGGESTIONS_HINT, details={"suggestion_id": suggestion.id})
