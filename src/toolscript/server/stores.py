"""Context managers that open the engines and models of a command."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from toolscript.core.breaker import OF_COMMANDS, Patience
from toolscript.core.embedding.download_failures import model_folder
from toolscript.core.errors import (
    CatalogUnavailable,
    EmbedderUnavailable,
    IndexUnavailable,
    ModelMismatch,
    ModelNotFound,
    ModelUnknown,
    SetupError,
)
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.core.postgres.schema import require_current_schema
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.qdrant.connection import TIMEOUT_SECONDS, Qdrant, Tls, open_qdrant
from toolscript.core.qdrant.layout import Layout
from toolscript.core.retrieval.model import IndexOrigin, Matrix, ModelCard, Vector
from toolscript.core.retrieval.ports import Embedder, Indexes
from toolscript.core.settings.service import Settings
from toolscript.tools.indexing.versions import IndexPair
from toolscript.tools.ports import (
    Assignments,
    Catalog,
    CatalogContents,
    CurationRules,
    DirtySet,
    ItemChanges,
    SearchLog,
    SkillVectors,
    Suggestions,
    SyncJobs,
    Taxonomy,
)
from toolscript.tools.postgres.assignments import PostgresAssignments
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.centroids import PostgresSkillVectors
from toolscript.tools.postgres.changes import PostgresItemChanges
from toolscript.tools.postgres.contents import PostgresCatalogContents
from toolscript.tools.postgres.curation import PostgresCurationRules
from toolscript.tools.postgres.dirty_set import PostgresDirtySet
from toolscript.tools.postgres.jobs import PostgresSyncJobs
from toolscript.tools.postgres.search_log import PostgresSearchLog
from toolscript.tools.postgres.skills import PostgresTaxonomy
from toolscript.tools.postgres.suggestions import PostgresSuggestions

if TYPE_CHECKING:
    from httpx2 import AsyncBaseTransport

    from toolscript.core.llm.openai import OpenAITextModel

Product = Literal["tools", "documents", "knowledge"]

TRIES = 3
SHARE_OF_A_CALL = 0.5
MODEL_HINT = (
    "let this machine reach the hub once, or set TOOLSCRIPT_EMBEDDING_MODEL to the folder of an ONNX model"
)


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CatalogStores:
    """The catalog with its skills and indexes, in any store."""

    catalog: Catalog
    contents: CatalogContents
    changes: ItemChanges
    jobs: SyncJobs
    dirty: DirtySet
    taxonomy: Taxonomy
    assignments: Assignments
    suggestions: Suggestions
    skill_vectors: SkillVectors
    curation: CurationRules
    searches: SearchLog
    indexes: IndexPair


@dataclass(frozen=True)
class Stores(CatalogStores):
    """The catalog in PostgreSQL and Qdrant."""

    pool: Pool
    qdrant: Qdrant


@asynccontextmanager
async def open_stores(
    settings: Settings, *, catalog_needed: bool = True, patience: Patience = OF_COMMANDS
) -> AsyncIterator[Stores]:
    """Open the stores. A catalog that is not needed may be down, but must not have another schema version."""
    url = settings.postgres_url.get_secret_value()
    async with AsyncExitStack() as stack:
        opening = open_pool(url, size=settings.postgres_connections, patience=patience)
        pool = await stack.enter_async_context(opening)
        engine = await stack.enter_async_context(connect_qdrant(settings, patience=patience))
        await _check_schema(pool, catalog_needed=catalog_needed)
        yield Stores(
            PostgresCatalog(pool, hold_changes=settings.hold_changes),
            PostgresCatalogContents(pool),
            PostgresItemChanges(pool),
            PostgresSyncJobs(pool),
            PostgresDirtySet(pool),
            PostgresTaxonomy(pool),
            PostgresAssignments(pool),
            PostgresSuggestions(pool),
            PostgresSkillVectors(pool),
            PostgresCurationRules(pool),
            PostgresSearchLog(pool),
            _indexes(engine, settings, pool),
            pool,
            engine,
        )


def connect_qdrant(
    settings: Settings, timeout_seconds: float = TIMEOUT_SECONDS, patience: Patience = OF_COMMANDS
) -> AbstractAsyncContextManager[Qdrant]:
    """With the patience of commands a read may take as long as a write."""
    is_serving = patience is not OF_COMMANDS
    return open_qdrant(
        settings.qdrant_url,
        settings.qdrant_grpc_port,
        api_key=settings.qdrant_api_key.get_secret_value(),
        tls=Tls(settings.qdrant_ca_file, settings.qdrant_client_certificate, settings.qdrant_client_key),
        timeout_seconds=timeout_seconds,
        read_seconds=call_seconds(settings) if is_serving else timeout_seconds,
        patience=patience,
    )


def call_seconds(settings: Settings) -> float:
    """Return the time limit of one call of a search, so that the rest of it goes on without."""
    return settings.deadline_seconds * SHARE_OF_A_CALL


def item_layout(settings: Settings) -> Layout:
    return Layout(shards=settings.qdrant_shards, replicas=settings.qdrant_replicas)


def skill_layout(settings: Settings) -> Layout:
    """Layout of a few thousand points that every search reads: one shard, with the replicas of the items."""
    return Layout(
        keyword_fields=("id",),
        broad=frozenset(),
        counted_fields=(),
        counted_empty="",
        replicas=settings.qdrant_replicas,
    )


def _indexes(engine: Qdrant, settings: Settings, pool: Pool) -> IndexPair:
    return IndexPair(
        QdrantIndexes(engine, settings.qdrant_alias, item_layout(settings), model_source(settings)),
        QdrantIndexes(engine, settings.qdrant_skills_alias, skill_layout(settings), model_source(settings)),
        PostgresSkillVectors(pool),
    )


async def _check_schema(pool: Pool, *, catalog_needed: bool) -> None:
    try:
        await require_current_schema(pool)
    except CatalogUnavailable as error:
        if catalog_needed:
            raise
        logger.warning("no catalog yet", extra={"part": "catalog", "reason": error.message})


def model_source(settings: Settings) -> str:
    """Return the name or folder to load the model from; empty for an endpoint, which its card describes."""
    return "" if settings.embedding_url else settings.embedding_model


@asynccontextmanager
async def open_embedder(
    settings: Settings, *, parallel: int | None = None, headers: Callable[[], Mapping[str, str]] = dict
) -> AsyncIterator[Embedder]:
    """Open the configured model.

    `parallel`: number of concurrent embeddings, each on one core; None for one batch at a time on all cores.
    `headers` are added to every request to an endpoint.
    """
    # Imported here: a model's runtime takes longer to load than a whole import of items.
    if settings.embedding_url:
        from toolscript.core.embedding.openai import OpenAIEmbedder

        endpoint = OpenAIEmbedder(
            settings.embedding_url,
            _endpoint_card(settings),
            api_key=settings.embedding_api_key.get_secret_value(),
            headers=headers,
        )
        try:
            yield endpoint
        finally:
            await endpoint.close()
        return
    from toolscript.core.embedding.embedder import LocalEmbedder

    threads, parallel = (None, 1) if parallel is None else (1, parallel)
    try:
        local = await asyncio.to_thread(
            LocalEmbedder, settings.embedding_model, threads=threads, parallel=parallel
        )
    except ModelNotFound as error:
        raise _with_our_hint(error, settings.embedding_model) from error
    try:
        yield local
    finally:
        local.close()


def _endpoint_card(settings: Settings) -> ModelCard:
    return ModelCard(
        name=settings.embedding_model,
        revision=settings.embedding_revision,
        dimensions=settings.embedding_dimensions,
        pooling="endpoint",
        query_prefix=settings.embedding_query_prefix,
    )


@asynccontextmanager
async def embedder_of(
    origin: IndexOrigin, settings: Settings, configured: Embedder, product: Product, *, parallel: int = 1
) -> AsyncIterator[Embedder]:
    """Open the model that the index was built with. Raise ModelMismatch if it is not available."""
    if origin.model == configured.model:
        yield configured
        return
    async with AsyncExitStack() as stack:
        opening = open_embedder(_settings_of_origin(settings, origin, product), parallel=parallel)
        try:
            own = await stack.enter_async_context(opening)
        except SetupError as error:
            raise _model_missing(origin, product, error.message) from error
        if own.model != origin.model:
            raise _model_missing(origin, product, f"{own.model.name} is another model")
        yield own


def _with_our_hint(error: ModelNotFound, model: str) -> ModelNotFound:
    """Name the service's setting: a failed download has the hint of the gateway, which has options of its own."""
    is_download = model_folder(model) is None and not isinstance(error, ModelUnknown)
    return type(error)(error.message, hint=MODEL_HINT if is_download else error.hint, details=error.details)


