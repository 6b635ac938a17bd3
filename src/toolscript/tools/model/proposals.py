"""Proposed changes of the taxonomy, with their evidence. A person decides about each, as about a suggestion."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple

from toolscript.core.errors import Conflict, InvalidRequest
from toolscript.core.items import MAX_ASSIGNMENTS, MAX_REASON, AssignedBy, Assignment, Item
from toolscript.core.retrieval.model import Vector
from toolscript.core.taxonomy import ProposalKind, ProposedChange, Skill, Suggestion
from toolscript.tools.model.skills import SUGGESTIONS_HINT

# With less, an assignment does not fit well.
WEAK_CONFIDENCE = 0.7
# The actor of the audit where a worker completes what a person decided.
WORKER = "toolscript worker"


class Move(NamedTuple):
    """An item and the skills that it would get, the best first, with confidences. Without any it is classified."""

    item_id: int
    skill_ids: tuple[str, ...]
    confidences: tuple[float, ...]

    @property
    def skills(self) -> list[tuple[str, float]]:
        return list(zip(self.skill_ids, self.confidences, strict=True))

    def within(self, active: Collection[str]) -> "Move":
        """Return the move to those of its skills that are active."""
        kept = [(skill_id, confidence) for skill_id, confidence in self.skills if skill_id in active]
        return Move(self.item_id, tuple(pair[0] for pair in kept), tuple(pair[1] for pair in kept))


@dataclass(frozen=True)
class NearExisting:
    """`cosine` is that of the two centroids."""

    skill_id: str
    cosine: float


@dataclass(frozen=True)
class RoutingGain:
    """Members taken as queries: the share that reaches its own skill among the nearest, and the share of the
    catalog that is searched for that; now, and with the proposal."""

    sample: int
    reached_before: float
    reached_after: float
    searched_before: float
    searched_after: float


@dataclass(frozen=True)
class ProposalEvidence:
    """`sizes` are the members of each skill after the decision; `samples` are names of its most central items."""

    members: int
    catalog: int
    sizes: Mapping[str, int] = field(default_factory=dict)
    samples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    nearest: tuple[NearExisting, ...] = ()
    routing: RoutingGain | None = None
    named_by: AssignedBy = AssignedBy.RULES


@dataclass(frozen=True)
class Proposal:
    """`creates` are added, and `retires` deactivated once no item is only in them."""

    kind: ProposalKind
    key: str
    name: str
    description: str
    evidence: ProposalEvidence
    creates: tuple[Skill, ...] = ()
    retires: tuple[str, ...] = ()
    moves: Sequence[Move] = field(default=(), repr=False)

    @property
    def change(self) -> ProposedChange:
        return ProposedChange(self.creates, self.retires, evidence_json(self.evidence))

    @property
    def fallback(self) -> str | None:
        """The skill for items that came to a retired one while others moved: the largest."""
        return fallback_of(self.change)


@dataclass(frozen=True)
class Submitted:
    """The effect on the queue: proposals added, changed and withdrawn; those unchanged count nowhere."""

    added: int = 0
    changed: int = 0
    withdrawn: int = 0


def evidence_json(evidence: ProposalEvidence) -> dict[str, object]:
    return {**asdict(evidence), "named_by": str(evidence.named_by)}


def proposals_json(proposals: Sequence[Proposal]) -> list[dict[str, object]]:
    """Return proposals as plain data, without their moves: there is one for each item."""
    return [
        {
            "kind": str(proposal.kind),
            "key": proposal.key,
            "name": proposal.name,
            "description": proposal.description,
            "creates": [asdict(skill) for skill in proposal.creates],
            "retires": list(proposal.retires),
            "evidence": evidence_json(proposal.evidence),
        }
        for proposal in proposals
    ]


def fallback_of(change: ProposedChange) -> str | None:
    """Return the largest skill that items move to."""
    sizes = change.evidence.get("sizes")
    if not isinstance(sizes, Mapping) or not sizes:
        return None
    return str(max(sizes, key=lambda skill_id: (int(sizes[skill_id]), skill_id)))


def needed_skills(change: ProposedChange) -> set[str]:
    """Return the skills that must be active for the change to be accepted: those that items leave or move to."""
    needed = {*change.retires, fallback_of(change)} - {skill.id for skill in change.creates}
    return {skill_id for skill_id in needed if skill_id is not None}


def reason_of(suggestion_id: int, name: str) -> str:
    """Return the reason of the assignments that an accepted proposal makes."""
    return f"proposal {suggestion_id}: {name}"


def by_stored_key(proposals: Sequence[Proposal], done: Mapping[str, int]) -> dict[str, Proposal]:
    """Return the proposals by the keys that they are stored under: their own, or one after it that is free.

    `done` are the keys of approved proposals that have moved their items, with their ids.
    """
    stored = {}
    for proposal in proposals:
        key = proposal.key
        while key in done:
            key = f"{proposal.key}#{done[key]}"
        stored[key] = replace(proposal, key=key)
    return stored


def own_key(stored: str) -> str:
    """Return the key that a stored proposal was made with."""
    return stored.partition("#")[0]


@dataclass(frozen=True)
class EarlierProposal:
    """A proposal of the queue, with the skills of each item, the surest first. One that was undone, or approved
    while its items still move, counts as rejected: it is not made again."""

    key: str
    kind: ProposalKind
    is_rejected: bool
    creates: tuple[Skill, ...]
    retires: tuple[str, ...]
    members: Mapping[int, Sequence[tuple[str, float]]]


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
class SkillSizes:
    """The number of items of a namespace, and in each skill; `used` are the skills with items in any namespace."""

    catalog: int
    members: Mapping[str, int]
    used: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ProposalLimits:
    """When a skill is too large, or too small to propose; and how sure an assignment must be to fit well."""

    max_share: float = 0.15
    min_members: int = 3
    weak_confidence: float = WEAK_CONFIDENCE
    sample: int = 20_000
    merge_cosine: float = 0.97
    min_catalog_to_retire: int = 200


def moved_assignments(
    before: Sequence[Assignment], move: Move, retires: Sequence[str], reason: str
) -> tuple[Assignment, ...]:
    """Return the assignments of a moved item: those of the proposal, and those that it keeps; the surest first."""
    new = [
        Assignment(skill_id, confidence, AssignedBy.RULES, reason[:MAX_REASON])
        for skill_id, confidence in zip(move.skill_ids, move.confidences, strict=True)
    ]
    replaced = {*move.skill_ids, *retires}
    kept = [assignment for assignment in before if assignment.skill_id not in replaced]
    ordered = sorted([*new, *kept], key=lambda assignment: -assignment.confidence)
    return tuple(ordered[:MAX_ASSIGNMENTS])


def restored_assignments(
    now: Sequence[Assignment],
    previous: Sequence[Assignment],
    move: Move,
    change: ProposedChange,
    active: Collection[str],
) -> tuple[Assignment, ...]:
    """Return the assignments of an item whose move is undone: without what the move gave it, and with what it had.

    What was decided or classified since stays.
    """
    created = {skill.id for skill in change.creates}
    had = [one for one in previous if one.skill_id in active and one.skill_id not in created]
    given = {*move.skill_ids} - {one.skill_id for one in had}
    kept = [one for one in now if one.skill_id not in given]
    missing = [one for one in had if one.skill_id not in {one.skill_id for one in kept}]
    ordered = sorted([*kept, *missing], key=lambda one: -one.confidence)
    return tuple(ordered[:MAX_ASSIGNMENTS])


def outdated(suggestion: Suggestion, reason: str) -> Conflict:
    return Conflict(
        f"proposal {suggestion.id} does not fit the catalog any more: {reason}",
        hint="`toolscript skills propose` proposes anew; reject this one",
        details={"suggestion_id": suggestion.id},
    )


def no_proposal(suggestion: Suggestion) -> InvalidRequest:
    hint = "approve it with a name, or merge it into a skill"
    return InvalidRequest(f"suggestion {suggestion.id} is no proposal", hint=hint)


def not_accepted(suggestion: Suggestion) -> Conflict:
    message = f"suggestion {suggestion.id} is {suggestion.state}: only an approved proposal can be undone"
    return Conflict(message, hint=SUGGESTIONS_HINT, details={"suggestion_id": suggestion.id})


def is_proposal(suggestion: Suggestion) -> InvalidRequest:
    message = f"suggestion {suggestion.id} proposes to {suggestion.kind}: it can be approved or rejected"
    return InvalidRequest(message, hint=f"toolscript skills approve {suggestion.id}")
