"""Ports of the library: reader, writer, search, and the source files."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from toolscript.knowledge.model.ingest import ChunkMark, KnownSource, Reading
from toolscript.knowledge.model.library import Chunk, Extraction, Source
from toolscript.knowledge.model.query import (
    KnowledgeAnswer,
    KnowledgeQuery,
    PassageAnswer,
    PassageQuery,
    SourcesAnswer,
    SourcesQuery,
)


class LibraryReader(Protocol):
    """Read-only access to a library."""

    async def sources(self, ids: Sequence[str]) -> Mapping[str, Source]:
        """Return the existing ones by id, in one read."""

    async def chunks(self, ids: Sequence[str]) -> Mapping[str, Chunk]:
        """Return the existing ones by id, in one read."""

    async def extractions(self, ids: Sequence[str]) -> Mapping[str, Extraction]:
        """Return the existing ones by id, in one read."""

    async def source_page(
        self, after: str, limit: int, types: Sequence[str] = (), topics: Sequence[str] = ()
    ) -> Sequence[Source]:
        """Return the next sources in order of id, filtered by any of the types and any of the topics."""

    async def passage(self, source_id: str, first: int, last: int) -> Sequence[Chunk]:
        """Return the existing chunks of a source numbered `first` to `last`, in order."""

    async def ready(self) -> None:
        """Return if the library is usable, else raise an error with the reason."""


class LibraryWriter(Protocol):
    """Write access for ingest. Every operation is idempotent, so a killed run can be resumed."""

    async def prepare(self) -> None:
        """Create what the first write needs, unless it exists."""

    async def known(self, paths: Sequence[str]) -> Mapping[str, KnownSource]:
        """Return the stored sources by path; a path that was never claimed has none."""

    async def known_under(self, folder: str, after: str, limit: int) -> Sequence[KnownSource]:
        """Return the next sources below a folder, in order of path; fewer than `limit` only at the end."""

    async def claim(self, source: Source, run: str, seconds: float) -> bool:
        """Claim a source for a run, or renew the claim, for `seconds`; False while another run holds it.

        A new source is stored with status `ingesting`. Of an existing one only the status and the claim change
        until it is finished.
        """

    async def marks(self, source_id: str) -> Mapping[str, ChunkMark]:
        """Return the marks of all stored chunks of a source, by chunk id."""

    async def put_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Upsert chunks by id. Their marks stay."""

    async def mark_indexed(self, marks: Mapping[str, str]) -> None:
        """Set the `indexed` marks, by chunk id."""

    async def put_extractions(self, recipe: str, found: Mapping[str, Sequence[Extraction]]) -> None:
        """Replace the extractions of chunks, by chunk id; then mark each chunk as extracted with `recipe`."""

    async def extractions_of(self, chunk_ids: Sequence[str]) -> Sequence[Extraction]: ...
    async def remove_chunks(self, ids: Sequence[str]) -> None:
        """Remove chunks and their extractions."""

    async def finish(self, source: Source, run: str, content_hash: str, recipe: str) -> bool:
        """Store the source as ready and release it; return False, changing nothing, if the claim was lost."""

    async def release(self, source_id: str, run: str) -> None:
        """Release a source without finishing it."""

    async def remove_source(self, source_id: str) -> None:
        """Remove a source that has no chunks left."""


class SourceFiles(Protocol):
    """Reads files of the supported kinds, with limits on time and memory, isolated from this process."""

    async def content_hash(self, path: str) -> str:
        """Return the hash of a file's bytes without parsing them, as in its Reading. Raise FileSkipped."""

    async def read(self, path: str) -> Reading:
        """Return the content of a file. Raise FileSkipped with the reason if it cannot be read."""


class LibrarySearch(Protocol):
    async def search(self, query: KnowledgeQuery, /) -> KnowledgeAnswer: ...
    async def source(self, source_id: str, /) -> Source: ...
    async def sources(self, query: SourcesQuery, /) -> SourcesAnswer: ...
    async def passage(self, query: PassageQuery, /) -> PassageAnswer: ...
