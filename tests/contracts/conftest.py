"""Each port's real adapters and its double, one after the other."""

import uuid
from collections.abc import AsyncIterator
from functools import partial

import pytest

from tests.conftest import PATIENCE, drop_collections
from tests.contracts import document_builders, library_builders
from tests.contracts.builders import CARD, DIMENSIONS, FIRST, Record
from tests.unit.core.embedding.embedding_endpoint import EmbeddingEndpoint
from toolscript.core.embedding.embedder import LocalEmbedder
from toolscript.core.embedding.openai import OpenAIEmbedder
from toolscript.core.embedding.static_table import StaticEmbedder
from toolscript.core.postgres.pool import Pool, open_pool
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.core.retrieval.model import ModelCard
from toolscript.core.retrieval.ports import Embedder, Index, Indexes
from toolscript.core.settings.service import Settings
from toolscript.documents.ports import DocumentIndex
from toolscript.documents.qdrant.collection import open_documents
from toolscript.documents.qdrant.layout import DocumentLayout
from toolscript.testing import (
    HashEmbedder,
    MemoryAssignments,
    MemoryCatalog,
    MemoryDirtySet,
    MemoryDocuments,
    MemoryIndexes,
    MemorySkillVectors,
    MemorySuggestions,
    MemoryTaxonomy,
)
from toolscript.tools.postgres.assignments import PostgresAssignments
from toolscript.tools.postgres.catalog import PostgresCatalog
from toolscript.tools.postgres.centroids import PostgresSkillVectors
from toolscript.tools.postgres.dirty_set import PostgresDirtySet
from toolscript.tools.postgres.skills import PostgresTaxonomy
from toolscript.tools.postgres.suggestions import PostgresSuggestions


@pytest.fixture(params=["hash", "builtin", "fastembed", "openai"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    if request.param == "hash":
        yield HashEmbedder()
    elif request.param == "builtin":
        yield StaticEmbedder()
    elif request.param == "fastembed":
        yield request.getfixturevalue("local_model")
    else:
        with EmbeddingEndpoint(DIMENSIONS) as endpoint:
            remote = OpenAIEmbedder(endpoint.url, ModelCard("hash", "1", DIMENSIONS))
            yield remote
            await remote.close()


@pytest.fixture(scope="session")
def local_model(model_folder: str) -> LocalEmbedder:
    return LocalEmbedder(model_folder, threads=1)


@pytest.fixture(params=["memory", "qdrant"])
def some_indexes(request: pytest.FixtureRequest) -> Indexes:
    if request.param == "memory":
        return MemoryIndexes()
    qdrant: Indexes = request.getfixturevalue("indexes")
    return qdrant


@pytest.fixture
async def index(some_indexes: Indexes) -> Index:
    await some_indexes.create(CARD)
    return await some_indexes.open(CARD)


@pytest.fixture(params=["memory", "qdrant"])
async def document_index(request: pytest.FixtureRequest) -> AsyncIterator[DocumentIndex]:
    if request.param == "memory":
        yield MemoryDocuments(document_builders.CARD)
        return
    engines: Settings = request.getfixturevalue("engines")
    alias = f"test_{uuid.uuid4().hex[:12]}"
    layout = DocumentLayout(fields={"lang": "keyword", "at": "number"})
    async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as connected:
        yield await open_documents(connected, alias, document_builders.CARD, layout)
        await drop_collections(connected, alias)


@pytest.fixture(params=["memory", "mongo"])
async def shelf(request: pytest.FixtureRequest) -> AsyncIterator[library_builders.Shelf]:
    if request.param == "memory":
        yield library_builders.shelf_in_memory()
        return
    async with library_builders.shelf_in_mongo(request.getfixturevalue("engines")) as shelf:
        yield shelf


@pytest.fixture(params=["memory", "postgres"])
async def record(request: pytest.FixtureRequest) -> AsyncIterator[Record]:
    if request.param == "memory":
        yield _in_memory()
    else:
        async with open_pool(request.getfixturevalue("postgres_url"), size=8, wait_seconds=PATIENCE) as pool:
            yield _in_postgres(pool)


def _in_memory() -> Record:
    time = [0.0]

    async def let_pass(seconds: float) -> None:
        time[0] += seconds

    dirty = MemoryDirtySet(lambda: time[0])
    catalog = MemoryCatalog(dirty)
    taxonomy = MemoryTaxonomy(catalog)
    suggestions = MemorySuggestions(catalog, taxonomy)
    assignments = MemoryAssignments(catalog, taxonomy, suggestions)
    vectors = MemorySkillVectors(dirty, taxonomy.skills)
    taxonomy.count_tools = partial(vectors.members, FIRST)
    return Record(catalog, dirty, let_pass, taxonomy, assignments, suggestions, vectors)


def _in_postgres(pool: Pool) -> Record:
    async def let_pass(seconds: float) -> None:
        async with pool.connection() as conn:
            await conn.execute(
                "UPDATE mcp.dirty_items SET free_at = free_at - make_interval(secs => %(passed)s),"
                " marked_at = marked_at - make_interval(secs => %(passed)s)",
                {"passed": seconds},
            )

    return Record(
        PostgresCatalog(pool),
        PostgresDirtySet(pool),
        let_pass,
        PostgresTaxonomy(pool),
        PostgresAssignments(pool),
        PostgresSuggestions(pool),
        PostgresSkillVectors(pool),
    )
