"""Documents in the collections: the shape other programs rely on, documents they wrote, and newer versions."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from bson import Decimal128, Int64, ObjectId

from tests.contracts.library_builders import MINUTE, RUN, a_chunk, a_source, an_extraction
from tests.engines.mongo.conftest import Place
from toolscript.core.errors import SetupError
from toolscript.knowledge.model.library import SCHEMA_VERSION, Position, SourceStatus, source_id
from toolscript.knowledge.mongo.connection import open_mongo
from toolscript.knowledge.mongo.library import MongoLibraryReader, MongoLibraryWriter

pytestmark = pytest.mark.requirement("KN-001")

Library = tuple[MongoLibraryReader, MongoLibraryWriter]


@pytest.fixture
async def library(place: Place) -> AsyncIterator[Library]:
    async with open_mongo(place.writer_url, place.database) as connected:
        yield MongoLibraryReader(connected), MongoLibraryWriter(connected)


async def test_documents_have_the_fields_that_others_read(place: Place, library: Library) -> None:
    _, writer = library
    source, chunk = replace(a_source(), metadata={"pages": 3}, chunk_count=1), a_chunk(0)
    assert await writer.claim(source, RUN, MINUTE)
    await writer.put_chunks([chunk])
    await writer.mark_indexed({chunk.id: "point"})
    await writer.put_extractions("recipe", {chunk.id: [an_extraction(chunk)]})
    assert await writer.finish(source, RUN, "hash", "recipe")
    database = place.writing[place.database]
    assert await database["sources"].find_one() == {
        "_id": ObjectId(source_id(source.path)),
        "type": "book",
        "title": "All of /books/tea.md",
        "authors": ["Ada", "Grace"],
        "path": "/books/tea.md",
        "ingested_at": "2026-11-01T10:00:00Z",
        "status": "ready",
        "metadata": {"pages": 3},
        "topics": ["tea"],
        "chunk_count": 1,
        "content_hash": "hash",
        "recipe": "recipe",
        "schema_version": SCHEMA_VERSION,
    }
    assert await database["chunks"].find_one() == {
        "_id": ObjectId(chunk.id),
        "source_id": source.id,
        "number": 0,
        "content": chunk.content,
        "position": {"chapter": "Brewing", "section": "Water", "page": 1, "line": 1, "start": 0, "end": 40},
        "token_count": 7,
        "topics": ["tea", "water"],
        "indexed": "point",
        "extracted": "recipe",
        "schema_version": SCHEMA_VERSION,
    }
    assert await database["extractions"].find_one() == {
        "_id": ObjectId(an_extraction(chunk).id),
        "source_id": source.id,
        "chunk_id": chunk.id,
        "type": "warning",
        "content": {"title": "Mind the water (0)", "text": "Too hot, and it turns bitter."},
        "topics": ["tea"],
        "extracted_at": "2026-11-02T10:00:00Z",
        "schema_version": SCHEMA_VERSION,
    }


async def test_documents_of_another_program_are_read_as_far_as_possible(place: Place, library: Library) -> None:
    reader, _ = library
    database = place.writing[place.database]
    id_ = ObjectId()
    await database["sources"].insert_one(
        {
            "_id": id_,
            "type": "paper",
            "title": None,
            "authors": "nobody",
            "status": "complete",
            "ingested_at": datetime(2026, 11, 1, 10, tzinfo=UTC),
            "metadata": {
                "at": datetime(2026, 11, 1, tzinfo=UTC),
                "price": Decimal128("1.5"),
                "big": Int64(1 << 40),
                "of": id_,
            },
        }
    )
    await database["chunks"].insert_one({"_id": id_, "source_id": str(id_), "position": {"page": 3.0}})
    await database["extractions"].insert_one(
        {"_id": id_, "content": {"title": 5, "text": None}, "topics": ["a", 1]}
    )
    source = (await reader.sources([str(id_)]))[str(id_)]
    assert (source.type, source.title, source.authors, source.status) == ("paper", "", (), SourceStatus.READY)
    assert source.ingested_at == "2026-11-01T10:00:00"
    assert source.metadata == {"at": "2026-11-01T00:00:00", "price": "1.5", "big": 1 << 40, "of": str(id_)}
    assert type(source.metadata["big"]) is int
    chunk = (await reader.chunks([str(id_)]))[str(id_)]
    assert (chunk.content, chunk.number, chunk.position, chunk.topics) == ("", 0, Position(page=3), ())
    extraction = (await reader.extractions([str(id_)]))[str(id_)]
    assert (extraction.content, extraction.topics) == ({"title": "5", "text": ""}, ("a", "1"))


async def test_a_number_that_fits_nowhere_is_kept_as_text(library: Library) -> None:
    reader, writer = library
    source = replace(a_source(), metadata={"most": (1 << 63) - 1, "more": 1 << 63, "less": [-(1 << 80)]})
    assert await writer.claim(source, RUN, MINUTE)
    assert (await reader.sources([source.id]))[source.id].metadata == {
        "most": (1 << 63) - 1,
        "more": str(1 << 63),
        "less": [str(-(1 << 80))],
    }


@pytest.mark.parametrize("collection", ["sources", "chunks", "extractions"])
async def test_a_library_that_is_too_new_is_refused_with_what_to_do(
    place: Place, library: Library, collection: str
) -> None:
    reader, _ = library
    id_ = ObjectId()
    await place.writing[place.database][collection].insert_one(
        {"_id": id_, "schema_version": SCHEMA_VERSION + 1, "something": "new"}
    )
    read: Mapping[str, Any] = {
        "sources": reader.sources,
        "chunks": reader.chunks,
        "extractions": reader.extractions,
    }
    with pytest.raises(SetupError, match=f"schema version is {SCHEMA_VERSION + 1}") as refused:
        await read[collection]([str(id_)])
    assert "newer" in refused.value.hint


async def test_a_readiness_check_reports_a_library_that_is_too_new(place: Place, library: Library) -> None:
    reader, writer = library
    assert await writer.claim(a_source(), RUN, MINUTE)
    await reader.ready()
    await place.writing[place.database]["sources"].insert_one({"schema_version": SCHEMA_VERSION + 1})
    for look in (reader.ready(), writer.prepare()):
        with pytest.raises(SetupError, match="newer toolscript"):
            await look


@pytest.mark.parametrize(
    ("collection", "query", "order", "keys"),
    [
        ("sources", {"path": {"$gt": "/a/", "$lt": "/a0"}}, "path", {"path": 1}),
        ("sources", {"type": {"$in": ["book"]}}, "_id", {"type": 1, "_id": 1}),
        ("sources", {"topics": {"$in": ["tea"]}}, "_id", {"topics": 1, "_id": 1}),
        ("chunks", {"source_id": {"$eq": "a"}}, "number", {"source_id": 1, "number": 1, "_id": 1}),
        ("extractions", {"chunk_id": {"$in": ["a"]}}, "_id", {"chunk_id": 1, "_id": 1}),
    ],
)
async def test_frequent_queries_have_an_index(
    place: Place, library: Library, collection: str, query: dict[str, Any], order: str, keys: dict[str, int]
) -> None:
    _, writer = library
    await writer.prepare()
    assert await writer.claim(a_source(), RUN, MINUTE)
    await writer.put_chunks([a_chunk(0)])
    await writer.put_extractions("recipe", {a_chunk(0).id: [an_extraction(a_chunk(0))]})
    plan = await place.writing[place.database][collection].find(query).sort(order, 1).explain()
    assert f"'keyPattern': {keys}" in str(plan["queryPlanner"]["winningPlan"])
