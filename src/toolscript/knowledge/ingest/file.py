"""Ingest of one file: read and chunk it, write what is new, remove chunks that it no longer has.

Ingest is resumable: after a kill, the next run neither embeds chunks that are marked as indexed nor calls the
language model again for extracted ones. A file that cannot be read keeps its chunks in the library.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from toolscript.core.cancellation import raise_if_cancelled
from toolscript.core.errors import FileSkipped
from toolscript.core.values import in_batches
from toolscript.knowledge.ingest.chunking import TokenCount, cut_into_chunks, estimated_tokens
from toolscript.knowledge.ingest.extraction import Extractor
from toolscript.knowledge.ingest.report import NO_OVERRIDES, Described, PipelineFingerprint
from toolscript.knowledge.ingest.sources import LibraryWriteContext, SourceClaim, SourceWriting, claimed
from toolscript.knowledge.model.ingest import IngestOutcome, IngestResult, KnownSource, Reading
from toolscript.knowledge.model.library import Chunk, Source, clean_topics, source_id
from toolscript.knowledge.ports import SourceFiles

DEFAULT_TYPE = "document"
BATCH = 64
# Lease of a claim on a source. A task renews it, which a busy event loop delays: hence longer than the lease of a
# worker, which a thread renews.
LEASE_SECONDS = 60.0


@dataclass(frozen=True)
class FoundFile:
    """`path` is the path on disk, `name` the path of its source in the library."""

    path: str
    name: str


@dataclass(frozen=True)
class CutFile:
    """The current content of a file as source and chunks."""

    source: Source
    chunks: Sequence[Chunk]
    content_hash: str


class FileInspection:
    """`index` is the fingerprint of the indexes, `extraction` that of the extractor."""

    def __init__(
        self,
        files: SourceFiles,
        index: str,
        described: Described = NO_OVERRIDES,
        *,
        extraction: str = "",
        tokens: TokenCount = estimated_tokens,
    ) -> None:
        self._files = files
        self._described = described
        self._tokens = tokens
        self.recipe = PipelineFingerprint(index, described.fingerprint, extraction)

    async def look(self, file: FoundFile, known: KnownSource | None) -> CutFile | IngestResult:
        """Return the chunks of a file, or its result if it is unchanged (by its hash, unread) or skipped."""
        try:
            if self.recipe.is_done(known, await self._files.content_hash(file.path)):
                return IngestResult(file.name, IngestOutcome.UNCHANGED)
            reading = await self._files.read(file.path)
            source = self._source(file, reading)
            return CutFile(source, await self._chunks(source, reading), reading.content_hash)
        except FileSkipped as error:
            problem = f"{error.message}: {error.hint}" if error.hint else error.message
            return IngestResult(file.name, IngestOutcome.SKIPPED, problem=problem)

    async def again(self, file: FoundFile, cut: CutFile) -> CutFile | IngestResult:
        """Return the current content: another run may have ingested a newer state before this claim."""
        try:
            if await self._files.content_hash(file.path) == cut.content_hash:
                return cut
        except FileSkipped:
            return cut
        return await self.look(file, None)

    async def ingest(self, file: FoundFile, known: KnownSource | None) -> IngestResult:
        """Return the result that an ingest would have, without writing."""
        cut = await self.look(file, known)
        if isinstance(cut, IngestResult):
            return cut
        return IngestResult(file.name, outcome_after(known), chunks=len(cut.chunks))

    async def _chunks(self, source: Source, reading: Reading) -> Sequence[Chunk]:
        """Chunk on a thread: a book takes a while."""
        chunks = await asyncio.to_thread(
            cut_into_chunks, source.id, source.title, reading.blocks, self._tokens, source.topics
        )
        if not chunks:
            raise FileSkipped("there is no text in it")
        return chunks

    def _source(self, file: FoundFile, reading: Reading) -> Source:
        return Source(
            id=source_id(file.name),
            type=(self._described.type or reading.type or DEFAULT_TYPE).strip().lower(),
            title=reading.title,
            path=file.name,
            authors=self._described.authors or reading.authors,
            topics=clean_topics([*self._described.topics, *reading.topics]),
            metadata=reading.metadata,
        )


def outcome_after(known: KnownSource | None) -> IngestOutcome:
    return IngestOutcome.UPDATED if known is not None and known.content_hash else IngestOutcome.ADDED


def ignore_chunks(_: int) -> None:
    """Ignore the count of chunks."""


class FileIngest:
    def __init__(
        self,
        write_context: LibraryWriteContext,
        inspection: FileInspection,
        *,
        extractor: Extractor | None = None,
        lease_seconds: float = LEASE_SECONDS,
        batch: int = BATCH,
        on_chunks: Callable[[int], None] = ignore_chunks,
    ) -> None:
        self._context = write_context
        self._inspection = inspection
        self._extractor = extractor
        self._lease_seconds = lease_seconds
        self._batch = batch
        self._on_chunks = on_chunks

    async def ingest(self, file: FoundFile, known: KnownSource | None) -> IngestResult:
        """Ingest a file. Raise Conflict while another run holds its source."""
        cut = await self._inspection.look(file, known)
        if isinstance(cut, IngestResult):
            return cut
        async with claimed(self._context.writer, cut.source, self._lease_seconds) as claim:
            await self._context.require_live()
            now = await self._inspection.again(file, cut)
            return now if isinstance(now, IngestResult) else await self._write(claim, now)

    async def _write(self, claim: SourceClaim, cut: CutFile) -> IngestResult:
        source = cut.source
        known = (await self._context.writer.known([source.path])).get(source.path)
        writing = SourceWriting(self._context, claim, await self._context.writer.marks(source.id))
        is_extracted = True
        for batch in in_batches(cut.chunks, self._batch):
            await writing.put(source, batch)
            is_extracted &= await self._extract(writing, source, batch)
            self._on_chunks(len(batch))
            raise_if_cancelled()
        await writing.remove({*writing.stored} - {chunk.id for chunk in cut.chunks})
        recipe = self._inspection.recipe if is_extracted else replace(self._inspection.recipe, extraction="")
        finished = replace(source, ingested_at=_now(), chunk_count=len(cut.chunks))
        await claim.finish(finished, cut.content_hash, str(recipe))
        was_same = (
            known is not None and known.content_hash == cut.content_hash and _is_same(known.source, finished)
        )
        outcome = IngestOutcome.UNCHANGED if was_same and not writing.changes else outcome_after(known)
        return IngestResult(source.path, outcome, writing.written, writing.extracted)

    async def _extract(self, writing: SourceWriting, source: Source, chunks: Sequence[Chunk]) -> bool:
        """Extract from new chunks; return whether all chunks are extracted now."""
        if self._extractor is None:
            return True
        waiting = writing.not_extracted(chunks, self._extractor.recipe)
        if waiting:
            extractions = await self._extractor.extract(source, waiting)
            await writing.replace_extractions(source, self._extractor.recipe, waiting, extractions)
        return not writing.not_extracted(chunks, self._extractor.recipe)


def _is_same(known: Source, now: Source) -> bool:
    return replace(known, ingested_at="", status=now.status) == replace(now, ingested_at="")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
