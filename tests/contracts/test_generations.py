"""What every DirtySet promises about generations: each follows the catalog by itself, and none misses a change."""

import asyncio

import pytest

from tests.contracts.builders import Record, tool, tools
from toolscript.core.errors import NotFound
from toolscript.tools.model.catalog import Generation, GenerationState, Pending

pytestmark = pytest.mark.requirement("SK-009", "DOC-003")

FIRST = 1


async def fill(record: Record, generation: int, limit: int = 3) -> int:
    """Fills to the end, page by page; answers how many items there were."""
    total = 0
    while count := await record.dirty.fill(generation, limit):
        total += count
    return total


async def states(record: Record) -> dict[int, str]:
    return {found.id: found.state.value for found in await record.dirty.generations()}


async def test_at_first_there_is_one_live_generation_of_no_model(record: Record) -> None:
    assert list(await record.dirty.generations()) == [Generation(FIRST, GenerationState.LIVE, None)]


async def test_the_first_to_adopt_names_the_model_and_the_second_learns_it(record: Record) -> None:
    named = Generation(FIRST, GenerationState.LIVE, "one")
    assert await record.dirty.adopt("one") == named
    assert await record.dirty.adopt("two") == named
    assert list(await record.dirty.generations()) == [named]


async def test_a_model_that_is_being_built_beside_a_nameless_generation_is_not_adopted_twice(
    record: Record,
) -> None:
    begun = await record.dirty.begin("one")
    assert (await record.dirty.adopt("one")).fingerprint is None
    assert [found for found in await record.dirty.generations() if found.fingerprint == "one"] == [begun]


async def test_of_many_who_adopt_at_once_all_get_the_same(record: Record) -> None:
    adopted = await asyncio.gather(*(record.dirty.adopt(f"model {number}") for number in range(8)))
    assert len(set(adopted)) == 1


async def test_a_generation_begun_twice_is_one(record: Record) -> None:
    await record.dirty.adopt("one")
    first, second = await asyncio.gather(record.dirty.begin("two"), record.dirty.begin("two"))
    assert first == second == Generation(first.id, GenerationState.BUILDING, "two")
    assert await record.dirty.begin("one") == Generation(FIRST, GenerationState.LIVE, "one")


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


async def test_what_is_held_while_a_generation_is_filled_afresh_is_done_once_more(record: Record) -> None:
    await record.dirty.adopt("one")
    await record.catalog.store("file", tools(3))
    held = await record.dirty.claim(FIRST, 2, 60)
    await record.dirty.begin("one", afresh=True)
    await fill(record, FIRST)
    await record.dirty.clear(FIRST, held)
    assert await record.dirty.pending(FIRST) == Pending(3, 0)


async def test_what_comes_after_a_filling_is_not_marked_a_second_time(record: Record) -> None:
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
    await record.dirty.set_state(begun.id, GenerationState.LIVE)
    assert await states(record) == {FIRST: "previous", begun.id: "live"}
    await record.dirty.set_state(begun.id, GenerationState.LIVE)
    assert await states(record) == {FIRST: "previous", begun.id: "live"}


async def test_a_generation_that_does_not_exist_cannot_go_live_and_the_live_one_stays(record: Record) -> None:
    with pytest.raises(NotFound):
        await record.dirty.set_state(99, GenerationState.LIVE)
    assert await states(record) == {FIRST: "live"}


async def test_a_previous_generation_still_follows_changes(record: Record) -> None:
    begun = await record.dirty.begin("two")
    await record.dirty.set_state(begun.id, GenerationState.LIVE)
    await record.catalog.store("file", tools(1))
    assert (await record.dirty.pending(FIRST)).total == 1


async def test_a_forgotten_generation_follows_nothing(record: Record) -> None:
    begun = await record.dirty.begin("two")
    await record.dirty.forget(begun.id)
    await record.catalog.store("file", tools(1))
    assert await states(record) == {FIRST: "live"}
    again = await record.dirty.begin("two")
    assert (await record.dirty.pending(again.id)).total == 0


async def test_the_live_generation_and_unknown_ones_cannot_be_forgotten(record: Record) -> None:
    for generation in (FIRST, 99):
        with pytest.raises(NotFound):
            await record.dirty.forget(generation)
    assert await states(record) == {FIRST: "live"}


async def test_no_item_is_missed_by_a_generation_begun_while_others_store(record: Record) -> None:
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
