"""Ports of tool search: catalog, skills, sources, and the services its routes call. Each has a contract suite."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import date, datetime
from typing import Protocol

from toolscript.core.audit import Change
from toolscript.core.items import AssignedBy, Assignment, Item, JsonObject, Schemas, StoredItem, StoreReport
from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces
from toolscript.core.retrieval.curation import Rule
from toolscript.core.retrieval.model import PointVersion, Vector
from toolscript.core.taxonomy import (
    AuditEntry,
    Classification,
    Classified,
    DecidedBy,
    EnhancedDescription,
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
    IndexVersion,
    IndexVersionState,
    ItemChange,
    ItemFilter,
    ItemSource,
    JobProgress,
    JobState,
    Pending,
    SyncJob,
)
from toolscript.tools.model.centroids import Counted, Rebuilt, SkillState
from toolscript.tools.model.curation import StoredRule
from toolscript.tools.model.proposals import Observed, Proposal, Submitted
from toolscript.tools.model.query import ToolQuery
from toolscript.tools.model.search_log import GapReport, LoggedSearch, SearchFilter, SearchPosition


class Classifier(Protocol):
    """Assigns items to skills. It treats item text as data, never as instructions."""

    async def classify(self, items: Sequence[Unclassified], skills: Sequence[Skill]) -> Sequence[Classification]:
        """Return one classification per item, in order, with these skills only; see `valid_assignments`."""


class Taxonomy(Protocol):
    """The skills of record. A skill is deactivated, never removed. Every change is audited.

    Skills are shared by all namespaces; their items, their counts and the audit of other subjects are not.
    """

    def within(self, namespaces: Namespaces) -> "Taxonomy":
        """Return the taxonomy with members, counts and audit entries of these namespaces only."""

    async def revision(self) -> int:
        """Return a number that grows with every change of any skill."""

    async def page(self, after: str, limit: int, *, active_only: bool = False) -> Sequence[SkillEntry]:
        """Return the next skills in order of id; fewer than `limit` only at the end."""

    async def find(self, skill_id: str) -> SkillEntry:
        """Raise NotFound when there is none."""

    async def add(self, skill: Skill, by: DecidedBy) -> SkillEntry:
        """Add a skill. Raise Conflict when the id is taken."""

    async def change(self, skill: Skill, by: DecidedBy, instead_of: Skill | None = None) -> SkillEntry:
        """Replace the skill of this id; an equal skill changes nothing.

        Raise Conflict when the stored skill differs from `instead_of`, if that is given.
        """

    async def members(self, skill_id: str, after: int, limit: int) -> Sequence[Member]:
        """Return the skill's next items in order of id."""

    async def last_member(self, skill_id: str) -> int:
        """Return the largest id of the skill's items; 0 if it has none."""

    async def undescribed(self, namespace: str, after: str, limit: int) -> Sequence[SkillEntry]:
        """Return the next active skills, in order of id, whose items in a namespace are to be described.

        Those that have items there, and no enhanced description since they were last changed or since the
        number of their items last changed by a fifth. `tool_count` is that of the namespace.
        """

    async def describe(self, descriptions: Sequence[EnhancedDescription]) -> None:
        """Store enhanced descriptions. Nothing is audited: a person's words stay as they are."""

    async def audit(self, before: int | None, limit: int) -> Sequence[tuple[int, AuditEntry]]:
        """Return people's decisions, latest first; `before` is the last number of the page before."""


