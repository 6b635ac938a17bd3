"""The library in MongoDB: its schema, its reader and its writer."""

from collections.abc import Iterable, Mapping, Sequence

from pymongo import ASCENDING, DESCENDING, DeleteMany, IndexModel, ReplaceOne, UpdateOne, WriteConcern
from pymongo.asynchronous.cursor import AsyncCursor
from pymongo.errors import DuplicateKeyError

from toolscript.core.values import in_batches
from toolscript.knowledge.model.ingest import ChunkMark, KnownSource
from toolscript.knowledge.model.library import Chunk, Extraction, Source, SourceStatus
from toolscript.knowledge.mongo.connection import Collection, Document, MongoLibrary
from toolscript.knowledge.mongo.documents import (
    chunk_document,
    extraction_document,
    object_id,
    object_ids,
    read_chunk,
    read_extraction,
    read_known,
    read_mark,
    read_source,
    require_readable,
    source_document,
)

_ID = ("_id", ASCENDING)

SOURCE_INDEXES = (
    [("path", ASCENDING)],
    [("type", ASCENDING), _ID],
    [("topics", ASCENDING), _ID],
    [("schema_version", DESCENDING)],
)
CHUNK_INDEXES = ([("source_id", ASCENDING), ("number", ASCENDING), _ID],)
EXTRACTION_INDEXES = ([("chunk_id", ASCENDING), _ID],)

# The ids of a batch have to fit into one message.
MAX_IDS = 10_000

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

BATCH = 500
Write = UpdateOne | ReplaceOne[Document] | DeleteMany


async def make_indexes(library: MongoLibrary) -> None:
    async with library.request():
        await library.sources.create_indexes([IndexModel(keys) for keys in SOURCE_INDEXES])
        await library.chunks.create_indexes([IndexModel(keys) for keys in CHUNK_INDEXES])
        await library.extractions.create_indexes([IndexModel(keys) for keys in EXTRACTION_INDEXES])


async def require_known_version(library: MongoLibrary) -> None:
    """Check the newest source only: every writer writes sources. Chunks and extractions are checked when read."""
    async with library.request():
        newest = await library.sources.find_one(
            {}, {"schema_version": 1}, sort=[("schema_version", DESCENDING)], max_time_ms=library.max_ms
        )
    require_readable(newest or {})


class MongoLibraryReader:
    def __init__(self, library: MongoLibrary) -> None:
        self._library = library

    async def sources(self, ids: Sequence[str]) -> Mapping[str, Source]:
        documents = await self._by_id(self._library.sources, ids, SOURCE_FIELDS)
        return {source.id: source for source in map(read_source, documents)}

    async def chunks(self, ids: Sequence[str]) -> Mapping[str, Chunk]:
        documents = await self._by_id(self._library.chunks, ids, CHUNK_FIELDS)
        return {chunk.id: chunk for chunk in map(read_chunk, documents)}

    async def extractions(self, ids: Sequence[str]) -> Mapping[str, Extraction]:
        documents = await self._by_id(self._library.extractions, ids, EXTRACTION_FIELDS)
        return {extraction.id: extraction for extraction in map(read_extraction, documents)}

    async def source_page(
        self, after: str, limit: int, types: Sequence[str] = (), topics: Sequence[str] = ()
    ) -> Sequence[Source]:
        conditions: Document = {"_id": {"$gt": object_id(after, "after")}} if after else {}
        if types:
            conditions["type"] = {"$in": list(types)}
        if topics:
            conditions["topics"] = {"$in": list(topics)}
        if limit < 1:
            return []
        async with self._library.request():
            cursor = self._find(self._library.sources, conditions, SOURCE_FIELDS, limit)
            return [read_source(document) async for document in cursor.sort("_id", ASCENDING).limit(limit)]

    async def passage(self, source_id: str, first: int, last: int) -> Sequence[Chunk]:
        conditions = {"source_id": {"$eq": source_id}, "number": {"$gte": first, "$lte": last}}
        in_order = [("number", ASCENDING), ("_id", ASCENDING)]
        async with self._library.request():
            cursor = self._find(self._library.chunks, conditions, CHUNK_FIELDS)
            return [read_chunk(document) async for document in cursor.sort(in_order)]

    async def ready(self) -> None:
        await self._library.ping()
        await require_known_version(self._library)
        for collection in (self._library.chunks, self._library.extractions):
            async with self._library.request():
                await collection.find_one({}, {"_id": 1}, max_time_ms=self._library.max_ms)

    async def _by_id(self, collection: Collection, ids: Sequence[str], fields: Sequence[str]) -> list[Document]:
        documents: list[Document] = []
        for batch in in_batches(object_ids(ids), MAX_IDS):
            async with self._library.request():
                # One more than there can be: after a full batch the driver sends another request for the rest.
                cursor = self._find(collection, {"_id": {"$in": batch}}, fields, len(batch) + 1)
                documents += await cursor.to_list()
        return documents

    def _find(
        self, collection: Collection, conditions: Document, fields: Sequence[str], batch_size: int = 0
    ) -> AsyncCursor[Document]:
        return collection.find(conditions, fields, batch_size=batch_size, max_time_ms=self._library.max_ms)


