"""Metrics of `serve` for Prometheus, and their labels.

The number of series is bounded, however many tenants, paths and ids there are: every label has few values.
"""

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import product as combinations
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from toolscript.core import errors
from toolscript.core.auth.model import Fault
from toolscript.core.errors import TokenRefused, Unauthorized
from toolscript.core.retrieval.deadline import Part
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.version import __version__
from toolscript.core.web.admission import Kind
from toolscript.documents.model.document import PutOutcome, PutResult
from toolscript.tools.model.catalog import Pending

OTHER = "other"
MAX_WORDS = 40
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
_ROUTE = re.compile(r"/[\x21-\x7e]{0,199}")
TOOLS, DOCUMENTS, KNOWLEDGE = PRODUCTS = ("tools", "documents", "knowledge")
OK, EMPTY, DEGRADED, REFUSED, ERROR = OUTCOMES = ("ok", "empty", "degraded", "refused", "error")
WORKED = (OK, ERROR)
NONE = "none"
UNMATCHED = "unmatched"

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
EXECUTE = "execute"
STAGES = {
    TOOLS: ("spelling", "embed", "skills", "retrieve", "removed", "rank", "enrich"),
    DOCUMENTS: ("embed", "statistics", "retrieve", "fuse", "rerank", "enrich"),
    KNOWLEDGE: ("embed", "statistics", "retrieve", "enrich"),
}
PARTS = {
    TOOLS: (Part.EMBEDDING, Part.SKILLS, Part.INDEX, Part.CATALOG, Part.SCHEMAS, Part.CURATION, Part.SPELLING),
    DOCUMENTS: (Part.EMBEDDING, Part.INDEX, Part.RERANK),
    KNOWLEDGE: (Part.EMBEDDING, Part.INDEX),
}
SEARCHED_BY = {
    TOOLS: tuple((kind.value, NONE) for kind in SearchType),
    KNOWLEDGE: tuple((kind.value, NONE) for kind in SearchType),
    DOCUMENTS: (
        *((kind.value, NONE) for kind in SearchType if kind is not SearchType.HYBRID),
        *((SearchType.HYBRID.value, fusion.value) for fusion in Fusion),
    ),
}
EMBEDDED = ("query", "passages")
ENGINE = {
    TOOLS: ("search", "rarities", "fields"),
    DOCUMENTS: ("search", "statistics", "headers", "passages", "shown", "page", "count", "put", "remove", "erase"),
    KNOWLEDGE: ("search", "rarities", "fields"),
}
LIBRARY = ("sources", "chunks", "extractions", "source_page", "passage", "ready")
REASONS_TO_DROP = ("full", "failed")

# Product of a refused request, by the prefix of its route; first match wins.
ROUTES = (
    ("/api/v1/search", TOOLS),
    ("/api/v1/tools/search", TOOLS),
    ("/api/v1/skills/search", TOOLS),
    ("/api/v1/knowledge", KNOWLEDGE),
    ("/search_knowledge", KNOWLEDGE),
    ("/sources", KNOWLEDGE),
    ("/passages", KNOWLEDGE),
    ("/api/v1/documents", DOCUMENTS),
    ("/api/v1/tenants", DOCUMENTS),
    ("/search", DOCUMENTS),
    ("/documents", DOCUMENTS),
    ("/mcp", "mcp"),
)
REFUSED_PRODUCTS = (*PRODUCTS, "mcp", OTHER)
RATE_LIMIT, OVERLOAD = REFUSAL_REASONS = ("rate_limit", "overload")

MCP_CALL = "tools/call"
MCP_METHODS = (
    "initialize",
    "notifications/initialized",
    "notifications/cancelled",
    "ping",
    "server/discover",
    "tools/list",
)
MCP_OUTCOMES = (OK, REFUSED, ERROR)

_FAILURES: tuple[type[BaseException], ...] = (
    errors.EmbedderUnavailable,
    errors.IndexUnavailable,
    errors.CatalogUnavailable,
    errors.LibraryUnavailable,
    errors.EmbedderRejected,
    errors.IndexRejected,
    errors.CatalogRejected,
    errors.LibraryRejected,
    errors.SetupError,
    errors.InvalidRequest,
    TimeoutError,
    asyncio.CancelledError,
)
FAILURES = (*(error.__name__ for error in _FAILURES), OTHER)

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

