"""The cache of sources: read once, with a TTL and a maximum size."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from toolscript.knowledge.hydration import CACHE_TTL_SECONDS, SourceCache
from toolscript.knowledge.model.library import Source, source_id
from toolscript.testing import MemoryLibrary

BEES = Source(source_id("bees"), "book", "Keeping bees", "bees")
STEEL = Source(source_id("steel"), "paper", "On steel bridges", "steel")
NOBODY = source_id("nobody")


class Counted(MemoryLibrary):
    """A library that records the requested ids."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    async def sources(self, ids: Sequence[str]) -> Mapping[str, Source]:
        self.asked.append(sorted(ids))
        return await super().sources(ids)

    async def store(self, *sources: Source) -> None:
        for source in sources:
            await self.claim(source, "run", 60)
            await self.finish(source, "run", "hash", "recipe")


@pytest.fixture
async def library() -> Counted:
    library = Counted()
    await library.store(BEES, STEEL)
    return library


async def titles(memory: SourceCache, *ids: str) -> list[str]:
    return sorted(source.title for source in (await memory.read(ids)).values())


async def test_a_cached_source_is_not_read_again(library: Counted) -> None:
    memory = SourceCache(library)
    assert await titles(memory, BEES.id) == ["Keeping bees"]
    assert await titles(memory, BEES.id, STEEL.id) == ["Keeping bees", "On steel bridges"]
    assert await titles(memory, STEEL.id, BEES.id) == ["Keeping bees", "On steel bridges"]
    assert library.asked == [[BEES.id], [STEEL.id]]


async def test_a_missing_source_is_read_again(library: Counted) -> None:
    memory = SourceCache(library)
    assert await titles(memory, NOBODY) == await titles(memory, NOBODY) == []
    assert library.asked == [[NOBODY], [NOBODY]]


async def test_a_changed_source_is_read_again_after_a_minute(library: Counted) -> None:
    now = 0.0
    memory = SourceCache(library, now=lambda: now)
    assert await titles(memory, BEES.id) == ["Keeping bees"]
    await library.store(replace(BEES, title="Keeping wasps"))
    now = CACHE_TTL_SECONDS / 2 - 1
    assert await titles(memory, BEES.id) == ["Keeping bees"]
    now = CACHE_TTL_SECONDS
    assert await titles(memory, BEES.id) == ["Keeping wasps"]


async def test_a_source_that_is_read_again_is_the_most_recent(library: Counted) -> None:
    now = 0.0
    memory = SourceCache(library, size=2, now=lambda: now)
    third = Source(source_id("third"), "note", "Third", "third")
    await library.store(third)
    await memory.read([BEES.id, STEEL.id])
    now = CACHE_TTL_SECONDS
    for id_ in (BEES.id, third.id, BEES.id):
        await memory.read([id_])
    assert library.asked[1:] == [[BEES.id], [third.id]]


async def test_the_least_recently_used_sources_are_evicted_first(library: Counted) -> None:
    memory = SourceCache(library, size=2)
    third = Source(source_id("third"), "note", "Third", "third")
    await library.store(third)
    for id_ in (BEES.id, STEEL.id, BEES.id, third.id, BEES.id, STEEL.id):
        await memory.read([id_])
    assert library.asked == [[BEES.id], [STEEL.id], [third.id], [STEEL.id]]
