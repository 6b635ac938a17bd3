"""Contract of CatalogContents: pages of items and sources, and their removal."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

import pytest

from tests.conftest import PATIENCE
from tests.contracts.builders import tool, tools
from tests.contracts.paging import stays_whole
from tests.contracts.source_builders import changing_in_postgres
from toolscript.core.errors import NotFound
from toolscript.core.items import Item, ItemKind
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.postgres.pool import open_pool
from toolscript.testing import MemoryCatalog, MemoryCatalogContents, MemoryDirtySet
from toolscript.tools.model.catalog import ItemFilter
from toolscript.tools.ports import Catalog, CatalogContents, DirtySet, ItemChanges
from toolscript.tools.postgres.contents import PostgresCatalogContents

pytestmark = pytest.mark.requirement("SK-009", "DOC-003")

ALL = ItemFilter()
FIRST = 1  # the index version that is live from the start


@dataclass(frozen=True)
class Scene:
    catalog: Catalog
    holding: Catalog
    changes: ItemChanges
    dirty: DirtySet
    contents: CatalogContents

    async def names(self, wanted: ItemFilter = ALL) -> list[str]:
        return [item.item.name for item in await self.contents.page(0, 1_000, wanted)]

    async def counts(self) -> dict[str, int]:
        return {source.name: source.items for source in await self.contents.sources(("", ""), 100)}

    async def settle(self) -> set[int]:
        """Clear the dirty items, as if the index had followed."""
        claim = await self.dirty.claim(FIRST, 1_000, 60)
        await self.dirty.clear(FIRST, claim)
        return set(claim.versions)


@pytest.fixture(params=["memory", "postgres"])
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    if request.param == "memory":
        dirty = MemoryDirtySet()
        catalog = MemoryCatalog(dirty)
        holding = MemoryCatalog(MemoryDirtySet(), hold_changes=True)
        yield Scene(catalog, holding, catalog.changes, dirty, MemoryCatalogContents(catalog))
        return
    async with open_pool(request.getfixturevalue("postgres_url"), size=8, wait_seconds=PATIENCE) as pool:
        opened = changing_in_postgres(pool)
        yield Scene(opened.applying, opened.holding, opened.changes, opened.dirty, PostgresCatalogContents(pool))


async def test_sources_are_listed_with_how_many_items_each_has_a_page_at_a_time(scene: Scene) -> None:
    for name, count in (("b", 2), ("a", 3), ("mcp:c", 1)):
        await scene.catalog.store(name, tools(count))
    first = await scene.contents.sources(("", ""), 2)
    assert [(item.name, item.items) for item in first] == [("a", 3), ("b", 2)]
    assert [item.name for item in await scene.contents.sources(("b", DEFAULT_NAMESPACE), 2)] == ["mcp:c"]
    assert await scene.contents.source("nobody's") is None


async def test_a_sync_that_changes_nothing_is_a_sync(scene: Scene) -> None:
    await scene.catalog.store("file", tools(2))
    before = await scene.contents.source("file")
    await scene.catalog.store("file", tools(2))
    after = await scene.contents.source("file")
    assert before is not None
    assert after is not None
    assert after.synced_at > before.synced_at
    assert after.items == 2


async def test_counts_follow_what_comes_leaves_and_comes_back(scene: Scene) -> None:
    await scene.catalog.store("file", tools(5))
    await scene.catalog.keep_only("file", [tool("tool_0").key, tool("tool_1").key])
    assert await scene.counts() == {"file": 2}
    await scene.catalog.remove("file", [tool("tool_0").key, "unknown"])
    assert await scene.counts() == {"file": 1}
    await scene.catalog.store("file", [*tools(5), tool("tool_1", "changed")][1:])
    assert await scene.counts() == {"file": 4}


async def test_items_are_listed_in_order_of_id_by_source_server_and_kind(scene: Scene) -> None:
    other = Item("p", ItemKind.PROMPT, "other", "greet")
    await scene.catalog.store("a", [*tools(3), other])
    await scene.catalog.store("b", [tool("b_tool", schema={"a": 1})])
    everything = await scene.contents.page(0, 100, ALL)
    assert [item.id for item in everything] == sorted(item.id for item in everything)
    assert await scene.names(ItemFilter(source="b")) == ["b_tool"]
    assert await scene.names(ItemFilter(server="other")) == ["greet"]
    assert await scene.names(ItemFilter(kind=ItemKind.PROMPT)) == ["greet"]
    assert await scene.names(ItemFilter("a", "server", ItemKind.TOOL)) == ["tool_0", "tool_1", "tool_2"]
    assert await scene.names(ItemFilter("b", "other")) == []
    assert [item.id for item in await scene.contents.page(everything[1].id, 2, ALL)] == [
        item.id for item in everything[2:4]
    ]


async def test_a_list_leaves_schemas_out_and_one_item_has_them(scene: Scene) -> None:
    await scene.catalog.store("file", [tool("read", "Reads.", {"type": "object"})])
    (listed,) = await scene.contents.page(0, 10, ALL)
    assert listed.item.input_schema is None
    result = await scene.contents.find(listed.id)
    assert (result.source, result.item) == ("file", tool("read", "Reads.", {"type": "object"}))


async def test_a_source_leaves_in_batches_and_is_then_listed_no_more(scene: Scene) -> None:
    await scene.catalog.store("file", tools(5))
    await scene.catalog.store("other", tools(1))
    await scene.settle()
    assert [await scene.contents.remove_source("file", 2) for _ in range(2)] == [2, 2]
    assert await scene.counts() == {"file": 1, "other": 1}
    assert await scene.contents.remove_source("file", 2) == 1
    assert await scene.counts() == {"other": 1}
    assert await scene.names() == ["tool_0"]
    assert len(await scene.settle()) == 5


async def test_removing_a_source_again_or_one_that_never_was_does_nothing(scene: Scene) -> None:
    await scene.catalog.store("file", tools(1))
    await scene.contents.remove_source("file", 10)
    await scene.settle()
    for name in ("file", "nobody's"):
        assert await scene.contents.remove_source(name, 10) == 0
    assert await scene.settle() == set()


async def test_a_source_that_comes_back_has_its_old_items(scene: Scene) -> None:
    await scene.catalog.store("file", tools(2))
    before = [item.id for item in await scene.contents.page(0, 10, ALL)]
    await scene.contents.remove_source("file", 10)
    assert (await scene.catalog.store("file", tools(2))).added == 2
    assert [item.id for item in await scene.contents.page(0, 10, ALL)] == before
    assert await scene.counts() == {"file": 2}


async def test_one_item_leaves_and_the_index_follows(scene: Scene) -> None:
    await scene.catalog.store("file", tools(2))
    await scene.settle()
    first, second = await scene.contents.page(0, 10, ALL)
    assert await scene.contents.remove(first.id)
    assert await scene.settle() == {first.id}
    assert await scene.names() == [second.item.name]
    assert await scene.counts() == {"file": 1}
    with pytest.raises(NotFound):
        await scene.contents.find(first.id)


async def test_an_item_that_left_can_be_removed_again_and_one_that_never_was_cannot(scene: Scene) -> None:
    await scene.catalog.store("file", tools(1))
    (only,) = await scene.contents.page(0, 10, ALL)
    assert [await scene.contents.remove(only.id) for _ in range(2)] == [True, False]
    assert await scene.counts() == {"file": 0}
    with pytest.raises(NotFound, match="no tool 999999"):
        await scene.contents.remove(999_999)


@pytest.mark.parametrize("scene", ["postgres"], indirect=True)
async def test_an_item_that_comes_back_by_an_approval_is_counted_again(scene: Scene) -> None:
    await scene.catalog.store("file", [tool("read")])
    await scene.contents.remove_source("file", 10)
    changed = replace(tool("read"), description="Now another.")
    assert (await scene.holding.store("file", [changed])).held == 1
    assert await scene.counts() == {"file": 0}
    (held,) = await scene.changes.page(None, 10)
    await scene.changes.approve(held.id, "ann")
    assert await scene.counts() == {"file": 1}
    assert await scene.names() == ["read"]


@pytest.mark.requirement("AP-001")
@pytest.mark.parametrize("wanted", [ALL, ItemFilter("file"), ItemFilter(server="server", kind=ItemKind.TOOL)])
async def test_tools_that_vanish_and_appear_between_pages_hide_no_other(scene: Scene, wanted: ItemFilter) -> None:
    await scene.catalog.store("file", tools(8))

    async def ids(after: int, limit: int) -> list[int]:
        return [item.id for item in await scene.contents.page(after, limit, wanted)]

    await stays_whole(
        ids, 0, vanish=scene.contents.remove, appear=lambda: scene.catalog.store("file", [tool("new")])
    )


@pytest.mark.requirement("AP-001")
async def test_sources_that_vanish_and_appear_between_pages_hide_no_other(scene: Scene) -> None:
    for number in range(8):
        await scene.catalog.store(f"source-{number}", tools(1))

    async def names(after: str, limit: int) -> list[str]:
        page = await scene.contents.sources((after, DEFAULT_NAMESPACE), limit)
        return [source.name for source in page]

    async def appear() -> None:
        for name in ("before", "source-2b", "zeta"):
            await scene.catalog.store(name, tools(1))

    await stays_whole(names, "", vanish=lambda name: scene.contents.remove_source(name, 10), appear=appear)