class Assignments(Protocol):
    """Which items are in which skills."""

    def within(self, namespaces: Namespaces) -> "Assignments":
        """Return the assignments of items in these namespaces: any other item is unknown."""

    async def of(self, item_id: int) -> tuple[Assignment, ...]:
        """Return the assignments of an item, primary first. Raise NotFound when there is no such item."""

    async def record(self, classified: Sequence[Classified]) -> Mapping[int, tuple[int, tuple[Assignment, ...]]]:
        """Store a classifier's results in one transaction; return version and assignments of each item stored.

        Skipped: items that changed since, that a person decided about, or that were removed. An item whose
        assignments change gets a new version and becomes dirty; an item whose assignments stay keeps its version.
        A suggestion is merged into the pending one with its key and replaces the item's earlier suggestion. If
        that key was approved or merged and its skill is active, the suggestion becomes an assignment of
        MIN_CONFIDENCE with the classifier's source, unless the item has that skill; if it was rejected, it is
        dropped. The same applies to an earlier suggestion of the item, as long as the item has not changed. What
        an approved proposal moved keeps its skills, with the confidences of the proposal.
        """

    async def set_by_hand(self, item_id: int, skill_ids: Sequence[str], by: DecidedBy) -> tuple[Assignment, ...]:
        """Store a person's decision, the first skill primary; none is a decision too. No classifier changes it."""

    async def release(self, item_id: int, by: DecidedBy) -> None:
        """Return the item to the classifier; it keeps its skills until it has been classified."""

    async def reclassify(
        self, after: int, limit: int, *, skill_id: str | None = None, source: AssignedBy | None = None
    ) -> Sequence[int]:
        """Schedule the next items in order of id for classification; skip those that a person decided about.

        All items, or those in a skill, or those with an assignment from this source. Return their ids.
        """


class Suggestions(Protocol):
    """Skills that classifiers suggest. A person decides once: a second decision raises Conflict.

    Equal names suggested in two namespaces are two suggestions.
    """

    def within(self, namespaces: Namespaces) -> "Suggestions":
        """Return the suggestions of these namespaces: any other one is unknown."""

    async def page(
        self, after: int, limit: int, state: SuggestionState | None = SuggestionState.PENDING
    ) -> Sequence[Suggestion]:
        """Return the next suggestions in order of id; pending ones only while an item requests them."""

    async def find(self, suggestion_id: int) -> Suggestion: ...
    async def asked_by(self, suggestion_id: int, after: int, limit: int) -> Sequence[int]:
        """Return the ids of the items that request it, in order."""

    async def approve(self, suggestion_id: int, skill: Skill, by: DecidedBy) -> Suggestion:
        """Add the skill and reclassify the items that requested it. Raise Conflict when the skill's id is taken.

        These items get the skill, whatever the classifier returns, until their definition changes.
        """

    async def reject(self, suggestion_id: int, by: DecidedBy) -> Suggestion: ...
    async def merge(self, suggestion_id: int, into: str, by: DecidedBy) -> Suggestion:
        """Assign this active skill to the items that request the suggestion, now and later."""

    async def reclassify_more(self) -> int:
        """Reclassify the next items of a decided suggestion, after those of the decision itself; 0 when done."""

    async def submit(self, proposals: Sequence[Proposal], namespace: str = DEFAULT_NAMESPACE) -> Submitted:
        """Put proposals into the queue, in place of the pending ones of this namespace; nothing else changes.

        A proposal with the key of a pending one keeps its id. One with the key of a decided one is dropped.
        """

    async def undo(self, suggestion_id: int, by: DecidedBy) -> Suggestion:
        """Undo an approved proposal: its skill is deactivated, and its items are classified again.

        Raise Conflict in another state.
        """


class StaleSkills(Protocol):
    """Per index version: skills whose points are out of date. A skill has a point in each namespace."""

    async def behind(self, index_version: int, limit: int, only: Collection[str] = ()) -> Sequence[SkillState]:
        """Return skills, all or only some, whose points are out of date, the longest waiting first."""

    async def mark_indexed(self, index_version: int, states: Sequence[SkillState]) -> None:
        """Record that the points of these skills have these versions."""


