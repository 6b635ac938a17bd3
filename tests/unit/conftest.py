"""The HTTP API in this process on the real engines, reached through relays that can fail."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.support.faults import Relay, relay
from tests.unit.server.http.items import ITEMS
from toolscript.core.item_json import item_from_json
from toolscript.core.settings.service import Settings
from toolscript.core.values import silent
from toolscript.server.indexing import open_index_writer
from toolscript.server.serve import open_app
from toolscript.tools.catalog.items import import_items


@dataclass(frozen=True)
class Api:
    client: httpx2.AsyncClient
    postgres: Relay
    qdrant: Relay

    async def search(self, query: str, **more: object) -> httpx2.Response:
        return await self.client.post("/api/v1/search", json={"query": query, **more})


async def fill(settings: Settings) -> None:
    async with open_index_writer(settings) as writer:
        await import_items(writer.stores.catalog, "test", [item_from_json(item) for item in ITEMS])
        await writer.worker(silent).drain()


@pytest.fixture(scope="session")
def filled(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Installation]:
    """An installation with the small catalog in it, for tests that only read."""
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as fresh,
    ):
        asyncio.run(fill(fresh.settings))
        yield fresh


@asynccontextmanager
async def api_of(installation: Installation) -> AsyncIterator[Api]:
    settings = installation.settings
    database = urlsplit(settings.postgres_url.get_secret_value())
    async with AsyncExitStack() as stack:
        to_postgres = await stack.enter_async_context(relay("127.0.0.1", database.port or 0))
        to_qdrant = await stack.enter_async_context(relay("127.0.0.1", settings.qdrant_grpc_port))
        behind = {
            **installation.environment,
            "TOOLSCRIPT_POSTGRES_URL": database.geturl().replace(f":{database.port}/", f":{to_postgres.port}/"),
            "TOOLSCRIPT_QDRANT_GRPC_PORT": str(to_qdrant.port),
            "TOOLSCRIPT_DEADLINE_SECONDS": "3",
        }
        app = await stack.enter_async_context(open_app(Installation(behind).settings))
        transport = httpx2.ASGITransport(app)
        client = httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        yield Api(await stack.enter_async_context(client), to_postgres, to_qdrant)


@pytest.fixture(scope="module")
async def api(filled: Installation) -> AsyncIterator[Api]:
    """For all tests of a file that break nothing: to load a model and to make the routes takes a while."""
    async with api_of(filled) as opened:
        yield opened


@pytest.fixture
async def fragile(filled: Installation) -> AsyncIterator[Api]:
    """Of a test's own, to be broken."""
    async with api_of(filled) as opened:
        yield opened