# How a gauge aggregates over the processes of a server: sum of the live ones, last value, or maximum.
Together = Literal["livesum", "livemostrecent", "max"]
M = TypeVar("M", Counter, Gauge, Histogram)

IDLE, IN_USE = "idle", "in_use"
T = TypeVar("T")

NOT_ADMIN = "not_admin"
REASONS = (*(fault.value for fault in Fault), NOT_ADMIN, OTHER)

TOO_MANY_REQUESTS = 429

# `_created` would be one more series for each series, and is of no use here.
disable_created_metrics()  # type: ignore[no-untyped-call]


class BoundedLabels:
    """Passes the first few label values and maps all others to one, so that clients cannot create series."""

    def __init__(
        self, known: Iterable[str] = (), *, maximum: int = MAX_WORDS, shape: re.Pattern[str] = _WORD
    ) -> None:
        self._known = set(known)
        self._maximum = maximum
        self._shape = shape

    def __call__(self, label: str) -> str:
        if label in self._known:
            return label
        if len(self._known) >= self._maximum or not self._shape.fullmatch(label):
            return OTHER
        self._known.add(label)
        return label


def route_labels() -> BoundedLabels:
    """Labels for route templates, bounded in case a caller passes paths instead."""
    return BoundedLabels(maximum=300, shape=_ROUTE)


def failure_of(error: type[BaseException]) -> str:
    return next((failure.__name__ for failure in _FAILURES if issubclass(error, failure)), OTHER)


def product_of(route: str) -> str:
    return next((product for start, product in ROUTES if route.startswith(start)), OTHER)


class Series(Generic[M]):
    """Cached series of one metric: a lookup in the library costs more than an increment."""

    def __init__(self, metric: M) -> None:
        self._metric: M = metric
        self._series: dict[tuple[str, ...], M] = {}

    def __call__(self, *labels: str) -> M:
        series = self._series.get(labels)
        if series is None:
            series = self._series[labels] = self._metric.labels(*labels) if labels else self._metric
        return series

    def begin(self, *labels: Iterable[str]) -> None:
        """Create series at 0: a series that starts with its first event hides that event from `rate()`."""
        for values in combinations(*labels):
            self(*map(str, values))


class Described(NamedTuple):
    """A metric as docs/metrics.md lists it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help_text: str


class Exposition:
    """`folder` is shared by the processes of one server, so that any of them reports for all."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._registry = CollectorRegistry()
        self._before_page: list[Callable[[], None]] = []
        self.described: list[Described] = []
        # With several processes this would only show the memory of the one that is scraped.
        if not folder:
            ProcessCollector(registry=self._registry)
        build = self.gauge("build_info", "1; the version is in the label.", "version", together="max")
        build(__version__).set(1)

    def before_page(self, refresh: Callable[[], None]) -> None:
        """Register a function to call before each page, on the thread that renders it."""
        self._before_page.append(refresh)

    def page(self) -> bytes:
        """Render the page for Prometheus. Do not call it on the event loop: shared metrics are read from files."""
        for refresh in self._before_page:
            refresh()
        if not self._folder:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared, path=self._folder)  # type: ignore[no-untyped-call]
        return generate_latest(shared)

    def counter(self, name: str, help_text: str, *labels: str) -> Series[Counter]:
        self._describe(f"{name}_total", "counter", labels, help_text)
        return Series(Counter(f"toolscript_{name}", help_text, labels, registry=self._registry))

    def seconds(self, name: str, help_text: str, *labels: str) -> Series[Histogram]:
        self._describe(f"{name}_seconds", "histogram", labels, help_text)
        metric = Histogram(
            f"toolscript_{name}_seconds", help_text, labels, registry=self._registry, buckets=SECONDS
        )
        return Series(metric)

    def gauge(self, name: str, help_text: str, *labels: str, together: Together) -> Series[Gauge]:
        self._describe(name, "gauge", labels, help_text)
        metric = Gauge(
            f"toolscript_{name}", help_text, labels, registry=self._registry, multiprocess_mode=together
        )
        return Series(metric)

    def _describe(self, name: str, kind: str, labels: tuple[str, ...], help_text: str) -> None:
        self.described.append(Described(f"toolscript_{name}", kind, labels, help_text))


