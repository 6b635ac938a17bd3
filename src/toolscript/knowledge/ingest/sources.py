"""One source of the library: its claim by one run, its writing, and its removal."""

import asyncio
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from toolscript.core.cancellation import raise_if_cancelled
from toolscript.core.errors import Conflict, ToolscriptError
from toolscript.core.retrieval.model import PointVersion
from toolscript.core.retrieval.ports import Embedder, Index
from toolscript.knowledge.ingest.indexes import (
    Entry,
    PointMark,
    chunk_entry,
    extraction_entry,
    mark_of,
    parse_mark,
    points_of,
)
from toolscript.knowledge.ingest.report import IngestProgress
from toolscript.knowledge.model.ingest import ChunkMark, IngestOutcome, IngestResult, KnownSource
from toolscript.knowledge.model.library import Chunk, Extraction, Source, point_of
from toolscript.knowledge.ports import LibraryReader, LibraryWriter

RENEWED_BY = 1 / 3
RELEASE_SECONDS = 5.0
REMOVED_AT_ONCE = 256
PAGE = 256

Remove = Callable[[KnownSource], Awaitable[IngestResult]]


class SourceClaim:
    def __init__(self, library: LibraryWriter, source: Source, seconds: float) -> None:
        self.source = source
        self._library = library
        # Unique per claim: one command that lists a file twice does not write it twice at once either.
        self._run = uuid.uuid4().hex
        self._seconds = seconds
        self._holds_until = float("-inf")
        self._is_finished = False
        self._ended = asyncio.Event()
        self._turn = asyncio.Lock()

    def check(self) -> None:
        """Raise Conflict if the claim has expired: a delayed run must not write over another that took over."""
        if time.monotonic() >= self._holds_until:
            raise _conflict()

    async def finish(self, source: Source, content_hash: str, recipe: str) -> None:
        # Renewing a finished claim would claim the source again.
        async with self._turn:
            self.check()
            if not await self._library.finish(source, self._run, content_hash, recipe):
                raise _conflict()
            self._is_over()

    async def discard(self) -> None:
        """Remove the source itself from the library."""
        async with self._turn:
            self.check()
            await self._library.remove_source(self.source.id)
            self._is_over()

    async def take(self) -> None:
        claimed_at = time.monotonic()
        if not await self._library.claim(self.source, self._run, self._seconds):
            raise _conflict()
        self._holds_until = claimed_at + self._seconds

    async def keep(self) -> None:
        """Renew the claim until it is over or lost; after a loss nothing can be written."""
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
                    # The next write raises the error; until then the renewal is retried.
                    continue

    async def end(self) -> None:
        """Release the source unless it is finished."""
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
    """Hold a claim on a source. Raise Conflict while another run holds it."""
    claim = SourceClaim(library, source, seconds)
    await claim.take()
    keeping = asyncio.create_task(claim.keep())
    try:
        yield claim
    finally:
        await claim.end()
        await keeping


def _conflict() -> Conflict:
    return Conflict("another run is at work on it", hint="wait until that run is over, and run the command again")


@dataclass(frozen=True)
class LibraryWriteContext:
    """A library to read and to write, and its indexes of one model.

    `require_live` raises once another index version is live: searches would not find what is written then.
    """

    reader: LibraryReader
    writer: LibraryWriter
    embedder: Embedder
    chunks: Index
    extractions: Index
    require_live: Callable[[], Awaitable[None]]

    @property
    def fingerprint(self) -> str:
        return self.chunks.card.fingerprint


