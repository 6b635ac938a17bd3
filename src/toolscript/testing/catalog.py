"""An in-memory catalog: items, their changes, the dirty set and sync jobs.

A view of some namespaces is a shallow copy: it shares the rows.
"""

import time
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from math import ceil

from toolscript.core.audit import Change
from toolscript.core.errors import NotFound
from toolscript.core.items import Item, JsonObject, Schemas, StoredItem, StoreReport
from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces, seen_in, valid_namespace
from toolscript.core.retrieval.model import PointVersion
from toolscript.core.taxonomy import Actor, AuditEntry, DecidedBy
from toolscript.tools.model.catalog import (
    FAILING_AFTER,
    MAX_JOBS_KEPT,
    MAX_KEPT_PER_ITEM,
    SILENT_SECONDS,
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
    difference,
    not_held,
    outdated_change,
    unknown_change,
    unknown_item,
    unknown_job,
)
from toolscript.tools.model.skills import valid_actor

LONG_AGO = float("-inf")


@dataclass(frozen=True)
class _Row:
    details: ChangeDetails
    definition: Item


class MemoryItemChanges:
    """The changes of a MemoryCatalog, which creates and writes it: `catalog.changes`."""

    def __init__(self, stored: Callable[[int], StoredItem | None], put: Callable[[int, Item], None]) -> None:
        self._stored = stored
        self._put = put
        self._ids = count(1)
        self._rows: dict[int, _Row] = {}
        self.namespaces: Namespaces = None
        self.audited: list[AuditEntry] = []

    def within(self, namespaces: Namespaces) -> "MemoryItemChanges":
        view = copy(self)
        view.namespaces = namespaces
        return view

    async def page(self, before: int | None, limit: int, state: ChangeState | None = None) -> Sequence[ItemChange]:
        ids = [id_ for id_ in sorted(self._rows, reverse=True) if before is None or id_ < before]
        changes = [self._change(id_) for id_ in ids if self._is_seen(id_)]
        return [change for change in changes if state in (None, change.state)][:limit]

    async def find(self, change_id: int) -> ChangeDetails:
        return replace(self._row(change_id).details, change=self._change(change_id))

    async def approve(self, change_id: int, by: DecidedBy) -> ItemChange:
        actor = valid_actor(by)
        held = self._held(change_id)
        stored = self._stored(held.item_id)
        if stored is None or stored.item.fingerprint != held.old_fingerprint:
            raise outdated_change(held)
        self._put(held.item_id, self._rows[change_id].definition)
        return self._decide(held, ChangeState.APPROVED, actor, "change.approve")

    async def reject(self, change_id: int, by: DecidedBy) -> ItemChange:
        actor = valid_actor(by)
        return self._decide(self._held(change_id), ChangeState.REJECTED, actor, "change.reject")

    def record(self, source: str, stored: StoredItem, new: Item, state: ChangeState) -> None:
        changed = difference(stored.item, new)
        change = ItemChange(
            next(self._ids),
            stored.id,
            source,
            new.key,
            stored.item.server,
            stored.item.name,
            stored.item.fingerprint,
            new.fingerprint,
            changed.fields,
            state,
            datetime.now(UTC),
            namespace=stored.namespace,
        )
        self._rows[change.id] = _Row(ChangeDetails(change, changed.old, changed.new), new)
        for id_ in sorted(self._of(stored.id), reverse=True)[MAX_KEPT_PER_ITEM:]:
            del self._rows[id_]

    def hold(self, source: str, stored: StoredItem, new: Item) -> bool:
        """Hold a change for review; return False if it was rejected before."""
        decided = {
            self._rows[id_].details.change.state
            for id_ in self._of(stored.id)
            if self._rows[id_].details.change.new_fingerprint == new.fingerprint
        }
        if not decided & {ChangeState.HELD, ChangeState.REJECTED}:
            self.record(source, stored, new, ChangeState.HELD)
        return ChangeState.REJECTED not in decided

    def withdraw(self, item_id: int, but: str = "") -> None:
        """Withdraw the held changes of an item, except those to this fingerprint."""
        for id_ in self._of(item_id):
            change = self._rows[id_].details.change
            if change.state is ChangeState.HELD and change.new_fingerprint != but:
                self._become(id_, replace(change, state=ChangeState.WITHDRAWN))

    def _of(self, item_id: int) -> list[int]:
        return [id_ for id_, row in self._rows.items() if row.details.change.item_id == item_id]

    def _is_seen(self, change_id: int) -> bool:
        return seen_in(self.namespaces, self._rows[change_id].details.change.namespace)

    def _row(self, change_id: int) -> _Row:
        if change_id not in self._rows or not self._is_seen(change_id):
            raise unknown_change(change_id)
        return self._rows[change_id]

    def _change(self, change_id: int) -> ItemChange:
        change = self._row(change_id).details.change
        stored = self._stored(change.item_id)
        return replace(change, server=stored.item.server, name=stored.item.name) if stored else change

    def _held(self, change_id: int) -> ItemChange:
        change = self._change(change_id)
        if change.state is not ChangeState.HELD:
            raise not_held(change)
        return change

    def _decide(self, held: ItemChange, state: ChangeState, actor: Actor, action: str) -> ItemChange:
        now = datetime.now(UTC)
        decided = replace(held, state=state, reviewed_by=actor.name, on_behalf_of=actor.on_behalf_of)
        self._become(held.id, replace(decided, reviewed_at=now))
        details: dict[str, object] = {"item_id": held.item_id}
        self.audited.append(
            AuditEntry(now, actor.name, action, str(held.id), details, held.namespace, actor.on_behalf_of)
        )
        return self._change(held.id)

    def audit_removal(self, stored: StoredItem, source: str, actor: Actor) -> None:
        self.audited.append(
            AuditEntry(
                datetime.now(UTC),
                actor.name,
                "tool.remove",
                str(stored.id),
                {"source": source},
                stored.namespace,
                actor.on_behalf_of,
                1,
            )
        )

    def _become(self, change_id: int, change: ItemChange) -> None:
        row = self._rows[change_id]
        self._rows[change_id] = replace(row, details=replace(row.details, change=change))


