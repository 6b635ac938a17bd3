"""The indexer writes the catalog to the index, batch by batch."""

import pytest

from tests.unit.tools.indexing.builders import POISON, Scene, times_embedded, tool, tools
from toolscript.core.errors import EmbedderUnavailable
from toolscript.core.item_text import embedded_views
from toolscript.core.retrieval.model import Point
from toolscript.tools.indexing.indexer import Step
from toolscript.tools.indexing.points import point_of
from toolscript.tools.model.catalog import Pending

pytestmark = pytest.mark.requirement("SK-009")


async def test_a_batch_goes_through_every_step_in_order() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(2))
    assert await (await scene.indexer()).index_batch() == 2
    assert scene.steps == list(Step)


async def test_with_nothing_dirty_nothing_happens() -> None:
    scene = Scene()
    assert await (await scene.indexer()).index_batch() == 0
    assert scene.steps == []


async def test_items_are_indexed_with_their_version_and_payload() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(3))
    await (await scene.indexer()).index_batch()
    assert await (await scene.index()).scan(0, 10) == await scene.catalog.scan(0, 10)
    assert await scene.indexed_names() == {"tool_0", "tool_1", "tool_2"}
    assert (await scene.dirty.pending(1)).total == 0


async def test_a_batch_is_no_larger_than_its_limit() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(5))
    indexer = await scene.indexer(batch=2)
    assert [await indexer.index_batch() for _ in range(4)] == [2, 2, 1, 0]


async def test_items_of_a_dead_worker_come_first_except_in_the_first_claim_of_a_worker() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(6))
    await scene.dirty.claim(1, 2, lease_seconds=1)
    scene.time += 10
    indexer = await scene.indexer(batch=2)
    await indexer.index_batch()
    assert await scene.indexed_names() == {"tool_2", "tool_3"}
    await indexer.index_batch()
    assert await scene.indexed_names() == {"tool_0", "tool_1", "tool_2", "tool_3"}


async def test_only_changed_items_are_embedded_again() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(5))
    await scene.drain()
    before = scene.embedder.texts_embedded
    changed = tool("tool_4", "changed")
    await scene.catalog.store("file", [*tools(4), changed])
    await scene.drain()
    assert times_embedded(scene.embedder, [*tools(5), changed]) == [1] * 6
    assert scene.embedder.texts_embedded == before + len(embedded_views(changed))


async def test_removed_items_leave_the_index_and_cost_no_embedding() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(3))
    await scene.drain()
    before = scene.embedder.texts_embedded
    await scene.catalog.keep_only("file", ["tool_1"])
    await scene.drain()
    assert await scene.indexed_names() == {"tool_1"}
    assert scene.embedder.texts_embedded == before


@pytest.mark.parametrize("changes_at", [Step.READ, Step.EMBEDDED, Step.RENEWED, Step.PUT, Step.REMOVED])
async def test_an_item_that_changes_at_any_step_ends_up_current(changes_at: Step) -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(2))

    def change(step: Step) -> None:
        if step is changes_at and len(scene.steps) <= len(Step):
            scene.catalog._store("file", tool("tool_0", "changed meanwhile"))

    scene.at_step = change
    await scene.drain()
    assert await (await scene.index()).scan(0, 10) == await scene.catalog.scan(0, 10)
    assert (await scene.dirty.pending(1)).total == 0


async def test_items_lost_while_embedding_are_left_to_the_worker_that_has_them() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(1))

    def lease_runs_out(step: Step) -> None:
        if step is Step.EMBEDDED:
            scene.time += 1000
            scene.dirty._dirty[1][1].held_by = "another worker"

    scene.at_step = lease_runs_out
    await (await scene.indexer()).index_batch()
    assert await (await scene.index()).count() == 0
    assert await scene.dirty.are_dirty(1, [1]) == {1}


@pytest.mark.parametrize("poisoned", [{0}, {7}, {3, 4}, set(range(8))], ids=str)
async def test_rejected_items_are_postponed_and_the_others_indexed(poisoned: set[int]) -> None:
    scene = Scene()
    names = {number: POISON if number in poisoned else "fine" for number in range(8)}
    await scene.catalog.store("file", [tool(f"{kind}_{number}") for number, kind in names.items()])
    assert await (await scene.indexer()).index_batch() == 8
    assert await scene.indexed_names() == {f"fine_{number}" for number in set(range(8)) - poisoned}
    assert await scene.dirty.pending(1) == Pending(len(poisoned), failing=0)
    assert {reason for _, reason in await scene.dirty.failing(1, 10)} == {"it is poisonous"}


async def test_a_rejected_item_is_indexed_once_it_is_fixed() -> None:
    scene = Scene()
    await scene.catalog.store("file", [tool("a", POISON)])
    assert (await scene.drain()).left == 1
    await scene.catalog.store("file", [tool("a", "fixed")])
    assert (await scene.drain()).left == 0
    assert await scene.indexed_names() == {"a"}


async def test_when_a_part_is_down_the_batch_is_postponed_and_the_error_is_raised() -> None:
    scene = Scene()
    scene.embedder.down = True
    await scene.catalog.store("file", tools(3))
    with pytest.raises(EmbedderUnavailable):
        await (await scene.indexer()).index_batch()
    assert await scene.dirty.pending(1) == Pending(3, failing=0)
    assert await (await scene.index()).count() == 0


async def test_when_the_part_is_back_the_postponed_batch_is_indexed() -> None:
    scene = Scene()
    scene.embedder.down = True
    await scene.catalog.store("file", tools(3))
    with pytest.raises(EmbedderUnavailable):
        await scene.drain()
    scene.embedder.down = False
    scene.time += 1000
    assert (await scene.drain()).left == 0
    assert await (await scene.index()).count() == 3


async def test_a_late_worker_does_not_bring_back_a_removed_item_for_good() -> None:
    scene = Scene()
    await scene.catalog.store("file", tools(1))
    late = await scene.dirty.claim(1, 1, lease_seconds=60)
    stored = (await scene.catalog.items([1]))[0]
    scene.time += 61
    await scene.catalog.keep_only("file", [])
    await scene.drain()
    await (await scene.index()).put([point_of(stored, await scene.embedder.embed_query("late"))])
    await scene.dirty.clear(1, late)
    await scene.drain()
    assert await (await scene.index()).count() == 0


async def test_an_item_that_a_dead_worker_wrote_late_is_removed_again() -> None:
    """The worker lost its lease just before it wrote, and died just after."""
    scene = Scene()
    await scene.catalog.store("file", [tool("fleeting")])
    await scene.drain()
    (seen,) = await (await scene.index()).scan(0, 10)
    vector = (await scene.embedder.embed_texts(["fleeting"]))[0]
    await scene.catalog.remove("file", ["fleeting"])
    await scene.dirty.claim(1, 10, 60)
    scene.time += 120
    await scene.drain()
    assert await scene.indexed_names() == set()
    await (await scene.index()).put([Point(seen.id, seen.version, vector, {}, {"name": "fleeting"})])
    scene.time += 120
    await scene.drain()
    assert await scene.indexed_names() == set()