class SourceWriting:
    """Writes one source. Counts new or changed chunks (`written`), `removed` chunks and `extracted` statements."""

    def __init__(
        self, write_context: LibraryWriteContext, claim: SourceClaim, marks: Mapping[str, ChunkMark]
    ) -> None:
        self._context = write_context
        self._claim = claim
        self._marks = {id_: parse_mark(mark.indexed) for id_, mark in marks.items()}
        self._stored_before = frozenset(marks)
        self._extracted = {id_: mark.extracted for id_, mark in marks.items()}
        latest = max((mark.version for mark in self._marks.values()), default=0)
        self._version = max(int(time.time() * 1_000), latest + 1)
        self.written = self.removed = self.extracted = 0

    @property
    def stored(self) -> Collection[str]:
        """Return the ids of all stored chunks of the source."""
        return self._marks.keys()

    @property
    def changes(self) -> int:
        return self.written + self.removed + self.extracted

    def not_extracted(self, chunks: Sequence[Chunk], recipe: str) -> list[Chunk]:
        return [chunk for chunk in chunks if self._extracted.get(chunk.id) != recipe]

    async def put(self, source: Source, chunks: Sequence[Chunk]) -> None:
        """Write new and changed chunks only, and embed only chunks whose indexed state differs."""
        stored_ids = [chunk.id for chunk in chunks if chunk.id in self._marks]
        stored = await self._context.reader.chunks(stored_ids) if stored_ids else {}
        changed = [chunk for chunk in chunks if stored.get(chunk.id) != chunk]
        self._claim.check()
        if changed:
            await self._context.writer.put_chunks(changed)
        self._marks = {chunk.id: PointMark() for chunk in changed} | self._marks
        self.written += len({chunk.id for chunk in changed} | await self.index(source, chunks))

    async def index(self, source: Source, chunks: Sequence[Chunk], *, missing: Collection[str] = ()) -> set[str]:
        """Bring the indexes up to the library; return the chunks it wrote. Ignore the marks of `missing`."""
        entries = {chunk.id: [chunk_entry(source.title, chunk)] for chunk in chunks}
        extracted = await self._extraction_entries(chunks)
        current = {
            chunk.id: PointMark(
                self._version, self._mark(entries[chunk.id]), self._mark(extracted.get(chunk.id, ()))
            )
            for chunk in chunks
        }
        trusted = {id_: PointMark() if id_ in missing else self._marks[id_] for id_ in current}
        chunks_behind = [id_ for id_ in current if current[id_].chunk != trusted[id_].chunk]
        extractions_behind = [id_ for id_ in current if current[id_].extractions != trusted[id_].extractions]
        await self._write_points(_select(entries, chunks_behind), _select(extracted, extractions_behind))
        behind = {*chunks_behind, *extractions_behind}
        await self._set_marks({id_: current[id_] for id_ in behind})
        return behind

    async def replace_extractions(
        self, source: Source, recipe: str, chunks: Sequence[Chunk], found: Mapping[str, Sequence[Extraction]]
    ) -> None:
        """Replace the extractions of the chunks in `found`."""
        answered = [chunk for chunk in chunks if chunk.id in found]
        if not answered:
            return
        await self._remove_extraction_points([chunk.id for chunk in answered])
        self._claim.check()
        await self._context.writer.put_extractions(recipe, found)
        self._extracted |= dict.fromkeys(found, recipe)
        self.extracted += sum(map(len, found.values()))
        await self.index(source, answered)

    async def remove(self, ids: Iterable[str]) -> None:
        """Remove chunks and their extractions."""
        listed = list(ids)
        for index in range(0, len(listed), REMOVED_AT_ONCE):
            batch = listed[index : index + REMOVED_AT_ONCE]
            # If the run is killed now and the chunk is in the file again, it must be indexed again.
            await self._set_marks({id_: PointMark(self._version) for id_ in batch})
            await self._remove_extraction_points(batch)
            await self._context.chunks.remove(self._versions(batch))
            await self._context.writer.remove_chunks(batch)
            for id_ in batch:
                del self._marks[id_]
            self.removed += len(batch)

    async def _extraction_entries(self, chunks: Sequence[Chunk]) -> Mapping[str, Sequence[Entry]]:
        by_id = {chunk.id: chunk for chunk in chunks if self._extracted.get(chunk.id)}
        if not by_id:
            return {}
        entries = defaultdict(list)
        for extraction in await self._context.writer.extractions_of(list(by_id)):
            entries[extraction.chunk_id].append(extraction_entry(by_id[extraction.chunk_id], extraction))
        return entries

    async def _write_points(self, chunks: Sequence[Entry], extractions: Sequence[Entry]) -> None:
        """Embed all in one call: a model is faster in batches."""
        points = await points_of(self._context.embedder, [*chunks, *extractions], self._version)
        self._claim.check()
        if chunks:
            await self._context.chunks.put([points[entry.id] for entry in chunks])
        if extractions:
            await self._context.extractions.put([points[entry.id] for entry in extractions])

    async def _remove_extraction_points(self, chunk_ids: Sequence[str]) -> None:
        """Remove the points before the extractions leave the library, which alone knows their ids."""
        stored_ids = [id_ for id_ in chunk_ids if id_ in self._stored_before]
        old = await self._context.writer.extractions_of(stored_ids) if stored_ids else []
        if not old:
            return
        chunk_ids_with_points = {extraction.chunk_id for extraction in old}
        await self._set_marks({id_: replace(self._marks[id_], extractions="") for id_ in chunk_ids_with_points})
        await self._context.extractions.remove(self._versions([extraction.id for extraction in old]))

    async def _set_marks(self, marks: Mapping[str, PointMark]) -> None:
        changed = {id_: mark for id_, mark in marks.items() if self._marks[id_] != mark}
        self._claim.check()
        if changed:
            await self._context.writer.mark_indexed({id_: str(mark) for id_, mark in changed.items()})
            self._marks |= changed

    def _versions(self, ids: Iterable[str]) -> list[PointVersion]:
        return [PointVersion(point_of(id_), self._version) for id_ in ids]

    def _mark(self, entries: Sequence[Entry]) -> str:
        return mark_of(self._context.fingerprint, entries)


