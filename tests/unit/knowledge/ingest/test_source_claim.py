"""A claim is renewed while it is needed, released at the end, and not trusted after it expires."""

import asyncio

import pytest

from toolscript.core.errors import Conflict, LibraryUnavailable
from toolscript.knowledge.ingest.sources import claimed
from toolscript.knowledge.model.library import Source, SourceStatus, source_id
from toolscript.testing import MemoryLibrary

pytestmark = pytest.mark.slow

PATH = "/shelf/bees.md"
BEES = Source(source_id(PATH), "book", "Bees", PATH)


class Watched(MemoryLibrary):
    """Signals after a number of claims; fails a given number of times."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.failures = 0
        self.enough = asyncio.Event()

    async def claim(self, source: Source, run: str, seconds: float) -> bool:
        self.asked += 1
        if self.asked >= 4:
            self.enough.set()
        if self.asked > 1 and self.failures:
            self.failures -= 1
            raise LibraryUnavailable("it is away for a moment")
        return await super().claim(source, run, seconds)


async def test_a_claim_is_renewed_for_as_long_as_the_work_takes() -> None:
    library = Watched()
    async with claimed(library, BEES, 1.2) as claim:
        await asyncio.wait_for(library.enough.wait(), 30)
        claim.check()
        with pytest.raises(Conflict):
            async with claimed(library, BEES, 0.3):
                pass
        await claim.finish(BEES, "hash", "recipe")
        # No task claims it again.
        await asyncio.wait_for(claim.keep(), 30)
        assert library._claims == {}


async def test_a_short_outage_of_the_library_does_not_lose_the_claim() -> None:
    library = Watched()
    library.failures = 1
    async with claimed(library, BEES, 1.2) as claim:
        await asyncio.wait_for(library.enough.wait(), 30)
        claim.check()


async def test_an_unfinished_source_is_released() -> None:
    library = MemoryLibrary()
    with pytest.raises(ZeroDivisionError):
        async with claimed(library, BEES, 60):
            raise ZeroDivisionError
    async with claimed(library, BEES, 60) as claim:
        await claim.finish(BEES, "hash", "recipe")
    assert (await library.known([PATH]))[PATH].source.status is SourceStatus.READY


async def test_a_run_delayed_beyond_its_claim_stops_writing() -> None:
    library = MemoryLibrary()
    async with claimed(library, BEES, 60) as claim:
        claim._holds_until = 0.0
        with pytest.raises(Conflict):
            claim.check()
        with pytest.raises(Conflict):
            await claim.finish(BEES, "hash", "recipe")
    assert (await library.known([PATH]))[PATH].content_hash == ""


async def test_a_claim_that_another_run_has_taken_over_cannot_be_finished() -> None:
    library = MemoryLibrary()
    async with claimed(library, BEES, 60) as claim:
        library._claims.clear()
        assert await library.claim(BEES, "another", 60)
        with pytest.raises(Conflict):
            await claim.finish(BEES, "hash", "recipe")
    assert library._claims[BEES.id].run == "another"
