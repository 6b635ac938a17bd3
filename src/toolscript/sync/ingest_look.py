"""What is to be ingested of a file: nothing where it did not change, and nothing where it cannot be read."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from toolscript.errors import FileSkipped
from toolscript.model.ingest import IngestOutcome, IngestResult, KnownSource, Reading
from toolscript.model.library import Chunk, Source, source_id
from toolscript.model.topics import clean_topics
from toolscript.ports import SourceFiles
from toolscript.sync.chunking import TokenCount, cut_into_chunks, estimated_tokens
from toolscript.sync.ingest_recipe import AS_THEY_SAY, Described, Recipe

USUAL_TYPE = "document"


@dataclass(frozen=True)
class FoundFile:
    """`path` is where it lies, `name` the path that its source is known by."""

    path: str
    name: str


@dataclass(frozen=True)
class CutFile:
    """What a file says now."""

    source: Source
    chunks: Sequence[Chunk]
    content_hash: str


class FileLook:
    """`index` is the fingerprint of the indexes, `extraction` the recipe of whoever extracts."""

    def __init__(
        self,
        files: SourceFiles,
        index: str,
        described: Described = AS_THEY_SAY,
        *,
        extraction: str = "",
        tokens: TokenCount = estimated_tokens,
    ) -> None:
        self._files = files
        self._described = described
        self._tokens = tokens
        self.recipe = Recipe(index, described.fingerprint, extraction)

    async def look(self, file: FoundFile, known: KnownSource | None) -> CutFile | IngestResult:
        """A file whose bytes did not change is not even read."""
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
        """What it says by now: another run may have ingested a newer state while this one waited for its turn."""
        try:
            if await self._files.content_hash(file.path) == cut.content_hash:
                return cut
        except FileSkipped:
            return cut
        return await self.look(file, None)

    async def ingest(self, file: FoundFile, known: KnownSource | None) -> IngestResult:
        """What would become of it."""
        cut = await self.look(file, known)
        if isinstance(cut, IngestResult):
            return cut
        return IngestResult(file.name, outcome_after(known), chunks=len(cut.chunks))

    async def _chunks(self, source: Source, reading: Reading) -> Sequence[Chunk]:
        """On a thread: a book takes a while."""
        chunks = await asyncio.to_thread(
            cut_into_chunks, source.id, source.title, reading.blocks, self._tokens, source.topics
        )
        if not chunks:
            raise FileSkipped("there is no text in it")
        return chunks

    def _source(self, file: FoundFile, reading: Reading) -> Source:
        return Source(
            id=source_id(file.name),
            type=(self._described.type or reading.type or USUAL_TYPE).strip().lower(),
            title=reading.title,
            path=file.name,
            authors=self._described.authors or reading.authors,
            topics=clean_topics([*self._described.topics, *reading.topics]),
            metadata=reading.metadata,
        )


def outcome_after(known: KnownSource | None) -> IngestOutcome:
    return IngestOutcome.UPDATED if known is not None and known.content_hash else IngestOutcome.ADDED