def _select(entries: Mapping[str, Sequence[Entry]], ids: Iterable[str]) -> list[Entry]:
    return [entry for id_ in ids for entry in entries.get(id_, ())]


class RemovedSources:
    """Removes sources whose files are gone. `is_gone` checks the path of a source."""

    def __init__(
        self, writer: LibraryWriter, is_gone: Callable[[str], bool], progress: IngestProgress, remove: Remove
    ) -> None:
        self._writer = writer
        self._is_gone = is_gone
        self._progress = progress
        self._remove = remove

    async def prune(self, folders: Sequence[str]) -> None:
        """Remove the gone sources below the folders."""
        for folder in folders:
            async for page in self._pages(folder):
                await self._remove_gone(page)

    async def count(self, folder: str) -> int:
        return sum([len(page) async for page in self._pages(folder)])

    async def remove(self, paths: Sequence[str]) -> None:
        """Remove the gone sources among the paths, and those below paths that were folders."""
        known = await self._writer.known(paths)
        await self._remove_gone(list(known.values()))
        await self.prune([path for path in paths if path not in known])

    async def _remove_gone(self, page: Sequence[KnownSource]) -> None:
        gone = await asyncio.to_thread(lambda: [source for source in page if self._is_gone(source.source.path)])
        self._progress.expect(len(gone))
        for source in gone:
            self._progress.tell(await self._remove(source))
            raise_if_cancelled()

    async def _pages(self, folder: str) -> AsyncIterator[Sequence[KnownSource]]:
        after = ""
        while page := await self._writer.known_under(folder, after, PAGE):
            raise_if_cancelled()
            yield page
            after = page[-1].source.path


def removing(write_context: LibraryWriteContext, lease_seconds: float, is_gone: Callable[[str], bool]) -> Remove:
    async def remove(known: KnownSource) -> IngestResult:
        path = known.source.path
        try:
            async with claimed(write_context.writer, known.source, lease_seconds) as claim:
                await write_context.require_live()
                if not await asyncio.to_thread(is_gone, path):
                    # It came back, and another run may have ingested it before this one had the source.
                    return IngestResult(path, IngestOutcome.UNCHANGED)
                writing = SourceWriting(write_context, claim, await write_context.writer.marks(known.source.id))
                await writing.remove(writing.stored)
                await claim.discard()
        except Conflict as error:
            return IngestResult(path, IngestOutcome.SKIPPED, problem=f"cannot be removed: {error.message}")
        return IngestResult(path, IngestOutcome.REMOVED)

    return remove


async def report_removal(known: KnownSource) -> IngestResult:
    """Report a removal without removing, for a dry run."""
    return IngestResult(known.source.path, IngestOutcome.REMOVED)
