"""A library that is there for a measurement alone, in a database and collections of its own."""

import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bson import ObjectId

from toolscript.adapters import mongo, qdrant
from toolscript.adapters.mongo.documents import chunk_document, extraction_document, source_document
from toolscript.errors import NotFound
from toolscript.evaluation.many_chunks import MadeSource, sources_of
from toolscript.evaluation.many_documents import Originals
from toolscript.model.models import ModelCard
from toolscript.model.progress import OnProgress, Progress
from toolscript.ports import Index
from toolscript.service.knowledge_indexes import knowledge_card, knowledge_indexes
from toolscript.service.library import writer_url
from toolscript.service.under_way import few_at_once
from toolscript.settings.service import Settings

NAME = "bench_knowledge"
PATIENCE_SECONDS = 600.0


@dataclass(frozen=True)
class BenchLibrary:
    """`settings` are those that whoever serves it needs."""

    name: str
    settings: Settings
    engine: qdrant.Qdrant
    model: ModelCard
    mongo: mongo.MongoLibrary

    @property
    def environment(self) -> dict[str, str]:
        return {
            "TOOLSCRIPT_MONGO_DATABASE": self.settings.mongo_database,
            "TOOLSCRIPT_QDRANT_CHUNKS_ALIAS": self.settings.qdrant_chunks_alias,
            "TOOLSCRIPT_QDRANT_EXTRACTIONS_ALIAS": self.settings.qdrant_extractions_alias,
            "TOOLSCRIPT_PUBLIC_REQUESTS_PER_MINUTE": "0",
        }

    @property
    def collections(self) -> tuple[str, str]:
        return self.settings.qdrant_chunks_alias, self.settings.qdrant_extractions_alias

    async def fill(self, originals: Originals, chunks: int, seed: int, on_progress: OnProgress) -> None:
        """Graphs are built when everything is there."""
        card = knowledge_card(self.model)
        both = knowledge_indexes(self.engine, self.settings)
        await mongo.MongoLibraryWriter(self.mongo).prepare()
        for indexes in both:
            await indexes.create(card)
            await indexes.make_live(card.fingerprint)
        async with both[0].loading(card), both[1].loading(card):
            opened = await both[0].open(card), await both[1].open(card)
            await self._put_all(originals, chunks, seed, opened, on_progress)
            on_progress(Progress("build graphs", 0))

    async def remove(self) -> None:
        for indexes in knowledge_indexes(self.engine, self.settings):
            if (live := await indexes.live()) is not None:
                await indexes.drop(live)
        for collection in (self.mongo.sources, self.mongo.chunks, self.mongo.extractions):
            await collection.drop()

    async def _put_all(
        self, originals: Originals, chunks: int, seed: int, indexes: tuple[Index, Index], on_progress: OnProgress
    ) -> None:
        def puts() -> Iterator[Coroutine[Any, Any, None]]:
            done = 0
            for made in sources_of(originals, chunks, seed):
                yield self._put(made, indexes)
                done += len(made.chunks)
                on_progress(Progress(f"fill {chunks:,}", done, chunks))

        await few_at_once(puts())

    async def _put(self, made: MadeSource, indexes: tuple[Index, Index]) -> None:
        """As new, and not in the place of anything: nothing is there."""
        extracted = [one for several in made.extractions.values() for one in several]
        await self.mongo.sources.insert_one(_with_id(made.source.id, source_document(made.source)))
        await self.mongo.chunks.insert_many([_with_id(one.id, chunk_document(one)) for one in made.chunks])
        await self.mongo.extractions.insert_many([_with_id(one.id, extraction_document(one)) for one in extracted])
        await indexes[0].put(made.chunk_points)
        await indexes[1].put(made.extraction_points)


@asynccontextmanager
async def bench_library(
    settings: Settings, engine: qdrant.Qdrant, model: ModelCard, keep: bool, use: str
) -> AsyncIterator[BenchLibrary]:
    """Under a name that nobody else uses, and gone afterwards; or one that an earlier run has kept: that stays."""
    name = use or f"{NAME}_{uuid.uuid4().hex[:8]}"
    named = {
        "mongo_database": name,
        "qdrant_chunks_alias": f"{name}_chunks",
        "qdrant_extractions_alias": f"{name}_extractions",
    }
    own = settings.model_copy(update=named)
    async with mongo.connect(writer_url(own), name, answer_seconds=PATIENCE_SECONDS) as connected:
        library = BenchLibrary(name, own, engine, model, connected)
        if use and await knowledge_indexes(engine, own)[0].live() is None:
            raise NotFound(f"no earlier run has kept {use}", hint="--keep tells the name under which it keeps")
        try:
            yield library
        finally:
            if not keep and not use:
                await library.remove()


def _with_id(id_: str, document: mongo.Document) -> mongo.Document:
    return {"_id": ObjectId(id_), **document}