@dataclass
class _Dirty:
    version: int
    since: float
    free_at: float = LONG_AGO
    held_by: str | None = None
    attempts: int = 0
    last_error: str | None = None


class MemoryDirtySet:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._versions = count(1)
        self._index_versions = {1: IndexVersion(1, IndexVersionState.LIVE, None)}
        self._dirty: dict[int, dict[int, _Dirty]] = {1: {}}
        self._filled: dict[int, float] = {1: float("inf")}
        self.catalog_page: Callable[[float, int], Sequence[PointVersion]] = lambda _after, _limit: ()
        self.stored: Callable[[int], StoredItem | None] = lambda _item_id: None
        self.by_hand: set[int] = set()

    def next_version(self) -> int:
        return next(self._versions)

    def mark_changed(self, changed: Iterable[tuple[int, int]]) -> None:
        for id_, version in changed:
            for rows in self._dirty.values():
                self._mark(rows, id_, version)

    def held_at_version(self, index_version: int, claim: Claim) -> set[int]:
        """Return the ids of a claim that are still held and have not changed since."""
        held = self._held(index_version, claim)
        return {id_ for id_, row in held.items() if row.version == claim.versions[id_]}

    async def index_versions(self) -> Sequence[IndexVersion]:
        return list(self._index_versions.values())

    async def adopt(self, fingerprint: str) -> IndexVersion:
        live = next(
            index_version
            for index_version in self._index_versions.values()
            if index_version.state is IndexVersionState.LIVE
        )
        fingerprints = {index_version.fingerprint for index_version in self._index_versions.values()}
        if live.fingerprint is None and fingerprint not in fingerprints:
            self._index_versions[live.id] = replace(live, fingerprint=fingerprint)
        return self._index_versions[live.id]

    async def begin(self, fingerprint: str, *, afresh: bool = False) -> IndexVersion:
        for index_version in self._index_versions.values():
            if index_version.fingerprint == fingerprint:
                self._filled[index_version.id] = 0 if afresh else self._filled[index_version.id]
                return index_version
        created = IndexVersion(max(self._index_versions) + 1, IndexVersionState.BUILDING, fingerprint)
        self._index_versions[created.id] = created
        self._dirty[created.id] = {}
        self._filled[created.id] = 0
        return created

    async def fill(self, index_version: int, limit: int) -> int:
        page = self.catalog_page(self._filled[index_version], limit)
        for point in page:
            row = self._dirty[index_version].setdefault(point.id, _Dirty(point.version, self._now()))
            row.version = row.version if row.held_by is None else self.next_version()
        self._filled[index_version] = page[-1].id if page else float("inf")
        return len(page)

    async def set_state(self, index_version: int, state: IndexVersionState) -> None:
        if index_version not in self._index_versions:
            raise NotFound(f"there is no generation {index_version}")
        for id_, other in self._index_versions.items():
            if state is IndexVersionState.LIVE and other.state is IndexVersionState.LIVE:
                self._index_versions[id_] = replace(other, state=IndexVersionState.PREVIOUS)
        self._index_versions[index_version] = replace(self._index_versions[index_version], state=state)

    async def forget(self, index_version: int) -> None:
        existing = self._index_versions.get(index_version)
        if existing is None or existing.state is IndexVersionState.LIVE:
            raise NotFound(f"there is no generation {index_version} that could be dropped")
        del self._index_versions[index_version], self._dirty[index_version], self._filled[index_version]

    async def claim(
        self, index_version: int, limit: int, lease_seconds: float, *, abandoned_first: bool = False
    ) -> Claim:
        token = uuid.uuid4().hex
        rows = self._dirty[index_version]
        free = sorted(
            (row.free_at, id_)
            for id_, row in rows.items()
            if row.free_at == LONG_AGO or row.free_at <= self._now()
        )
        abandoned = [entry for entry in free if rows[entry[1]].held_by is not None] if abandoned_first else []
        taken = [id_ for _, id_ in abandoned][:limit] or self._in_turns([id_ for _, id_ in free], limit)
        expired_leases = frozenset(id_ for id_ in taken if rows[id_].held_by is not None)
        for id_ in taken:
            rows[id_].held_by, rows[id_].free_at = token, self._now() + lease_seconds
        return Claim(token, {id_: rows[id_].version for id_ in taken}, expired_leases)

    def _in_turns(self, ids: Sequence[int], limit: int) -> list[int]:
        """Return an equal share of the items of each namespace."""
        lines: dict[str, list[int]] = {}
        for id_ in ids:
            stored = self.stored(id_)
            lines.setdefault(stored.namespace if stored else DEFAULT_NAMESPACE, []).append(id_)
        share = ceil(limit / max(1, len(lines)))
        return [id_ for line in lines.values() for id_ in line[:share]][:limit]

    @asynccontextmanager
    async def keep_lease(self, index_version: int, claim: Claim, lease_seconds: float) -> AsyncIterator[None]:
        """Renew the lease once: only a test moves the clock, to let the lease expire."""
        await self.renew(index_version, claim, lease_seconds)
        yield

    async def renew(self, index_version: int, claim: Claim, lease_seconds: float) -> Claim:
        held = self._held(index_version, claim)
        for row in held.values():
            row.free_at = self._now() + lease_seconds
        return replace(claim, versions={id_: claim.versions[id_] for id_ in held})

    async def clear(
        self, index_version: int, claim: Claim, release_later: Collection[int] = (), after_seconds: float = 0.0
    ) -> None:
        rows, held = self._dirty[index_version], self._held(index_version, claim)
        for id_, version in claim.versions.items():
            if id_ not in held:
                self._mark(rows, id_, self.next_version())
            elif id_ in release_later:
                rows[id_].held_by, rows[id_].free_at = None, self._now() + after_seconds
            elif rows[id_].version == version:
                del rows[id_]
            else:
                rows[id_].held_by, rows[id_].free_at = None, LONG_AGO

    async def postpone(self, index_version: int, claim: Claim, reason: str) -> None:
        for row in self._held(index_version, claim).values():
            row.free_at = self._now() + min(60, 2 ** min(row.attempts, 6))
            row.held_by, row.attempts, row.last_error = None, row.attempts + 1, reason

    async def mark(self, index_version: int, ids: Sequence[int]) -> None:
        for id_ in ids:
            self._mark(self._dirty[index_version], id_, self.next_version())

    async def pending(self, index_version: int) -> Pending:
        rows = self._dirty[index_version].values()
        oldest = max((self._now() - row.since for row in rows), default=0.0)
        return Pending(len(rows), sum(row.attempts >= FAILING_AFTER for row in rows), oldest)

    async def are_dirty(self, index_version: int, ids: Sequence[int]) -> set[int]:
        return set(ids) & self._dirty[index_version].keys()

    def live_dirty(self) -> set[int]:
        """Return the items that the live index has yet to follow."""
        live = [one.id for one in self._index_versions.values() if one.state is IndexVersionState.LIVE]
        return {id_ for index_version in live for id_ in self._dirty[index_version]}

    async def failing(self, index_version: int, limit: int) -> Sequence[tuple[int, str]]:
        rows = sorted(self._dirty[index_version].items())
        return [(id_, row.last_error) for id_, row in rows if row.last_error is not None][:limit]

    def _held(self, index_version: int, claim: Claim) -> dict[int, _Dirty]:
        rows = self._dirty[index_version]
        return {id_: rows[id_] for id_ in claim.versions if id_ in rows and rows[id_].held_by == claim.token}

    def _mark(self, rows: dict[int, _Dirty], id_: int, version: int) -> None:
        row = rows.setdefault(id_, _Dirty(version, self._now()))
        row.version, row.attempts, row.last_error = version, 0, None
        if row.held_by is None:
            row.free_at = LONG_AGO


