"""The library as BSON files, the format of `mongodump`: sources, chunks and extractions.

A source is the unit. It is read again until no run of ingest has written it meanwhile, so that a file never has
half of an ingest. Claims of runs are left out.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, BinaryIO

import bson
from pymongo import ASCENDING, UpdateOne

from toolscript.core.values import OnProgress, Progress, by_size, in_batches
from toolscript.knowledge.ingest.indexes import parse_mark
from toolscript.knowledge.model.library import SourceStatus, point_of
from toolscript.knowledge.mongo.connection import Collection, Document, MongoLibrary
from toolscript.knowledge.mongo.library import make_indexes

PAGE = 50
CHUNKS_AT_ONCE = 2_000
BATCH = 500
# How long the end of other runs' work is waited for. An unfinished source is taken as it is.
WAIT_SECONDS, LOOK_AGAIN_SECONDS = 60.0, 0.5

NAMES = ("sources", "chunks", "extractions")
Files = Mapping[str, BinaryIO]


@dataclass
class LibraryCounts:
    """`unfinished` sources were being ingested, or their run was killed: the next ingest finishes them."""

    sources: int = 0
    chunks: int = 0
    extractions: int = 0
    unfinished: int = 0


@dataclass(frozen=True)
class _Saved:
    sources: Sequence[Document]
    chunks: Sequence[Document]
    extractions: Sequence[Document]


async def save_library(library: MongoLibrary, files: Files, on_progress: OnProgress) -> LibraryCounts:
    counts = LibraryCounts()
    busy: list[Any] = []
    async for page in _pages(library, "sources"):
        for batch in by_size(page, lambda source: int(source.get("chunk_count") or 0), CHUNKS_AT_ONCE):
            saved, changed = await _unchanged(library, batch)
            busy += [source["_id"] for source in changed]
            _write(files, saved, counts)
            on_progress(Progress("sources", counts.sources))
    ends_at = time.monotonic() + WAIT_SECONDS
    for id_ in busy:
        _write(files, await _when_idle(library, id_, ends_at), counts)
        on_progress(Progress("sources", counts.sources))
    return counts


async def load_library(library: MongoLibrary, files: Files, on_progress: OnProgress) -> None:
    """Replace the whole library by that of the files."""
    collections = _collections(library)
    for name in NAMES:
        async with library.request():
            await collections[name].drop()
    done = 0
    # The sources last: until then the library is empty for those who list it.
    for name in reversed(NAMES):
        for batch in in_batches(bson.decode_file_iter(files[name]), BATCH):
            async with library.request():
                await collections[name].insert_many(batch, ordered=False)
            done += len(batch)
            on_progress(Progress("records of the library", done))
    await make_indexes(library)


async def has_sources(library: MongoLibrary) -> bool:
    async with library.request():
        return await library.sources.find_one({}, {"_id": 1}, max_time_ms=library.max_ms) is not None


@dataclass(frozen=True)
class IndexedState:
    """For each point that the library expects, the version that its chunk's mark names; and the chunk."""

    versions: Mapping[int, int]
    chunk_of: Mapping[int, Any] = field(default_factory=dict)


async def expected_chunks(library: MongoLibrary) -> AsyncIterator[IndexedState]:
    async for page in _pages(library, "chunks", {"indexed": 1}, BATCH):
        marks = {chunk["_id"]: parse_mark(str(chunk.get("indexed") or "")) for chunk in page}
        points = {point_of(str(id_)): id_ for id_, mark in marks.items() if mark.chunk}
        yield IndexedState({point: marks[id_].version for point, id_ in points.items()}, points)


async def expected_extractions(library: MongoLibrary) -> AsyncIterator[IndexedState]:
    async for page in _pages(library, "extractions", {"chunk_id": 1}, BATCH):
        chunks = {str(entry["_id"]): bson.ObjectId(entry["chunk_id"]) for entry in page}
        async with library.request():
            found = await library.chunks.find({"_id": {"$in": list(set(chunks.values()))}}, ["indexed"]).to_list()
        marks = {chunk["_id"]: parse_mark(str(chunk.get("indexed") or "")) for chunk in found}
        points = {
            point_of(id_): chunk for id_, chunk in chunks.items() if chunk in marks and marks[chunk].extractions
        }
        yield IndexedState({point: marks[chunk].version for point, chunk in points.items()}, points)


