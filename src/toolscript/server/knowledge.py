"""Wiring of the library: its indexes, its reader and its search."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from toolscript.core.auth.model import Scope
from toolscript.core.errors import SetupError
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.qdrant.connection import Qdrant
from toolscript.core.qdrant.layout import Layout
from toolscript.core.retrieval.model import IndexCard, ModelCard
from toolscript.core.retrieval.ports import Embedder, Index
from toolscript.core.settings.service import Settings
from toolscript.core.web.auth import VisitorOf, visitors_of
from toolscript.knowledge.ingest.chunking import CHUNKS_VERSION
from toolscript.knowledge.ingest.indexes import LibraryIndexes, require_live
from toolscript.knowledge.mongo.connection import open_mongo
from toolscript.knowledge.mongo.library import MongoLibraryReader, MongoLibraryWriter
from toolscript.knowledge.ports import LibraryReader, LibraryWriter
from toolscript.knowledge.search import KnowledgeSearch
from toolscript.server.access import Tenancy
from toolscript.server.observability import UNSEEN, Seeing
from toolscript.server.stores import Product, model_source, searching_embedder

PRODUCT: Product = "knowledge"


def knowledge_layout(settings: Settings) -> Layout:
    """Words weigh what a question says, the same in both: what the two find is put into one order."""
    filtered = ("source_id", "type", "topics")
    return Layout(
        keyword_fields=filtered,
        bool_fields=(),
        broad=frozenset(),
        counted_fields=filtered,
        counted_empty="",
        shards=settings.qdrant_shards,
        replicas=settings.qdrant_replicas,
        engine_rarity=False,
    )


def knowledge_indexes(engine: Qdrant, settings: Settings) -> tuple[QdrantIndexes, QdrantIndexes]:
    """Of chunks, and of extractions."""
    layout, source = knowledge_layout(settings), model_source(settings)
    return (
        QdrantIndexes(engine, settings.qdrant_chunks_alias, layout, source),
        QdrantIndexes(engine, settings.qdrant_extractions_alias, layout, source),
    )


def knowledge_card(model: ModelCard) -> IndexCard:
    return IndexCard(model, text_version=CHUNKS_VERSION)


@asynccontextmanager
async def open_reader(settings: Settings) -> AsyncIterator[LibraryReader]:
    url = settings.mongo_url.get_secret_value()
    if not url:
        raise SetupError(
            "there is no library to read",
            hint="set TOOLSCRIPT_MONGO_URL to the address of a MongoDB, with a user that may read there",
        )
    async with open_mongo(url, settings.mongo_database) as library:
        yield MongoLibraryReader(library)


@asynccontextmanager
async def open_both(settings: Settings) -> AsyncIterator[tuple[LibraryReader, LibraryWriter]]:
    """Whoever writes looks at what is there, by the same way."""
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


def visitors(settings: Settings, tenancy: Tenancy, seeing: Seeing) -> VisitorOf:
    return visitors_of(
        seeing.callers(tenancy.callers) if tenancy.callers else None,
        seeing.budget(tenancy.budget),
        public_scopes=public_scopes(settings),
        public_requests_per_minute=settings.public_requests_per_minute,
        default_plan=tenancy.default_plan,
        debug_bypass=tenancy.debug_bypass,
    )


def public_scopes(settings: Settings) -> frozenset[Scope]:
    try:
        return frozenset(Scope(name) for name in settings.public_scopes.split())
    except ValueError:
        raise SetupError(
            "TOOLSCRIPT_PUBLIC_SCOPES names a scope that is none", hint=f"there are {', '.join(Scope)}"
        ) from None


@asynccontextmanager
async def open_knowledge(
    settings: Settings,
    engine: Qdrant,
    embedder: Embedder,
    seeing: Seeing = UNSEEN,
    cached: Callable[[Embedder], Embedder] = lambda embedder: embedder,
) -> AsyncIterator[KnowledgeSearch | None]:
    """None where no library is named. One that is empty is asked again by every search until it is not."""
    if not settings.mongo_url.get_secret_value():
        yield None
        return
    indexes = LibraryIndexes(*knowledge_indexes(engine, settings))
    origin = await indexes.chunks.origin()
    async with (
        searching_embedder(origin, settings, embedder, PRODUCT) as own,
        open_reader(settings) as library,
    ):
        yield knowledge_search(settings, indexes, cached(own), library, seeing)


def knowledge_search(
    settings: Settings, indexes: LibraryIndexes, embedder: Embedder, library: LibraryReader, seeing: Seeing
) -> KnowledgeSearch:
    return KnowledgeSearch(
        embedder,
        LiveIndexes(indexes, knowledge_card(embedder.model), seeing).open,
        seeing.library(library),
        deadline_seconds=settings.deadline_seconds,
        spans=seeing.spans_of(PRODUCT),
        log_queries=settings.log_queries,
    )


@dataclass
class LiveIndexes:
    """Opened once. Serving makes none: what is not there has not been ingested."""

    indexes: LibraryIndexes
    card: IndexCard
    seeing: Seeing
    opened: tuple[Index, Index] | None = None

    async def open(self) -> tuple[Index, Index]:
        """Refused while there are none, or when others have become live than this model's."""
        if await self.indexes.live() is None:
            raise SetupError("the library is empty", hint="`toolscript ingest PATH...` fills it")
        await require_live(self.indexes, self.card)
        if self.opened is None:
            chunks, extractions = await self.indexes.open(self.card)
            see = self.seeing.item_index
            self.opened = see(chunks, PRODUCT), see(extractions, PRODUCT)
        return self.opened
