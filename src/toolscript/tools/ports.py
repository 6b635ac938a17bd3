"""What the core asks of the world about skills: which there are, who is in which, what they sum up to."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from toolscript.model.assignments import AssignedBy, Assignment
from toolscript.model.dirty import Claim
from toolscript.model.models import Vector
from toolscript.model.progress import OnProgress, silent
from toolscript.model.skill_vectors import Counted, Rebuilt, SkillState
from toolscript.model.skills import (
    AuditEntry,
    Classification,
    Classified,
    Member,
    Skill,
    SkillEntry,
    Suggestion,
    SuggestionState,
    Unclassified,
)


class Classifier(Protocol):
    """Says which skills items are in. Item text is data to it, whatever it says."""

    async def classify(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        """One answer an item, in order; assignments name only these skills, as `valid_assignments` has them."""


class Taxonomy(Protocol):
    """The skills of record. None is ever removed: it is deactivated. Every change is audited."""

    async def revision(self) -> int:
        """Grows with every change of any skill."""

    async def page(self, after: str, limit: int, *, active_only: bool = False) -> Sequence[SkillEntry]:
        """The next skills in order of id; fewer than `limit` only at the end."""

    async def find(self, skill_id: str) -> SkillEntry:
        """Refused with NotFound when there is none."""

    async def add(self, skill: Skill, by: str) -> SkillEntry:
        """Refused with Conflict when the id is taken."""

    async def change(self, skill: Skill, by: str, instead_of: Skill | None = None) -> SkillEntry:
        """The skill of this id becomes this; what it is already changes nothing.

        Refused with Conflict when it is not `instead_of`, where that is given.
        """

    async def members(self, skill_id: str, after: int, limit: int) -> Sequence[Member]:
        """The skill's next items in order of id."""

    async def audit(self, before: int | None, limit: int) -> Sequence[tuple[int, AuditEntry]]:
        """What people decided, latest first; `before` is the number of the last one seen."""


class Assignments(Protocol):
    """Which items are in which skills."""

    async def of(self, item_id: int) -> tuple[Assignment, ...]:
        """Primary first. Refused with NotFound when there is no such item."""

    async def record(self, classified: Sequence[Classified]) -> Mapping[int, tuple[int, tuple[Assignment, ...]]]:
        """Takes what a classifier said, in one transaction; answers version and assignments of each item taken.

        Not taken: an item that has changed since, that a person has decided about, or that is gone. An item whose
        assignments become others gets a new version and is dirty; one whose assignments stay keeps both.
        A suggestion gathers on the pending one of its key, in place of what the item asked for before; where that
        key was approved or merged, and its skill is active, it becomes an assignment of LEAST_CONFIDENCE by
        the same classifier's kind, unless the item has that skill; where it was rejected it is dropped. What the
        item asked for before, as it is now, counts in the same way.
        """

    async def set_by_hand(self, item_id: int, skill_ids: Sequence[str], by: str) -> tuple[Assignment, ...]:
        """A person's word, the first skill primary; no skill is a word too. No classifier changes it."""

    async def release(self, item_id: int, by: str) -> None:
        """Gives the item back to the classifier; its skills stay until that has looked at it."""

    async def reclassify(
        self, after: int, limit: int, *, skill_id: str | None = None, source: AssignedBy | None = None
    ) -> Sequence[int]:
        """Has the next items in order of id classified anew, but for those a person decided about.

        All, or those in a skill, or those with an assignment from this source. Answers their ids.
        """


class Suggestions(Protocol):
    """Skills that classifiers missed, until a person decides. Refused with Conflict when somebody has."""

    async def page(
        self, after: int, limit: int, state: SuggestionState | None = SuggestionState.PENDING
    ) -> Sequence[Suggestion]:
        """The next suggestions in order of id; a pending one only while somebody asks for it."""

    async def find(self, suggestion_id: int) -> Suggestion: ...
    async def asked_by(self, suggestion_id: int, after: int, limit: int) -> Sequence[int]:
        """The items that ask for it, in order of id."""

    async def approve(self, suggestion_id: int, skill: Skill, by: str) -> Suggestion:
        """Makes the skill, and has the items that asked classified anew. Conflict when the skill's id is taken.

        Whoever asked gets the skill, whatever the classifier says, for as long as the item stays what it is.
        """

    async def reject(self, suggestion_id: int, by: str) -> Suggestion: ...
    async def merge(self, suggestion_id: int, into: str, by: str) -> Suggestion:
        """Those who ask for it get this active skill, now and later."""

    async def call_more(self) -> int:
        """Where many asked, a decision calls the first of them; this calls the next. 0 when all are called."""


class SkillsBehind(Protocol):
    """Per index generation: skills whose points have yet to follow."""

    async def behind(self, generation: int, limit: int, only: Collection[str] = ()) -> Sequence[SkillState]:
        """Skills, all or only some, whose points have yet to follow, the longest waiting first."""

    async def followed(self, generation: int, versions: Mapping[str, int]) -> None:
        """The points of these skills are at these versions."""


class SkillVectors(SkillsBehind, Protocol):
    """Per index generation: what each item counts as, what each skill's items sum up to, and who has to follow."""

    async def recall(self, generation: int, text_hashes: Mapping[int, str]) -> Mapping[int, Vector]:
        """The vectors of items that count with this very text."""

    async def count(self, generation: int, claim: Claim, counted: Sequence[Counted]) -> None:
        """Moves the sums from what each claimed item counted as to what it counts as now; none means nothing.

        In one transaction, and only for what is still claimed at the claimed version: what another worker has, or
        what changed since, is left alone.
        """

    async def has_counted(self, generation: int) -> bool:
        """Whether any item counts: then items have been followed."""

    async def written(self, generation: int) -> Mapping[int, tuple[int, int]]:
        """By point id, the versions that the point of each skill has at the least and at the most."""

    async def all_behind(self, generation: int) -> None:
        """Every skill's point has to be written again."""

    async def rebuild(
        self, generation: int, only: Collection[str] = (), on_progress: OnProgress = silent
    ) -> Rebuilt:
        """Adds up every item again, beside running workers, and mends the sums that differ."""
