"""Observability of the service: traces, metrics and the logs of searches, each enabled by a setting."""

import logging
import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig

from toolscript.core.auth.model import Principal, RequestBudget, TokenVerifier
from toolscript.core.mcp.tools import ObserveMcp
from toolscript.core.observability.queued_log import QueuedLog
from toolscript.core.observability.routes import METRICS_PATH, MeasuredRequests, metrics_routes
from toolscript.core.observability.tracing import trace_headers, trace_ids
from toolscript.core.postgres.pool import Pool
from toolscript.core.retrieval.namespaced import NamespacedIndex
from toolscript.core.retrieval.ports import Embedder, Index, Spans
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.retrieval.timings import NoSpans
from toolscript.core.settings.service import Settings, share_metrics_in
from toolscript.core.web.auth import AdminAccess
from toolscript.core.web.logs import no_trace
from toolscript.core.web.routers import add_routers
from toolscript.documents.model.answer import DocumentAnswer
from toolscript.documents.model.document import PutResult
from toolscript.documents.model.query import DocumentQuery, LogDetail, LoggedQuery
from toolscript.documents.ports import DocumentIndex, QueryLog
from toolscript.documents.query_log import log_entry
from toolscript.knowledge.ports import LibraryReader, LibrarySearch
from toolscript.server.document_index import LiveIndex
from toolscript.server.store_watch import StoreWatch
from toolscript.server.stores import Stores
from toolscript.tools.http.search import SearchesCatalog
from toolscript.tools.model.answer import ToolAnswer
from toolscript.tools.model.query import ToolQuery
from toolscript.tools.model.search_log import Channel, LoggedSearch, SearchDetail, logged_search
from toolscript.tools.ports import RecordSearch
from toolscript.tools.search import ToolSearch

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from toolscript.server.metrics import Metrics

