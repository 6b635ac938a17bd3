"""Ports of the library: to read, to write and to ask it, and the files it is made from."""

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
    """Reading alone: nothing here can change anything."""

    async def sources(self, ids: Sequence[str]) -> Mapping[str, Source]:
        """Those that are there, in one read."""

    async def chunks(self, ids: Sequence[str]) -> Mapping[str, Chunk]:
        """Those that are there, in one read."""

    async def extractions(self, ids: Sequence[str]) -> Mapping[str, Extraction]:
        """Those that are there, in one read."""

    async def source_page(
        self, after: str, limit: int, types: Sequence[str] = (), topics: Sequence[str] = ()
    ) -> Sequence[Source]:
        """The next sources in order of id, of one of the types and with one of the topics, where any are given."""

    async def passage(self, source_id: str, first: int, last: int) -> Sequence[Chunk]:
        """The chunks of a source numbered `first` to `last`, in order, as far as they are there."""

    async def ready(self) -> None:
        """Answers, or says what is wrong."""


class LibraryWriter(Protocol):
    """What ingesting needs beside a reader. Everything can be done twice; whoever is killed can go on later."""

    async def prepare(self) -> None:
        """Makes what has to be there before the first write, unless it is."""

    async def known(self, paths: Sequence[str]) -> Mapping[str, KnownSource]:
        """Of those paths that were ever claimed."""

    async def known_under(self, folder: str, after: str, limit: int) -> Sequence[KnownSource]:
        """The next sources whose path lies in a folder, in order of path; fewer than `limit` only at the end."""

    async def claim(self, source: Source, run: str, seconds: float) -> bool:
        """Takes or keeps a source for a run, for so long; False while another run has it.

        A source that is new is stored, with status `ingesting`; of one that is known nothing but its status and
        who has it changes, until it is finished.
        """

    async def marks(self, source_id: str) -> Mapping[str, ChunkMark]:
        """All chunks that are stored of a source, by id."""

    async def put_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Stores them in place of what has their ids. Their marks stay."""

    async def mark_indexed(self, marks: Mapping[str, str]) -> None:
        """By chunk id: what is in the index of it."""

    async def put_extractions(self, recipe: str, found: Mapping[str, Sequence[Extraction]]) -> None:
        """By chunk id, in place of what the chunk had; the chunk is then marked as extracted with the recipe."""

    async def extractions_of(self, chunk_ids: Sequence[str]) -> Sequence[Extraction]: ...
    async def remove_chunks(self, ids: Sequence[str]) -> None:
        """With their extractions."""

    async def finish(self, source: Source, run: str, content_hash: str, recipe: str) -> bool:
        """The source is this now, ready and free for others; False, and nothing changes, when the run lost it."""

    async def release(self, source_id: str, run: str) -> None:
        """Gives a source back that will not be finished."""

    async def remove_source(self, source_id: str) -> None:
        """When nothing of it is left."""


class SourceFiles(Protocol):
    """Reads files of the kinds that are known. None can do harm, take for ever or fill the memory."""

    async def content_hash(self, path: str) -> str:
        """That of a file's bytes, as its reading has it, without reading what they say; FileSkipped as there."""

    async def read(self, path: str) -> Reading:
        """What a file says; FileSkipped, with the reason, where that cannot be told."""


class AsksLibrary(Protocol):
    async def search(self, query: KnowledgeQuery, /) -> KnowledgeAnswer: ...
    async def source(self, source_id: str, /) -> Source: ...
    async def sources(self, query: SourcesQuery, /) -> SourcesAnswer: ...
    async def passage(self, query: PassageQuery, /) -> PassageAnswer: ...
