"""A source that is one run's own for a while: nobody else writes it, and one that dies does not keep it long."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from toolscript.errors import Conflict, ToolscriptError
from toolscript.model.library import Source
from toolscript.ports import LibraryWriter

RENEWED_BY = 1 / 3
RELEASE_SECONDS = 5.0


class SourceClaim:
    def __init__(self, library: LibraryWriter, source: Source, seconds: float) -> None:
        self.source = source
        self._library = library
        # Of this claim alone: a file that one command meets twice is not written twice at once either.
        self._run = uuid.uuid4().hex
        self._seconds = seconds
        self._holds_until = float("-inf")
        self._is_finished = False
        self._ended = asyncio.Event()
        self._turn = asyncio.Lock()

    def check(self) -> None:
        """Before anything is written: a run that was held up does not write what another may be writing now."""
        if time.monotonic() >= self._holds_until:
            raise _taken()

    async def finish(self, source: Source, content_hash: str, recipe: str) -> None:
        # Whoever renews a claim after it was finished takes the source again.
        async with self._turn:
            self.check()
            if not await self._library.finish(source, self._run, content_hash, recipe):
                raise _taken()
            self._is_over()

    async def discard(self) -> None:
        """The source itself leaves the library."""
        async with self._turn:
            self.check()
            await self._library.remove_source(self.source.id)
            self._is_over()

    async def take(self) -> None:
        asked_at = time.monotonic()
        if not await self._library.claim(self.source, self._run, self._seconds):
            raise _taken()
        self._holds_until = asked_at + self._seconds

    async def keep(self) -> None:
        """Until it is over, or lost: then nothing can be written any more."""
        while not await self._ends_in(self._seconds * RENEWED_BY):
            async with self._turn:
                if self._ended.is_set():
                    return
                try:
                    self.check()
                    await self.take()
                except Conflict:
                    self._holds_until = float("-inf")
                    return
                except ToolscriptError:
                    # Whoever writes next hears of it; until then it is tried again.
                    continue

    async def end(self) -> None:
        """What was not finished is given back."""
        self._ended.set()
        async with self._turn:
            if not self._is_finished:
                with suppress(ToolscriptError, TimeoutError):
                    async with asyncio.timeout(RELEASE_SECONDS):
                        await self._library.release(self.source.id, self._run)

    def _is_over(self) -> None:
        self._is_finished = True
        self._ended.set()

    async def _ends_in(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)
        return self._ended.is_set()


@asynccontextmanager
async def claimed(library: LibraryWriter, source: Source, seconds: float) -> AsyncIterator[SourceClaim]:
    """A conflict when another run has it."""
    claim = SourceClaim(library, source, seconds)
    await claim.take()
    keeping = asyncio.create_task(claim.keep())
    try:
        yield claim
    finally:
        await claim.end()
        await keeping


def _taken() -> Conflict:
    return Conflict("another run is at work on it", hint="wait until that run is over, and run the command again")
