"""Contract of DirtySet about index versions: each follows the catalog separately, and none misses a change."""

import asyncio

import pytest

from tests.contracts.builders import Record, tool, tools
from toolscript.core.errors import NotFound
from toolscript.tools.model.catalog import IndexVersion, IndexVersionState, Pending

pytestmark = pytest.mark.requirement("SK-009", "DOC-003")

FIRST = 1


async def fill(record: Record, index_version: int, limit: int = 3) -> int:
    """Fill to the end, page by page; return the number of items."""
    total = 0
    while count := await record.dirty.fill(index_version, limit):
        total += count
    return total


async def states(record: Record) -> dict[int, str]:
    return {result.id: result.state.value for result in await record.dirty.index_versions()}


async def test_at_first_there_is_one_live_generation_of_no_model(record: Record) -> None:
    assert list(await record.dirty.index_versions()) == [IndexVersion(FIRST, IndexVersionState.LIVE, None)]


async def test_the_first_to_adopt_names_the_model_and_the_second_learns_it(record: Record) -> None:
    named = IndexVersion(FIRST, IndexVersionState.LIVE, "one")
    assert await record.dirty.adopt("one") == named
    assert await record.dirty.adopt("two") == named
    assert list(await record.dirty.index_versions()) == [named]


async def test_a_model_that_is_being_built_beside_a_nameless_generation_is_not_adopted_twice(
    record: Record,
) -> None:
    begun = await record.dirty.begin("one")
    assert (await record.dirty.adopt("one")).fingerprint is None
    assert [result for result in await record.dirty.index_versions() if result.fingerprint == "one"] == [begun]


async def test_concurrent_adoptions_get_the_same_generation(record: Record) -> None:
    adopted = await asyncio.gather(*(record.dirty.adopt(f"model {number}") for number in range(8)))
    assert len(set(adopted)) == 1


async def test_a_generation_begun_twice_is_one(record: Record) -> None:
    await record.dirty.adopt("one")
    first, second = await asyncio.gather(record.dirty.begin("two"), record.dirty.begin("two"))
    assert first == second == IndexVersion(first.id, IndexVersionState.BUILDING, "two")
    assert await record.dirty.begin("one") == IndexVersion(FIRST, IndexVersionState.LIVE, "one")


async def test_a_new_generation_follows_changes_from_its_beginning(record: Record) -> None:
    await record.catalog.store("file", [tool("before")])
    begun = await record.dirty.begin("two")
    assert (await record.dirty.pending(begun.id)).total == 0
    await record.catalog.store("file", [tool("after")])
    assert (await record.dirty.pending(begun.id)).total == 1
    assert (await record.dirty.pending(FIRST)).total == 2


async def test_filling_marks_every_item_once_and_then_says_so(record: Record) -> None:
    await record.catalog.store("file", tools(8))
    begun = await record.dirty.begin("two")
    assert await fill(record, begun.id) == 8
    assert await record.dirty.pending(begun.id) == Pending(8, 0)
    assert await record.dirty.fill(begun.id, 3) == 0


async def test_the_first_generation_needs_no_filling(record: Record) -> None:
    await record.catalog.store("file", tools(2))
    assert await record.dirty.fill(FIRST, 10) == 0


async def test_filling_leaves_alone_what_is_dirty_already(record: Record) -> None:
    await record.catalog.store("file", [tool("read")])
    begun = await record.dirty.begin("two")
    await record.catalog.store("file", [tool("read", "changed")])
    held = await record.dirty.claim(begun.id, 10, 60)
    await fill(record, begun.id)
    assert await record.dirty.renew(begun.id, held, 60) == held
    assert (await record.dirty.claim(begun.id, 10, 60)).versions == {}


async def test_an_item_held_during_a_refill_is_done_again(record: Record) -> None:
    await record.dirty.adopt("one")
    await record.catalog.store("file", tools(3))
    held = await record.dirty.claim(FIRST, 2, 60)
    await record.dirty.begin("one", afresh=True)
    await fill(record, FIRST)
    await record.dirty.clear(FIRST, held)
    assert await record.dirty.pending(FIRST) == Pending(3, 0)


