"""A library for contract tests, and values to store in it."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pymongo import AsyncMongoClient

from toolscript.core.settings.service import Settings
from toolscript.knowledge.model.library import (
    Chunk,
    Extraction,
    Position,
    Source,
    chunk_id,
    extraction_id,
    source_id,
)
from toolscript.knowledge.mongo.connection import Document, open_mongo
from toolscript.knowledge.mongo.library import MongoLibraryReader, MongoLibraryWriter
from toolscript.knowledge.ports import LibraryReader, LibraryWriter
from toolscript.testing import MemoryLibrary

RUN, OTHER_RUN = "run 1", "run 2"
MINUTE = 60.0


@dataclass(frozen=True)
class Shelf:
    """One library; `let_pass` ages all claims by so many seconds."""

    reader: LibraryReader
    writer: LibraryWriter
    let_pass: Callable[[float], Awaitable[None]]

    async def holds(self, source: Source) -> Source:
        """Return whether readers see the source as ready."""
        assert await self.writer.claim(source, RUN, MINUTE)
        assert await self.writer.finish(source, RUN, "hash", "recipe")
        return (await self.reader.sources([source.id]))[source.id]

    async def paths_under(self, folder: str) -> list[str]:
        return [existing.source.path for existing in await self.writer.known_under(folder, "", 1000)]


def shelf_in_memory() -> Shelf:
    time = [0.0]

    async def let_pass(seconds: float) -> None:
        time[0] += seconds

    library = MemoryLibrary(lambda: time[0])
    return Shelf(library, library, let_pass)


@asynccontextmanager
async def shelf_in_mongo(engines: Settings) -> AsyncIterator[Shelf]:
    """Yield a library in a separate database, dropped afterwards."""
    url, database = writer_url(engines), f"test_{uuid.uuid4().hex[:12]}"
    async with AsyncMongoClient[Document](url) as client, open_mongo(url, database) as library:
        sources = client[database]["sources"]

        async def let_pass(seconds: float) -> None:
            earlier = {"$subtract": ["$claim.until", int(seconds * 1000)]}
            await sources.update_many({"claim": {"$ne": None}}, [{"$set": {"claim.until": earlier}}])

        shelf = Shelf(MongoLibraryReader(library), MongoLibraryWriter(library), let_pass)
        await shelf.writer.prepare()
        try:
            yield shelf
        finally:
            await drop_database(client, database)


async def drop_database(client: AsyncMongoClient[Document], name: str) -> None:
    """Drop all collections: the writer may not drop the database itself."""
    for collection in await client[name].list_collection_names():
        await client[name].drop_collection(collection)


def writer_url(engines: Settings) -> str:
    return engines.mongo_writer_url.get_secret_value() or engines.mongo_url.get_secret_value()


def a_source(path: str = "/books/tea.md", *, type_: str = "book", topics: Sequence[str] = ("tea",)) -> Source:
    return Source(
        source_id(path), type_, f"All of {path}", path, ("Ada", "Grace"), tuple(topics), "2026-11-01T10:00:00Z"
    )


def a_chunk(number: int, source: Source | None = None, text: str = "") -> Chunk:
    of_source = (source or a_source()).id
    content = text or f"Passage number {number} about tea."
    position = Position("Brewing", "Water", page=number + 1, line=number * 3 + 1, start=number * 40, end=40)
    return Chunk(chunk_id(of_source, content), of_source, number, content, position, 7, ("tea", "water"))


def an_extraction(chunk: Chunk, number: int = 0, *, type_: str = "warning") -> Extraction:
    content = {"title": f"Mind the water ({number})", "text": "Too hot, and it turns bitter."}
    return Extraction(
        extraction_id(chunk.id, number),
        chunk.source_id,
        chunk.id,
        type_,
        content,
        ("tea",),
        "2026-11-02T10:00:00Z",
    )