class MemoryCatalog:
    def __init__(self, dirty: MemoryDirtySet, *, hold_changes: bool = False) -> None:
        self.dirty = self._dirty = dirty
        self.hold_changes = hold_changes
        self.changes = MemoryItemChanges(self._find, self._replace)
        self.detach_suggestions: Callable[[int], None] = lambda _item_id: None
        self._ids = count(1)
        self.namespace = DEFAULT_NAMESPACE
        self._by_key: dict[tuple[str, str, str], StoredItem] = {}
        self.by_hand: set[int] = set()
        # By name and namespace.
        self.synced_at: dict[tuple[str, str], datetime] = {}
        dirty.catalog_page = self._page
        dirty.stored = self.stored
        dirty.by_hand = self.by_hand

    def of(self, namespace: str) -> "MemoryCatalog":
        view = copy(self)
        view.namespace = valid_namespace(namespace)
        return view

    async def store(self, source: str, items: Sequence[Item]) -> StoreReport:
        report = StoreReport()
        if items:
            self.synced_at[source, self.namespace] = datetime.now(UTC)
        for item in items:
            report += self._store(source, item)
        return report

    async def keep_only(self, source: str, keys: Sequence[str]) -> int:
        self.synced_at[source, self.namespace] = datetime.now(UTC)
        own = (self.namespace, source)
        obsolete = {key for namespace, where, key in self._by_key if (namespace, where) == own} - set(keys)
        return await self.remove(source, sorted(obsolete))

    async def remove(self, source: str, keys: Sequence[str]) -> int:
        items = [self._by_key.get((self.namespace, source, key)) for key in keys]
        leaving = [item for item in items if item is not None and item.is_active]
        for item in leaving:
            self.changes.withdraw(item.id)
            self.detach_suggestions(item.id)
            kept = item.assignments if item.id in self.by_hand else ()
            self.put_anew(replace(item, is_active=False, assignments=kept))
        return len(leaving)

    def entries(self) -> list[tuple[str, StoredItem]]:
        """Return all items with their sources, inactive ones too, ordered by id."""
        return sorted(
            ((source, item) for (_, source, _), item in self._by_key.items()), key=lambda entry: entry[1].id
        )

    def stored(self, item_id: int) -> StoredItem | None:
        item = self._find(item_id)
        return item if item is not None and item.is_active else None

    def _find(self, item_id: int) -> StoredItem | None:
        """Return an item, active or not."""
        return next((item for item in self._by_key.values() if item.id == item_id), None)

    def put_back(self, changed: StoredItem) -> None:
        """Replace an item without a new version."""
        place = next(place for place, item in self._by_key.items() if item.id == changed.id)
        self._by_key[place] = changed

    def put_anew(self, changed: StoredItem) -> StoredItem:
        """Replace an item with a new version, and mark it dirty in every index."""
        renewed = replace(changed, version=self._dirty.next_version())
        self.put_back(renewed)
        self._dirty.mark_changed([(renewed.id, renewed.version)])
        return renewed

    def classify_again(self, ids: Iterable[int]) -> list[int]:
        """Mark the items that were not assigned by hand as needing skills; return their ids."""
        items = [self.stored(id_) for id_ in sorted(ids) if id_ not in self.by_hand]
        return [self.put_anew(replace(item, needs_skills=True)).id for item in items if item is not None]

    async def items(self, ids: Sequence[int]) -> Sequence[StoredItem]:
        requested = set(ids)
        return sorted(
            (stored_item for stored_item in self._by_key.values() if stored_item.id in requested),
            key=lambda item: item.id,
        )

    async def schemas(self, ids: Sequence[int]) -> Mapping[int, Schemas]:
        return {
            item.id: Schemas(item.item.input_schema, item.item.output_schema, item.item.annotations)
            for item in await self.items(ids)
        }

    async def removed(self, ids: Sequence[int]) -> frozenset[int]:
        return frozenset(ids) - {item.id for item in await self.items(ids) if item.is_active}

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        return self._page(after, limit)

    async def count(self) -> int:
        return sum(item.is_active for item in self._by_key.values())

    def _store(self, source: str, item: Item) -> StoreReport:
        place = (self.namespace, source, item.key)
        stored = self._by_key.get(place)
        if stored is None:
            id_, version = next(self._ids), self._dirty.next_version()
            added = StoredItem(id_, version, item, needs_skills=True, namespace=self.namespace)
            self._by_key[place] = added
            self._dirty.mark_changed([(added.id, added.version)])
            return StoreReport(added=1)
        self.changes.withdraw(stored.id, but=item.fingerprint if self.hold_changes else "")
        if stored.item.fingerprint == item.fingerprint and stored.is_active:
            return StoreReport(unchanged=1)
        if difference(stored.item, item).fields:
            if self.hold_changes:
                return StoreReport(held=1) if self.changes.hold(source, stored, item) else StoreReport(unchanged=1)
            self.changes.record(source, stored, item, ChangeState.APPLIED)
        self._replace(stored.id, item)
        return StoreReport(changed=1) if stored.is_active else StoreReport(added=1)

    def _replace(self, item_id: int, item: Item) -> None:
        """Replace the definition of an item."""
        stored = self._find(item_id)
        if stored is not None:
            self.detach_suggestions(item_id)
            self.put_anew(replace(stored, item=item, is_active=True, needs_skills=item_id not in self.by_hand))

    def _page(self, after: float, limit: int) -> Sequence[PointVersion]:
        active = {item.id: item for item in self._by_key.values() if item.id > after and item.is_active}
        return [PointVersion(id_, active[id_].version, active[id_].namespace) for id_ in sorted(active)[:limit]]