async def test_an_item_added_after_a_fill_is_not_marked_twice(record: Record) -> None:
    await record.dirty.adopt("one")
    await record.dirty.begin("one", afresh=True)
    await fill(record, FIRST)
    await record.catalog.store("file", tools(3))
    await record.dirty.clear(FIRST, await record.dirty.claim(FIRST, 10, 60))
    assert await record.dirty.fill(FIRST, 10) == 0
    assert await record.dirty.pending(FIRST) == Pending(0, 0)


async def test_generations_are_claimed_and_cleared_apart(record: Record) -> None:
    begun = await record.dirty.begin("two")
    await record.catalog.store("file", tools(2))
    await record.dirty.clear(FIRST, await record.dirty.claim(FIRST, 10, 60))
    assert (await record.dirty.pending(FIRST)).total == 0
    assert (await record.dirty.pending(begun.id)).total == 2


async def test_one_generation_is_live_and_the_one_before_it_previous(record: Record) -> None:
    begun = await record.dirty.begin("two")
    await record.dirty.set_state(begun.id, IndexVersionState.LIVE)
    assert await states(record) == {FIRST: "previous", begun.id: "live"}
    await record.dirty.set_state(begun.id, IndexVersionState.LIVE)
    assert await states(record) == {FIRST: "previous", begun.id: "live"}


async def test_a_generation_that_does_not_exist_cannot_go_live_and_the_live_one_stays(record: Record) -> None:
    with pytest.raises(NotFound):
        await record.dirty.set_state(99, IndexVersionState.LIVE)
    assert await states(record) == {FIRST: "live"}


async def test_a_previous_generation_still_follows_changes(record: Record) -> None:
    begun = await record.dirty.begin("two")
    await record.dirty.set_state(begun.id, IndexVersionState.LIVE)
    await record.catalog.store("file", tools(1))
    assert (await record.dirty.pending(FIRST)).total == 1


async def test_a_dropped_generation_follows_nothing(record: Record) -> None:
    begun = await record.dirty.begin("two")
    await record.dirty.forget(begun.id)
    await record.catalog.store("file", tools(1))
    assert await states(record) == {FIRST: "live"}
    again = await record.dirty.begin("two")
    assert (await record.dirty.pending(again.id)).total == 0


async def test_the_live_generation_and_unknown_ones_cannot_be_dropped(record: Record) -> None:
    for index_version in (FIRST, 99):
        with pytest.raises(NotFound):
            await record.dirty.forget(index_version)
    assert await states(record) == {FIRST: "live"}


async def test_a_generation_begun_during_stores_misses_no_item(record: Record) -> None:
    async def store(number: int) -> None:
        for round_ in range(3):
            await record.catalog.store(f"source {number}", tools(4, f"round {round_}"))

    async def build() -> None:
        await fill(record, (await record.dirty.begin("two")).id, 5)

    await asyncio.gather(*(store(number) for number in range(12)), build())
    begun = await record.dirty.begin("two")
    stored = [seen.id for seen in await record.catalog.scan(0, 1000)]
    assert len(stored) == 48
    assert await record.dirty.are_dirty(begun.id, stored) == set(stored)


async def test_storing_and_following_the_same_items_at_once_loses_nothing(record: Record) -> None:
    names = [f"tool {number}" for number in range(40)]

    async def store(order: list[str], text: str) -> None:
        for round_ in range(6):
            await record.catalog.store("file", [tool(name, f"{text} {round_}") for name in order])

    async def follow() -> None:
        for _ in range(12):
            held = await record.dirty.claim(FIRST, 25, 60)
            held = await record.dirty.renew(FIRST, held, 60)
            await record.dirty.clear(FIRST, held)

    await asyncio.gather(store(names, "a"), store(names[::-1], "b"), follow(), follow(), follow())
    last_seen = {seen.id: seen.version for seen in await record.catalog.scan(0, 100)}
    left = (await record.dirty.claim(FIRST, 100, 60)).versions
    assert len(last_seen) == len(names)
    assert left.items() <= last_seen.items()
