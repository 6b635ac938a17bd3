"""sources, tools: what the catalog holds, and how it is taken out again."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from toolscript.adapters.postgres import PostgresCatalogContents
from toolscript.model.catalog_contents import CatalogItem, ItemFilter, ItemSource
from toolscript.model.progress import OnProgress
from toolscript.ports import CatalogContents
from toolscript.service.catalog_alone import open_pool
from toolscript.settings.service import load_settings
from toolscript.sync.source_items_removal import remove_source

T = TypeVar("T")


def list_item_sources(*, after: str, limit: int) -> Sequence[ItemSource]:
    return _ask(lambda contents: contents.sources(after, limit))


def find_item_source(name: str) -> ItemSource | None:
    return _ask(lambda contents: contents.source(name))


def remove_item_source(name: str, on_progress: OnProgress) -> int:
    return _ask(lambda contents: remove_source(contents, name, on_progress=on_progress))


def list_items(*, after: int, limit: int, wanted: ItemFilter) -> Sequence[CatalogItem]:
    return _ask(lambda contents: contents.page(after, limit, wanted))


def find_item(item_id: int) -> CatalogItem:
    return _ask(lambda contents: contents.find(item_id))


def remove_items(ids: Sequence[int]) -> int:
    """How many were there."""

    async def remove(contents: CatalogContents) -> int:
        return sum([await contents.remove(one) for one in dict.fromkeys(ids)])

    return _ask(remove)


def _ask(action: Callable[[CatalogContents], Awaitable[T]]) -> T:
    async def run() -> T:
        async with open_pool(load_settings()) as pool:
            return await action(PostgresCatalogContents(pool))

    return asyncio.run(run())
