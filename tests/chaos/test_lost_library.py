"""MongoDB or Qdrant loses the library: searches and readiness say so, also where the other still has its part."""

import asyncio
from pathlib import Path

import httpx
import pytest
from pymongo import MongoClient

from tests.conftest import Installation, drop_collections
from tests.e2e.commands import run_here
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.core.settings.service import Settings
from toolscript.server.serve import open_app

pytestmark = pytest.mark.requirement("OP-004", "KN-003")

SEARCH = "/api/v1/knowledge/search"
RESTORE, REINDEX = "toolscript restore", "toolscript ingest --reindex"


@pytest.fixture
def settings(installation: Installation, tmp_path: Path) -> Settings:
    """An installation with one file in its library."""
    (tmp_path / "bees.md").write_text("# Keeping bees\n\nThe hive needs a dry place. Feed sugar in autumn.\n")
    run_here(installation.environment, "worker", "--drain")
    run_here(installation.environment, "ingest", str(tmp_path / "bees.md"))
    return installation.settings


def lose_mongo(settings: Settings) -> None:
    with MongoClient[dict[str, object]](settings.mongo_writer_url.get_secret_value()) as client:
        for collection in ("sources", "chunks", "extractions"):
            client[settings.mongo_database][collection].delete_many({})


async def lose_qdrant(settings: Settings) -> None:
    async with open_qdrant(settings.qdrant_url, settings.qdrant_grpc_port) as connected:
        for alias in (settings.qdrant_chunks_alias, settings.qdrant_extractions_alias):
            await drop_collections(connected, alias)


async def search(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post(SEARCH, json={"query": "sugar for the hive"})


async def requires(client: httpx.AsyncClient, command: str) -> None:
    answer = await search(client)
    assert (answer.status_code, command in answer.text) == (503, True), answer.text
    part = (await client.get("/readyz")).json()["parts"]["library"]
    assert (part["ok"], command in part["note"]) == (False, True), part


@pytest.mark.parametrize("is_serving", [True, False])
def test_a_library_that_mongo_has_lost_is_not_an_empty_answer(settings: Settings, is_serving: bool) -> None:
    async def look() -> None:
        if not is_serving:
            lose_mongo(settings)
        async with open_app(settings) as app:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
                if is_serving:
                    assert (await search(client)).json()["results"]
                    lose_mongo(settings)
                await requires(client, RESTORE)

    asyncio.run(look())


def test_a_library_that_qdrant_has_lost_names_what_builds_its_index_again(
    installation: Installation, settings: Settings
) -> None:
    async def look() -> None:
        await lose_qdrant(settings)
        async with open_app(settings) as app:
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
                await requires(client, REINDEX)
                await asyncio.to_thread(run_here, installation.environment, "ingest", "--reindex")
                assert (await search(client)).json()["results"]

    asyncio.run(look())