class MemoryCatalogContents:
    def __init__(self, catalog: MemoryCatalog, namespaces: Namespaces = None) -> None:
        self._catalog = catalog
        self.namespaces = namespaces

    def within(self, namespaces: Namespaces) -> "MemoryCatalogContents":
        return MemoryCatalogContents(self._catalog, namespaces)

    async def sources(self, after: tuple[str, str], limit: int) -> Sequence[ItemSource]:
        later = sorted(key for key in self._catalog.synced_at if key > after and seen_in(self.namespaces, key[1]))
        return [self._source(*key) for key in later[:limit]]

    async def source(self, name: str, namespace: str = DEFAULT_NAMESPACE) -> ItemSource | None:
        is_known = (name, namespace) in self._catalog.synced_at and seen_in(self.namespaces, namespace)
        return self._source(name, namespace) if is_known else None

    async def remove_source(self, name: str, limit: int, namespace: str = DEFAULT_NAMESPACE) -> int:
        leaving = self._active(ItemFilter(source=name, namespace=namespace))[:limit]
        await self._catalog.of(namespace).remove(name, [item.item.key for _, item in leaving])
        if len(leaving) < limit and seen_in(self.namespaces, namespace):
            self._catalog.synced_at.pop((name, namespace), None)
        return len(leaving)

    async def page(self, after: int, limit: int, item_filter: ItemFilter) -> Sequence[CatalogItem]:
        later = [entry for entry in self._active(item_filter) if entry[1].id > after]
        items = [_catalog_item(*entry) for entry in later[:limit]]
        return [replace(item, item=_without_schemas(item.item)) for item in items]

    async def find(self, item_id: int) -> CatalogItem:
        matching = [entry for entry in self._active(ItemFilter()) if entry[1].id == item_id]
        if not matching:
            raise unknown_item(item_id)
        return _catalog_item(*matching[0])

    async def count_after(
        self, source: str, keys: Sequence[str], namespace: str = DEFAULT_NAMESPACE, *, prune: bool
    ) -> int:
        kept = [
            item
            for of, item in self._catalog.entries()
            if item.is_active
            and item.namespace == namespace
            and not (of == source and (prune or item.item.key in keys))
        ]
        return len(kept) + len(keys)

    async def remove(self, item_id: int, by: DecidedBy | None = None) -> bool:
        for source, item in self._catalog.entries():
            if item.id == item_id and seen_in(self.namespaces, item.namespace):
                if by is not None and item.is_active:
                    self._catalog.changes.audit_removal(item, source, valid_actor(by))
                return await self._catalog.of(item.namespace).remove(source, [item.item.key]) == 1
        raise unknown_item(item_id)

    def _source(self, name: str, namespace: str) -> ItemSource:
        items = self._active(ItemFilter(source=name, namespace=namespace))
        return ItemSource(name, len(items), self._catalog.synced_at[name, namespace], namespace)

    def _active(self, item_filter: ItemFilter) -> list[tuple[str, StoredItem]]:
        return [
            (source, item)
            for source, item in self._catalog.entries()
            if item.is_active
            and seen_in(self.namespaces, item.namespace)
            and item_filter.namespace in (None, item.namespace)
            and item_filter.source in (None, source)
            and item_filter.server in (None, item.item.server)
            and item_filter.kind in (None, item.item.kind)
        ]