class SkillVectors(StaleSkills, Protocol):
    """Per index version: each item's contribution, each skill's centroid, and the skills with stale points."""

    async def recall(self, index_version: int, text_hashes: Mapping[int, str]) -> Mapping[int, Vector]:
        """Return the stored vectors of the items whose text has this hash."""

    async def count(self, index_version: int, claim: Claim, counted: Sequence[Counted]) -> None:
        """Replace the contributions of the claimed items; a claimed item missing in `counted` contributes nothing.

        In one transaction, and only for items still claimed at the claimed version: items that another worker
        holds, or that changed since, are left alone.
        """

    async def has_counted(self, index_version: int) -> bool:
        """Return whether any item contributes, which means that items have been indexed."""

    async def written(self, index_version: int, namespace: str | None = None) -> Mapping[int, tuple[int, int]]:
        """Return, by point id, the minimum and maximum version that the point of each skill can have.

        Of one namespace, or of all.
        """

    async def all_behind(self, index_version: int) -> None:
        """Mark every skill's point as out of date."""

    async def observed(
        self, index_version: int, after: int, limit: int, namespace: str = DEFAULT_NAMESPACE
    ) -> Sequence[Observed]:
        """Return the next indexed items that are active, in order of id, with vectors and current skills."""

    async def rebuild(
        self, index_version: int, only: Collection[str] = (), on_progress: OnProgress = silent
    ) -> Rebuilt:
        """Recompute every centroid from its items, beside running workers, and repair those that differ."""


class CatalogContents(Protocol):
    """The contents of the catalog, a page at a time, and their removal. `Catalog` writes them."""

    def within(self, namespaces: Namespaces) -> "CatalogContents":
        """Return the contents of these namespaces: anything else is unknown."""

    async def sources(self, after: tuple[str, str], limit: int) -> Sequence[ItemSource]:
        """Return the next sources in order of name and namespace; fewer than `limit` only at the end."""

    async def source(self, name: str, namespace: str = DEFAULT_NAMESPACE) -> ItemSource | None: ...
    async def remove_source(self, name: str, limit: int, namespace: str = DEFAULT_NAMESPACE) -> int:
        """Remove at most `limit` items of a source; return how many. Fewer than `limit`: the source is gone.

        As with `Catalog.remove`, people's decisions about these items apply again if the items come back.
        """

    async def page(self, after: int, limit: int, wanted: ItemFilter) -> Sequence[CatalogItem]:
        """Return the next items in order of id, without schemas; fewer than `limit` only at the end."""

    async def find(self, item_id: int) -> CatalogItem:
        """Raise NotFound when there is none, or it was removed."""

    async def remove(self, item_id: int, by: DecidedBy | None = None) -> bool:
        """Return False when it was removed before. Raise NotFound when it never existed.

        `by` is whom the audit names; None: the caller writes the entry of all that it removes.
        """

    async def count_after(
        self, source: str, keys: Sequence[str], namespace: str = DEFAULT_NAMESPACE, *, prune: bool
    ) -> int:
        """Return how many items the namespace has once this source has these, too; or these alone, by `prune`."""


class ItemChanges(Protocol):
    """Changed definitions of known items. `Catalog.store` records them; people decide on held ones."""

    def within(self, namespaces: Namespaces) -> "ItemChanges":
        """Return the changes of items in these namespaces: any other one is unknown."""

    async def page(self, before: int | None, limit: int, state: ChangeState | None = None) -> Sequence[ItemChange]:
        """Return the latest first; `before` is the last id seen. Fewer than `limit` only at the end."""

    async def find(self, change_id: int) -> ChangeDetails:
        """Raise NotFound when there is none."""

    async def approve(self, change_id: int, by: DecidedBy) -> ItemChange:
        """Apply the held definition: a new version, dirty, to be classified unless assigned by hand. Audited.

        Raise Conflict when the change is not held, or another definition was applied meanwhile.
        """

    async def reject(self, change_id: int, by: DecidedBy) -> ItemChange:
        """Keep the current definition and do not hold the rejected one again. Audited."""


