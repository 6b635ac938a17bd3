"""ingest: files into the library, once or for as long as they change; extraction by a language model."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from shlex import quote
from typing import Any, Protocol, runtime_checkable

from toolscript.core.cancellation import raise_if_cancelled
from toolscript.core.errors import InvalidRequest, NotFound, SetupError, Unavailable
from toolscript.core.folder_changes import FolderChanges, watched
from toolscript.core.llm.model import TextUsage
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.core.values import OnProgress, silent
from toolscript.knowledge.ingest.chunking import TokenCount, estimated_tokens
from toolscript.knowledge.ingest.extraction import Extractor
from toolscript.knowledge.ingest.file import LEASE_SECONDS, FileIngest, FileInspection, FoundFile
from toolscript.knowledge.ingest.indexes import LibraryIndexes, prepare_indexes, require_live
from toolscript.knowledge.ingest.report import Described, IngestProgress, IngestReport, OnResult
from toolscript.knowledge.ingest.run import IngestRun, TakesFile
from toolscript.knowledge.ingest.sources import LibraryWriteContext, RemovedSources, only_said, removing
from toolscript.knowledge.model.ingest import IngestOptions, IngestOutcome, IngestResult
from toolscript.knowledge.model.library import clean_topics
from toolscript.knowledge.ports import LibraryReader, LibraryWriter, SourceFiles
from toolscript.knowledge.readers.blocks import known_endings
from toolscript.knowledge.readers.files import list_files, open_source_files
from toolscript.server.library_stores import knowledge_card, knowledge_indexes, open_both
from toolscript.server.settings import load_settings
from toolscript.server.stores import connect_qdrant, open_embedder, text_model

Found = FoundFile | IngestResult

FIRST_PAUSE, MAX_PAUSE = 1.0, 60.0

OnReport = Callable[[IngestReport], None]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Extracting:
    """`extractor` makes one for each run; what all of them spend together is bounded."""

    extractor: Callable[[], Extractor | None] = lambda: None
    usage: Callable[[], TextUsage | None] = lambda: None


@asynccontextmanager
async def open_extracting(
    settings: Settings, *, wanted: bool | None, token_budget: int | None
) -> AsyncIterator[Extracting]:
    if wanted and not settings.text_url:
        raise SetupError(
            "there is no language model to extract with",
            hint="set TOOLSCRIPT_TEXT_URL and TOOLSCRIPT_TEXT_MODEL, or leave out --extract",
        )
    if wanted is False or not settings.text_url:
        yield Extracting()
        return
    text = text_model(settings)

    def extractor() -> Extractor:
        left = None if token_budget is None else max(0, token_budget - text.usage.tokens)
        concurrency = settings.classify_concurrency
        return Extractor(text, settings.text_model, concurrency=concurrency, token_budget=left)

    try:
        yield Extracting(extractor, lambda: text.usage)
    finally:
        await text.close()


@runtime_checkable
class CountsTokens(Protocol):
    def count_tokens(self, text: str) -> int: ...


@dataclass(frozen=True)
class LibraryResources:
    """All that a library is made of, whether its indexes are there or not."""

    reader: LibraryReader
    writer: LibraryWriter
    embedder: Embedder
    indexes: LibraryIndexes

    @property
    def card(self) -> IndexCard:
        return knowledge_card(self.embedder.model)

    @property
    def tokens(self) -> TokenCount:
        """As the model counts them, where it is here to be asked."""
        return self.embedder.count_tokens if isinstance(self.embedder, CountsTokens) else estimated_tokens

    async def write_context(self) -> LibraryWriteContext:
        """With the indexes of this model, which must be there."""
        chunks, extractions = await self.indexes.open(self.card)
        return LibraryWriteContext(
            self.reader,
            self.writer,
            self.embedder,
            chunks,
            extractions,
            lambda: require_live(self.indexes, self.card),
        )


@asynccontextmanager
async def open_library_resources(settings: Settings) -> AsyncIterator[LibraryResources]:
    async with AsyncExitStack() as stack:
        reader, writer = await stack.enter_async_context(open_both(settings))
        engine = await stack.enter_async_context(connect_qdrant(settings))
        embedder = await stack.enter_async_context(open_embedder(settings))
        yield LibraryResources(reader, writer, embedder, LibraryIndexes(*knowledge_indexes(engine, settings)))


async def prepare_write_context(parts: LibraryResources) -> LibraryWriteContext:
    """With what has to be there before the first source is written."""
    await parts.writer.prepare()
    await prepare_indexes(parts.indexes, parts.card, parts.reader)
    return await parts.write_context()


class SourceNames:
    """Full paths, or those from a base folder on: such a library can be filled from another place later."""

    def __init__(self, paths: Sequence[str], base: str = "") -> None:
        self.roots = _outermost([_resolved(path) for path in paths])
        self._base = _resolved(base) if base else ""
        self._folders = {root: self.name_of(root) for root in self.roots if Path(root).is_dir()}

    @property
    def folders(self) -> list[str]:
        """The names of those roots that are folders, to be pruned.

        The base itself has none: in a library that is filled from several places, others have names like its own.
        """
        return [name for name in self._folders.values() if name]

    @property
    def away(self) -> list[str]:
        """The names of those folders of which nothing is called gone, because there is nothing in them at all."""
        return [name for root, name in self._folders.items() if name and _is_away(root)]

    def require_prunable(self) -> None:
        if "" in self._folders.values():
            raise InvalidRequest(
                "--prune cannot be told what of the library is of this base",
                hint="name the folders in it, such as `--base DIR DIR/notes DIR/papers`",
            )

    def name_of(self, path: str) -> str:
        """Empty for the base itself."""
        if not self._base:
            return path
        if not PurePosixPath(path).is_relative_to(self._base):
            raise InvalidRequest(
                f"{path} does not lie in {self._base}",
                hint="name files and folders below --base, or another --base",
            )
        name = PurePosixPath(path).relative_to(self._base).as_posix()
        return "" if name == "." else name

    def is_gone(self, name: str) -> bool:
        """Whether there is nothing any more where that source was. Of what others have named, nobody knows.

        Where a whole root is away or has nothing in it at all, its disk may be away: nothing of it is called gone.
        """
        if PurePosixPath(name).is_absolute() == bool(self._base):
            return False
        path = f"{self._base}/{name}" if self._base else name
        roots = [root for root in self._folders if PurePosixPath(path).is_relative_to(root)]
        return is_gone(path) and not any(map(_is_away, roots))

    def found(self) -> Iterator[Found]:
        for root in self.roots:
            yield from self._found_in(root)

    def count(self) -> int:
        return sum(1 for _ in self.found())

    def found_at(self, paths: Sequence[str]) -> Iterator[Found]:
        """What lies at paths that have changed: files of known kinds, and all of them in folders.

        Links are passed over, as they are in folders: nobody has named them.
        """
        for path in paths:
            if _is_link(path):
                continue
            if Path(path).suffix.lower() in known_endings or Path(path).is_dir():
                try:
                    yield from self._found_in(path)
                except NotFound:
                    # It came and went.
                    continue

    def _found_in(self, root: str) -> Iterator[Found]:
        for file in list_files(root):
            name = self.name_of(file.path)
            if file.problem:
                yield IngestResult(name or file.path, IngestOutcome.SKIPPED, problem=file.problem)
            else:
                yield FoundFile(file.path, name)


def _is_link(path: str) -> bool:
    """Or lies behind one."""
    try:
        return Path(path).resolve().as_posix() != Path(path).absolute().as_posix()
    except (OSError, RuntimeError):
        return True


def _is_away(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False


def is_gone(path: str) -> bool:
    """Not where it only cannot be looked at: what lies on a disk that is away is not gone."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _resolved(path: str) -> str:
    try:
        return Path(path).expanduser().resolve(strict=True).as_posix()
    except (OSError, RuntimeError, ValueError) as error:
        raise NotFound(
            f"there is no {path}",
            hint="name files and folders that are there; "
            f"`toolscript library remove {quote(path)}` removes what the library still has of it",
        ) from error