POSTGRES = "postgres"
UNTRACED = frozenset({METRICS_PATH, "/livez", "/readyz", "/search/health"})

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Observability:
    """Wraps ports and services, so that they need not know about tracing and metrics."""

    spans: Spans
    metrics: "Metrics | None" = None
    traces: "TracerProvider | None" = None
    query_log: QueryLog | None = None
    keeps: LogDetail = LogDetail.FIGURES
    tool_search_log: QueuedLog[LoggedSearch] | None = None
    keeps_tool_searches: SearchDetail | None = None

    @property
    def telemetry(self) -> TelemetryConfig:
        """Options of FastAPI, which creates a span for every request, within the client's trace."""
        disabled: TelemetryConfig = {"metrics": False, "logs": False, "auto_configure": False}
        if self.traces is None:
            return {**disabled, "tracing": False}
        return {
            **disabled,
            "tracer_provider": self.traces,
            "operation_spans": False,
            "exclude": lambda scope: scope.get("path") in UNTRACED,
        }

    @property
    def headers(self) -> Callable[[], Mapping[str, str]]:
        """Headers for outgoing requests that continue the trace."""
        return no_trace if self.traces is None else trace_headers

    def install(self, app: FastAPI, admin: AdminAccess) -> None:
        """Add the routes and middleware. Call it last, so that the middleware is the outermost."""
        if self.metrics is not None:
            admin.guesses.on_guess = self.metrics.admin_guessed
            add_routers(app, metrics_routes(self.metrics.page, admin))
            app.add_middleware(MeasuredRequests, observe=self.metrics.request)

    def spans_of(self, product: str) -> Spans:
        """Return spans that measure the stages of one product."""
        if self.metrics is None:
            return self.spans
        from toolscript.server.measured import MeasuredSpans

        return MeasuredSpans(self.spans, self.metrics, product)

    def tool_search(self, search: ToolSearch) -> SearchesCatalog:
        if self.metrics is None:
            return search
        from toolscript.server.measured import CountedToolSearch

        return CountedToolSearch(search, self.metrics)

    def record_tool_searches(self, channel: Channel) -> RecordSearch | None:
        """Return what records tool searches of a channel, if the log is on."""
        log, keeps = self.tool_search_log, self.keeps_tool_searches
        if log is None or keeps is None:
            return None

        def record(query: ToolQuery, answer: ToolAnswer, query_id: str = "", /) -> None:
            time = datetime.now(UTC)
            log.record(logged_search(query, answer, keeps, channel, query_id or str(uuid.uuid4()), time))

        return record

    def knowledge_search(self, search: LibrarySearch | None) -> LibrarySearch | None:
        if self.metrics is None or search is None:
            return search
        from toolscript.server.measured import CountedKnowledgeSearch

        return CountedKnowledgeSearch(search, self.metrics)

    def item_index(self, index: Index, product: str) -> Index:
        """Measure an index that a product searches."""
        if self.metrics is None:
            return index
        from toolscript.server.measured import MeasuredIndex

        return MeasuredIndex(index, self.metrics.engine(product))

    def namespaced_index(self, index: NamespacedIndex, product: str) -> NamespacedIndex:
        """Measure the index of each namespace. The namespace is never a label."""
        return index.wrapped(lambda plain, _: self.item_index(plain, product))

    def library(self, library: LibraryReader) -> LibraryReader:
        if self.metrics is None:
            return library
        from toolscript.server.measured import MeasuredLibrary

        return MeasuredLibrary(library, self.metrics.library)

    def mcp(self, tools: Iterable[str]) -> ObserveMcp | None:
        """Return the observer of MCP requests, if metrics are on. `tools`: the names of all tools."""
        if self.metrics is None:
            return None
        self.metrics.mcp_tools(tools)
        return self.metrics.mcp

    @asynccontextmanager
    async def watching(self, settings: Settings, stores: Stores, index: Index) -> AsyncIterator[None]:
        """Sample connection pools, backlog and counts periodically."""
        if self.metrics is None:
            yield
            return
        counts = LiveIndex.of(settings, stores).counts
        async with StoreWatch(stores, index, self.metrics.stores, counts).running(self.metrics.before_page):
            yield

    def worked_on(self, stores: Stores) -> Stores:
        """Count what the worker inside this process does."""
        if self.metrics is None:
            return stores
        from toolscript.server.measured import CountedDirtySet

        return replace(stores, dirty=CountedDirtySet(stores.dirty, self.metrics.work))

    def embedder(self, embedder: Embedder) -> Embedder:
        if self.metrics is None:
            return embedder
        from toolscript.server.measured import MeasuredEmbedder

        return MeasuredEmbedder(embedder, self.metrics)

    def index(self, index: DocumentIndex) -> DocumentIndex:
        if self.metrics is None:
            return index
        from toolscript.server.measured import MeasuredDocumentIndex

        return MeasuredDocumentIndex(index, self.metrics)

    def verifier(self, verifier: TokenVerifier) -> TokenVerifier:
        if self.metrics is None:
            return verifier
        from toolscript.server.measured import CountedTokenVerifier

        return CountedTokenVerifier(verifier, self.metrics)

    def budget(self, budget: RequestBudget) -> RequestBudget:
        if self.metrics is None:
            return budget
        from toolscript.server.measured import CountedBudget

        return CountedBudget(budget, self.metrics)

    def searched(
        self,
        principal: Principal,
        query: DocumentQuery,
        answer: DocumentAnswer,
        /,
        *,
        query_id: str,
        took_ms: float,
    ) -> None:
        if self.metrics is not None:
            from toolscript.server.measured import outcome_of

            self._count(query, outcome_of(answer.hits, answer.degraded), answer.degraded)
        if self.query_log is not None:
            time = datetime.now(UTC).isoformat()
            self.query_log.record(
                log_entry(principal, query, answer, self.keeps, at=time, query_id=query_id, took_ms=took_ms)
            )

    def search_failed(self, query: DocumentQuery, error: BaseException) -> None:
        if self.metrics is not None:
            from toolscript.server.measured import outcome_of_error

            self._count(query, outcome_of_error(error))

    def _count(self, query: DocumentQuery, outcome: str, degraded: Sequence[str] = ()) -> None:
        assert self.metrics is not None  # noqa: S101
        is_hybrid = query.search_type is SearchType.HYBRID
        fusion = (query.fusion or Fusion.BEST).value if is_hybrid else "none"
        self.metrics.searched("documents", query.search_type.value, outcome, degraded, fusion)

    def written(self, _: Principal, results: Sequence[PutResult]) -> None:
        if self.metrics is not None:
            self.metrics.put(results)

    def put_failed(self, error: BaseException) -> None:
        if self.metrics is None:
            return
        from toolscript.server.measured import is_refusal

        if not is_refusal(error):
            self.metrics.put_stopped()