class CurationRules(Protocol):
    """Rules of people about tool search. Each belongs to a namespace, and every write is audited."""

    def within(self, namespaces: Namespaces) -> "CurationRules":
        """Return the rules of these namespaces: any other one is unknown."""

    async def page(self, after: int, limit: int) -> Sequence[StoredRule]:
        """Return the next rules in order of id; fewer than `limit` only at the end."""

    async def find(self, rule_id: int) -> StoredRule:
        """Raise NotFound when there is none."""

    async def add(self, rule: Rule, by: DecidedBy, namespace: str = DEFAULT_NAMESPACE) -> StoredRule:
        """Raise NotFound when the namespace has no such item, Conflict for a rule that it has already.

        Raise InvalidRequest when it has MAX_RULES.
        """

    async def change(self, rule_id: int, rule: Rule, by: DecidedBy) -> StoredRule:
        """Replace a rule by one of the same kind. Raise as `find` and `add` do."""

    async def remove(self, rule_id: int, by: DecidedBy) -> None:
        """Raise NotFound when there is none."""

    async def revisions(self, namespaces: Sequence[str]) -> Mapping[str, int]:
        """Return a number for each of these namespaces that changes with every write; none without any."""

    async def all(self, namespaces: Sequence[str]) -> Sequence[Rule]:
        """Return all rules of these namespaces in order of id."""


class SearchLog(Protocol):
    """The log of tool searches, by day in UTC."""

    def within(self, namespaces: Namespaces) -> "SearchLog":
        """Return the log of searches in these namespaces alone: one that was also in another is not there."""

    async def write(self, searches: Sequence[LoggedSearch], /) -> None:
        """Add all or none. An entry that is there already is not added again."""

    async def keep(self, today: date, days: int, *, ahead: bool) -> None:
        """Drop what is older than so many days before today. `ahead` prepares the days to come."""

    async def page(self, where: SearchFilter, before: SearchPosition | None, limit: int) -> Sequence[LoggedSearch]:
        """Return the latest first, from before a position; fewer than `limit` only at the end."""

    async def gaps(self, since: datetime, limit: int) -> GapReport:
        """Return the most frequent requests without a good match; of equally frequent ones the latest first."""


class SyncJobs(Protocol):
    """Requested syncs. An open job without a heartbeat for a while reads as interrupted."""

    def within(self, namespaces: Namespaces) -> "SyncJobs":
        """Return the jobs of these namespaces: any other one is unknown."""

    async def add(self, source: str, namespace: str = DEFAULT_NAMESPACE, change: Change | None = None) -> SyncJob:
        """Add a queued job, with its entry in the audit.

        Each namespace keeps only the latest MAX_JOBS_KEPT, and those that are open.
        """

    async def start(self, job_id: int) -> None: ...
    async def beat(self, progress: Sequence[JobProgress]) -> None:
        """Record heartbeat and progress of these jobs."""

    async def finish(
        self,
        job_id: int,
        state: JobState,
        report: JsonObject | None = None,
        error: str | None = None,
        count: int = 0,
    ) -> None:
        """Record the outcome; `count` are the items that the job changed."""

    async def interrupt(self, job_ids: Sequence[int]) -> None:
        """Mark those of these jobs that are open as interrupted."""

    async def find(self, job_id: int) -> SyncJob:
        """Raise NotFound when there is none."""

    async def page(self, before: int | None, limit: int) -> Sequence[SyncJob]:
        """Return the latest first; fewer than `limit` only at the end."""


class ItemLookup(Protocol):
    """What a search asks the catalog about the items that the index has found."""

    async def schemas(self, ids: Sequence[int]) -> Mapping[int, Schemas]: ...
    async def removed(self, ids: Sequence[int]) -> frozenset[int]:
        """Return those of the ids that no active item has: an index may still have a point of them."""


