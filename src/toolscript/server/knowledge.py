"""Wiring of the library: its indexes, its reader and its search."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from toolscript.core.embedding.scale import ModelScales
from toolscript.core.errors import SetupError
from toolscript.core.qdrant.connection import Qdrant
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.ports import Embedder, Index
from toolscript.core.retrieval.verdict import CosineScale
from toolscript.core.settings.service import Settings
from toolscript.core.web.auth import Identify, optional_authenticator_of
from toolscript.knowledge.ingest.indexes import LibraryIndexes, require_live
from toolscript.knowledge.ports import LibraryReader
from toolscript.knowledge.search import KnowledgeSearch
from toolscript.server.access import public_scopes
from toolscript.server.library_stores import knowledge_card, knowledge_indexes, open_reader
from toolscript.server.observability import NOT_OBSERVED, Observability
from toolscript.server.stores import Product, origin_if_known, searching_embedder
from toolscript.server.tenancy import Tenancy

PRODUCT: Product = "knowledge"


def optional_authenticator(settings: Settings, tenancy: Tenancy, observability: Observability) -> Identify:
    return optional_authenticator_of(
        observability.verifier(tenancy.verifier) if tenancy.verifier else None,
        observability.budget(tenancy.budget),
        public_scopes=public_scopes(settings),
        public_requests_per_minute=settings.public_requests_per_minute,
        default_plan=tenancy.default_plan,
        debug_bypass=tenancy.debug_bypass,
    )


@asynccontextmanager
async def open_knowledge(
    settings: Settings,
    engine: Qdrant,
    embedder: Embedder,
    observability: Observability = NOT_OBSERVED,
    cached: Callable[[Embedder], Embedder] = lambda embedder: embedder,
    scales: ModelScales | None = None,
) -> AsyncIterator[KnowledgeSearch | None]:
    """Open the search; None if no library is configured. Each search checks again whether it is still empty."""
    if not settings.mongo_url.get_secret_value():
        yield None
        return
    indexes = LibraryIndexes(*knowledge_indexes(engine, settings))
    origin = await origin_if_known(indexes.chunks, PRODUCT)
    async with (
        searching_embedder(origin, settings, embedder, PRODUCT) as own,
        open_reader(settings) as library,
    ):
        scale = await (scales or ModelScales()).of(own)
        yield knowledge_search(settings, indexes, cached(own), library, observability, scale)


def knowledge_search(
    settings: Settings,
    indexes: LibraryIndexes,
    embedder: Embedder,
    library: LibraryReader,
    observability: Observability,
    scale: CosineScale | None = None,
) -> KnowledgeSearch:
    return KnowledgeSearch(
        embedder,
        LiveIndexes(indexes, knowledge_card(embedder.model), observability).open,
        observability.library(library),
        deadline_seconds=settings.deadline_seconds,
        spans=observability.spans_of(PRODUCT),
        log_queries=settings.log_queries,
        scale=scale,
    )


@dataclass
class LiveIndexes:
    """Indexes of the library, opened once. Serving never creates them; `ingest` does."""

    indexes: LibraryIndexes
    card: IndexCard
    observability: Observability
    opened: tuple[Index, Index] | None = None

    async def open(self) -> tuple[Index, Index]:
        """Open the indexes. Raise while there are none, or if those of another model have become live."""
        if await self.indexes.live() is None:
            raise SetupError("the library is empty", hint="`toolscript ingest PATH...` fills it")
        await require_live(self.indexes, self.card)
        if self.opened is None:
            chunks, extractions = await self.indexes.open(self.card)
            measure = self.observability.item_index
            self.opened = measure(chunks, PRODUCT), measure(extractions, PRODUCT)
        return self.opened
