"""`serve` starts without an engine or an index, says so, and is whole as soon as it is there."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.conftest import Installation
from tests.support.faults import Fault, relay
from tests.unit.core.embedding.embedding_endpoint import EmbeddingEndpoint
from tests.unit.server.faults.builders import FOUND, asking, fill
from toolscript.server.serve import open_app

SEARCH = {"query": "create pull request", "threshold": 0.0}
LISTS = ("/api/v1/tools?limit=1", "/api/v1/skills?limit=1")


@asynccontextmanager
async def serving(environment: Mapping[str, str]) -> AsyncIterator[httpx2.AsyncClient]:
    async with open_app(Installation(dict(environment)).settings) as app:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
            yield client


async def until_found(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(20):
        while (answer := await client.post("/api/v1/tools/search", json=SEARCH)).status_code != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert answer.json()["results"][0]["name"] == FOUND


@pytest.mark.requirement("API-002", "EC-009")
@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.HANGING])
async def test_it_starts_without_qdrant_and_searches_as_soon_as_that_answers(
    installed: Installation, fault: Fault
) -> None:
    async with relay("127.0.0.1", installed.settings.qdrant_grpc_port) as line:
        await line.fail(fault)
        behind = {**installed.environment, "TOOLSCRIPT_QDRANT_GRPC_PORT": str(line.port)}
        async with serving(behind) as client:
            refused = await client.post("/api/v1/tools/search", json=SEARCH)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert [(await client.get(path)).status_code for path in LISTS] == [200, 200]
            health = await client.get("/readyz")
            assert (health.status_code, health.json()["status"]) == (200, "unready")
            await line.heal()
            await until_found(client)


@pytest.mark.requirement("EC-009")
async def test_it_starts_without_postgresql_and_lists_as_soon_as_that_answers(installed: Installation) -> None:
    url = installed.settings.postgres_url.get_secret_value()
    port = urlsplit(url).port or 0
    async with relay("127.0.0.1", port) as line:
        await line.fail(Fault.REFUSED)
        behind = {**installed.environment, "TOOLSCRIPT_POSTGRES_URL": url.replace(f":{port}/", f":{line.port}/")}
        async with serving(behind) as client:
            await until_found(client)
            assert [(await client.get(path)).status_code for path in LISTS] == [503, 503]
            await line.heal()
            async with asyncio.timeout(20):
                while (await client.get(LISTS[0])).status_code != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)


@pytest.mark.requirement("EC-009")
async def test_it_starts_without_an_index_names_the_command_that_builds_it_and_then_uses_it(
    installation: Installation,
) -> None:
    with EmbeddingEndpoint(64) as endpoint:
        own = Installation({**installation.environment, **asking(endpoint)})
        async with serving(own.environment) as client:
            refused = await client.post("/api/v1/tools/search", json=SEARCH)
            assert refused.status_code == 503
            assert "toolscript worker" in refused.json()["error"]["details"]["hint"]
            await fill(own.settings)
            await until_found(client)