async def forget_marks(library: MongoLibrary, chunk_ids: Iterable[Any]) -> None:
    """Note that these chunks are not in the index: the next reindex of the library embeds them."""
    for batch in in_batches(chunk_ids, BATCH):
        async with library.request():
            await library.chunks.bulk_write(
                [UpdateOne({"_id": id_}, {"$unset": {"indexed": ""}}) for id_ in batch]
            )


async def _pages(
    library: MongoLibrary, name: str, fields: Document | None = None, limit: int = PAGE
) -> AsyncIterator[list[Document]]:
    collection, after = _collections(library)[name], Document()
    while True:
        async with library.request():
            page = await collection.find(after, fields).sort("_id", ASCENDING).limit(limit).to_list()
        if not page:
            return
        yield page
        after = {"_id": {"$gt": page[-1]["_id"]}}


async def _unchanged(library: MongoLibrary, sources: Sequence[Document]) -> tuple[_Saved, list[Document]]:
    """Return what belongs to the sources that nobody wrote while it was read, and the other sources."""
    chunks, extractions = await _contents(library, sources)
    ids = [source["_id"] for source in sources]
    async with library.request():
        now = {source["_id"]: source for source in await library.sources.find({"_id": {"$in": ids}}).to_list()}
    idle = [source for source in sources if now.get(source["_id"]) == source and not _is_claimed(source)]
    changed = [source for source in sources if source["_id"] in now and source not in idle]
    kept = {str(source["_id"]) for source in idle}
    return (
        _Saved(
            idle,
            [chunk for chunk in chunks if chunk["source_id"] in kept],
            [extraction for extraction in extractions if extraction["source_id"] in kept],
        ),
        changed,
    )


async def _when_idle(library: MongoLibrary, id_: Any, ends_at: float) -> _Saved:
    while True:
        async with library.request():
            source = await library.sources.find_one({"_id": id_})
        if source is None:
            return _Saved([], [], [])
        saved, changed = await _unchanged(library, [source])
        if not changed:
            return saved
        if time.monotonic() > ends_at:
            chunks, extractions = await _contents(library, [source])
            # Without the hash of its file the next ingest reads it again.
            half = {name: value for name, value in source.items() if name not in ("content_hash", "recipe")}
            return _Saved([half | {"status": SourceStatus.INGESTING.value}], chunks, extractions)
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


async def _contents(library: MongoLibrary, sources: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    chunks: list[Document] = []
    async with library.request():
        chunks = await library.chunks.find(
            {"source_id": {"$in": [str(each["_id"]) for each in sources]}}
        ).to_list()
    extractions: list[Document] = []
    for batch in in_batches([str(chunk["_id"]) for chunk in chunks], BATCH):
        async with library.request():
            extractions += await library.extractions.find({"chunk_id": {"$in": batch}}).to_list()
    return chunks, extractions


def _is_claimed(source: Document) -> bool:
    """Whether a run of ingest is at work on it. An expired claim is that of a killed run."""
    until = (source.get("claim") or {}).get("until")
    if not isinstance(until, datetime):
        return False
    return (until if until.tzinfo else until.replace(tzinfo=UTC)) > datetime.now(UTC)


def _write(files: Files, saved: _Saved, counts: LibraryCounts) -> None:
    unclaimed = ({name: value for name, value in source.items() if name != "claim"} for source in saved.sources)
    for name, documents in (
        ("sources", unclaimed),
        ("chunks", saved.chunks),
        ("extractions", saved.extractions),
    ):
        for packed in _packed(documents):
            files[name].write(packed)
    counts.sources += len(saved.sources)
    counts.chunks += len(saved.chunks)
    counts.extractions += len(saved.extractions)
    counts.unfinished += sum(source.get("status") == SourceStatus.INGESTING.value for source in saved.sources)


def _packed(documents: Iterable[Document]) -> Iterator[bytes]:
    return (bson.encode(document) for document in documents)


def _collections(library: MongoLibrary) -> Mapping[str, Collection]:
    return {"sources": library.sources, "chunks": library.chunks, "extractions": library.extractions}
