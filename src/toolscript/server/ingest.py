"""ingest: reads files into the library, once or whenever they change, and extracts with a language model."""

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

from toolscript.core.audit import Counted
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
from toolscript.knowledge.ingest.run import FileStep, IngestRun
from toolscript.knowledge.ingest.sources import LibraryWriteContext, RemovedSources, removing, report_removal
from toolscript.knowledge.model.ingest import IngestOptions, IngestOutcome, IngestResult
from toolscript.knowledge.model.library import clean_topics
from toolscript.knowledge.ports import LibraryReader, LibraryWriter, SourceFiles
from toolscript.knowledge.readers.blocks import known_suffixes
from toolscript.knowledge.readers.files import list_files, open_source_files
from toolscript.server.audit import recorded
from toolscript.server.library_stores import knowledge_card, knowledge_indexes, open_reader_and_writer
from toolscript.server.settings import load_settings
from toolscript.server.stores import connect_qdrant, open_embedder, text_model

Found = FoundFile | IngestResult

FIRST_PAUSE, MAX_PAUSE = 1.0, 60.0

OnReport = Callable[[IngestReport], None]

logger = logging.getLogger(__name__)

# In the audit.
MAX_SUBJECT = 500


@dataclass(frozen=True)
class Extracting:
    """`extractor` creates one for each run; all runs share one token budget."""

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
    """Stores, model and indexes of a library. The indexes need not exist yet."""

    reader: LibraryReader
    writer: LibraryWriter
    embedder: Embedder
    indexes: LibraryIndexes

    @property
    def card(self) -> IndexCard:
        return knowledge_card(self.embedder.model)

    @property
    def tokens(self) -> TokenCount:
        """Token counter of the model, or an estimate for a remote model."""
        return self.embedder.count_tokens if isinstance(self.embedder, CountsTokens) else estimated_tokens

    async def write_context(self) -> LibraryWriteContext:
        """Open the indexes of this model. Raise if they do not exist."""
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
        reader, writer = await stack.enter_async_context(open_reader_and_writer(settings))
        engine = await stack.enter_async_context(connect_qdrant(settings))
        embedder = await stack.enter_async_context(open_embedder(settings))
        yield LibraryResources(reader, writer, embedder, LibraryIndexes(*knowledge_indexes(engine, settings)))


async def prepare_write_context(library: LibraryResources) -> LibraryWriteContext:
    """Create the collections and indexes that the first write needs, and open them."""
    await library.writer.prepare()
    await prepare_indexes(library.indexes, library.card, library.reader)
    return await library.write_context()


class SourceNames:
    """Names of sources: full paths, or paths relative to a base folder, so that the folder can move later."""

    def __init__(self, paths: Sequence[str], base: str = "") -> None:
        self.roots = _drop_nested([_resolve(path) for path in paths])
        self._base = _resolve(base) if base else ""
        self._folders = {root: self.name_of(root) for root in self.roots if Path(root).is_dir()}

    @property
    def folders(self) -> list[str]:
        """Names of the roots that are folders, for pruning.

        The base itself has no name: sources from other machines may have names relative to their own base.
        """
        return [name for name in self._folders.values() if name]

    @property
    def away(self) -> list[str]:
        """Names of missing or empty folders. Their sources are kept, because the disk may not be mounted."""
        return [name for root, name in self._folders.items() if name and _is_away(root)]

    def require_prunable(self) -> None:
        if "" in self._folders.values():
            raise InvalidRequest(
                "--prune cannot tell which sources of the library belong to this base",
                hint="name the folders in it, such as `--base DIR DIR/notes DIR/papers`",
            )

    def name_of(self, path: str) -> str:
        """Return the name of a path; empty for the base itself."""
        if not self._base:
            return path
        if not PurePosixPath(path).is_relative_to(self._base):
            raise InvalidRequest(
                f"{path} is not in {self._base}",
                hint="name files and folders below --base, or another --base",
            )
        name = PurePosixPath(path).relative_to(self._base).as_posix()
        return "" if name == "." else name

    def is_gone(self, name: str) -> bool:
        """Return whether the file of that source no longer exists; False for names that follow another scheme.

        While a whole root is missing or empty, its disk may not be mounted, so none of its sources counts as gone.
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
        """Yield the files at changed paths: those of known types, and all files of a folder.

        Symbolic links are skipped, as they are inside folders: the user did not name them.
        """
        for path in paths:
            if _is_link(path):
                continue
            if Path(path).suffix.lower() in known_suffixes or Path(path).is_dir():
                try:
                    yield from self._found_in(path)
                except NotFound:
                    # Removed again meanwhile.
                    continue

    def _found_in(self, root: str) -> Iterator[Found]:
        for file in list_files(root):
            name = self.name_of(file.path)
            if file.problem:
                yield IngestResult(name or file.path, IngestOutcome.SKIPPED, problem=file.problem)
            else:
                yield FoundFile(file.path, name)


def _is_link(path: str) -> bool:
    """Return whether the path is a symbolic link or below one."""
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
    """Return whether the path does not exist. A path that cannot be read counts as existing."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _resolve(path: str) -> str:
    try:
        return Path(path).expanduser().resolve(strict=True).as_posix()
    except (OSError, RuntimeError, ValueError) as error:
        raise NotFound(
            f"there is no {path}",
            hint="name existing files and folders; "
            f"`toolscript library remove {quote(path)}` removes its sources from the library",
        ) from error


