"""Ports of tool search: catalog, skills, sources and what its routes ask. Each has a contract suite."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from toolscript.core.items import AssignedBy, Assignment, Item, JsonObject, Schemas, StoredItem, StoreReport
from toolscript.core.retrieval.model import PointVersion, Vector
from toolscript.core.taxonomy import (
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
from toolscript.core.values import OnProgress, silent
from toolscript.tools.model.answer import ToolAnswer
from toolscript.tools.model.catalog import (
    CatalogItem,
    ChangeDetails,
    ChangeState,
    Claim,
    Generation,
    GenerationState,
    ItemChange,
    ItemFilter,
    ItemSource,
    JobProgress,
    JobState,
    Pending,
    SyncJob,
)
from toolscript.tools.model.centroids import Counted, Rebuilt, SkillState
from toolscript.tools.model.query import ToolQuery


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


class CatalogContents(Protocol):
    """What the catalog holds, a page at a time, and how it leaves. `Catalog` writes it."""

    async def sources(self, after: str, limit: int) -> Sequence[ItemSource]:
        """The next sources in order of name; fewer than `limit` only at the end."""

    async def source(self, name: str) -> ItemSource | None: ...
    async def remove_source(self, name: str, limit: int) -> int:
        """Removes at most `limit` items of a source; answers how many. Fewer: the source is now gone.

        They leave as `Catalog.remove` has it: what people decided about them still holds if they come back.
        """

    async def page(self, after: int, limit: int, wanted: ItemFilter) -> Sequence[CatalogItem]:
        """The next items in order of id, without schemas; fewer than `limit` only at the end."""

    async def find(self, item_id: int) -> CatalogItem:
        """Refused with NotFound when there is none, or none any more."""

    async def remove(self, item_id: int) -> bool:
        """False when it had left before. Refused with NotFound when it never was there."""


class ItemChanges(Protocol):
    """Definitions that changed after they were seen. `Catalog.store` writes them; people decide on held ones."""

    async def page(self, before: int | None, limit: int, state: ChangeState | None = None) -> Sequence[ItemChange]:
        """The latest first; `before` is the last one seen. Fewer than `limit` only at the end."""

    async def find(self, change_id: int) -> ChangeDetails:
        """Refused with NotFound when there is none."""

    async def approve(self, change_id: int, by: str) -> ItemChange:
        """The held definition comes into force: a new version, dirty, to be classified unless by hand. Audited.

        Refused with Conflict when it is not held, or another definition came into force meanwhile.
        """

    async def reject(self, change_id: int, by: str) -> ItemChange:
        """The definition in force stays; the rejected one is not asked about again. Audited."""


class SyncJobs(Protocol):
    """Syncs that were asked for. An open one of which nothing is heard for a while reads as interrupted."""

    async def add(self, source: str) -> SyncJob:
        """A job that is queued. Only the latest MOST_JOBS_KEPT are kept, and those that are open."""

    async def start(self, job_id: int) -> None: ...
    async def beat(self, progress: Sequence[JobProgress]) -> None:
        """These jobs live, and have come so far."""

    async def finish(
        self, job_id: int, state: JobState, report: JsonObject | None = None, error: str | None = None
    ) -> None: ...
    async def interrupt(self, job_ids: Sequence[int]) -> None:
        """Those of these jobs that are open will not be finished."""

    async def find(self, job_id: int) -> SyncJob:
        """Refused with NotFound when there is none."""

    async def page(self, before: int | None, limit: int) -> Sequence[SyncJob]:
        """The latest first; fewer than `limit` only at the end."""


class Catalog(Protocol):
    """The items of record."""

    async def store(self, source: str, items: Sequence[Item]) -> StoreReport:
        """Stores what is new or changed and marks it dirty, in one transaction. Keys are distinct.

        Every change of a known item is recorded, see `ItemChanges`. A catalog that holds changes does not make
        them: each waits for a person, unless it was rejected before, and the definition in force stays.
        """

    async def keep_only(self, source: str, keys: Sequence[str]) -> int:
        """Removes the items of a source whose keys are not given; answers how many."""

    async def remove(self, source: str, keys: Sequence[str]) -> int:
        """Removes these items of a source, where it has them; answers how many."""

    async def items(self, ids: Sequence[int]) -> Sequence[StoredItem]: ...
    async def schemas(self, ids: Sequence[int]) -> Mapping[int, Schemas]: ...
    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        """The next active items' ids and versions in order of id; fewer than `limit` only at the end."""

    async def count(self) -> int: ...


class DirtySet(Protocol):
    """Which items each index generation has yet to follow, and who is at work on them."""

    async def generations(self) -> Sequence[Generation]: ...
    async def adopt(self, fingerprint: str) -> Generation:
        """Names the model of the first generation; whoever comes second gets what the first has named."""

    async def begin(self, fingerprint: str, *, afresh: bool = False) -> Generation:
        """Starts a generation that follows every change from now on; the same one when it was begun before.

        `afresh` has it filled from the first item again.
        """

    async def fill(self, generation: int, limit: int) -> int:
        """Marks the next items of the catalog dirty for a generation; 0 when all have been.

        An item that somebody holds is done once more after that.
        """

    async def set_state(self, generation: int, state: GenerationState) -> None:
        """LIVE makes the generation that was live PREVIOUS."""

    async def forget(self, generation: int) -> None: ...
    async def claim(
        self, generation: int, limit: int, lease_seconds: float, *, abandoned_first: bool = False
    ) -> Claim:
        """`abandoned_first`: where others have let leases run out, what they held and nothing else."""

    def kept(self, generation: int, claim: Claim, lease_seconds: float) -> AbstractAsyncContextManager[None]:
        """Renews what of a claim is still held while the work within is done, however busy the process is."""

    async def renew(self, generation: int, claim: Claim, lease_seconds: float) -> Claim:
        """The part of a claim that is still held, held for longer."""

    async def clear(
        self, generation: int, claim: Claim, again: Collection[int] = (), after_seconds: float = 0.0
    ) -> None:
        """Forgets what was followed; frees what changed meanwhile; marks again what was lost to another.

        Those that are to be looked at `again` stay dirty, and are free after a while.
        """

    async def postpone(self, generation: int, claim: Claim, reason: str) -> None:
        """Gives the items back, to be tried again later and ever later."""

    async def mark(self, generation: int, ids: Sequence[int]) -> None:
        """Makes these items dirty, whether the catalog has them or not."""

    async def pending(self, generation: int) -> Pending: ...
    async def are_dirty(self, generation: int, ids: Sequence[int]) -> set[int]: ...
    async def failing(self, generation: int, limit: int) -> Sequence[tuple[int, str]]:
        """Items that were postponed, with the reason of the last time."""


class SearchesTools(Protocol):
    async def search(self, query: ToolQuery, /) -> ToolAnswer: ...


class ReadsItems(Protocol):
    async def items(self, ids: Sequence[int], /) -> Sequence[StoredItem]: ...


class ListsSkills(Protocol):
    async def page(self, after: str, limit: int, *, active_only: bool = False) -> Sequence[SkillEntry]: ...
