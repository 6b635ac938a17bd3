"""Stores of the library: its indexes in Qdrant, and its reader and writer in MongoDB."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolscript.core.breaker import Patience
from toolscript.core.errors import SetupError
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.qdrant.connection import Qdrant
from toolscript.core.qdrant.layout import Layout
from toolscript.core.retrieval.model import IndexCard, ModelCard
from toolscript.core.settings.service import Settings
from toolscript.knowledge.ingest.chunking import CHUNKS_VERSION
from toolscript.knowledge.mongo.connection import ANSWER_SECONDS, open_mongo
from toolscript.knowledge.mongo.library import MongoLibraryReader, MongoLibraryWriter
from toolscript.knowledge.ports import LibraryReader, LibraryWriter
from toolscript.server.stores import call_seconds, model_source


def knowledge_layout(settings: Settings) -> Layout:
    """Layout of both indexes. IDF is computed at query time, so that scores of both can be merged."""
    filtered = ("source_id", "type", "topics")
    return Layout(
        keyword_fields=filtered,
        bool_fields=(),
        broad=frozenset(),
        counted_fields=filtered,
        counted_empty="",
        shards=settings.qdrant_shards,
        replicas=settings.qdrant_replicas,
        engine_idf=False,
    )


def knowledge_indexes(engine: Qdrant, settings: Settings) -> tuple[QdrantIndexes, QdrantIndexes]:
    """Return the indexes of chunks and of extractions."""
    layout, source = knowledge_layout(settings), model_source(settings)
    return (
        QdrantIndexes(engine, settings.qdrant_chunks_alias, layout, source),
        QdrantIndexes(engine, settings.qdrant_extractions_alias, layout, source),
    )


def knowledge_card(model: ModelCard) -> IndexCard:
    return IndexCard(model, text_version=CHUNKS_VERSION)


@asynccontextmanager
async def open_reader(settings: Settings) -> AsyncIterator[LibraryReader]:
    """Open the reader of `serve`."""
    url = settings.mongo_url.get_secret_value()
    if not url:
        raise SetupError(
            "there is no library to read",
            hint="set TOOLSCRIPT_MONGO_URL to the address of a MongoDB, with a user that may read there",
        )
    seconds = min(ANSWER_SECONDS, call_seconds(settings))
    async with open_mongo(url, settings.mongo_database, answer_seconds=seconds, patience=Patience()) as library:
        yield MongoLibraryReader(library)


@asynccontextmanager
async def open_reader_and_writer(settings: Settings) -> AsyncIterator[tuple[LibraryReader, LibraryWriter]]:
    """Open reader and writer on one connection: writing needs to read, too."""
    async with open_mongo(writer_url(settings), settings.mongo_database) as library:
        yield MongoLibraryReader(library), MongoLibraryWriter(library)


def writer_url(settings: Settings) -> str:
    url = settings.mongo_writer_url.get_secret_value() or settings.mongo_url.get_secret_value()
    if not url:
        raise SetupError(
            "there is no library to write to",
            hint="set TOOLSCRIPT_MONGO_WRITER_URL to the address of a MongoDB, with a user that may write there",
        )
    return url
