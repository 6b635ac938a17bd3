"""The worker inside `serve`, on the real engines."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from tests.conftest import Installation, drop_collections
from tests.unit.core.embedding.embedding_endpoint import EmbeddingEndpoint
from tests.unit.server.faults.builders import DIMENSIONS, FOUND, ITEMS, asking
from tests.unit.server.metrics.metrics_page import value
from toolscript.core.item_json import item_from_json
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.server import serve_worker
from toolscript.server.serve import open_app
from toolscript.server.serve_worker import YieldingEmbedder
from toolscript.server.stores import Stores, open_stores
from toolscript.testing import HashEmbedder
from toolscript.tools.catalog.items import import_items
from toolscript.tools.indexing import worker as workers

pytestmark = pytest.mark.requirement("SK-009")

SEARCH = {"query": "create pull request", "threshold": 0.0}
PATIENCE_SECONDS = 60.0


@pytest.fixture
def own(installation: Installation) -> Iterator[Installation]:
    """An installation without an index, whose `serve` has its worker."""
    with EmbeddingEndpoint(DIMENSIONS) as endpoint:
        more = {"TOOLSCRIPT_SERVE_WORKER": "true", "TOOLSCRIPT_METRICS": "true", **asking(endpoint)}
        # Metrics are for administrators.
        yield Installation({**installation.environment, **more, "TOOLSCRIPT_ENVIRONMENT": "development"})


@asynccontextmanager
async def serving(installation: Installation) -> AsyncIterator[httpx2.AsyncClient]:
    async with open_app(installation.settings) as app:
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
            yield client


@asynccontextmanager
async def elsewhere(installation: Installation) -> AsyncIterator[Stores]:
    """The stores of another process, whose writes wake nobody here."""
    async with open_stores(installation.settings) as stores:
        yield stores


async def put(stores: Stores) -> None:
    await import_items(stores.catalog, "test", [item_from_json(item) for item in ITEMS])


async def found(client: httpx2.AsyncClient) -> list[str]:
    answer = await client.post("/api/v1/tools/search", json=SEARCH)
    return [hit["name"] for hit in answer.json()["results"]] if answer.status_code == 200 else []


async def until_found(client: httpx2.AsyncClient) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while FOUND not in await found(client):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_it_starts_without_an_index_and_the_first_search_finds_what_the_catalog_has(
    own: Installation,
) -> None:
    async with elsewhere(own) as stores:
        await put(stores)
    async with serving(own) as client:
        assert FOUND in await found(client)
        assert (await client.get("/readyz")).json()["status"] == "ready"


async def test_a_change_of_another_process_is_followed_and_counted(own: Installation) -> None:
    async with elsewhere(own) as stores, serving(own) as client:
        assert await found(client) == []
        await put(stores)
        await until_found(client)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while value(await page(client), "toolscript_worker_items_indexed_total") < len(ITEMS):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert value(await page(client), "toolscript_worker_items_failed_total") == 0
        assert value(await page(client), "toolscript_embedding_seconds_count", kind="passages", outcome="ok") >= 1


async def page(client: httpx2.AsyncClient) -> bytes:
    return (await client.get("/metrics")).content


async def test_an_index_that_the_engine_loses_is_built_again(
    own: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "CHECK_SECONDS", 0.05)
    async with elsewhere(own) as stores, serving(own) as client:
        await put(stores)
        await until_found(client)
        settings = own.settings
        async with open_qdrant(settings.qdrant_url, settings.qdrant_grpc_port) as connected:
            await drop_collections(connected, settings.qdrant_alias)
        await until_found(client)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await stores.indexes.items.live() is None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def test_what_waits_at_the_end_is_held_by_nobody(own: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_worker, "START_SECONDS", 0.0)
    async with elsewhere(own) as stores:
        await put(stores)
        async with serving(own):
            pass
        async with stores.pool.connection() as conn:
            held = await (
                await conn.execute("SELECT count(*) FROM mcp.dirty_items WHERE held_by IS NOT NULL")
            ).fetchone()
        assert held == (0,)
        async with serving(own) as client:
            await until_found(client)


async def test_without_it_nothing_is_followed(own: Installation) -> None:
    off = Installation({**own.environment, "TOOLSCRIPT_SERVE_WORKER": "false"})
    async with elsewhere(off) as stores, serving(off) as client:
        await put(stores)
        answer = await client.post("/api/v1/tools/search", json=SEARCH)
        assert answer.status_code == 503
        assert "toolscript worker" in answer.json()["error"]["details"]["hint"]
        assert [version.fingerprint for version in await stores.dirty.index_versions()] == [None]


async def test_searches_go_first_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve_worker, "TEXTS", 2)
    looked = 0

    def is_busy() -> bool:
        nonlocal looked
        looked += 1
        return looked != 3

    embedder = HashEmbedder()
    texts = [f"text {number}" for number in range(5)]
    vectors = await YieldingEmbedder(embedder, is_busy).embed_texts(texts)
    assert vectors.tolist() == (await embedder.embed_texts(texts)).tolist()
    assert looked == 3 + 10 + 10
    assert (await YieldingEmbedder(embedder, is_busy).embed_texts([])).shape == (0, embedder.model.dimensions)
