"""What is remembered of points is what they are, never what they were."""

from dataclasses import replace

from tests.unit.tools.search.builders import WatchedIndex
from toolscript.core.retrieval.model import Ask, Point
from toolscript.testing import HashEmbedder
from toolscript.tools.payload_cache import PayloadCache, revisions_of


async def point(id_: int, name: str) -> Point:
    vector = await HashEmbedder().embed_query(name)
    return Point(id_, 1, vector, {1: 1.0}, {"name": name, "server": "s", "skill_ids": ["a"], "stems": ""})


async def revisions(index: WatchedIndex) -> dict[int, int]:
    return revisions_of((await index.search(Ask(terms={1: 1.0}))).words or ())


async def test_a_point_is_read_once_for_as_long_as_it_stays_as_it_is() -> None:
    index = WatchedIndex()
    memory = PayloadCache(index)
    await index.put([await point(1, "one"), await point(2, "two")])
    for _ in range(3):
        read = await memory.read(await revisions(index))
        assert {one.fields["name"] for one in read.values()} == {"one", "two"}
        assert read[1].skill_ids == ("a",)
    assert index.looks == [(2, ())]


async def test_a_point_that_was_written_again_is_read_again() -> None:
    index = WatchedIndex()
    memory = PayloadCache(index)
    first = await point(1, "one")
    await index.put([first])
    await memory.read(await revisions(index))
    await index.put([replace(first, fields={**first.fields, "name": "renamed"})])
    assert (await memory.read(await revisions(index)))[1].fields["name"] == "renamed"


async def test_the_memory_stays_within_its_size() -> None:
    index = WatchedIndex()
    memory = PayloadCache(index, size=2)
    await index.put([await point(id_, f"tool {id_}") for id_ in range(1, 6)])
    known = await revisions(index)
    assert len(await memory.read(known)) == 5
    assert len(memory.known(known)) == 2


async def test_a_point_whose_revision_nobody_counts_is_not_remembered() -> None:
    index = WatchedIndex()
    memory = PayloadCache(index)
    await index.put([await point(1, "one")])
    await memory.read({1: 0})
    assert not memory.known({1: 0})


async def test_a_point_that_is_gone_is_left_out() -> None:
    assert await PayloadCache(WatchedIndex()).read({7: 3}) == {}