async def origin_if_known(indexes: Indexes, product: Product) -> IndexOrigin | None:
    """Return the origin of the live index; None without one, or while the engine does not answer.

    Then the configured model is assumed: if the index has another, searches fail until a restart.
    """
    try:
        return await indexes.origin()
    except IndexUnavailable as error:
        logger.warning("the index is not known yet", extra={"part": product, "reason": error.message})
        return None


@asynccontextmanager
async def searching_embedder(
    origin: IndexOrigin | None, settings: Settings, configured: Embedder, product: Product, *, parallel: int = 1
) -> AsyncIterator[Embedder]:
    """Open the model of the index for searches. Without it, search is sparse (BM25) only."""
    if origin is None:
        yield configured
        return
    async with AsyncExitStack() as stack:
        opening = embedder_of(origin, settings, configured, product, parallel=parallel)
        facts = {"part": product, "model": origin.model.name}
        try:
            own = await stack.enter_async_context(opening)
            if own is not configured:
                logger.warning("search uses the model of its index, not the configured one", extra=facts)
        except ModelMismatch as error:
            logger.warning("search is sparse only", extra={**facts, "reason": f"{error.message}; {error.hint}"})
            own = AbsentModel(origin.model)
        yield own


class AbsentModel:
    """Stands in for the missing model of an index: the index can be opened, but nothing can be embedded."""

    def __init__(self, card: ModelCard) -> None:
        self._card = card

    @property
    def model(self) -> ModelCard:
        return self._card

    async def embed_query(self, _text: str) -> Vector:
        raise self._unavailable()

    async def embed_texts(self, _texts: Sequence[str]) -> Matrix:
        raise self._unavailable()

    def _unavailable(self) -> EmbedderUnavailable:
        return EmbedderUnavailable(
            f"the model {self._card.name} is not available", hint="the startup log has the reason"
        )