def _outermost(paths: Sequence[str]) -> list[str]:
    """What lies in another of them is found there."""
    distinct = list(dict.fromkeys(paths))
    return [
        path
        for path in distinct
        if not any(path != other and PurePosixPath(path).is_relative_to(other) for other in distinct)
    ]


def ingest(order: IngestOptions, *, on_progress: OnProgress, on_result: OnResult) -> IngestReport:
    """What was done before somebody stopped it is in the report, too."""
    telling = IngestProgress(on_result, on_progress)

    async def run() -> None:
        async with _open(load_settings(), order) as ingesting:
            await ingesting.everything(telling, prune=order.prune)

    telling.report.was_stopped = not _until_stopped(run())
    return telling.report


def watch_ingest(
    order: IngestOptions, *, on_progress: OnProgress, on_result: OnResult, on_report: OnReport
) -> None:
    """A run, and then one for whatever changes, until it is told to stop. A report for each."""

    async def run() -> None:
        async with _open(load_settings(), order) as ingesting, watched(ingesting.names.roots) as changes:
            telling = IngestProgress(on_result, on_progress)
            await ingesting.everything(telling, prune=order.prune)
            on_report(telling.report)
            await _follow(ingesting, changes, on_result, on_report)

    _until_stopped(run())


async def _follow(
    ingesting: "_Ingesting", changes: FolderChanges, on_result: OnResult, on_report: OnReport
) -> None:
    while True:
        raise_if_cancelled()
        paths = await changes.next()
        telling = IngestProgress(on_result, silent)
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
            pause = min(2 * pause, MAX_PAUSE)


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
    parts: LibraryResources
    write_context: LibraryWriteContext | None
    files: SourceFiles
    extracting: Extracting
    described: Described
    lease_seconds: float

    async def everything(self, telling: IngestProgress, *, prune: bool) -> None:
        telling.total = await asyncio.to_thread(self.names.count)
        await self._take(self.names.found(), telling)
        if prune:
            gone = self._gone(telling)
            await gone.prune(await asyncio.to_thread(lambda: self.names.folders))
            for folder in await asyncio.to_thread(lambda: self.names.away):
                if count := await gone.count(folder):
                    telling.report.kept[folder] = count

    async def changed(self, paths: Sequence[str], telling: IngestProgress) -> None:
        """Files that are there now, and those that are not any more. No paths: it may be anything."""
        if not paths:
            await self.everything(telling, prune=True)
            return
        await self._take(self.names.found_at(paths), telling)
        await self._gone(telling).remove(list(map(self.names.name_of, paths)))

    async def _take(self, found: Iterable[Found], telling: IngestProgress) -> None:
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

    def _one(self, extractor: Extractor | None, telling: IngestProgress) -> TakesFile:
        extraction = extractor.recipe if extractor else ""
        look = FileInspection(
            self.files,
            self.parts.card.fingerprint,
            self.described,
            extraction=extraction,
            tokens=self.parts.tokens,
        )
        if self.write_context is None:
            return look
        return FileIngest(
            self.write_context,
            look,
            extractor=extractor,
            lease_seconds=self.lease_seconds,
            on_chunks=telling.count_chunks,
        )

    def _gone(self, telling: IngestProgress) -> RemovedSources:
        remove = (
            only_said
            if self.write_context is None
            else removing(self.write_context, self.lease_seconds, self.names.is_gone)
        )
        return RemovedSources(self.parts.writer, self.names.is_gone, telling, remove)


@asynccontextmanager
async def _open(settings: Settings, order: IngestOptions) -> AsyncIterator[_Ingesting]:
    names = await asyncio.to_thread(SourceNames, order.paths, order.base)
    if order.prune:
        names.require_prunable()
    described = Described(order.type, clean_topics(order.topics), order.authors)
    async with (
        open_extracting(settings, wanted=order.extract, token_budget=order.token_budget) as extracting,
        open_library_resources(settings) as parts,
        open_source_files() as files,
    ):
        write_context = await (_look_only(parts) if order.dry else prepare_write_context(parts))
        yield _Ingesting(names, parts, write_context, files, extracting, described, LEASE_SECONDS)


async def _look_only(parts: LibraryResources) -> None:
    if await parts.indexes.live() is not None:
        await require_live(parts.indexes, parts.card)
