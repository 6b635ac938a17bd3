"""What a catalog in memory holds."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from toolscript.model.catalog_contents import CatalogItem, ItemFilter, ItemSource, unknown_item
from toolscript.model.items import Item, StoredItem
from toolscript.testing.catalog import MemoryCatalog


class MemoryCatalogContents:
    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog

    async def sources(self, after: str, limit: int) -> Sequence[ItemSource]:
        names = sorted(name for name in self._catalog.synced_at if name > after)
        return [self._source(name) for name in names[:limit]]

    async def source(self, name: str) -> ItemSource | None:
        return self._source(name) if name in self._catalog.synced_at else None

    async def remove_source(self, name: str, limit: int) -> int:
        leaving = self._active(ItemFilter(source=name))[:limit]
        await self._catalog.remove(name, [one.item.key for _, one in leaving])
        if len(leaving) < limit:
            self._catalog.synced_at.pop(name, None)
        return len(leaving)

    async def page(self, after: int, limit: int, wanted: ItemFilter) -> Sequence[CatalogItem]:
        later = [entry for entry in self._active(wanted) if entry[1].id > after]
        found = [_shown(*entry) for entry in later[:limit]]
        return [replace(one, item=_bare(one.item)) for one in found]

    async def find(self, item_id: int) -> CatalogItem:
        found = [entry for entry in self._active(ItemFilter()) if entry[1].id == item_id]
        if not found:
            raise unknown_item(item_id)
        return _shown(*found[0])

    async def remove(self, item_id: int) -> bool:
        for source, one in self._catalog.entries():
            if one.id == item_id:
                return await self._catalog.remove(source, [one.item.key]) == 1
        raise unknown_item(item_id)

    def _source(self, name: str) -> ItemSource:
        return ItemSource(name, len(self._active(ItemFilter(source=name))), self._catalog.synced_at[name])

    def _active(self, wanted: ItemFilter) -> list[tuple[str, StoredItem]]:
        return [
            (source, one)
            for source, one in self._catalog.entries()
            if one.is_active
            and wanted.source in (None, source)
            and wanted.server in (None, one.item.server)
            and wanted.kind in (None, one.item.kind)
        ]


def _bare(item: Item) -> Item:
    return replace(item, input_schema=None, output_schema=None, annotations=None)


def _shown(source: str, one: StoredItem) -> CatalogItem:
    return CatalogItem(one.id, source, one.item, datetime.now(UTC), one.assignments)