class MongoLibraryWriter:
    def __init__(self, library: MongoLibrary) -> None:
        self._library = library
        # The journal is sequential: once the last write is on disk, so are all before it. Only that one waits.
        self._durable_sources = library.sources.with_options(write_concern=WriteConcern(w="majority", j=True))

    async def prepare(self) -> None:
        await require_known_version(self._library)
        await make_indexes(self._library)

    async def known(self, paths: Sequence[str]) -> Mapping[str, KnownSource]:
        sources: list[KnownSource] = []
        for batch in in_batches(paths, BATCH):
            sources += [
                read_known(source) for source in await self._find(self._library.sources, {"path": {"$in": batch}})
            ]
        return {source.source.path: source for source in sources}

    async def known_under(self, folder: str, after: str, limit: int) -> Sequence[KnownSource]:
        # Every path that begins with "folder/" sorts before "folder0": zero follows the slash.
        inside = folder.rstrip("/")
        path_range: Document = {"$gt": max(f"{inside}/", after), "$lt": f"{inside}0"} if folder else {"$gt": after}
        if limit < 1:
            return []
        async with self._library.request():
            cursor = self._library.sources.find({"path": path_range}, batch_size=limit)
            return [read_known(document) async for document in cursor.sort("path", ASCENDING).limit(limit)]

    async def claim(self, source: Source, run: str, seconds: float) -> bool:
        return await self._take(source.id, run, seconds) or (
            await self._store_new(source) and await self._take(source.id, run, seconds)
        )

    async def marks(self, source_id: str) -> Mapping[str, ChunkMark]:
        async with self._library.request():
            cursor = self._library.chunks.find({"source_id": {"$eq": source_id}}, ["indexed", "extracted"])
            return {str(document["_id"]): read_mark(document) async for document in cursor}

    async def put_chunks(self, chunks: Sequence[Chunk]) -> None:
        await self._write(
            self._library.chunks,
            (
                UpdateOne({"_id": object_id(chunk.id)}, {"$set": chunk_document(chunk)}, upsert=True)
                for chunk in chunks
            ),
        )

    async def mark_indexed(self, marks: Mapping[str, str]) -> None:
        await self._mark("indexed", marks)

    async def put_extractions(self, recipe: str, found: Mapping[str, Sequence[Extraction]]) -> None:
        """Put the new, then delete the old: a chunk is never without. Mark last, so that a killed run repeats."""
        for part in in_batches(found.items(), BATCH):
            kept = [extraction for _, extractions in part for extraction in extractions]
            await self._write(
                self._library.extractions,
                (
                    ReplaceOne({"_id": object_id(extraction.id)}, extraction_document(extraction), upsert=True)
                    for extraction in kept
                ),
            )
            outdated = {
                "chunk_id": {"$in": [chunk_id for chunk_id, _ in part]},
                "_id": {"$nin": object_ids([extraction.id for extraction in kept])},
            }
            await self._write(self._library.extractions, [DeleteMany(outdated)])
            await self._mark("extracted", {chunk_id: recipe for chunk_id, _ in part})

    async def extractions_of(self, chunk_ids: Sequence[str]) -> Sequence[Extraction]:
        extractions: list[Extraction] = []
        for batch in in_batches(chunk_ids, BATCH):
            documents = await self._find(self._library.extractions, {"chunk_id": {"$in": batch}})
            extractions += map(read_extraction, documents)
        return sorted(
            {extraction.id: extraction for extraction in extractions}.values(),
            key=lambda extraction: extraction.id,
        )

    async def remove_chunks(self, ids: Sequence[str]) -> None:
        for batch in in_batches(ids, BATCH):
            await self._write(self._library.extractions, [DeleteMany({"chunk_id": {"$in": batch}})])
            await self._write(self._library.chunks, [DeleteMany({"_id": {"$in": object_ids(batch)}})])

    async def finish(self, source: Source, run: str, content_hash: str, recipe: str) -> bool:
        done = source_document(source) | {
            "status": SourceStatus.READY.value,
            "content_hash": content_hash,
            "recipe": recipe,
        }
        async with self._library.request():
            result = await self._durable_sources.update_one(
                _of_run(source.id, run), {"$set": done, "$unset": {"claim": ""}}
            )
        return result.matched_count == 1

    async def release(self, source_id: str, run: str) -> None:
        async with self._library.request():
            await self._library.sources.update_one(_of_run(source_id, run), {"$unset": {"claim": ""}})

    async def remove_source(self, source_id: str) -> None:
        async with self._library.request():
            await self._durable_sources.delete_one({"_id": object_id(source_id)})

    async def _take(self, source_id: str, run: str, seconds: float) -> bool:
        """Claim by the server's clock: those of two machines differ."""
        free = [
            {"claim": None},
            {"claim.run": {"$eq": run}},
            # Compared as numbers: not every MongoDB-compatible server compares a stored date with `$$NOW`.
            {"$expr": {"$lte": [{"$toLong": "$claim.until"}, {"$toLong": "$$NOW"}]}},
        ]
        until = {"$add": ["$$NOW", int(seconds * 1000)]}
        taken = {"status": SourceStatus.INGESTING.value, "claim": {"run": {"$literal": run}, "until": until}}
        async with self._library.request():
            result = await self._library.sources.update_one(
                {"_id": object_id(source_id), "$or": free}, [{"$set": taken}]
            )
        return result.matched_count == 1

    async def _store_new(self, source: Source) -> bool:
        """Return True also when another run has just stored the source without claiming it."""
        new = source_document(source) | {"status": SourceStatus.INGESTING.value}
        async with self._library.request():
            try:
                stored = await self._library.sources.update_one(
                    {"_id": object_id(source.id)}, {"$setOnInsert": new}, upsert=True
                )
            except DuplicateKeyError:
                return True
        return stored.upserted_id is not None

    async def _mark(self, field: str, marks: Mapping[str, str]) -> None:
        await self._write(
            self._library.chunks,
            (
                UpdateOne({"_id": object_id(chunk_id)}, {"$set": {field: value}})
                for chunk_id, value in marks.items()
            ),
        )

    async def _write(self, collection: Collection, writes: Iterable[Write]) -> None:
        for batch in in_batches(writes, BATCH):
            async with self._library.request():
                await collection.bulk_write(batch, ordered=False)

    async def _find(self, collection: Collection, conditions: Document) -> list[Document]:
        async with self._library.request():
            return await collection.find(conditions).to_list()


def _of_run(source_id: str, run: str) -> Document:
    """Return the filter of a run's claim. An expired claim belongs to the run until another takes it."""
    return {"_id": object_id(source_id), "claim.run": {"$eq": run}}
