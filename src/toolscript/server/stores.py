"""Opens what a command needs, and closes it whatever happens."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from toolscript.adapters import postgres, qdrant
from toolscript.errors import CatalogUnavailable
from toolscript.model.models import ModelCard
from toolscript.ports import (
    Assignments,
    Catalog,
    CatalogContents,
    DirtySet,
    Embedder,
    ItemChanges,
    SkillVectors,
    Suggestions,
    SyncJobs,
    Taxonomy,
)
from toolscript.settings.service import Settings
from toolscript.sync.generations import IndexPair

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CatalogStores:
    """The catalog with its skills and indexes, whatever holds them."""

    catalog: Catalog
    contents: CatalogContents
    changes: ItemChanges
    jobs: SyncJobs
    dirty: DirtySet
    taxonomy: Taxonomy
    assignments: Assignments
    suggestions: Suggestions
    skill_vectors: SkillVectors
    indexes: IndexPair


@dataclass(frozen=True)
class Stores(CatalogStores):
    """The same in the engines, which are open."""

    pool: postgres.Pool
    qdrant: qdrant.Qdrant


@asynccontextmanager
async def open_stores(settings: Settings, *, catalog_needed: bool = True) -> AsyncIterator[Stores]:
    """A catalog that is not needed may be down; of another version it may not be."""
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(
            postgres.open_pool(settings.postgres_url.get_secret_value(), size=settings.postgres_connections)
        )
        engine = await stack.enter_async_context(connect_qdrant(settings))
        await _check_schema(pool, catalog_needed=catalog_needed)
        yield Stores(
            postgres.PostgresCatalog(pool, hold_changes=settings.hold_changes),
            postgres.PostgresCatalogContents(pool),
            postgres.PostgresItemChanges(pool),
            postgres.PostgresSyncJobs(pool),
            postgres.PostgresDirtySet(pool),
            postgres.PostgresTaxonomy(pool),
            postgres.PostgresAssignments(pool),
            postgres.PostgresSuggestions(pool),
            postgres.PostgresSkillVectors(pool),
            _indexes(engine, settings, pool),
            pool,
            engine,
        )


def connect_qdrant(
    settings: Settings, timeout_seconds: float = qdrant.TIMEOUT_SECONDS
) -> AbstractAsyncContextManager[qdrant.Qdrant]:
    return qdrant.connect(
        settings.qdrant_url,
        settings.qdrant_grpc_port,
        api_key=settings.qdrant_api_key.get_secret_value(),
        tls=qdrant.Tls(settings.qdrant_ca_file, settings.qdrant_client_certificate, settings.qdrant_client_key),
        timeout_seconds=timeout_seconds,
    )


def item_layout(settings: Settings) -> qdrant.Layout:
    return qdrant.Layout(shards=settings.qdrant_shards, replicas=settings.qdrant_replicas)


def skill_layout(settings: Settings) -> qdrant.Layout:
    """A few thousand points, read by every search: one shard, as many copies as the items have."""
    return qdrant.Layout(
        keyword_fields=("id",),
        broad=frozenset(),
        counted_fields=(),
        counted_empty="",
        replicas=settings.qdrant_replicas,
    )


def _indexes(engine: qdrant.Qdrant, settings: Settings, pool: postgres.Pool) -> IndexPair:
    return IndexPair(
        qdrant.QdrantIndexes(engine, settings.qdrant_alias, item_layout(settings), model_source(settings)),
        qdrant.QdrantIndexes(engine, settings.qdrant_skills_alias, skill_layout(settings), model_source(settings)),
        postgres.PostgresSkillVectors(pool),
    )


async def _check_schema(pool: postgres.Pool, *, catalog_needed: bool) -> None:
    try:
        await postgres.require_current_schema(pool)
    except CatalogUnavailable as error:
        if catalog_needed:
            raise
        logger.warning("no catalog yet", extra={"part": "catalog", "reason": error.message})


def model_source(settings: Settings) -> str:
    """What says how to load the configured model; of an endpoint its card says it."""
    return "" if settings.embedding_url else settings.embedding_model


@asynccontextmanager
async def open_embedder(
    settings: Settings, *, parallel: int | None = None, headers: Callable[[], Mapping[str, str]] = dict
) -> AsyncIterator[Embedder]:
    """`parallel` searches embed at once on one core each; None: one batch at a time on all cores.

    `headers` go with every request to an endpoint.
    """
    # Imported here: a model's runtime takes longer to load than an import of items takes as a whole.
    if settings.embedding_url:
        from toolscript.adapters.openai_embeddings import OpenAIEmbedder

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
    from toolscript.adapters.local_model.embedder import LocalEmbedder

    threads, parallel = (None, 1) if parallel is None else (1, parallel)
    local = await asyncio.to_thread(LocalEmbedder, settings.embedding_model, threads=threads, parallel=parallel)
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
