"""Metrics of a worker, at `GET /metrics` on a port of its own."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import replace

from toolscript.core.errors import ToolscriptError
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.server.metrics import EMBEDDED, ERROR, OK, WORKED, Exposed, Exposition, StoreFigures
from toolscript.server.observability import StoreWatch
from toolscript.server.stores import Stores
from toolscript.tools.model.catalog import Claim, Generation, GenerationState, Pending
from toolscript.tools.ports import DirtySet


def worker_figures(settings: Settings) -> "WorkerFigures | None":
    """None where no port is set: nothing is counted that nobody can read."""
    if not settings.worker_metrics_port:
        return None

    return WorkerFigures()


def measured(stores: Stores, embedder: Embedder, figures: "WorkerFigures | None") -> tuple[Stores, Embedder]:
    """What a worker does with them is counted, where somebody can read it."""
    if figures is None:
        return stores, embedder
    from toolscript.server.measured import MeasuredEmbedder

    counted = replace(stores, dirty=CountedDirtySet(stores.dirty, figures))
    return counted, MeasuredEmbedder(embedder, figures)


@asynccontextmanager
async def metrics_served(
    settings: Settings, figures: "WorkerFigures | None", watch: StoreWatch | None
) -> AsyncIterator[None]:
    if figures is None or watch is None:
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
    app.include_router(metrics_routes(figures.page, admin_access(settings)))
    install_error_handlers(app)
    with bound(settings.worker_metrics_host, settings.worker_metrics_port) as listening:
        server = Quiet(uvicorn.Config(app, log_config=None, log_level="warning", lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            async with watch.running(figures.before_page):
                yield
        finally:
            server.should_exit = True
            await serving


class WorkerFigures(Exposed):
    def __init__(self) -> None:
        shown = Exposition()
        super().__init__(shown)
        self.stores = StoreFigures(shown)
        self._embedding = shown.seconds("embedding", "Calls of the embedding model.", "kind", "outcome")
        self._batches = shown.counter("worker_batches", "Batches of a worker, by what became of them.", "outcome")
        self._indexed = shown.counter("worker_items_indexed", "Items that a worker has brought into the index.")
        self._failed = shown.counter("worker_items_failed", "Items that failed, to be tried again later.")
        self._embedding.begin(EMBEDDED, WORKED)
        self._batches.begin(WORKED)
        self._indexed.begin()
        self._failed.begin()

    def embedded(self, kind: str, seconds: float, *, failed: bool) -> None:
        self._embedding(kind, ERROR if failed else OK).observe(seconds)

    def followed(self, items: int) -> None:
        """A batch has been brought into the index."""
        self._batches(OK).inc()
        self._indexed().inc(items)

    def failed(self, items: int) -> None:
        """A batch could not be taken, or not be brought into the index."""
        self._batches(ERROR).inc()
        self._failed().inc(items)


class CountedDirtySet:
    def __init__(self, dirty: DirtySet, figures: WorkerFigures) -> None:
        self._dirty = dirty
        self._figures = figures

    async def claim(
        self, generation: int, limit: int, lease_seconds: float, *, abandoned_first: bool = False
    ) -> Claim:
        try:
            return await self._dirty.claim(generation, limit, lease_seconds, abandoned_first=abandoned_first)
        except ToolscriptError:
            self._figures.failed(0)
            raise

    async def clear(
        self, generation: int, claim: Claim, again: Collection[int] = (), after_seconds: float = 0.0
    ) -> None:
        await self._dirty.clear(generation, claim, again, after_seconds)
        self._figures.followed(len(claim.versions))

    async def postpone(self, generation: int, claim: Claim, reason: str) -> None:
        self._figures.failed(len(claim.versions))
        await self._dirty.postpone(generation, claim, reason)

    async def generations(self) -> Sequence[Generation]:
        return await self._dirty.generations()

    async def adopt(self, fingerprint: str) -> Generation:
        return await self._dirty.adopt(fingerprint)

    async def begin(self, fingerprint: str, *, afresh: bool = False) -> Generation:
        return await self._dirty.begin(fingerprint, afresh=afresh)

    async def fill(self, generation: int, limit: int) -> int:
        return await self._dirty.fill(generation, limit)

    async def set_state(self, generation: int, state: GenerationState) -> None:
        await self._dirty.set_state(generation, state)

    async def forget(self, generation: int) -> None:
        await self._dirty.forget(generation)

    def kept(self, generation: int, claim: Claim, lease_seconds: float) -> AbstractAsyncContextManager[None]:
        return self._dirty.kept(generation, claim, lease_seconds)

    async def renew(self, generation: int, claim: Claim, lease_seconds: float) -> Claim:
        return await self._dirty.renew(generation, claim, lease_seconds)

    async def mark(self, generation: int, ids: Sequence[int]) -> None:
        await self._dirty.mark(generation, ids)

    async def pending(self, generation: int) -> Pending:
        return await self._dirty.pending(generation)

    async def are_dirty(self, generation: int, ids: Sequence[int]) -> set[int]:
        return await self._dirty.are_dirty(generation, ids)

    async def failing(self, generation: int, limit: int) -> Sequence[tuple[int, str]]:
        return await self._dirty.failing(generation, limit)
