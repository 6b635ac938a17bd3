"""Wakes the worker of this process as soon as this process has changed the catalog."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from toolscript.core.items import Item, Schemas, StoredItem, StoreReport
from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces
from toolscript.core.retrieval.model import PointVersion
from toolscript.core.taxonomy import DecidedBy
from toolscript.tools.model.catalog import CatalogItem, ItemFilter, ItemSource
from toolscript.tools.ports import Catalog, CatalogContents


class Wakeup:
    """A call that comes while nobody waits ends the next wait. `waited`: whether the worker once had no work."""

    def __init__(self) -> None:
        self._called = asyncio.Event()
        self.waited = asyncio.Event()

    def call(self) -> None:
        self._called.set()

    async def wait(self, seconds: float) -> None:
        """Wait for a call, and no longer than this."""
        self.waited.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._called.wait()
        self._called.clear()


class WakingCatalog:
    """The port `Catalog`; `on_change` is called after each write."""

    def __init__(self, catalog: Catalog, on_change: Callable[[], None]) -> None:
        self._catalog = catalog
        self._on_change = on_change

    def of(self, namespace: str) -> "WakingCatalog":
        return WakingCatalog(self._catalog.of(namespace), self._on_change)

    async def store(self, source: str, items: Sequence[Item]) -> StoreReport:
        report = await self._catalog.store(source, items)
        self._on_change()
        return report

    async def keep_only(self, source: str, keys: Sequence[str]) -> int:
        removed = await self._catalog.keep_only(source, keys)
        self._on_change()
        return removed

    async def remove(self, source: str, keys: Sequence[str]) -> int:
        removed = await self._catalog.remove(source, keys)
        self._on_change()
        return removed

    async def items(self, ids: Sequence[int]) -> Sequence[StoredItem]:
        return await self._catalog.items(ids)

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        return await self._catalog.scan(after, limit)

    async def count(self) -> int:
        return await self._catalog.count()

    async def schemas(self, ids: Sequence[int]) -> Mapping[int, Schemas]:
        return await self._catalog.schemas(ids)

    async def removed(self, ids: Sequence[int]) -> frozenset[int]:
        return await self._catalog.removed(ids)


class WakingContents:
    """The port `CatalogContents`; `on_change` is called after each removal."""

    def __init__(self, contents: CatalogContents, on_change: Callable[[], None]) -> None:
        self._contents = contents
        self._on_change = on_change

    def within(self, namespaces: Namespaces) -> "WakingContents":
        return WakingContents(self._contents.within(namespaces), self._on_change)

    async def remove_source(self, name: str, limit: int, namespace: str = DEFAULT_NAMESPACE) -> int:
        removed = await self._contents.remove_source(name, limit, namespace)
        self._on_change()
        return removed

    async def count_after(
        self, source: str, keys: Sequence[str], namespace: str = DEFAULT_NAMESPACE, *, prune: bool
    ) -> int:
        return await self._contents.count_after(source, keys, namespace, prune=prune)

    async def remove(self, item_id: int, by: DecidedBy | None = None) -> bool:
        removed = await self._contents.remove(item_id, by)
        self._on_change()
        return removed

    async def sources(self, after: tuple[str, str], limit: int) -> Sequence[ItemSource]:
        return await self._contents.sources(after, limit)

    async def source(self, name: str, namespace: str = DEFAULT_NAMESPACE) -> ItemSource | None:
        return await self._contents.source(name, namespace)

    async def page(self, after: int, limit: int, wanted: ItemFilter) -> Sequence[CatalogItem]:
        return await self._contents.page(after, limit, wanted)

    async def find(self, item_id: int) -> CatalogItem:
        return await self._contents.find(item_id)
