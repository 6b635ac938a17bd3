"""S0, the query's vector, counted where it is made: at an embeddings endpoint that can fail."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.contracts.source.s0.builders import LITERAL
from tests.support.faults import Fault, Relay, relay
from tests.unit.core.embedding.embedding_endpoint import EmbeddingEndpoint
from tests.unit.server.faults.builders import DIMENSIONS, FOUND, asking, fill
from tests.unit.tools.search_http.builders import STRATEGIES, Searching, names
from tests.unit.tools.sources_http.builders import serving
from toolscript.core.settings.service import Settings

WISHES = "send the `list.csv` of issues by mail, then create a pull request and read a file"


@dataclass(frozen=True)
class Embedding(Searching):
    endpoint: EmbeddingEndpoint
    line: Relay

    async def embedded(self, query: str, **more: Any) -> list[list[str]]:
        """Return the requests to the endpoint for one search."""
        before = len(self.endpoint.asked)
        await self.search(query, **more)
        return self.endpoint.asked[before:]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[EmbeddingEndpoint]:
    with EmbeddingEndpoint(DIMENSIONS) as started:
        yield started


@pytest.fixture(scope="module")
def installed(engines: Settings, migrated_database: str, endpoint: EmbeddingEndpoint) -> Iterator[Installation]:
    with fresh_database(engines, migrated_database) as url, fresh_installation(engines, url, "hash") as fresh:
        fresh.environment.update(asking(endpoint))
        asyncio.run(fill(fresh.settings))
        yield fresh


@pytest.fixture(scope="module")
async def embedding(installed: Installation, endpoint: EmbeddingEndpoint) -> AsyncIterator[Embedding]:
    async with relay("127.0.0.1", urlsplit(endpoint.url).port or 0) as line:
        url = f"http://127.0.0.1:{line.port}/v1"
        more = {"TOOLSCRIPT_EMBEDDING_URL": url, "TOOLSCRIPT_DEADLINE_SECONDS": "3"}
        async with serving(installed, **more) as service:
            yield Embedding(service, endpoint, line)


@pytest.mark.states("S0-005", "S0-016", "S0-100", "S0-101", "S0-196")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_query_is_embedded_once_and_unchanged(embedding: Embedding, strategy: str) -> None:
    query = f"{WISHES} {strategy}"
    assert await embedding.embedded(query, strategy=strategy, **LITERAL) == [[query]]


@pytest.mark.states("S0-005", "S0-016")
async def test_by_default_sub_queries_are_embedded_too(embedding: Embedding) -> None:
    texts = [text for requests in await embedding.embedded(WISHES) for text in requests]
    assert WISHES in texts
    assert 1 < len(texts) == len(set(texts))


@pytest.mark.states("S0-194")
async def test_a_query_that_is_too_long_is_refused_before_it_is_embedded(embedding: Embedding) -> None:
    before = len(embedding.endpoint.asked)
    await embedding.refused("x" * 1001, 422, **LITERAL)
    assert len(embedding.endpoint.asked) == before


@pytest.mark.states("S0-132", "S0-161", "S0-205")
@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.HANGING, Fault.WRONG])
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_without_a_vector_literal_mode_is_an_error(
    embedding: Embedding, strategy: str, fault: Fault
) -> None:
    query = f"create pull request {strategy} {fault}"
    await embedding.line.fail(fault)
    began = time.monotonic()
    try:
        error = await embedding.refused(query, 503, strategy=strategy, tool_threshold=0.0, **LITERAL)
    finally:
        await embedding.line.fail(Fault.REFUSED)
        await embedding.line.heal()
    assert "nothing could be searched" in str(error)
    assert time.monotonic() - began < 3


@pytest.mark.states("S0-132")
async def test_without_a_vector_the_default_searches_sparse(embedding: Embedding) -> None:
    await embedding.line.fail(Fault.REFUSED)
    try:
        answer = await embedding.search("create pull request by default")
    finally:
        await embedding.line.heal()
    assert names(answer["tools"])[0] == FOUND
    assert answer["metadata"]["degraded"] == ["embedding"]
