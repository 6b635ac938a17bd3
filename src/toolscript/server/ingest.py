"""ingest: files into the library, once or for as long as they change; its indexes for another model."""

import asyncio
import logging
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from toolscript.adapters.folder_changes import FolderChanges, watched
from toolscript.adapters.source_files import open_source_files
from toolscript.errors import Unavailable
from toolscript.model.ingest_order import IngestOrder
from toolscript.model.progress import OnProgress, silent
from toolscript.model.topics import clean_topics
from toolscript.ports import SourceFiles
from toolscript.service.extracting import Extracting, open_extracting
from toolscript.service.library_shelves import LibraryParts, open_library_parts, prepared_shelves
from toolscript.service.source_names import Found, SourceNames
from toolscript.settings.service import Settings, load_settings
from toolscript.sync.cancelling import go_on_unless_cancelled
from toolscript.sync.extracting import Extractor
from toolscript.sync.ingest import FileIngest
from toolscript.sync.ingest_look import FileLook
from toolscript.sync.ingest_recipe import Described
from toolscript.sync.ingest_report import IngestReport, OnResult
from toolscript.sync.ingest_run import IngestRun, TakesFile, Telling
from toolscript.sync.library_indexes import require_live
from toolscript.sync.source_removal import GoneSources, only_said, removing
from toolscript.sync.source_writing import Shelves

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0

logger = logging.getLogger(__name__)
OnReport = Callable[[IngestReport], None]


def ingest(order: IngestOrder, *, on_progress: OnProgress, on_result: OnResult) -> IngestReport:
    """What was done before somebody stopped it is in the report, too."""
    telling = Telling(on_result, on_progress)

    async def run() -> None:
        async with _open(load_settings(), order) as ingesting:
            await ingesting.everything(telling, prune=order.prune)

    telling.report.was_stopped = not _until_stopped(run())
    return telling.report


def watch_ingest(order: IngestOrder, *, on_progress: OnProgress, on_result: OnResult, on_report: OnReport) -> None:
    """A run, and then one for whatever changes, until it is told to stop. A report for each."""

    async def run() -> None:
        async with _open(load_settings(), order) as ingesting, watched(ingesting.names.roots) as changes:
            telling = Telling(on_result, on_progress)
            await ingesting.everything(telling, prune=order.prune)
            on_report(telling.report)
            await _follow(ingesting, changes, on_result, on_report)

    _until_stopped(run())


async def _follow(
    ingesting: "_Ingesting", changes: FolderChanges, on_result: OnResult, on_report: OnReport
) -> None:
    while True:
        go_on_unless_cancelled()
        paths = await changes.next()
        telling = Telling(on_result, silent)
        await _patiently(lambda: ingesting.changed(paths, telling))  # noqa: B023 - awaited before the next
        on_report(telling.report)


async def _patiently(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """An engine that is away comes back; until then nothing is lost by waiting."""
    pause = FIRST_PAUSE
    while True:
        try:
            return await work()
        except Unavailable as error:
            logger.warning("waiting", extra={"reason": error.message})
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def _until_stopped(work: Coroutine[Any, Any, None]) -> bool:
    """Whether it came to its end, before somebody wanted it to."""

    async def run() -> bool:
        task = asyncio.ensure_future(work)
        for sign in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(sign, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            return False
        return True

    return asyncio.run(run())


@dataclass(frozen=True)
class _Ingesting:
    """Without shelves nothing is written."""

    names: SourceNames
    parts: LibraryParts
    shelves: Shelves | None
    files: SourceFiles
    extracting: Extracting
    described: Described
    lease_seconds: float

    async def everything(self, telling: Telling, *, prune: bool) -> None:
        telling.total = await asyncio.to_thread(self.names.count)
        await self._take(self.names.found(), telling)
        if prune:
            gone = self._gone(telling)
            await gone.prune(await asyncio.to_thread(lambda: self.names.folders))
            for folder in await asyncio.to_thread(lambda: self.names.away):
                if count := await gone.count(folder):
                    telling.report.kept[folder] = count

    async def changed(self, paths: Sequence[str], telling: Telling) -> None:
        """Files that are there now, and those that are not any more. No paths: it may be anything."""
        if not paths:
            await self.everything(telling, prune=True)
            return
        await self._take(self.names.found_at(paths), telling)
        await self._gone(telling).remove(list(map(self.names.name_of, paths)))

    async def _take(self, found: Iterable[Found], telling: Telling) -> None:
        extractor = self.extracting.extractor()
        run = IngestRun(
            self._one(extractor, telling), self.parts.writer, telling, lease_seconds=self.lease_seconds
        )
        try:
            await run.run(found)
        finally:
            report = telling.report
            report.text_usage = self.extracting.usage()
            if extractor is not None:
                report.unextracted, report.problem = extractor.left, extractor.problem

    def _one(self, extractor: Extractor | None, telling: Telling) -> TakesFile:
        extraction = extractor.recipe if extractor else ""
        look = FileLook(
            self.files,
            self.parts.card.fingerprint,
            self.described,
            extraction=extraction,
            tokens=self.parts.tokens,
        )
        if self.shelves is None:
            return look
        return FileIngest(
            self.shelves,
            look,
            extractor=extractor,
            lease_seconds=self.lease_seconds,
            on_chunks=telling.count_chunks,
        )

    def _gone(self, telling: Telling) -> GoneSources:
        remove = (
            only_said if self.shelves is None else removing(self.shelves, self.lease_seconds, self.names.is_gone)
        )
        return GoneSources(self.parts.writer, self.names.is_gone, telling, remove)


@asynccontextmanager
async def _open(settings: Settings, order: IngestOrder) -> AsyncIterator[_Ingesting]:
    names = await asyncio.to_thread(SourceNames, order.paths, order.base)
    if order.prune:
        names.require_prunable()
    described = Described(order.type, clean_topics(order.topics), order.authors)
    async with (
        open_extracting(settings, wanted=order.extract, token_budget=order.token_budget) as extracting,
        open_library_parts(settings) as parts,
        open_source_files() as files,
    ):
        shelves = await (_look_only(parts) if order.dry else prepared_shelves(parts))
        yield _Ingesting(names, parts, shelves, files, extracting, described, settings.lease_seconds)


async def _look_only(parts: LibraryParts) -> None:
    if await parts.indexes.live() is not None:
        await require_live(parts.indexes, parts.card)