# Without tracing, metrics and logs of searches.
NOT_OBSERVED = Observability(NoSpans())


@contextmanager
def metrics_folder(settings: Settings) -> Iterator[str]:
    """Create the folder for shared metrics, before forking; yield "" for a single process."""
    if not settings.metrics or settings.processes == 1:
        yield ""
        return
    folder, owner = tempfile.mkdtemp(prefix="toolscript-metrics-"), os.getpid()
    share_metrics_in(folder)
    try:
        yield folder
    finally:
        # Forked processes leave this context, too.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)


def ids_for_logs(settings: Settings) -> Callable[[], Mapping[str, str]]:
    return trace_ids if settings.otlp_endpoint else no_trace


@asynccontextmanager
async def open_observability(settings: Settings, pool: Pool, folder: str = "") -> AsyncIterator[Observability]:
    """Open what the settings enable. `folder` is that of `metrics_folder`.

    Queued spans and log entries are flushed at the end, within a time limit.
    """
    async with AsyncExitStack() as stack:
        metrics = _metrics(folder) if settings.metrics else None
        spans: Spans = NoSpans()
        traces = None
        if settings.otlp_endpoint:
            from toolscript.core.observability.tracing import open_tracing, spans_of

            traces = await stack.enter_async_context(open_tracing(settings.otlp_endpoint, settings.trace_share))
            spans = spans_of(traces)
        log = _query_log(settings, pool, metrics, stack) if settings.query_log else None
        keeps, tool_searches = None, None
        if settings.tool_search_log:
            keeps, tool_searches = SearchDetail(settings.tool_search_log), _tool_search_log(pool, metrics, stack)
        yield Observability(spans, metrics, traces, log, LogDetail(settings.query_log_keeps), tool_searches, keeps)


def _metrics(folder: str) -> "Metrics":
    from toolscript.server.metrics import Metrics

    return Metrics(folder)


def _query_log(
    settings: Settings, pool: Pool, metrics: "Metrics | None", stack: AsyncExitStack
) -> QueuedLog[LoggedQuery]:
    dropped = None if metrics is None else metrics.query_log_dropped
    if settings.query_log == POSTGRES:
        from toolscript.documents.postgres import PostgresQueryLog

        log = QueuedLog(PostgresQueryLog(pool, settings.query_log_days), dropped)
    else:
        from toolscript.documents.query_log import QueryLogFile

        file = QueryLogFile(Path(settings.query_log))
        stack.callback(file.close)
        log = QueuedLog(file, dropped)
    stack.push_async_callback(log.aclose)
    return log


def _tool_search_log(pool: Pool, metrics: "Metrics | None", stack: AsyncExitStack) -> QueuedLog[LoggedSearch]:
    from toolscript.tools.postgres.search_log import PostgresSearchLog

    dropped = None if metrics is None else metrics.tool_search_log_dropped
    log = QueuedLog(PostgresSearchLog(pool), dropped)
    stack.push_async_callback(log.aclose)
    return log