class Catalog(ItemLookup, Protocol):
    """The items of record. A source belongs to one namespace; two namespaces may have sources of one name."""

    def of(self, namespace: str) -> "Catalog":
        """Return the catalog whose `store`, `keep_only` and `remove` work on the sources of this namespace.

        Without it they work on those of the default namespace. The methods that read cover all namespaces.
        """

    async def store(self, source: str, items: Sequence[Item]) -> StoreReport:
        """Store new and changed items and mark them dirty, in one transaction. Keys are distinct.

        Every change of a known item is recorded, see `ItemChanges`. A catalog that holds changes does not apply
        them: each waits for a person, unless it was rejected before, and the current definition stays.
        """

    async def keep_only(self, source: str, keys: Sequence[str]) -> int:
        """Remove the items of a source whose keys are not given; return how many."""

    async def remove(self, source: str, keys: Sequence[str]) -> int:
        """Remove these items of a source, where it has them; return how many."""

    async def items(self, ids: Sequence[int]) -> Sequence[StoredItem]: ...
    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        """Return ids and versions of the next active items in order of id; fewer than `limit` only at the end."""

    async def count(self) -> int: ...


class DirtySet(Protocol):
    """The items that each index version has yet to index, and the leases of the workers on them."""

    async def index_versions(self) -> Sequence[IndexVersion]: ...
    async def adopt(self, fingerprint: str) -> IndexVersion:
        """Set the fingerprint of the first index version, once; a later caller gets the one that was set."""

    async def begin(self, fingerprint: str, *, afresh: bool = False) -> IndexVersion:
        """Start an index version that receives every change from now on, or return the one started before.

        `afresh` fills it from the first item again.
        """

    async def fill(self, index_version: int, limit: int) -> int:
        """Mark the next items of the catalog dirty for an index version; return 0 when all are marked.

        An item that a worker holds is indexed again after that.
        """

    async def set_state(self, index_version: int, state: IndexVersionState) -> None:
        """Set the state; with LIVE, the index version that was live becomes PREVIOUS."""

    async def forget(self, index_version: int) -> None: ...
    async def claim(
        self, index_version: int, limit: int, lease_seconds: float, *, abandoned_first: bool = False
    ) -> Claim:
        """Lease dirty items, an equal share of each namespace that has some.

        With `abandoned_first`, only items with expired leases, if there are any.
        """

    def keep_lease(
        self, index_version: int, claim: Claim, lease_seconds: float
    ) -> AbstractAsyncContextManager[None]:
        """Renew the lease of a claim while the block runs, however busy the process is."""

    async def renew(self, index_version: int, claim: Claim, lease_seconds: float) -> Claim:
        """Extend the lease; return the part of the claim that is still held."""

    async def clear(
        self, index_version: int, claim: Claim, release_later: Collection[int] = (), after_seconds: float = 0.0
    ) -> None:
        """Remove indexed items, free those that changed meanwhile, and mark those lost to another worker again.

        Items in `release_later` stay dirty, and can be leased again after `after_seconds`.
        """

    async def postpone(self, index_version: int, claim: Claim, reason: str) -> None:
        """Release the items, to be retried later with exponential backoff."""

    async def mark(self, index_version: int, ids: Sequence[int]) -> None:
        """Mark these items dirty, whether the catalog has them or not."""

    async def pending(self, index_version: int) -> Pending: ...
    async def are_dirty(self, index_version: int, ids: Sequence[int]) -> set[int]: ...
    async def failing(self, index_version: int, limit: int) -> Sequence[tuple[int, str]]:
        """Return postponed items, each with its last error."""


class SearchesTools(Protocol):
    async def search(self, query: ToolQuery, /) -> ToolAnswer: ...


class RecordSearch(Protocol):
    """Records a search that was answered, without waiting. Without a `query_id` it gets one."""

    def __call__(self, query: ToolQuery, answer: ToolAnswer, query_id: str = "", /) -> None: ...


class ReadsItems(Protocol):
    async def items(self, ids: Sequence[int], /) -> Sequence[StoredItem]: ...


class ListsSkills(Protocol):
    def within(self, namespaces: Namespaces, /) -> "ListsSkills": ...
    async def page(self, after: str, limit: int, *, active_only: bool = False) -> Sequence[SkillEntry]: ...
