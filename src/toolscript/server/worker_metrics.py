"""Metrics of a worker, at `GET /metrics` on a port of its own."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.core.web.routers import add_routers
from toolscript.server.store_watch import StoreWatch
from toolscript.server.stores import Stores

if TYPE_CHECKING:
    from toolscript.server.metrics import WorkerMetrics


def worker_metrics(settings: Settings) -> "WorkerMetrics | None":
    """Return the metrics; None if no port is set."""
    if not settings.worker_metrics_port:
        return None
    from toolscript.server.metrics import WorkerMetrics

    return WorkerMetrics()


def measured(stores: Stores, embedder: Embedder, metrics: "WorkerMetrics | None") -> tuple[Stores, Embedder]:
    """Wrap stores and embedder to count the work, if metrics are on."""
    if metrics is None:
        return stores, embedder
    from toolscript.server.measured import CountedDirtySet, MeasuredEmbedder

    counted = replace(stores, dirty=CountedDirtySet(stores.dirty, metrics.work))
    return counted, MeasuredEmbedder(embedder, metrics)


@asynccontextmanager
async def serve_worker_metrics(
    settings: Settings, metrics: "WorkerMetrics | None", watch: StoreWatch | None
) -> AsyncIterator[None]:
    if metrics is None or watch is None:
        yield
        return
    import uvicorn
    from fastapi import FastAPI

    from toolscript.core.observability.routes import metrics_routes
    from toolscript.core.web.errors import install_error_handlers
    from toolscript.server.access import admin_access
    from toolscript.server.processes import bound

    class Quiet(uvicorn.Server):
        """Leaves signals to the worker."""

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    add_routers(app, metrics_routes(metrics.page, admin_access(settings)))
    install_error_handlers(app)
    with bound(settings.worker_metrics_host, settings.worker_metrics_port) as listening:
        server = Quiet(uvicorn.Config(app, log_config=None, log_level="warning", lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            async with watch.running(metrics.before_page):
                yield
        finally:
            server.should_exit = True
            await serving
