"""One installation and one server for all faults: leftovers of one fault would affect the next."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from unittest.mock import patch
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.conftest import Installation, fresh_database, fresh_installation
from tests.support.faults import relay
from tests.support.grpc_faults import call_relay
from tests.unit.core.embedding.embedding_endpoint import EmbeddingEndpoint
from tests.unit.server.faults.builders import DEADLINE_SECONDS, DIMENSIONS, Faulty, asking, fill
from toolscript.core.settings.service import Settings
from toolscript.server import serve
from toolscript.tools import hydration


@pytest.fixture(scope="session")
def installed(engines: Settings, migrated_database: str) -> Iterator[Installation]:
    with (
        EmbeddingEndpoint(DIMENSIONS) as endpoint,
        fresh_database(engines, migrated_database) as url,
        fresh_installation(engines, url, "hash") as fresh,
    ):
        environment = {
            **fresh.environment,
            **asking(endpoint),
            "TOOLSCRIPT_DEADLINE_SECONDS": str(DEADLINE_SECONDS),
        }
        asyncio.run(fill(Installation(environment).settings))
        yield Installation(environment)


@pytest.fixture(scope="module")
async def served(installed: Installation) -> AsyncIterator[Faulty]:
    settings = installed.settings
    database = urlsplit(settings.postgres_url.get_secret_value())
    endpoint = urlsplit(settings.embedding_url)
    async with AsyncExitStack() as stack:
        to_endpoint = await stack.enter_async_context(relay("127.0.0.1", endpoint.port or 0))
        to_postgres = await stack.enter_async_context(relay("127.0.0.1", database.port or 0))
        calls = await stack.enter_async_context(call_relay(f"127.0.0.1:{settings.qdrant_grpc_port}"))
        to_qdrant = await stack.enter_async_context(relay("127.0.0.1", calls.port))
        behind = {
            **installed.environment,
            "TOOLSCRIPT_EMBEDDING_URL": f"http://127.0.0.1:{to_endpoint.port}/v1",
            "TOOLSCRIPT_POSTGRES_URL": database.geturl().replace(f":{database.port}/", f":{to_postgres.port}/"),
            "TOOLSCRIPT_QDRANT_GRPC_PORT": str(to_qdrant.port),
        }
        # A cached query vector would hide a fault of the endpoint, and cached schemas one of PostgreSQL.
        stack.enter_context(patch.object(serve, "CACHED_QUERIES", 1))
        stack.enter_context(patch.object(hydration, "SHARE_OF_PAYLOADS", 0))
        app = await stack.enter_async_context(serve.open_app(Installation(behind).settings))
        client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1")
        await stack.enter_async_context(client)
        faulty = Faulty(client, to_endpoint, to_qdrant, calls, to_postgres)
        await faulty.learn_what_is_whole()
        yield faulty
        await faulty.heal()


@pytest.fixture
async def faulty(served: Faulty, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Faulty]:
    """Require recovery afterwards, without a restart and without unexpected errors."""
    with caplog.at_level(logging.WARNING):
        yield served
        await served.heal()
        await served.until_whole()
    # gRPC logs unreadable responses itself; we log the failed part, too.
    errors = [line for line in caplog.get_records("call") if line.levelno >= logging.ERROR]
    assert [line.getMessage() for line in errors if line.name != "grpc._common"] == []
