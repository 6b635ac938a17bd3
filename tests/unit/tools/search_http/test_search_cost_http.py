"""The cost of a search, counted at an embeddings endpoint and on the wire to PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.support.faults import Fault, Relay, relay
from tests.unit.core.embedding.embedding_endpoint import EmbeddingEndpoint
from tests.unit.tools.search_http.builders import ALL, STRATEGIES, Searching, by_words, ids, names
from tests.unit.tools.search_http.catalog import BEES, BY_HAND, ids_by_name, own_items
from tests.unit.tools.search_http.watched_postgres import WatchedPostgres, watched_postgres
from tests.unit.tools.sources_http.builders import serving
from toolscript.core.embedding.items import embed_items
from toolscript.core.items import ItemKind
from toolscript.core.settings.service import Settings
from toolscript.core.values import silent
from toolscript.server.indexing import open_index_writer
from toolscript.testing import HashEmbedder
from toolscript.tools.catalog.items import import_items

DIMENSIONS = 64
DEADLINE_SECONDS = 10.0
# A service checks its rules now and then, and shortens its log of searches in a transaction of its own.
OF_OTHER_WORK = ("mcp.curation", "mcp.tool_search", "BEGIN", "set_config", "COMMIT")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with EmbeddingEndpoint(DIMENSIONS) as started:
        yield started


@pytest.fixture(scope="module")
def counted(engines: Settings, migrated_database: str, endpoint: EmbeddingEndpoint) -> Iterator[Installation]:
    """A few items, and one skill that some of them are in."""
    with fresh_database(engines, migrated_database) as url, fresh_installation(engines, url, "hash") as fresh:
        fresh.environment["TOOLSCRIPT_EMBEDDING_URL"] = endpoint.url
        fresh.environment["TOOLSCRIPT_EMBEDDING_DIMENSIONS"] = str(DIMENSIONS)
        asyncio.run(_fill(fresh))
        yield fresh


async def _fill(installation: Installation) -> None:
    async with open_index_writer(installation.settings) as writer:
        await import_items(writer.stores.catalog, "own", own_items())
        await writer.worker(silent).drain()
        await writer.stores.taxonomy.add(BEES, "ada")
        id_of = await ids_by_name(writer.stores)
        for name in [name for name, skills in BY_HAND.items() if BEES.id in skills]:
            await writer.stores.assignments.set_by_hand(id_of[name], [BEES.id], "ada")
        await writer.worker(silent).drain()


@dataclass(frozen=True)
class Counted(Searching):
    endpoint: EmbeddingEndpoint
    postgres: WatchedPostgres
    embeddings: Relay

    async def embedded(self, query: str, **more: Any) -> list[str]:
        """Return the texts that one search embedded."""
        before = len(self.endpoint.asked)
        await self.search(query, **more)
        return sorted(text for texts in self.endpoint.asked[before:] for text in texts)

    async def statements(self, query: str, **more: Any) -> tuple[dict[str, Any], list[str]]:
        """Return the answer of one search, and its statements in PostgreSQL, without those of other work.

        The first one asks once, for all candidates, what the catalog has removed; it is not returned.
        """
        before = len(self.postgres.run)
        answer = await self.search(query, **more)
        run = self.postgres.run[before:]
        own = [statement for statement in run if not any(words in statement for words in OF_OTHER_WORK)]
        assert ["NOT EXISTS (SELECT FROM mcp.items" in statement for statement in own].index(True) == 0
        return answer, own[1:]


@pytest.fixture(scope="module")
async def costing(counted: Installation, endpoint: EmbeddingEndpoint) -> AsyncIterator[Counted]:
    async with counting(counted, endpoint) as opened:
        yield opened


@asynccontextmanager
async def counting(counted: Installation, endpoint: EmbeddingEndpoint) -> AsyncIterator[Counted]:
    """Serve searches with nothing cached yet."""
    database = urlsplit(counted.environment["TOOLSCRIPT_POSTGRES_URL"])
    async with AsyncExitStack() as stack:
        watched = await stack.enter_async_context(watched_postgres("127.0.0.1", database.port or 0))
        to_endpoint = await stack.enter_async_context(relay("127.0.0.1", urlsplit(endpoint.url).port or 0))
        service = await stack.enter_async_context(
            serving(
                counted,
                TOOLSCRIPT_POSTGRES_URL=database.geturl().replace(f":{database.port}/", f":{watched.port}/"),
                TOOLSCRIPT_EMBEDDING_URL=f"http://127.0.0.1:{to_endpoint.port}/v1",
                TOOLSCRIPT_DEADLINE_SECONDS=str(DEADLINE_SECONDS),
            )
        )
        yield Counted(service, endpoint, watched, to_endpoint)


@pytest.mark.states("S0-016", "S0-100")
@pytest.mark.states("S3-130")
@pytest.mark.requirement("BR-001")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("search_type", ["hybrid", "semantic"])
async def test_a_query_is_embedded_once_for_all_stages(costing: Counted, strategy: str, search_type: str) -> None:
    query = f"honey {strategy} {search_type}"
    assert await costing.embedded(query, strategy=strategy, search_type=search_type) == [query]


@pytest.mark.requirement("BR-001")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_search_without_vectors_embeds_nothing(costing: Counted, strategy: str) -> None:
    assert await costing.embedded(f"honey of {strategy}", strategy=strategy, search_type="keyword") == []


@pytest.mark.requirement("BR-001")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_each_sub_query_is_embedded_once(costing: Counted, strategy: str) -> None:
    query = f"send {strategy} honey by mail and book a {strategy} flight"
    texts = await costing.embedded(query, strategy=strategy)
    assert query in texts
    assert len(texts) > 1
    assert len(texts) == len(set(texts))


@pytest.mark.states("S0-019", "S0-053", "S0-228")
@pytest.mark.states("S3-147", "S3-221")
@pytest.mark.requirement("BR-004")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_schemas_of_all_returned_items_are_read_by_one_statement(
    counted: Installation, endpoint: EmbeddingEndpoint, strategy: str, limit: int
) -> None:
    async with counting(counted, endpoint) as costing:
        answer, run = await costing.statements("honey of a beehive", strategy=strategy, **ALL | {"limit": limit})
    assert answer["tools"]
    assert len(run) == 1
    assert "input_schema" in run[0]


@pytest.mark.states("S0-058")
@pytest.mark.requirement("BR-004")
async def test_schemas_that_an_earlier_search_has_read_are_not_read_again(
    counted: Installation, endpoint: EmbeddingEndpoint
) -> None:
    async with counting(counted, endpoint) as costing:
        first, _ = await costing.statements("honey of a beehive", **ALL | {"limit": 100})
        again, run = await costing.statements("a beehive with honey", **ALL | {"limit": 100})
    assert run == []
    schemas = {tool["id"]: tool["input_schema"] for tool in first["tools"]}
    assert {tool["id"]: tool["input_schema"] for tool in again["tools"]}.items() <= schemas.items()
    assert any(schemas.values())


@pytest.mark.states("S0-014", "S0-019", "S0-055", "S0-109")
@pytest.mark.requirement("BR-004")
@pytest.mark.parametrize(
    ("query", "more"),
    [
        ("honey of a beehive", {"include_schemas": False}),
        ("honey of a beehive", {"tool_threshold": 1.0}),
        ("zebra", {"strategy": "hybrid", "tool_threshold": 1.0}),
    ],
)
async def test_without_schemas_in_the_response_none_are_read(
    costing: Counted, query: str, more: dict[str, Any]
) -> None:
    answer, run = await costing.statements(query, **more)
    assert run == []
    assert all(tool["input_schema"] is None for tool in answer["tools"])


@pytest.mark.states("S0-096")
@pytest.mark.requirement("BR-009")
@pytest.mark.parametrize("strategy", ["direct", "hybrid"])
async def test_a_query_opposite_to_every_item_finds_nothing_even_at_a_threshold_of_0(
    costing: Counted, strategy: str
) -> None:
    away = [-value for value in await _sum_of_resources()]
    costing.endpoint.answer_once({"data": [{"index": 0, "embedding": away}]})
    query = f"{strategy} against them all"
    answer = await costing.search(query, strategy=strategy, search_type="semantic", item_type="resource", **ALL)
    assert answer["tools"] == []
    assert {miss["score"] for miss in answer["metadata"]["near_misses"]} == {0.0}
    assert len(answer["metadata"]["near_misses"]) == 3


async def _sum_of_resources() -> list[float]:
    resources = [item for item in own_items() if item.kind is ItemKind.RESOURCE]
    vectors = await embed_items(HashEmbedder(dimensions=DIMENSIONS), resources)
    return [float(value) for value in vectors.sum(axis=0)]


@pytest.mark.states("S0-203", "S0-213")
@pytest.mark.requirement("EC-009")
async def test_a_slow_embedding_makes_a_search_slow_but_not_worse(costing: Counted) -> None:
    quick = await costing.search("weigh the honey")
    await costing.embeddings.fail(Fault.HANGING)
    asking = asyncio.ensure_future(costing.search("weigh the honey "))
    answered, _ = await asyncio.wait([asking], timeout=0.15)
    await costing.embeddings.heal()
    slow = await asking
    assert not answered
    assert slow["metadata"]["query_embedding_time_ms"] > 100
    assert slow["metadata"]["degraded"] == []
    assert ids(slow["tools"]) == ids(quick["tools"])


@pytest.mark.states("S0-204", "S0-205")
@pytest.mark.requirement("EC-009", "API-002")
@pytest.mark.parametrize("strategy", ["hierarchical", "hybrid"])
async def test_without_an_embedding_in_time_sparse_retrieval_answers_before_the_deadline(
    costing: Counted, strategy: str
) -> None:
    await costing.embeddings.fail(Fault.HANGING)
    try:
        answer = await costing.search(f"feed bees {strategy}", strategy=strategy)
    finally:
        # Drop the held requests: their clients do not wait any more.
        await costing.embeddings.fail(Fault.REFUSED)
        await costing.embeddings.heal()
    metadata = answer["metadata"]
    assert metadata["total_time_ms"] < DEADLINE_SECONDS * 1000
    assert (metadata["degraded"], metadata["search_type_used"]) == (["embedding"], "keyword")
    assert metadata["strategy_used"] == strategy
    assert names(answer["tools"])[0] == "feed_bees"
    assert [skill["score"] for skill in by_words(answer)] == [None]
