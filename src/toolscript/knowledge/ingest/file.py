"""One file into the library: read, cut, put as far as it is new, and what is no longer in it removed.

Killed anywhere, the next run goes on: what is marked as indexed is not embedded again, and what a language model
was asked about is not asked again. A file that cannot be read keeps what is there of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from toolscript.model.batches import in_batches
from toolscript.model.ingest import IngestOutcome, IngestResult, KnownSource
from toolscript.model.library import Chunk, Source
from toolscript.sync.cancelling import go_on_unless_cancelled
from toolscript.sync.extracting import Extractor
from toolscript.sync.ingest_look import CutFile, FileLook, FoundFile, outcome_after
from toolscript.sync.source_claim import SourceClaim, claimed
from toolscript.sync.source_writing import Shelves, SourceWriting

BATCH = 64
LEASE_SECONDS = 60.0


def uncounted(_: int) -> None:
    """For chunks that nobody counts."""


class FileIngest:
    def __init__(
        self,
        shelves: Shelves,
        look: FileLook,
        *,
        extractor: Extractor | None = None,
        lease_seconds: float = LEASE_SECONDS,
        batch: int = BATCH,
        on_chunks: Callable[[int], None] = uncounted,
    ) -> None:
        self._shelves = shelves
        self._look = look
        self._extractor = extractor
        self._lease_seconds = lease_seconds
        self._batch = batch
        self._on_chunks = on_chunks

    async def ingest(self, file: FoundFile, known: KnownSource | None) -> IngestResult:
        """A conflict when another run is at work on it."""
        cut = await self._look.look(file, known)
        if isinstance(cut, IngestResult):
            return cut
        async with claimed(self._shelves.writer, cut.source, self._lease_seconds) as claim:
            await self._shelves.require_live()
            now = await self._look.again(file, cut)
            return now if isinstance(now, IngestResult) else await self._write(claim, now)

    async def _write(self, claim: SourceClaim, cut: CutFile) -> IngestResult:
        source = cut.source
        known = (await self._shelves.writer.known([source.path])).get(source.path)
        writing = SourceWriting(self._shelves, claim, await self._shelves.writer.marks(source.id))
        is_extracted = True
        for batch in in_batches(cut.chunks, self._batch):
            await writing.put(source, batch)
            is_extracted &= await self._extract(writing, source, batch)
            self._on_chunks(len(batch))
            go_on_unless_cancelled()
        await writing.remove({*writing.stored} - {chunk.id for chunk in cut.chunks})
        recipe = self._look.recipe if is_extracted else replace(self._look.recipe, extraction="")
        finished = replace(source, ingested_at=_now(), chunk_count=len(cut.chunks))
        await claim.finish(finished, cut.content_hash, str(recipe))
        was_same = known is not None and known.content_hash == cut.content_hash and _alike(known.source, finished)
        outcome = IngestOutcome.UNCHANGED if was_same and not writing.changes else outcome_after(known)
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


def _alike(known: Source, now: Source) -> bool:
    return replace(known, ingested_at="", status=now.status) == replace(now, ingested_at="")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
