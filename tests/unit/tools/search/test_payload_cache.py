"""The cache returns current payloads, never stale ones."""

from dataclasses import replace

from tests.unit.tools.search.builders import WatchedIndex
from toolscript.core.retrieval.model import IndexQuery, Point
from toolscript.testing import HashEmbedder
from toolscript.tools.payload_cache import PayloadCache, revisions_of


async def point(id_: int, name: str) -> Point:
    vector = await HashEmbedder().embed_query(name)
    return Point(id_, 1, vector, {1: 1.0}, {"name": name, "server": "s", "skill_ids": ["a"], "stems": ""})


async def revisions(index: WatchedIndex) -> dict[int, int]:
    return revisions_of((await index.search(IndexQuery(terms={1: 1.0}))).words or ())


async def test_a_payload_is_read_once_as_long_as_its_point_does_not_change() -> None:
    index = WatchedIndex()
    cache = PayloadCache(index)
    await index.put([await point(1, "one"), await point(2, "two")])
    for _ in range(3):
        read = await cache.read(await revisions(index))
        assert {payload.fields["name"] for payload in read.values()} == {"one", "two"}
        assert read[1].skill_ids == ("a",)
    assert index.looks == [(2, ())]


async def test_a_rewritten_point_is_read_again() -> None:
    index = WatchedIndex()
    cache = PayloadCache(index)
    first = await point(1, "one")
    await index.put([first])
    await cache.read(await revisions(index))
    await index.put([replace(first, fields={**first.fields, "name": "renamed"})])
    assert (await cache.read(await revisions(index)))[1].fields["name"] == "renamed"


async def test_the_cache_stays_within_its_size() -> None:
    index = WatchedIndex()
    cache = PayloadCache(index, size=2)
    await index.put([await point(id_, f"tool {id_}") for id_ in range(1, 6)])
    current = await revisions(index)
    assert len(await cache.read(current)) == 5
    assert len(cache.cached(current)) == 2


async def test_a_point_without_a_revision_is_not_cached() -> None:
    index = WatchedIndex()
    cache = PayloadCache(index)
    await index.put([await point(1, "one")])
    await cache.read({1: 0})
    assert not cache.cached({1: 0})


async def test_a_deleted_point_is_left_out() -> None:
    assert await PayloadCache(WatchedIndex()).read({7: 3}) == {}