def _settings_of_origin(settings: Settings, origin: IndexOrigin, product: Product) -> Settings:
    model = origin.model
    if model.pooling == "endpoint":
        update: dict[str, object] = {
            "embedding_model": model.name,
            "embedding_revision": model.revision,
            "embedding_dimensions": model.dimensions,
            "embedding_query_prefix": model.query_prefix,
        }
        return settings.model_copy(update=update)
    source = _configured_model(settings, product) or origin.source
    if not source:
        raise _model_missing(origin, product, "its location was not recorded")
    return settings.model_copy(update={"embedding_model": source, "embedding_url": ""})


def _configured_model(settings: Settings, product: Product) -> str:
    return {
        "tools": settings.tools_model,
        "documents": settings.documents_model,
        "knowledge": settings.knowledge_model,
    }[product]


def _model_missing(origin: IndexOrigin, product: Product, reason: str) -> ModelMismatch:
    return ModelMismatch(
        f"{origin.collection} was made by the model {origin.model.name}: {reason}",
        hint=f"set TOOLSCRIPT_{product.upper()}_MODEL to its name or folder; "
        f"`toolscript reindex {product}` builds the index with the configured model",
    )


def text_model(
    settings: Settings, tries: int = TRIES, transport: "AsyncBaseTransport | None" = None
) -> "OpenAITextModel":
    """Return a client of the language model; the caller closes it. Imported here: many commands do without."""
    from toolscript.core.llm.openai import OpenAITextModel

    return OpenAITextModel(
        settings.text_url,
        settings.text_model,
        api_key=settings.text_api_key.get_secret_value(),
        timeout_seconds=settings.text_timeout_seconds,
        deadline_seconds=tries * settings.text_timeout_seconds,
        retries=tries - 1,
        transport=transport,
    )
