"""A cluster of three nodes, searched without a pause, while one of them is killed and comes back."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import httpx2
import pytest

from tests.conftest import Installation, fresh_database
from tests.support.clusters import NODES, Cluster, fresh_cluster
from tests.support.faults import relay
from tests.unit.core.embedding.embedding_endpoint import EmbeddingEndpoint
from tests.unit.server.faults.builders import DIMENSIONS, FOUND, GENEROUS, STRATEGIES, asking, fill
from toolscript.core.settings.service import Settings
from toolscript.server.serve import open_app

MIN_PER_SECOND = 20
SEARCHES = 40


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with fresh_cluster() as started:
        yield started


@pytest.fixture(scope="module")
async def installed(cluster: Cluster, engines: Settings, migrated_database: str) -> AsyncIterator[Installation]:
    """Every item on two of the nodes; they are three hosts with the same port, as three machines would be."""
    async with AsyncExitStack() as stack:
        endpoint = stack.enter_context(EmbeddingEndpoint(DIMENSIONS))
        url = stack.enter_context(fresh_database(engines, migrated_database))
        port = 0
        for node in NODES:
            to_node = relay("127.0.0.1", cluster.grpc_port(node), listens_on=f"127.0.0.{node}", own_port=port)
            port = (await stack.enter_async_context(to_node)).port
        environment = {
            # Clients search in a closed loop.
            "TOOLSCRIPT_PUBLIC_REQUESTS_PER_MINUTE": "0",
            "TOOLSCRIPT_PUBLIC_SCOPES": "knowledge:read tools:read",
            "TOOLSCRIPT_POSTGRES_URL": url,
            "TOOLSCRIPT_QDRANT_URL": ", ".join(f"http://127.0.0.{node}" for node in NODES),
            "TOOLSCRIPT_QDRANT_GRPC_PORT": str(port),
            "TOOLSCRIPT_QDRANT_SHARDS": "3",
            "TOOLSCRIPT_QDRANT_REPLICAS": "2",
            "TOOLSCRIPT_EMBEDDING_MODEL": "hash",
            **asking(endpoint),
        }
        await fill(Installation(environment).settings)
        yield Installation(environment)


@dataclass
class Load:
    """Clients that search in a closed loop, and record every incomplete answer."""

    client: httpx2.AsyncClient
    searches: int = 0
    longest: float = 0.0
    took: float = 0.0
    failed: list[object] = field(default_factory=list)

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        started = time.monotonic()
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            calls = [group.create_task(self._call(strategy)) for strategy in (*STRATEGIES, *STRATEGIES)]
            yield
            for call in calls:
                call.cancel()
        self.took = time.monotonic() - started

    async def reaches(self, searches: int) -> None:
        while self.searches < searches:  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def _call(self, strategy: str) -> None:
        while True:
            request = {"query": "create pull request", "strategy": strategy, **GENEROUS}
            started = time.monotonic()
            answer = await self.client.post("/api/v1/search", json=request)
            self.longest = max(self.longest, time.monotonic() - started)
            self.searches += 1
            if not _is_whole(answer):
                self.failed.append(answer.json())


def _is_whole(answer: httpx2.Response) -> bool:
    body = answer.json()
    if answer.status_code != 200 or body["metadata"]["degraded"] or not body["tools"]:
        return False
    return body["tools"][0]["name"] == FOUND and bool(body["tools"][0]["input_schema"])


@pytest.fixture(scope="module")
async def client(installed: Installation) -> AsyncIterator[httpx2.AsyncClient]:
    async with open_app(installed.settings) as app:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as opened:
            yield opened


@pytest.mark.nightly
@pytest.mark.requirement("EC-009", "API-002")
@pytest.mark.parametrize("node", [pytest.param(1, id="the one we ask"), pytest.param(3, id="another")])
async def test_no_search_fails_when_a_node_is_killed_nor_when_it_comes_back(
    cluster: Cluster, client: httpx2.AsyncClient, node: int
) -> None:
    load = Load(client)
    async with load.going_on():
        await load.reaches(SEARCHES)
        cluster.kill(node)
        await load.reaches(3 * SEARCHES)
        await cluster.start_again(node)
        await load.reaches(load.searches + SEARCHES)
    assert load.failed == []
    assert load.searches / load.took > MIN_PER_SECOND
