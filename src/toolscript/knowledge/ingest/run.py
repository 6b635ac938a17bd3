"""Ingest of many files with bounded concurrency. Files that another run has claimed are retried at the end."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from itertools import islice
from typing import Protocol

from toolscript.core.cancellation import raise_if_cancelled
from toolscript.core.errors import Conflict, Rejected, ToolscriptError
from toolscript.knowledge.ingest.file import FoundFile
from toolscript.knowledge.ingest.report import IngestProgress
from toolscript.knowledge.model.ingest import IngestOutcome, IngestResult, KnownSource
from toolscript.knowledge.ports import LibraryWriter

FILES_AT_ONCE = 4
LOOKED_UP_AT_ONCE = 256
# One refused file is that file's fault; so many in a row are the engine's.
MAX_REFUSED_IN_A_ROW = 10
# A killed run holds its sources for less than so many leases.
PATIENT_LEASES = 1.5
RESUME_HINT = "run the same command again: it resumes where it stopped"

_Waiting = asyncio.Queue[tuple[FoundFile, KnownSource | None] | None]

logger = logging.getLogger(__name__)


class FileStep(Protocol):
    """Ingests one file, or only reports the result that an ingest would have."""

    async def ingest(self, file: FoundFile, known: KnownSource | None) -> IngestResult: ...


class IngestRun:
    def __init__(
        self,
        ingest: FileStep,
        writer: LibraryWriter,
        progress: IngestProgress,
        *,
        lease_seconds: float,
        at_once: int = FILES_AT_ONCE,
    ) -> None:
        self._ingest = ingest
        self._writer = writer
        self._progress = progress
        self._lease_seconds = lease_seconds
        self._at_once = at_once
        self._refused = 0
        self._busy: list[FoundFile] = []

    async def run(self, files: Iterable[FoundFile | IngestResult]) -> None:
        """Ingest files, and report results that are given. A failing engine ends the run; finished files stay."""
        try:
            await self._take(files)
            await self._retry_busy()
        except ToolscriptError as error:
            error.hint = f"{error.hint}; then {RESUME_HINT}" if error.hint else RESUME_HINT
            raise

    async def _take(self, files: Iterable[FoundFile | IngestResult]) -> None:
        queue: _Waiting = asyncio.Queue(2 * self._at_once)

        async def work() -> None:
            while (waiting := await queue.get()) is not None:
                await self._ingest_file(*waiting)
                raise_if_cancelled()

        await _all_or_none([lambda: self._offer(files, queue), *[work] * self._at_once])

    async def _offer(self, files: Iterable[FoundFile | IngestResult], queue: "_Waiting") -> None:
        async for page in _pages(files):
            for result in page:
                if isinstance(result, IngestResult):
                    self._progress.tell(result)
            found_files = [file for file in page if isinstance(file, FoundFile)]
            known = await self._writer.known([file.name for file in found_files])
            raise_if_cancelled()
            for file in found_files:
                await queue.put((file, known.get(file.name)))
        for _ in range(self._at_once):
            await queue.put(None)

    async def _ingest_file(self, file: FoundFile, known: KnownSource | None) -> None:
        try:
            result = await self._ingest.ingest(file, known)
        except Conflict:
            self._busy.append(file)
            return
        except Rejected as error:
            self._refused += 1
            if self._refused >= MAX_REFUSED_IN_A_ROW:
                raise
            result = IngestResult(file.name, IngestOutcome.SKIPPED, problem=error.message)
        else:
            self._refused = 0
        self._progress.tell(result)

    async def _retry_busy(self) -> None:
        """Retry files that other runs have claimed: those runs may have died."""
        ends_at = time.monotonic() + PATIENT_LEASES * self._lease_seconds
        if self._busy:
            logger.warning("waiting for another run that has %d files, or had them and died", len(self._busy))
        while self._busy and time.monotonic() < ends_at:
            await asyncio.sleep(min(1.0, self._lease_seconds / 4))
            busy, self._busy = self._busy, []
            await self._take(busy)
        for file in self._busy:
            problem = "another run is at work on it"
            self._progress.tell(IngestResult(file.name, IngestOutcome.SKIPPED, problem=problem))


async def _pages(files: Iterable[FoundFile | IngestResult]) -> AsyncIterator[list[FoundFile | IngestResult]]:
    """List on a thread: a folder may be on a network disk."""
    rest = iter(files)
    while page := await asyncio.to_thread(lambda: list(islice(rest, LOOKED_UP_AT_ONCE))):
        yield page


async def _all_or_none(works: Sequence[Callable[[], Coroutine[None, None, None]]]) -> None:
    """Run all concurrently; the first failure cancels the others and is raised."""
    tasks = [asyncio.create_task(work()) for work in works]
    try:
        for done in asyncio.as_completed(tasks):
            await done
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
