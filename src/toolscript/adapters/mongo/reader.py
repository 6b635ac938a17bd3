"""Reads a library: one find for each batch, of the fields that are needed. There is nothing here that writes."""

from collections.abc import Mapping, Sequence

from pymongo import ASCENDING
from pymongo.asynchronous.cursor import AsyncCursor

from toolscript.adapters.mongo.connection import Collection, Document, MongoLibrary
from toolscript.adapters.mongo.documents import object_id, object_ids, read_chunk, read_extraction, read_source
from toolscript.adapters.mongo.schema import require_known_version
from toolscript.model.batches import in_batches
from toolscript.model.library import Chunk, Extraction, Source

# The ids of a batch have to fit into one message.
MOST_IDS = 10_000

SOURCE_FIELDS = (
    "type",
    "title",
    "path",
    "authors",
    "topics",
    "ingested_at",
    "status",
    "metadata",
    "chunk_count",
    "schema_version",
)
CHUNK_FIELDS = ("source_id", "number", "content", "position", "token_count", "topics", "schema_version")
EXTRACTION_FIELDS = ("source_id", "chunk_id", "type", "content", "topics", "extracted_at", "schema_version")


class MongoLibraryReader:
    def __init__(self, library: MongoLibrary) -> None:
        self._library = library

    async def sources(self, ids: Sequence[str]) -> Mapping[str, Source]:
        found = await self._by_id(self._library.sources, ids, SOURCE_FIELDS)
        return {source.id: source for source in map(read_source, found)}

    async def chunks(self, ids: Sequence[str]) -> Mapping[str, Chunk]:
        found = await self._by_id(self._library.chunks, ids, CHUNK_FIELDS)
        return {chunk.id: chunk for chunk in map(read_chunk, found)}

    async def extractions(self, ids: Sequence[str]) -> Mapping[str, Extraction]:
        found = await self._by_id(self._library.extractions, ids, EXTRACTION_FIELDS)
        return {extraction.id: extraction for extraction in map(read_extraction, found)}

    async def source_page(
        self, after: str, limit: int, types: Sequence[str] = (), topics: Sequence[str] = ()
    ) -> Sequence[Source]:
        wanted: Document = {"_id": {"$gt": object_id(after, "after")}} if after else {}
        if types:
            wanted["type"] = {"$in": list(types)}
        if topics:
            wanted["topics"] = {"$in": list(topics)}
        if limit < 1:
            return []
        with self._library.asked():
            cursor = self._found(self._library.sources, wanted, SOURCE_FIELDS, limit)
            return [read_source(one) async for one in cursor.sort("_id", ASCENDING).limit(limit)]

    async def passage(self, source_id: str, first: int, last: int) -> Sequence[Chunk]:
        wanted = {"source_id": {"$eq": source_id}, "number": {"$gte": first, "$lte": last}}
        in_order = [("number", ASCENDING), ("_id", ASCENDING)]
        with self._library.asked():
            cursor = self._found(self._library.chunks, wanted, CHUNK_FIELDS)
            return [read_chunk(one) async for one in cursor.sort(in_order)]

    async def ready(self) -> None:
        await self._library.ping()
        await require_known_version(self._library)
        for collection in (self._library.chunks, self._library.extractions):
            with self._library.asked():
                await collection.find_one({}, {"_id": 1}, max_time_ms=self._library.most_ms)

    async def _by_id(self, collection: Collection, ids: Sequence[str], fields: Sequence[str]) -> list[Document]:
        found: list[Document] = []
        for batch in in_batches(object_ids(ids), MOST_IDS):
            with self._library.asked():
                # One more than there can be: a full batch makes the driver ask whether that was all.
                cursor = self._found(collection, {"_id": {"$in": batch}}, fields, len(batch) + 1)
                found += await cursor.to_list()
        return found

    def _found(
        self, collection: Collection, wanted: Document, fields: Sequence[str], batch_size: int = 0
    ) -> AsyncCursor[Document]:
        return collection.find(wanted, fields, batch_size=batch_size, max_time_ms=self._library.most_ms)
