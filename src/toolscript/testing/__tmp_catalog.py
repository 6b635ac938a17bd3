"""The catalog in memory, writing to a dirty set in memory."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from toolscript.model.changes import ChangeState, difference
from toolscript.model.index import PointVersion
from toolscript.model.items import Item, Schemas, StoredItem, StoreReport
from toolscript.testing.changes import MemoryItemChanges
from toolscript.testing.dirty_set import MemoryDirtySet


class MemoryCatalog:
    def __init__(self, dirty: MemoryDirtySet, *, hold_changes: bool = False) -> None:
        self._dirty = dirty
        self.hold_changes = hold_changes
        self.changes = MemoryItemChanges(self._known, self._replace)
        self.forget_asks: Callable[[int], None] = lambda _item_id: None
        self._ids = count(1)
        self._by_key: dict[tuple[str, str], StoredItem] = {}
        self.by_hand: set[int] = set()
        self.synced_at: dict[str, datetime] = {}
        dirty.catalog_page = self._page

    async def store(self, source: str, items: Sequence[Item]) -> StoreReport:
        report = StoreReport()
        if items:
            self.synced_at[source] = datetime.now(UTC)
        for item in items:
            report += self._store(source, item)
        return report

    async def keep_only(self, source: str, keys: Sequence[str]) -> int:
        self.synced_at[source] = datetime.now(UTC)
        others = {key for where, key in self._by_key if where == source} - set(keys)
        return await self.remove(source, sorted(others))

    async def remove(self, source: str, keys: Sequence[str]) -> int:
        found = [self._by_key.get((source, key)) for key in keys]
        leaving = [one for one in found if one is not None and one.is_active]
        for one in leaving:
            self.changes.withdraw(one.id)
            self.forget_asks(one.id)
            self.put_anew(replace(one, is_active=False))
        return len(leaving)

    def entries(self) -> list[tuple[str, StoredItem]]:
        """All that were ever there with their sources, in order of id."""
        return sorted(((source, one) for (source, _), one in self._by_key.items()), key=lambda entry: entry[1].id)

    def stored(self, item_id: int) -> StoredItem | None:
        found = self._known(item_id)
        return found if found is not None and found.is_active else None

    def _known(self, item_id: int) -> StoredItem | None:
        """Whether it is still there or has left."""
        return next((found for found in self._by_key.values() if found.id == item_id), None)

    def put_back(self, changed: StoredItem) -> None:
        """The same item with other assignments."""
        place = next(place for place, found in self._by_key.items() if found.id == changed.id)
        self._by_key[place] = changed

    def put_anew(self, changed: StoredItem) -> StoredItem:
        """The same item with other assignments, at a version that every index has to follow."""
        renewed = replace(changed, version=self._dirty.next_version())
        self.put_back(renewed)
        self._dirty.mark_changed([(renewed.id, renewed.version)])
        return renewed

    def classify_again(self, ids: Iterable[int]) -> list[int]:
        """Those of these items that no person decided about need skills; answers which they are."""
        found = [self.stored(id_) for id_ in sorted(ids) if id_ not in self.by_hand]
        return [self.put_anew(replace(one, needs_skills=True)).id for one in found if one is not None]

    async def items(self, ids: Sequence[int]) -> Sequence[StoredItem]:
        wanted = set(ids)
        return sorted((found for found in self._by_key.values() if found.id in wanted), key=lambda one: one.id)

    async def schemas(self, ids: Sequence[int]) -> Mapping[int, Schemas]:
        return {
            found.id: Schemas(found.item.input_schema, found.item.output_schema, found.item.annotations)
            for found in await self.items(ids)
        }

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        return self._page(after, limit)

    async def count(self) -> int:
        return sum(found.is_active for found in self._by_key.values())

    def _store(self, source: str, item: Item) -> StoreReport:
        known = self._by_key.get((source, item.key))
        if known is None:
            added = StoredItem(next(self._ids), self._dirty.next_version(), item, needs_skills=True)
            self._by_key[source, item.key] = added
            self._dirty.mark_changed([(added.id, added.version)])
            return StoreReport(added=1)
        self.changes.withdraw(known.id, but=item.fingerprint if self.hold_changes else "")
        if known.item.fingerprint == item.fingerprint and known.is_active:
            return StoreReport(unchanged=1)
        if difference(known.item, item).fields:
            if self.hold_changes:
                return StoreReport(held=1) if self.changes.hold(source, known, item) else StoreReport(unchanged=1)
            self.changes.record(source, known, item, ChangeState.APPLIED)
        self._replace(known.id, item)
        return StoreReport(changed=1) if known.is_active else StoreReport(added=1)

    def _replace(self, item_id: int, item: Item) -> None:
        """What the item is from now on."""
        known = self._known(item_id)
        if known is not None:
            self.forget_asks(item_id)
            self.put_anew(replace(known, item=item, is_active=True, needs_skills=item_id not in self.by_hand))

    def _page(self, after: float, limit: int) -> Sequence[PointVersion]:
        later = sorted(found.id for found in self._by_key.values() if found.id > after and found.is_active)[:limit]
        versions = {found.id: found.version for found in self._by_key.values()}
        return [PointVersion(id_, versions[id_]) for id_ in later]
