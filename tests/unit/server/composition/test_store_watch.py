"""Sampled metrics: connections, the backlog, and sizes of index and catalog."""

import asyncio
import math
from dataclasses import replace

import pytest

from tests.conftest import Installation, drop_collections
from tests.unit.server.metrics.metrics_page import value
from toolscript.core.auth.model import Principal, Tenant
from toolscript.core.errors import IndexUnavailable
from toolscript.core.items import Item, ItemKind
from toolscript.core.postgres.pool import connection
from toolscript.core.retrieval.model import IndexCard, PointVersion
from toolscript.documents.model.document import Document
from toolscript.documents.service import DocumentService
from toolscript.server.document_index import LiveIndex
from toolscript.server.indexing import open_index_writer
from toolscript.server.metrics import Metrics
from toolscript.server.store_watch import StoreWatch
from toolscript.server.stores import Stores, open_stores
from toolscript.testing import HashEmbedder
from toolscript.tools.indexing.versions import open_for_reading

pytestmark = [pytest.mark.requirement("DOC-007")]

ITEMS = [Item(str(n), ItemKind.TOOL, "fs", f"tool_{n}", f"Does {n}") for n in range(4)]


def silent(_: object) -> None: ...


async def no_documents() -> tuple[int, int]:
    return 0, 0


async def unreachable() -> tuple[int, int]:
    raise IndexUnavailable("no answer")


async def test_documents_are_counted_and_a_lost_index_counts_as_empty(installation: Installation) -> None:
    metrics, settings = Metrics(), installation.settings
    async with open_stores(settings) as stores:
        live = LiveIndex.of(settings, stores)
        watch = StoreWatch(stores, None, metrics.stores, live.counts)  # type: ignore[arg-type]
        await watch.sample_documents()
        assert counted(metrics) == (0, 0)
        embedder = HashEmbedder()
        index = await live.open_or_create(embedder.model)
        service = DocumentService(embedder, index, live.tenants, live.versions)
        for tenant in ("acme", "globex"):
            texts = [Document(f"d{number}", f"text {number}", {}) for number in range(3)]
            await service.put(Principal(Tenant(tenant)), texts)
        await watch.sample_documents()
        assert counted(metrics) == (6, 2)
        await drop_collections(stores.qdrant, settings.qdrant_documents_alias)
        await watch.sample_documents()
        assert counted(metrics) == (0, 2)
        await replace(watch, count_documents=unreachable).sample_documents()
        assert all(map(math.isnan, counted(metrics)))


def counted(metrics: Metrics) -> tuple[float, float]:
    page = metrics.page()
    return value(page, "toolscript_documents"), value(page, "toolscript_document_tenants")


async def test_lost_items_of_an_index_show_in_the_metrics(installation: Installation) -> None:
    metrics, settings = Metrics(), installation.settings
    async with open_index_writer(settings) as writer:
        await writer.stores.catalog.store("file", ITEMS)
        watch = StoreWatch(writer.stores, writer.opened.index, metrics.stores, no_documents)
        await watch.sample_stores()
        assert value(metrics.page(), "toolscript_backlog_items") == 4
        assert value(metrics.page(), "toolscript_catalog_items") == 4
        assert value(metrics.page(), "toolscript_index_items") == 0
        assert value(metrics.page(), "toolscript_backlog_oldest_seconds") > 0
        await writer.worker(silent).drain()
        await watch.sample_stores()
        assert value(metrics.page(), "toolscript_index_items") == 4
        assert value(metrics.page(), "toolscript_backlog_items") == 0
        there = await writer.opened.index.scan(0, 10)
        await writer.opened.index.remove([PointVersion(item.id, item.version) for item in there[:3]])
        await watch.sample_stores()
        assert value(metrics.page(), "toolscript_index_items") == 1
        assert value(metrics.page(), "toolscript_catalog_items") == 4
        assert value(metrics.page(), "toolscript_backlog_items") == 0
        opened = await open_for_reading(writer.stores.indexes, IndexCard(writer.embedder.model))
        assert await opened.items.count() == 1


async def all_taken(stores: Stores, metrics: Metrics) -> bytes:
    """Return the page while every connection is in use and a request waits for one."""
    size = stores.pool.max_size
    ready, done = asyncio.Event(), asyncio.Event()
    held = 0

    async def hold() -> None:
        nonlocal held
        async with connection(stores.pool):
            held += 1
            if held == size:
                ready.set()
            await done.wait()

    holding = [asyncio.create_task(hold()) for _ in range(size)]
    await asyncio.wait_for(ready.wait(), 60)
    late = asyncio.create_task(hold())
    while not stores.pool.get_stats().get("requests_waiting"):
        assert not late.done(), "it did not wait"
        await asyncio.sleep(0)
    page = metrics.page()
    done.set()
    await asyncio.gather(*holding, late, return_exceptions=True)
    return page


async def test_used_connections_and_waiting_requests_show_in_the_metrics(installation: Installation) -> None:
    settings = installation.settings.model_copy(update={"postgres_connections": 2})
    metrics = Metrics()
    async with open_stores(settings) as stores:
        watch = StoreWatch(stores, None, metrics.stores, no_documents)  # type: ignore[arg-type]
        metrics.before_page(watch.sample_pool)
        page = await all_taken(stores, metrics)
        after = metrics.page()
    assert value(page, "toolscript_postgres_pool_connections", state="in_use") == 2
    assert value(page, "toolscript_postgres_pool_connections", state="idle") == 0
    assert value(page, "toolscript_postgres_pool_waiting") == 1
    assert value(page, "toolscript_postgres_pool_connections_max") == 2
    assert value(after, "toolscript_postgres_pool_waiting") == 0


async def test_a_request_without_a_connection_in_time_is_counted_once() -> None:
    metrics = Metrics()
    metrics.stores.pool({"requests_errors": 3, "pool_size": 2, "pool_available": 1, "pool_max": 2})
    metrics.stores.pool({"requests_errors": 5, "pool_size": 2, "pool_available": 1, "pool_max": 2})
    assert value(metrics.page(), "toolscript_postgres_pool_errors_total") == 5


async def test_unknown_values_are_not_reported(installation: Installation) -> None:
    metrics = Metrics()
    away = installation.settings.model_copy(
        update={"postgres_url": type(installation.settings.postgres_url)("postgresql://x@127.0.0.1:1/x")}
    )
    metrics.stores.items(4, 4)
    async with open_stores(away, catalog_needed=False) as stores:
        await StoreWatch(stores, None, metrics.stores, no_documents).sample_stores()  # type: ignore[arg-type]
    assert math.isnan(value(metrics.page(), "toolscript_catalog_items"))
    assert math.isnan(value(metrics.page(), "toolscript_index_items"))