class StoreMetrics:
    def __init__(self, exposition: Exposition) -> None:
        self._exposition = exposition
        self._pool = exposition.gauge(
            "postgres_pool_connections", "Connections to PostgreSQL.", "state", together="livesum"
        )
        self._pool_max = exposition.gauge(
            "postgres_pool_connections_max",
            "Maximum connections to PostgreSQL.",
            together="livesum",
        )
        self._waiting = exposition.gauge(
            "postgres_pool_waiting", "Requests that wait for a connection to PostgreSQL.", together="livesum"
        )
        self._refused = exposition.counter(
            "postgres_pool_errors", "Requests that got no connection to PostgreSQL in time."
        )
        self._catalog = exposition.gauge(
            "catalog_items", "Active items of the catalog.", together="livemostrecent"
        )
        self._index = exposition.gauge("index_items", "Items in the live index.", together="livemostrecent")
        self._documents = exposition.gauge(
            "documents", "Documents in the live index, of all tenants.", together="livemostrecent"
        )
        self._holders = exposition.gauge(
            "document_tenants", "Tenants that hold documents, as PostgreSQL has it.", together="livemostrecent"
        )
        self._backlog = exposition.gauge(
            "backlog_items", "Changed items that are not in the live index yet.", together="livemostrecent"
        )
        self._failing = exposition.gauge(
            "backlog_failing_items", "Items of the backlog that failed repeatedly.", together="livemostrecent"
        )
        self._oldest = exposition.gauge(
            "backlog_oldest_seconds", "Age of the oldest item in the backlog.", together="livemostrecent"
        )
        self._refused_before = 0
        self._pool.begin((IDLE, IN_USE))
        for gauge in (self._pool_max, self._waiting, self._refused):
            gauge.begin()
        self.unknown()
        self.documents_unknown()

    def pool(self, stats: Mapping[str, int]) -> None:
        """Record the statistics of psycopg's pool."""
        size, idle = stats.get("pool_size", 0), stats.get("pool_available", 0)
        self._pool(IDLE).set(idle)
        self._pool(IN_USE).set(size - idle)
        self._pool_max().set(stats.get("pool_max", 0))
        self._waiting().set(stats.get("requests_waiting", 0))
        refused = stats.get("requests_errors", 0)
        self._refused().inc(max(0, refused - self._refused_before))
        self._refused_before = refused

    def items(self, catalog: float, index: float) -> None:
        self._catalog().set(catalog)
        self._index().set(index)

    def documents(self, documents: float, tenants: float) -> None:
        self._documents().set(documents)
        self._holders().set(tenants)

    def backlog(self, pending: Pending) -> None:
        self._backlog().set(pending.total)
        self._failing().set(pending.failing)
        self._oldest().set(pending.oldest_seconds)

    def unknown(self) -> None:
        """Set the gauges to NaN: stale values would be misleading, and no alert fires on NaN."""
        for gauge in (self._catalog, self._index, self._backlog, self._failing, self._oldest):
            gauge().set(math.nan)

    def documents_unknown(self) -> None:
        self.documents(math.nan, math.nan)


class WorkMetrics:
    """What a worker did: of `worker`, or of that inside `serve`."""

    def __init__(self, exposition: Exposition) -> None:
        self._batches = exposition.counter("worker_batches", "Batches of a worker, by outcome.", "outcome")
        self._indexed = exposition.counter("worker_items_indexed", "Items indexed by a worker.")
        self._failed = exposition.counter("worker_items_failed", "Items that failed and will be retried.")
        self._batches.begin(WORKED)
        self._indexed.begin()
        self._failed.begin()

    def indexed(self, items: int) -> None:
        """Count an indexed batch."""
        self._batches(OK).inc()
        self._indexed().inc(items)

    def failed(self, items: int) -> None:
        """Count a batch that could not be claimed or indexed."""
        self._batches(ERROR).inc()
        self._failed().inc(items)


class Observe(Protocol):
    def __call__(self, name: str, seconds: float, /, *, failed: bool) -> None: ...


