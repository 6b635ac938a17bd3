"""Observability of the service: traces, metrics and the query log. Each only where a setting asks for it."""

import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig

from toolscript.core.auth.model import Caller, Callers, RequestBudget
from toolscript.core.mcp.tools import ObserveMcp
from toolscript.core.observability.routes import METRICS_PATH, MeasuredRequests, metrics_routes
from toolscript.core.observability.tracing import trace_headers, trace_ids
from toolscript.core.postgres.pool import Pool
from toolscript.core.retrieval.ports import Embedder, Index, Spans
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.retrieval.timings import NoSpans
from toolscript.core.settings.service import Settings, share_figures_in
from toolscript.core.web.auth import AdminAccess
from toolscript.core.web.logs import no_trace
from toolscript.documents.model.answer import DocumentAnswer
from toolscript.documents.model.document import PutResult
from toolscript.documents.model.query import DocumentQuery, Noted
from toolscript.documents.ports import DocumentIndex, QueryLog
from toolscript.documents.query_log import QueuedQueryLog, noted
from toolscript.knowledge.ports import AsksLibrary, LibraryReader
from toolscript.server.store_watch import StoreWatch
from toolscript.server.stores import Stores
from toolscript.tools.http.search import AsksCatalog
from toolscript.tools.search import ToolSearch

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from toolscript.server.metrics import Figures

POSTGRES = "postgres"
UNTRACED = frozenset({METRICS_PATH, "/livez", "/readyz", "/search/health"})

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Seeing:
    """Wraps what others use, so that none of them knows who watches."""

    spans: Spans
    figures: "Figures | None" = None
    traces: "TracerProvider | None" = None
    query_log: QueryLog | None = None
    keeps: Noted = Noted.FIGURES

    @property
    def telemetry(self) -> TelemetryConfig:
        """For the HTTP framework, which makes a span of every request by itself, within the caller's trace."""
        nothing: TelemetryConfig = {"metrics": False, "logs": False, "auto_configure": False}
        if self.traces is None:
            return {**nothing, "tracing": False}
        return {
            **nothing,
            "tracer_provider": self.traces,
            "operation_spans": False,
            "exclude": lambda scope: scope.get("path") in UNTRACED,
        }

    @property
    def headers(self) -> Callable[[], Mapping[str, str]]:
        """What requests to others carry, so that their spans are of the same trace."""
        return no_trace if self.traces is None else trace_headers

    def install(self, app: FastAPI, admin: AdminAccess) -> None:
        """After all other middleware, so that it is around it."""
        if self.figures is not None:
            app.include_router(metrics_routes(self.figures.page, admin))
            app.add_middleware(MeasuredRequests, observe=self.figures.request)

    def spans_of(self, product: str) -> Spans:
        """For one product, whose stages are timed apart."""
        if self.figures is None:
            return self.spans
        from toolscript.server.measured import MeasuredSpans

        return MeasuredSpans(self.spans, self.figures, product)

    def tool_search(self, search: ToolSearch) -> AsksCatalog:
        if self.figures is None:
            return search
        from toolscript.server.measured import CountedToolSearch

        return CountedToolSearch(search, self.figures)

    def knowledge_search(self, search: AsksLibrary | None) -> AsksLibrary | None:
        if self.figures is None or search is None:
            return search
        from toolscript.server.measured import CountedKnowledgeSearch

        return CountedKnowledgeSearch(search, self.figures)

    def item_index(self, index: Index, product: str) -> Index:
        """One of the indexes that a product searches."""
        if self.figures is None:
            return index
        from toolscript.server.measured import MeasuredIndex

        return MeasuredIndex(index, self.figures.engine(product))

    def library(self, library: LibraryReader) -> LibraryReader:
        if self.figures is None:
            return library
        from toolscript.server.measured import MeasuredLibrary

        return MeasuredLibrary(library, self.figures.library)

    def mcp(self, tools: Iterable[str]) -> ObserveMcp | None:
        """To be told of every request, where somebody counts; `tools` are all there are."""
        if self.figures is None:
            return None
        self.figures.mcp_tools(tools)
        return self.figures.mcp

    @asynccontextmanager
    async def watching(self, stores: Stores, index: Index) -> AsyncIterator[None]:
        """Pools, backlog and counts, looked at now and then."""
        if self.figures is None:
            yield
            return
        async with StoreWatch(stores, index, self.figures.stores).running(self.figures.before_page):
            yield

    def embedder(self, embedder: Embedder) -> Embedder:
        if self.figures is None:
            return embedder
        from toolscript.server.measured import MeasuredEmbedder

        return MeasuredEmbedder(embedder, self.figures)

    def index(self, index: DocumentIndex) -> DocumentIndex:
        if self.figures is None:
            return index
        from toolscript.server.measured import MeasuredDocumentIndex

        return MeasuredDocumentIndex(index, self.figures)

    def callers(self, callers: Callers) -> Callers:
        if self.figures is None:
            return callers
        from toolscript.server.measured import CountedCallers

        return CountedCallers(callers, self.figures)

    def budget(self, budget: RequestBudget) -> RequestBudget:
        if self.figures is None:
            return budget
        from toolscript.server.measured import CountedBudget

        return CountedBudget(budget, self.figures)

    def searched(
        self, caller: Caller, query: DocumentQuery, answer: DocumentAnswer, /, *, query_id: str, took_ms: float
    ) -> None:
        if self.figures is not None:
            from toolscript.server.measured import outcome_of

            self._count(query, outcome_of(answer.hits, answer.degraded), answer.degraded)
        if self.query_log is not None:
            at = datetime.now(UTC).isoformat()
            self.query_log.record(
                noted(caller, query, answer, self.keeps, at=at, query_id=query_id, took_ms=took_ms)
            )

    def search_failed(self, query: DocumentQuery, error: BaseException) -> None:
        if self.figures is not None:
            from toolscript.server.measured import outcome_of_error

            self._count(query, outcome_of_error(error))

    def _count(self, query: DocumentQuery, outcome: str, degraded: Sequence[str] = ()) -> None:
        assert self.figures is not None  # noqa: S101
        is_hybrid = query.search_type is SearchType.HYBRID
        fusion = (query.fusion or Fusion.BEST).value if is_hybrid else "none"
        self.figures.searched("documents", query.search_type.value, outcome, degraded, fusion)

    def written(self, _: Caller, results: Sequence[PutResult]) -> None:
        if self.figures is not None:
            self.figures.put(results)

    def put_failed(self, error: BaseException) -> None:
        if self.figures is None:
            return
        from toolscript.server.measured import is_refusal

        if not is_refusal(error):
            self.figures.put_stopped()


