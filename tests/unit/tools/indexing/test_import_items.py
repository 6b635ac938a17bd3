"""Import of a source into the catalog."""

from collections.abc import Iterator

import pytest

from tests.unit.tools.indexing.builders import Scene, times_embedded, tool, tools
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item, RefusedItem, StoreReport
from toolscript.core.values import Progress
from toolscript.tools.catalog.items import BATCH, MAX_REFUSALS_SHOWN, import_items

pytestmark = pytest.mark.requirement("SK-009")

BAD = RefusedItem("line 7", "name is missing")


async def test_items_are_stored_and_counted() -> None:
    scene = Scene()
    first = await import_items(scene.catalog, "file", tools(3))
    again = await import_items(scene.catalog, "file", [*tools(2), tool("tool_2", "changed"), tool("new")])
    assert first.stored == StoreReport(added=3)
    assert again.stored == StoreReport(added=1, changed=1, unchanged=2)
    assert (again.removed, again.pruned) == (0, False)


async def test_importing_the_same_items_again_changes_nothing() -> None:
    scene = Scene()
    await import_items(scene.catalog, "file", tools(3))
    await scene.drain()
    await import_items(scene.catalog, "file", tools(3), prune=True)
    assert (await scene.dirty.pending(1)).total == 0
    assert (await scene.drain()).indexed == 0
    assert times_embedded(scene.embedder, tools(3)) == [1] * 3


async def test_items_are_stored_in_batches_and_progress_is_reported() -> None:
    seen: list[Progress] = []
    count = 2 * BATCH + 5
    report = await import_items(Scene().catalog, "file", tools(count), total=count, on_progress=seen.append)
    assert report.stored.added == count
    assert [progress.done for progress in seen] == [BATCH, 2 * BATCH, count]
    assert {progress.total for progress in seen} == {count}


async def test_batches_can_be_smaller() -> None:
    seen: list[Progress] = []
    await import_items(Scene().catalog, "file", tools(5), batch_size=2, on_progress=seen.append)
    assert [progress.done for progress in seen] == [2, 4, 5]


async def test_a_source_is_read_lazily_while_it_is_stored() -> None:
    scene = Scene()
    stored_when_second_batch_is_read = []

    def entries() -> Iterator[Item | RefusedItem]:
        yield from tools(BATCH)
        stored_when_second_batch_is_read.append(len(scene.catalog._by_key))
        yield tool("last")

    await import_items(scene.catalog, "file", entries())
    assert stored_when_second_batch_is_read == [BATCH]


async def test_a_key_given_twice_in_a_batch_is_one_item_and_the_last_one_counts() -> None:
    scene = Scene()
    report = await import_items(scene.catalog, "file", [tool("a", "first"), tool("a", "last")])
    assert report.stored == StoreReport(added=1)
    assert (await scene.catalog.items([1]))[0].item.description == "last"


async def test_a_bad_entry_does_not_hide_the_good_ones() -> None:
    report = await import_items(Scene().catalog, "file", [tool("a"), BAD, tool("b")])
    assert report.stored == StoreReport(added=2)
    assert (report.refused_count, report.refused) == (1, (BAD,))


async def test_all_bad_entries_are_counted_and_some_are_listed() -> None:
    report = await import_items(Scene().catalog, "file", [BAD] * (MAX_REFUSALS_SHOWN + 30))
    assert report.refused_count == MAX_REFUSALS_SHOWN + 30
    assert len(report.refused) == MAX_REFUSALS_SHOWN


async def test_pruning_removes_items_that_the_source_no_longer_has() -> None:
    scene = Scene()
    await import_items(scene.catalog, "file", tools(3))
    await import_items(scene.catalog, "other", [tool("of another source")])
    report = await import_items(scene.catalog, "file", tools(1), prune=True)
    assert (report.removed, report.pruned) == (2, True)
    await scene.drain()
    assert await scene.indexed_names() == {"tool_0", "of another source"}


async def test_nothing_is_pruned_when_an_entry_could_not_be_read() -> None:
    scene = Scene()
    await import_items(scene.catalog, "file", tools(3))
    report = await import_items(scene.catalog, "file", [*tools(1), BAD], prune=True)
    assert (report.removed, report.pruned) == (0, False)
    assert await scene.catalog.count() == 3


async def test_an_empty_source_empties_the_catalog_only_when_pruning() -> None:
    scene = Scene()
    await import_items(scene.catalog, "file", tools(2))
    assert (await import_items(scene.catalog, "file", [])).removed == 0
    with pytest.raises(InvalidRequest, match="nothing of source 'file' was removed"):
        await import_items(scene.catalog, "file", [], prune=True)
    assert await scene.catalog.count() == 2
    assert (await import_items(scene.catalog, "file", [], prune=True, may_be_empty=True)).removed == 2
    assert await scene.catalog.count() == 0