async def timed(observe: Observe, name: str, work: Awaitable[T]) -> T:
    """Await and time the work. Any exception is a failure, including cancellation by the caller."""
    began, failed = time.perf_counter(), True
    try:
        result = await work
        failed = False
    finally:
        observe(name, time.perf_counter() - began, failed=failed)
    return result


def reason_of(error: Unauthorized) -> str:
    return error.reason if isinstance(error, TokenRefused) else OTHER


class Exposed:
    """Page of metrics of a process, and the list of its metrics."""

    def __init__(self, exposition: Exposition) -> None:
        self.page, self.before_page = exposition.page, exposition.before_page
        self.described: Sequence[Described] = exposition.described


class Metrics(Exposed):
    """`folder` is shared by the processes of one server, so that any of them reports for all."""

    def __init__(self, folder: str = "") -> None:
        exposition = Exposition(folder)
        super().__init__(exposition)
        self.stores = StoreMetrics(exposition)
        self.work = WorkMetrics(exposition)
        self._requests = exposition.seconds("http_request", "HTTP requests by route.", "method", "route", "status")
        self._searches = exposition.counter(
            "searches", "Searches by product and outcome.", "product", "search_type", "fusion", "outcome"
        )
        self._search = exposition.seconds("search", "Searches, from end to end.", "product")
        self._stages = exposition.seconds("search_stage", "Stages of searches.", "product", "stage")
        self._failures = exposition.counter(
            "search_stage_failures", "Stages that failed, by error.", "product", "stage", "error"
        )
        self._degraded = exposition.counter(
            "searches_degraded", "Parts missing from degraded searches.", "product", "part"
        )
        self._embedding = exposition.seconds("embedding", "Calls to the embedding model.", "kind", "outcome")
        self._engine = exposition.seconds("engine", "Calls to Qdrant.", "product", "operation", "outcome")
        self._library = exposition.seconds("library", "Reads of the library in MongoDB.", "operation", "outcome")
        self._mcp = exposition.seconds("mcp_request", "MCP requests.", "method", "tool")
        self._mcp_requests = exposition.counter(
            "mcp_requests", "MCP requests by outcome.", "method", "tool", "outcome"
        )
        self._put = exposition.counter("documents_put", "Documents put, by outcome.", "outcome")
        self._stopped = exposition.counter("document_puts_stopped", "Puts stopped by a server error.")
        self._passages = exposition.counter("passages_indexed", "Chunks of documents put.")
        self._limited = exposition.counter("rate_limited", "Requests above the limit of a plan per minute.")
        self._refusals = exposition.counter("refusals", "Requests refused by a limit.", "product", "reason")
        self._not_admitted = exposition.seconds(
            "admission_refusal", "Requests refused for lack of capacity.", "kind"
        )
        self._refused = exposition.counter("tokens_refused", "Refused tokens.", "reason")
        self._dropped = exposition.counter("query_log_dropped", "Searches missing from the query log.", "reason")
        self._search_log_dropped = exposition.counter(
            "tool_search_log_dropped", "Searches missing from the log of tool searches.", "reason"
        )
        self._begin()
        self._reason = BoundedLabels(REASONS, maximum=0)
        self._route = route_labels()
        self._tools: frozenset[str] = frozenset()

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """`route` is a template, never a path; empty if no route matches."""
        label = method if method in METHODS else OTHER
        self._requests(label, self._route(route) if route else UNMATCHED, str(status)).observe(seconds)
        if status == TOO_MANY_REQUESTS:
            self._refusals(product_of(route), RATE_LIMIT).inc()

    def not_admitted(self, kind: str, route: str, seconds: float) -> None:
        self._not_admitted(kind).observe(seconds)
        self.overloaded(product_of(route))

    def overloaded(self, product: str) -> None:
        """Count a request refused for lack of capacity."""
        self._refusals(product if product in REFUSED_PRODUCTS else OTHER, OVERLOAD).inc()

    def searched(
        self, product: str, search_type: str, outcome: str, degraded: Iterable[str] = (), fusion: str = NONE
    ) -> None:
        self._searches(product, search_type, fusion, outcome).inc()
        for part in degraded:
            self._degraded(product, part if part in PARTS[product] else OTHER).inc()

    def stage(self, product: str, stage: str, seconds: float, error: type[BaseException] | None = None) -> None:
        if stage == EXECUTE:
            self._search(product).observe(seconds)
        else:
            stage = stage if stage in STAGES[product] else OTHER
            self._stages(product, stage).observe(seconds)
        if error is not None:
            self._failures(product, stage, failure_of(error)).inc()

    def embedded(self, kind: str, seconds: float, *, failed: bool) -> None:
        self._embedding(kind, ERROR if failed else OK).observe(seconds)

    def engine(self, product: str) -> Observe:
        def observe(operation: str, seconds: float, /, *, failed: bool) -> None:
            self._engine(product, operation, ERROR if failed else OK).observe(seconds)

        return observe

    def library(self, operation: str, seconds: float, /, *, failed: bool) -> None:
        self._library(operation, ERROR if failed else OK).observe(seconds)

    def mcp_tools(self, names: Iterable[str]) -> None:
        """Set the names of the tools; calls of any other name share one label."""
        self._tools = frozenset(names)
        self._mcp_requests.begin((MCP_CALL,), self._tools, MCP_OUTCOMES)
        self._mcp.begin((MCP_CALL,), self._tools)

    def mcp(self, method: str, tool: str, outcome: str, seconds: float) -> None:
        """`tool` is empty if the method calls none."""
        if method == MCP_CALL:
            labels = method, tool if tool in self._tools else OTHER
        else:
            labels = method if method in MCP_METHODS else OTHER, NONE
        self._mcp_requests(*labels, outcome).inc()
        self._mcp(*labels).observe(seconds)

    def put(self, results: Sequence[PutResult]) -> None:
        for result in results:
            self._put(result.outcome.value).inc()
        written = (PutOutcome.CREATED, PutOutcome.UPDATED)
        self._passages().inc(sum(result.passages for result in results if result.outcome in written))

    def put_stopped(self) -> None:
        self._stopped().inc()

    def rate_limited(self) -> None:
        self._limited().inc()

    def admin_guessed(self) -> None:
        self.token_refused(NOT_ADMIN)

    def token_refused(self, reason: str) -> None:
        self._refused(self._reason(reason)).inc()

    def query_log_dropped(self, count: int, reason: str) -> None:
        self._dropped(reason).inc(count)

    def tool_search_log_dropped(self, count: int, reason: str) -> None:
        self._search_log_dropped(reason).inc(count)

    def _begin(self) -> None:
        self._not_admitted.begin(tuple(Kind))
        for product in PRODUCTS:
            for by in SEARCHED_BY[product]:
                self._searches.begin((product,), *((outcome,) for outcome in by), OUTCOMES)
            self._search.begin((product,))
            self._stages.begin((product,), STAGES[product])
            self._failures.begin((product,), (EXECUTE, *STAGES[product]), FAILURES)
            self._degraded.begin((product,), PARTS[product])
            self._engine.begin((product,), ENGINE[product], WORKED)
        self._embedding.begin(EMBEDDED, WORKED)
        self._library.begin(LIBRARY, WORKED)
        self._mcp_requests.begin(MCP_METHODS, (NONE,), MCP_OUTCOMES)
        self._mcp.begin(MCP_METHODS, (NONE,))
        self._put.begin([outcome.value for outcome in PutOutcome])
        self._refusals.begin(REFUSED_PRODUCTS, REFUSAL_REASONS)
        self._refused.begin(REASONS)
        self._dropped.begin(REASONS_TO_DROP)
        self._search_log_dropped.begin(REASONS_TO_DROP)
        for counter in (self._stopped, self._passages, self._limited):
            counter.begin()


class WorkerMetrics(Exposed):
    def __init__(self) -> None:
        exposition = Exposition()
        super().__init__(exposition)
        self.stores = StoreMetrics(exposition)
        self._embedding = exposition.seconds("embedding", "Calls to the embedding model.", "kind", "outcome")
        self.work = WorkMetrics(exposition)
        self._embedding.begin(EMBEDDED, WORKED)

    def embedded(self, kind: str, seconds: float, *, failed: bool) -> None:
        self._embedding(kind, ERROR if failed else OK).observe(seconds)