# For what is opened where nobody watches.
UNSEEN = Seeing(NoSpans())


@contextmanager
def figures_folder(settings: Settings) -> Iterator[str]:
    """To be opened before processes are forked and anything counts; empty where one process has all figures."""
    if not settings.metrics or settings.processes == 1:
        yield ""
        return
    folder, owner = tempfile.mkdtemp(prefix="toolscript-figures-"), os.getpid()
    share_figures_in(folder)
    try:
        yield folder
    finally:
        # Every process that was forked within comes by here, too.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


def ids_for_logs(settings: Settings) -> Callable[[], Mapping[str, str]]:
    return trace_ids if settings.otlp_endpoint else no_trace


@asynccontextmanager
async def open_seeing(settings: Settings, pool: Pool, folder: str = "") -> AsyncIterator[Seeing]:
    """`folder` is that of `figures_folder`.

    What still waits at the end is sent and written, if that is soon done.
    """
    async with AsyncExitStack() as stack:
        figures = _figures(folder) if settings.metrics else None
        spans: Spans = NoSpans()
        traces = None
        if settings.otlp_endpoint:
            from toolscript.core.observability.tracing import open_tracing, spans_of

            traces = await stack.enter_async_context(open_tracing(settings.otlp_endpoint, settings.trace_share))
            spans = spans_of(traces)
        log = _query_log(settings, pool, figures, stack) if settings.query_log else None
        yield Seeing(spans, figures, traces, log, Noted(settings.query_log_keeps))


def _figures(folder: str) -> "Figures":
    from toolscript.server.metrics import Figures

    return Figures(folder)


def _query_log(settings: Settings, pool: Pool, figures: "Figures | None", stack: AsyncExitStack) -> QueuedQueryLog:
    dropped = None if figures is None else figures.query_log_dropped
    if settings.query_log == POSTGRES:
        from toolscript.documents.postgres import PostgresQueryLog

        log = QueuedQueryLog(PostgresQueryLog(pool, settings.query_log_days), dropped)
    else:
        from toolscript.documents.query_log import QueryLogFile

        file = QueryLogFile(Path(settings.query_log))
        stack.callback(file.close)
        log = QueuedQueryLog(file, dropped)
    stack.push_async_callback(log.aclose)
    return log