def _without_schemas(item: Item) -> Item:
    return replace(item, input_schema=None, output_schema=None, annotations=None)


def _catalog_item(source: str, item: StoredItem) -> CatalogItem:
    return CatalogItem(item.id, source, item.item, datetime.now(UTC), item.assignments, item.namespace)


@dataclass(frozen=True)
class _JobRow:
    job: SyncJob
    updated_at: float


class MemorySyncJobs:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._ids = count(1)
        self._rows: dict[int, _JobRow] = {}
        self.changes: dict[int, Change] = {}
        self.namespaces: Namespaces = None

    def within(self, namespaces: Namespaces) -> "MemorySyncJobs":
        view = copy(self)
        view.namespaces = namespaces
        return view

    async def add(self, source: str, namespace: str = DEFAULT_NAMESPACE, change: Change | None = None) -> SyncJob:
        now, place = datetime.now(UTC), valid_namespace(namespace)
        job = SyncJob(next(self._ids), JobState.QUEUED, source, now, namespace=place)
        if change is not None:
            self.changes[job.id] = change
        self._write(job)
        beside = [id_ for id_, row in self._rows.items() if row.job.namespace == place]
        for id_ in sorted(beside, reverse=True)[MAX_JOBS_KEPT:]:
            if not self._read(id_).state.is_open:
                del self._rows[id_]
        return job

    async def start(self, job_id: int) -> None:
        self._change(job_id, state=JobState.RUNNING, started_at=datetime.now(UTC))

    async def beat(self, progress: Sequence[JobProgress]) -> None:
        for job_progress in progress:
            if self._is_open(job_progress.id):
                self._change(job_progress.id, done=job_progress.done, total=job_progress.total)

    async def finish(
        self,
        job_id: int,
        state: JobState,
        report: JsonObject | None = None,
        error: str | None = None,
        count: int = 0,
    ) -> None:
        if job_id in self.changes:
            details: dict[str, object] = {"job": job_id, "state": state}
            self.changes[job_id] = replace(self.changes[job_id], count=count, details=details)
        self._change(job_id, state=state, report=report, error=error, finished_at=datetime.now(UTC))

    async def interrupt(self, job_ids: Sequence[int]) -> None:
        for id_ in job_ids:
            if self._is_open(id_):
                self._change(id_, state=JobState.INTERRUPTED, finished_at=datetime.now(UTC))

    async def find(self, job_id: int) -> SyncJob:
        if not self._is_seen(job_id):
            raise unknown_job(job_id)
        return self._read(job_id)

    async def page(self, before: int | None, limit: int) -> Sequence[SyncJob]:
        earlier = [id_ for id_ in self._rows if (before is None or id_ < before) and self._is_seen(id_)]
        return [self._read(id_) for id_ in sorted(earlier, reverse=True)[:limit]]

    def _is_seen(self, job_id: int) -> bool:
        return job_id in self._rows and seen_in(self.namespaces, self._rows[job_id].job.namespace)

    def _is_open(self, job_id: int) -> bool:
        return self._is_seen(job_id) and self._rows[job_id].job.state.is_open

    def _read(self, job_id: int) -> SyncJob:
        row = self._rows[job_id]
        is_silent = row.job.state.is_open and self._now() - row.updated_at > SILENT_SECONDS
        return replace(row.job, state=JobState.INTERRUPTED) if is_silent else row.job

    def _change(self, job_id: int, **changed: object) -> None:
        if self._is_seen(job_id):
            self._write(replace(self._rows[job_id].job, **changed))  # type: ignore[arg-type]

    def _write(self, job: SyncJob) -> None:
        self._rows[job.id] = _JobRow(job, self._now())