def _drop_nested(paths: Sequence[str]) -> list[str]:
    """Drop paths that are below another one."""
    distinct = list(dict.fromkeys(paths))
    return [
        path
        for path in distinct
        if not any(path != other and PurePosixPath(path).is_relative_to(other) for other in distinct)
    ]


def ingest(order: IngestOptions, *, on_progress: OnProgress, on_result: OnResult) -> IngestReport:
    """Ingest once. If it is interrupted, the report has what was done until then."""
    progress = IngestProgress(on_result, on_progress)

    async def run() -> None:
        async with _open(load_settings(), order) as ingesting:
            await ingesting.everything(progress, prune=order.prune)

    with recorded("library.ingest", _subject(order), needed=False) as change:
        try:
            progress.report.was_stopped = not _run_until_stopped(run())
        finally:
            change.count = 0 if order.dry else _changes_of(progress.report)
    return progress.report


def _changes_of(report: IngestReport) -> int:
    changing = (IngestOutcome.ADDED, IngestOutcome.UPDATED, IngestOutcome.REMOVED)
    return sum(report.outcomes[outcome] for outcome in changing)


def _subject(order: IngestOptions) -> str:
    return ", ".join(order.paths)[:MAX_SUBJECT]


def watch_ingest(
    order: IngestOptions, *, on_progress: OnProgress, on_result: OnResult, on_report: OnReport
) -> None:
    """Ingest once, and again after each change, until it is stopped. Each run gets a report."""
    counted = Counted()

    def on_run(report: IngestReport) -> None:
        counted.count += _changes_of(report)
        on_report(report)

    async def run() -> None:
        async with _open(load_settings(), order) as ingesting, watched(ingesting.names.roots) as changes:
            progress = IngestProgress(on_result, on_progress)
            await ingesting.everything(progress, prune=order.prune)
            on_run(progress.report)
            await _follow(ingesting, changes, on_result, on_run)

    with recorded("library.ingest", _subject(order), counted=counted, needed=False):
        _run_until_stopped(run())


async def _follow(
    ingesting: "_Ingesting", changes: FolderChanges, on_result: OnResult, on_report: OnReport
) -> None:
    while True:
        raise_if_cancelled()
        paths = await changes.next()
        progress = IngestProgress(on_result, silent)
        await _retry_unavailable(lambda: ingesting.changed(paths, progress))  # noqa: B023 - awaited before the next
        on_report(progress.report)


async def _retry_unavailable(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Retry while an engine is unavailable, with exponential backoff."""
    pause = FIRST_PAUSE
    while True:
        try:
            return await work()
        except Unavailable as error:
            logger.warning("waiting", extra={"reason": error.message})
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE)


def _run_until_stopped(work: Coroutine[Any, Any, None]) -> bool:
    """Run until done or until SIGTERM or SIGINT. Return whether it was done."""

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
    """One ingest run with its resources. Without a `write_context` nothing is written (dry run)."""

    names: SourceNames
    parts: LibraryResources
    write_context: LibraryWriteContext | None
    files: SourceFiles
    extracting: Extracting
    described: Described
    lease_seconds: float

    async def everything(self, progress: IngestProgress, *, prune: bool) -> None:
        progress.total = await asyncio.to_thread(self.names.count)
        await self._ingest_files(self.names.found(), progress)
        if prune:
            removed = self._removed_sources(progress)
            await removed.prune(await asyncio.to_thread(lambda: self.names.folders))
            for folder in await asyncio.to_thread(lambda: self.names.away):
                if count := await removed.count(folder):
                    progress.report.kept[folder] = count

    async def changed(self, paths: Sequence[str], progress: IngestProgress) -> None:
        """Ingest the files at changed paths, and remove those that are gone. Without paths, check everything."""
        if not paths:
            await self.everything(progress, prune=True)
            return
        await self._ingest_files(self.names.found_at(paths), progress)
        await self._removed_sources(progress).remove(list(map(self.names.name_of, paths)))

    async def _ingest_files(self, files: Iterable[Found], progress: IngestProgress) -> None:
        extractor = self.extracting.extractor()
        run = IngestRun(
            self._file_step(extractor, progress), self.parts.writer, progress, lease_seconds=self.lease_seconds
        )
        try:
            await run.run(files)
        finally:
            report = progress.report
            report.text_usage = self.extracting.usage()
            if extractor is not None:
                report.unextracted, report.problem = extractor.left, extractor.problem

    def _file_step(self, extractor: Extractor | None, progress: IngestProgress) -> FileStep:
        extraction = extractor.recipe if extractor else ""
        inspection = FileInspection(
            self.files,
            self.parts.card.fingerprint,
            self.described,
            extraction=extraction,
            tokens=self.parts.tokens,
        )
        if self.write_context is None:
            return inspection
        return FileIngest(
            self.write_context,
            inspection,
            extractor=extractor,
            lease_seconds=self.lease_seconds,
            on_chunks=progress.count_chunks,
        )

    def _removed_sources(self, progress: IngestProgress) -> RemovedSources:
        remove = (
            report_removal
            if self.write_context is None
            else removing(self.write_context, self.lease_seconds, self.names.is_gone)
        )
        return RemovedSources(self.parts.writer, self.names.is_gone, progress, remove)


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
        write_context = await (_check_live(parts) if order.dry else prepare_write_context(parts))
        yield _Ingesting(names, parts, write_context, files, extracting, described, LEASE_SECONDS)


async def _check_live(parts: LibraryResources) -> None:
    if await parts.indexes.live() is not None:
        await require_live(parts.indexes, parts.card)
