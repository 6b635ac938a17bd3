"""One claimed source on its way into a library and both of its indexes, a batch of chunks at a time.

Killed between any two steps, nothing is lost and nothing is there that nobody knows of. What is put goes into the
library, then into the index, and then it is marked as indexed. What is removed loses its mark, then its point, and
then it leaves the library.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from toolscript.model.index import PointVersion
from toolscript.model.ingest import ChunkMark
from toolscript.model.library import Chunk, Extraction, Source, point_of
from toolscript.ports import Embedder, Index, LibraryReader, LibraryWriter
from toolscript.sync.library_marks import PointMark, mark_read
from toolscript.sync.library_points import Entry, chunk_entry, extraction_entry, mark_of, points_of
from toolscript.sync.source_claim import SourceClaim

REMOVED_AT_ONCE = 256


@dataclass(frozen=True)
class Shelves:
    """A library to read and to write, and the indexes of it that one model makes.

    `require_live` refuses once others have become the live ones: nobody would find what is written then.
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
    """Counts the chunks that were `written`, being new or different, those `removed`, and what was `extracted`."""

    def __init__(self, shelves: Shelves, claim: SourceClaim, marks: Mapping[str, ChunkMark]) -> None:
        self._shelves = shelves
        self._claim = claim
        self._marks = {id_: mark_read(mark.indexed) for id_, mark in marks.items()}
        self._found = frozenset(marks)
        self._extracted = {id_: mark.extracted for id_, mark in marks.items()}
        latest = max((mark.version for mark in self._marks.values()), default=0)
        self._version = max(int(time.time() * 1_000), latest + 1)
        self.written = self.removed = self.extracted = 0

    @property
    def stored(self) -> Collection[str]:
        """The ids of all chunks that the library has of it."""
        return self._marks.keys()

    @property
    def changes(self) -> int:
        return self.written + self.removed + self.extracted

    def not_extracted(self, chunks: Sequence[Chunk], recipe: str) -> list[Chunk]:
        return [chunk for chunk in chunks if self._extracted.get(chunk.id) != recipe]

    async def put(self, source: Source, chunks: Sequence[Chunk]) -> None:
        """Only what is new or different is written, only what is not in the index as it is now is embedded."""
        there = [chunk.id for chunk in chunks if chunk.id in self._marks]
        known = await self._shelves.reader.chunks(there) if there else {}
        changed = [chunk for chunk in chunks if known.get(chunk.id) != chunk]
        self._claim.check()
        if changed:
            await self._shelves.writer.put_chunks(changed)
        self._marks = {chunk.id: PointMark() for chunk in changed} | self._marks
        self.written += len({chunk.id for chunk in changed} | await self.index(source, chunks))

    async def index(self, source: Source, chunks: Sequence[Chunk], *, missing: Collection[str] = ()) -> set[str]:
        """Makes the indexes as the library is; answers whose points it wrote. No mark of `missing` is believed."""
        entries = {chunk.id: [chunk_entry(source.title, chunk)] for chunk in chunks}
        extracted = await self._extraction_entries(chunks)
        wanted = {
            chunk.id: PointMark(
                self._version, self._mark(entries[chunk.id]), self._mark(extracted.get(chunk.id, ()))
            )
            for chunk in chunks
        }
        trusted = {id_: PointMark() if id_ in missing else self._marks[id_] for id_ in wanted}
        chunks_behind = [id_ for id_ in wanted if wanted[id_].chunk != trusted[id_].chunk]
        extractions_behind = [id_ for id_ in wanted if wanted[id_].extractions != trusted[id_].extractions]
        await self._write_points(_of(entries, chunks_behind), _of(extracted, extractions_behind))
        behind = {*chunks_behind, *extractions_behind}
        await self._set_marks({id_: wanted[id_] for id_ in behind})
        return behind

    async def replace_extractions(
        self, source: Source, recipe: str, chunks: Sequence[Chunk], found: Mapping[str, Sequence[Extraction]]
    ) -> None:
        """Of those chunks that are in `found`."""
        answered = [chunk for chunk in chunks if chunk.id in found]
        if not answered:
            return
        await self._remove_extraction_points([chunk.id for chunk in answered])
        self._claim.check()
        await self._shelves.writer.put_extractions(recipe, found)
        self._extracted |= dict.fromkeys(found, recipe)
        self.extracted += sum(map(len, found.values()))
        await self.index(source, answered)

    async def remove(self, ids: Iterable[str]) -> None:
        """Chunks with all that was extracted from them."""
        listed = list(ids)
        for at in range(0, len(listed), REMOVED_AT_ONCE):
            batch = listed[at : at + REMOVED_AT_ONCE]
            # Whoever is killed now, and finds the chunk in the file again, has to index it again.
            await self._set_marks({id_: PointMark(self._version) for id_ in batch})
            await self._remove_extraction_points(batch)
            await self._shelves.chunks.remove(self._versions(batch))
            await self._shelves.writer.remove_chunks(batch)
            for id_ in batch:
                del self._marks[id_]
            self.removed += len(batch)

    async def _extraction_entries(self, chunks: Sequence[Chunk]) -> Mapping[str, Sequence[Entry]]:
        by_id = {chunk.id: chunk for chunk in chunks if self._extracted.get(chunk.id)}
        if not by_id:
            return {}
        entries = defaultdict(list)
        for one in await self._shelves.writer.extractions_of(list(by_id)):
            entries[one.chunk_id].append(extraction_entry(by_id[one.chunk_id], one))
        return entries

    async def _write_points(self, chunks: Sequence[Entry], extractions: Sequence[Entry]) -> None:
        """Embedded together: a model is quicker with many at once."""
        points = await points_of(self._shelves.embedder, [*chunks, *extractions], self._version)
        self._claim.check()
        if chunks:
            await self._shelves.chunks.put([points[one.id] for one in chunks])
        if extractions:
            await self._shelves.extractions.put([points[one.id] for one in extractions])

    async def _remove_extraction_points(self, chunk_ids: Sequence[str]) -> None:
        """All that there are, before any leaves the library: nobody would know of their points then."""
        older = [id_ for id_ in chunk_ids if id_ in self._found]
        old = await self._shelves.writer.extractions_of(older) if older else []
        if not old:
            return
        having = {one.chunk_id for one in old}
        await self._set_marks({id_: replace(self._marks[id_], extractions="") for id_ in having})
        await self._shelves.extractions.remove(self._versions([one.id for one in old]))

    async def _set_marks(self, marks: Mapping[str, PointMark]) -> None:
        changed = {id_: mark for id_, mark in marks.items() if self._marks[id_] != mark}
        self._claim.check()
        if changed:
            await self._shelves.writer.mark_indexed({id_: str(mark) for id_, mark in changed.items()})
            self._marks |= changed

    def _versions(self, ids: Iterable[str]) -> list[PointVersion]:
        return [PointVersion(point_of(id_), self._version) for id_ in ids]

    def _mark(self, entries: Sequence[Entry]) -> str:
        return mark_of(self._shelves.fingerprint, entries)


def _of(entries: Mapping[str, Sequence[Entry]], ids: Iterable[str]) -> list[Entry]:
    return [entry for id_ in ids for entry in entries.get(id_, ())]
