"""People manage skills on the real engines: an installation for each file of tests, with a small catalog in it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.support.faults import relay
from tests.unit.conftest import fill
from tests.unit.tools.skills_http.builders import Managed
from toolscript.core.settings.service import Settings
from toolscript.server.serve import open_app
from toolscript.server.stores import open_stores


@pytest.fixture(scope="module")
def installed(engines: Settings, migrated_database: str, model_folder: str) -> Iterator[Installation]:
    with (
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, model_folder) as fresh,
    ):
        asyncio.run(fill(fresh.settings))
        yield fresh


@pytest.fixture(scope="module")
async def managed(installed: Installation) -> AsyncIterator[Managed]:
    """The HTTP API in this process, behind a relay to Qdrant that can fail; and the stores, without one."""
    settings = installed.settings
    async with AsyncExitStack() as stack:
        to_qdrant = await stack.enter_async_context(relay("127.0.0.1", settings.qdrant_grpc_port))
        database = urlsplit(settings.postgres_url.get_secret_value())
        to_postgres = await stack.enter_async_context(relay("127.0.0.1", database.port or 0))
        behind = {
            **installed.environment,
            "TOOLSCRIPT_POSTGRES_URL": database.geturl().replace(f":{database.port}/", f":{to_postgres.port}/"),
            "TOOLSCRIPT_QDRANT_GRPC_PORT": str(to_qdrant.port),
            "TOOLSCRIPT_ENVIRONMENT": "development",
        }
        stores = await stack.enter_async_context(open_stores(settings))
        app = await stack.enter_async_context(open_app(Installation(behind).settings))
        transport = httpx2.ASGITransport(app)
        client = await stack.enter_async_context(
            httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60)
        )
        yield Managed(client, stores, installed, to_postgres, to_qdrant)
