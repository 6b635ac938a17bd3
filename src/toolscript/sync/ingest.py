"""One file into the library: read, cut, put as far as it is new, and what is no longer in it removed.

A file whose bytes did not change is not even read. Killed anywhere, the next run goes on: what is marked as
indexed is not embedded again, and what a language model was asked about is not asked again.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from toolscript.errors import FileSkipped
from toolscript.model.ingest import IngestOutcome, IngestResult, KnownSource, Reading
from toolscript.model.library import Chunk, Source, source_id
from toolscript.model.topics import clean_topics
from toolscript.ports import SourceFiles
from toolscript.sync.chunking import cut_chunks
from toolscript.sync.extracting import Extractor
from toolscript.sync.ingest_recipe import AS_THEY_SAY, Described, Recipe
from toolscript.sync.source_claim import SourceClaim, claimed
from toolscript.sync.source_writing import Shelves, SourceWriting

BATCH = 64
LEASE_SECONDS = 60.0
USUAL_TYPE = "document"


@dataclass(frozen=True)
class FoundFile:
    """`path` is where it lies, `name` the path that its source is known by."""

    path: str
    name: str


def unobserved(_: int) -> None:
    """For chunks that nobody counts."""


class FileIngest:
    def __init__(
        self,
        shelves: Shelves,
        files: SourceFiles,
        described: Described = AS_THEY_SAY,
        *,
        extractor: Extractor | None = None,
        lease_seconds: float = LEASE_SECONDS,
        batch: int = BATCH,
        on_chunks: Callable[[int], None] = unobserved,
    ) -> None:
        self._shelves = shelves
        self._files = files
        self._described = described
        self._extractor = extractor
        self._lease_seconds = lease_seconds
        self._batch = batch
        self._on_chunks = on_chunks
        extraction = extractor.recipe if extractor else ""
        self._recipe = Recipe(shelves.fingerprint, described.fingerprint, extraction)

    async def ingest(self, file: FoundFile, known: KnownSource | None, *, dry: bool = False) -> IngestResult:
        """A conflict when another run is at work on it. A file that cannot be read keeps what is there of it."""
        try:
            content_hash = await self._files.content_hash(file.path)
            if self._recipe.is_done(known, content_hash):
                return IngestResult(file.name, IngestOutcome.UNCHANGED)
            reading = await self._files.read(file.path)
            source = self._source(file, reading)
            chunks = await asyncio.to_thread(cut_chunks, source.id, reading.blocks, source.topics)
            if not chunks:
                raise FileSkipped("it holds no text")
        except FileSkipped as error:
            return IngestResult(file.name, IngestOutcome.SKIPPED, problem=_problem(error))
        if dry:
            return IngestResult(file.name, _outcome(known), chunks=len(chunks))
        async with claimed(self._shelves.writer, source, self._lease_seconds) as claim:
            return await self._write(claim, source, chunks, reading.content_hash)

    async def _write(
        self, claim: SourceClaim, source: Source, chunks: Sequence[Chunk], content_hash: str
    ) -> IngestResult:
        await self._shelves.require_live()
        known = (await self._shelves.writer.known([source.path])).get(source.path)
        writing = SourceWriting(self._shelves, claim, await self._shelves.writer.marks(source.id))
        is_extracted = True
        for batch in _batches(chunks, self._batch):
            await writing.put(source, batch)
            is_extracted &= await self._extract(writing, source, batch)
            self._on_chunks(len(batch))
        await writing.remove({*writing.stored} - {chunk.id for chunk in chunks})
        recipe = self._recipe if is_extracted else replace(self._recipe, extraction="")
        finished = replace(source, ingested_at=_now(), chunk_count=len(chunks))
        await claim.finish(finished, content_hash, str(recipe))
        was_same = known is not None and known.content_hash == content_hash and _alike(known.source, finished)
        outcome = IngestOutcome.UNCHANGED if was_same and not writing.changes else _outcome(known)
        return IngestResult(source.path, outcome, writing.written, writing.extracted)

    async def _extract(self, writing: SourceWriting, source: Source, chunks: Sequence[Chunk]) -> bool:
        """Whether all of them have now been looked at."""
        if self._extractor is None:
            return True
        waiting = writing.not_extracted(chunks, self._extractor.recipe)
        if waiting:
            found = await self._extractor.extract(source, waiting)
            await writing.replace_extractions(source, self._extractor.recipe, waiting, found)
        return not writing.not_extracted(chunks, self._extractor.recipe)

    def _source(self, file: FoundFile, reading: Reading) -> Source:
        return Source(
            id=source_id(file.name),
            type=self._described.type or reading.type or USUAL_TYPE,
            title=reading.title,
            path=file.name,
            authors=self._described.authors or reading.authors,
            topics=clean_topics([*self._described.topics, *reading.topics]),
            metadata=reading.metadata,
        )


def _outcome(known: KnownSource | None) -> IngestOutcome:
    return IngestOutcome.UPDATED if known is not None and known.content_hash else IngestOutcome.ADDED


def _alike(known: Source, now: Source) -> bool:
    return replace(known, ingested_at="", status=now.status) == replace(now, ingested_at="")


def _problem(error: FileSkipped) -> str:
    return f"{error.message}: {error.hint}" if error.hint else error.message


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _batches(chunks: Sequence[Chunk], size: int) -> Iterator[Sequence[Chunk]]:
    for at in range(0, len(chunks), size):
        yield chunks[at : at + size]
