"""Reindex: builds both indexes of a library from the library alone, for another model or because they were lost.

Searches use the live indexes until the new ones are complete. Indexed chunks are not embedded again, so that a
killed run can be resumed. Sources are claimed one by one, as in ingest: both can run at the same time.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from toolscript.core.cancellation import raise_if_cancelled
from toolscript.core.errors import Conflict
from toolscript.core.retrieval.ports import Index
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.knowledge.ingest.file import BATCH, LEASE_SECONDS
from toolscript.knowledge.ingest.indexes import LibraryIndexes
from toolscript.knowledge.ingest.report import parse_pipeline_fingerprint
from toolscript.knowledge.ingest.run import PATIENT_LEASES
from toolscript.knowledge.ingest.sources import LibraryWriteContext, SourceClaim, SourceWriting, claimed
from toolscript.knowledge.model.ingest import KnownSource
from toolscript.knowledge.model.library import (
    Chunk,
    Source,
    SourceStatus,
    chunk_of_point,
    extraction_of_point,
    point_of,
)

PAGE = 100
SWEPT_AT_ONCE = 500
# Other runs may write to the live index meanwhile; the last round runs after the switch, when none can any more.
MAX_ROUNDS = 5

Read = Callable[[Sequence[str]], Awaitable[Mapping[str, object]]]


@dataclass(frozen=True)
class Reindexed:
    """`swept` points had no counterpart in the library; `left` sources stayed claimed by other runs."""

    live: str
    previous: str
    sources: int
    points: int
    swept: int
    left: int


class LibraryReindex:
    def __init__(
        self,
        write_context: LibraryWriteContext,
        indexes: LibraryIndexes,
        *,
        lease_seconds: float = LEASE_SECONDS,
        on_progress: OnProgress = silent,
    ) -> None:
        """`write_context` has the indexes to build."""
        self._context = write_context
        self._indexes = indexes
        self._lease_seconds = lease_seconds
        self._on_progress = on_progress
        self._points = 0
        self._sources = 0

    async def run(self) -> Reindexed:
        fingerprint, previous = self._context.fingerprint, await self._indexes.live()
        for _ in range(MAX_ROUNDS):
            before = self._points
            await self._round()
            if self._points == before:
                break
        await self._indexes.make_live(fingerprint)
        # Catch up with what was ingested into the previous index until the switch.
        left = await self._round(patient=True)
        reader = self._context.reader
        swept = await sweep(self._context.chunks, reader.chunks, chunk_of_point)
        swept += await sweep(self._context.extractions, reader.extractions, extraction_of_point)
        replaced = "" if previous in (None, fingerprint) else previous or ""
        return Reindexed(fingerprint, replaced, self._sources, self._points, swept, left)

    async def _round(self, *, patient: bool = False) -> int:
        """Index every source once; return how many stayed claimed. `patient` waits for those of other runs."""
        busy = [source async for source in self._sources_in_order() if not await self._index(source.path)]
        ends_at = time.monotonic() + PATIENT_LEASES * self._lease_seconds
        while patient and busy and time.monotonic() < ends_at:
            await asyncio.sleep(min(1.0, self._lease_seconds / 4))
            busy = [source for source in busy if not await self._index(source.path)]
        return len(busy)

    async def _sources_in_order(self) -> AsyncIterator[Source]:
        after, done = "", 0
        while page := await self._context.reader.source_page(after, PAGE):
            for source in page:
                yield source
                done += 1
                self._sources = max(self._sources, done)
                self._on_progress(Progress("sources", done))
            after = page[-1].id

    async def _index(self, path: str) -> bool:
        """Index a source; return False while another run holds it. A half-finished source stays half-finished."""
        known = (await self._context.writer.known([path])).get(path)
        if known is None:
            return True
        try:
            async with claimed(self._context.writer, known.source, self._lease_seconds) as claim:
                # Another run may have finished it since: the older state must not overwrite the newer.
                now = (await self._context.writer.known([path])).get(path) or known
                was_finished = now.source.ingested_at != known.source.ingested_at
                is_ready = was_finished or known.source.status is SourceStatus.READY
                await self._index_claimed(now, claim, is_ready=is_ready)
        except Conflict:
            return False
        return True

    async def _index_claimed(self, known: KnownSource, claim: SourceClaim, *, is_ready: bool) -> None:
        writing = SourceWriting(self._context, claim, await self._context.writer.marks(known.source.id))
        ids = list(writing.stored)
        for index in range(0, len(ids), BATCH):
            chunks = list((await self._context.reader.chunks(ids[index : index + BATCH])).values())
            written = await writing.index(known.source, chunks, missing=await self._missing(chunks))
            self._points += len(written)
            self._on_progress(Progress("chunks indexed", self._points))
            raise_if_cancelled()
        if is_ready:
            recipe = replace(parse_pipeline_fingerprint(known.recipe), index=self._context.fingerprint)
            await claim.finish(replace(known.source, status=SourceStatus.READY), known.content_hash, str(recipe))

    async def _missing(self, chunks: Sequence[Chunk]) -> set[str]:
        """Return the chunks that lack their own point or that of an extraction, regardless of marks."""
        owners = {point_of(chunk.id): chunk.id for chunk in chunks}
        of_extractions = {
            point_of(extraction.id): extraction.chunk_id
            for extraction in await self._context.writer.extractions_of([chunk.id for chunk in chunks])
        }
        there = await self._context.chunks.fields(list(owners), ["source_id"])
        extracted = await self._context.extractions.fields(list(of_extractions), ["source_id"])
        lacking = [id_ for point, id_ in owners.items() if point not in there]
        return {*lacking, *(id_ for point, id_ in of_extractions.items() if point not in extracted)}


async def sweep(index: Index, read: Read, id_of: Callable[[int], str]) -> int:
    """Remove points whose chunks or extractions left the library while two indexes were being written."""
    after, swept = -1, 0
    while page := await index.scan(after, SWEPT_AT_ONCE):
        kept = await read([id_of(point.id) for point in page])
        gone = [point for point in page if id_of(point.id) not in kept]
        if gone:
            await index.remove(gone)
        swept, after = swept + len(gone), page[-1].id
    return swept
