"""Metrics of `serve` for Prometheus, and their labels.

However many tenants, paths and ids there are, there are as many series as this program has words for: every label
is one of a few.
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
from toolscript.core.errors import Unauthorized
from toolscript.core.retrieval.deadline import Part
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.version import __version__
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
    TOOLS: ("embed", "skills", "retrieve", "rank", "enrich"),
    DOCUMENTS: ("embed", "statistics", "retrieve", "fuse", "rerank", "enrich"),
    KNOWLEDGE: ("embed", "statistics", "retrieve", "enrich"),
}
PARTS = {
    TOOLS: (Part.EMBEDDING, Part.SKILLS, Part.INDEX, Part.SCHEMAS),
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

# Whom a refused request was for, by the beginning of its route; the first that fits.
ROUTES = (
    ("/api/v1/search", TOOLS),
    ("/search_knowledge", KNOWLEDGE),
    ("/sources", KNOWLEDGE),
    ("/passages", KNOWLEDGE),
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
FAILURES = (*(one.__name__ for one in _FAILURES), OTHER)

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

# What several processes of one server show together: the sum over those alive, or what was said last.
Together = Literal["livesum", "livemostrecent", "max"]
M = TypeVar("M", Counter, Gauge, Histogram)

IDLE, IN_USE = "idle", "in_use"
T = TypeVar("T")

# First match wins.
_WORDS = (
    ("expired", "expired"),
    ("not valid yet", "too_early"),
    ("in the future", "too_early"),
    ("issued by", "issuer"),
    ("issued for", "audience"),
    ("signature", "signature"),
    ("signed in a way", "algorithm"),
    ("key", "key"),
    ("`kid`", "key"),
    ("tenant", "tenant"),
    ("lacks", "claims"),
    ("cannot be understood", "claims"),
    ("at most", "shape"),
    ("no token", "shape"),
    ("parts", "shape"),
    ("`crit`", "shape"),
    ("another kind", "shape"),
    ("payload", "shape"),
)
REASONS = tuple(sorted({word for _, word in _WORDS} | {OTHER}))

TOO_MANY_REQUESTS = 429

# When a series began is one more series for each, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


class BoundedLabels:
    """Lets the first few words pass and calls all others one: whoever gives them, there is an end of series."""

    def __init__(
        self, known: Iterable[str] = (), *, maximum: int = MAX_WORDS, shape: re.Pattern[str] = _WORD
    ) -> None:
        self._known = set(known)
        self._maximum = maximum
        self._shape = shape

    def __call__(self, word: str) -> str:
        if word in self._known:
            return word
        if len(self._known) >= self._maximum or not self._shape.fullmatch(word):
            return OTHER
        self._known.add(word)
        return word


def route_labels() -> BoundedLabels:
    """Templates of routes: as many as a program has, should somebody hand in paths instead."""
    return BoundedLabels(maximum=300, shape=_ROUTE)


def failure_of(error: type[BaseException]) -> str:
    return next((one.__name__ for one in _FAILURES if issubclass(error, one)), OTHER)


def product_of(route: str) -> str:
    return next((product for start, product in ROUTES if route.startswith(start)), OTHER)


class Series(Generic[M]):
    """The series of one metric. They are kept: looking one up in the library costs more than counting."""

    def __init__(self, metric: M) -> None:
        self._metric: M = metric
        self._known: dict[tuple[str, ...], M] = {}

    def __call__(self, *labels: str) -> M:
        known = self._known.get(labels)
        if known is None:
            known = self._known[labels] = self._metric.labels(*labels) if labels else self._metric
        return known

    def begin(self, *labels: Iterable[str]) -> None:
        """A series that begins with its first event hides that event from every rate."""
        for values in combinations(*labels):
            self(*map(str, values))


class Described(NamedTuple):
    """A metric as the page of them lists it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    says: str


class Exposition:
    """`folder` is what several processes of one server share: whoever of them is asked answers for all."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._registry = CollectorRegistry()
        self._before_page: list[Callable[[], None]] = []
        self.described: list[Described] = []
        # Of several processes the library shows no memory: it would be that of whoever was asked.
        if not folder:
            ProcessCollector(registry=self._registry)
        build = self.gauge("build_info", "1; the version is in the label.", "version", together="max")
        build(__version__).set(1)

    def before_page(self, refresh: Callable[[], None]) -> None:
        """Called before each page, on the thread that makes it."""
        self._before_page.append(refresh)

    def page(self) -> bytes:
        """As Prometheus reads it. Reads files where processes share metrics: nothing for the event loop."""
        for refresh in self._before_page:
            refresh()
        if not self._folder:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared, path=self._folder)  # type: ignore[no-untyped-call]
        return generate_latest(shared)

    def counter(self, name: str, says: str, *labels: str) -> Series[Counter]:
        self._describe(f"{name}_total", "counter", labels, says)
        return Series(Counter(f"toolscript_{name}", says, labels, registry=self._registry))

    def seconds(self, name: str, says: str, *labels: str) -> Series[Histogram]:
        self._describe(f"{name}_seconds", "histogram", labels, says)
        metric = Histogram(f"toolscript_{name}_seconds", says, labels, registry=self._registry, buckets=SECONDS)
        return Series(metric)

    def gauge(self, name: str, says: str, *labels: str, together: Together) -> Series[Gauge]:
        self._describe(name, "gauge", labels, says)
        metric = Gauge(f"toolscript_{name}", says, labels, registry=self._registry, multiprocess_mode=together)
        return Series(metric)

    def _describe(self, name: str, kind: str, labels: tuple[str, ...], says: str) -> None:
        self.described.append(Described(f"toolscript_{name}", kind, labels, says))


class StoreMetrics:
    def __init__(self, shown: Exposition) -> None:
        self._shown = shown
        self._pool = shown.gauge(
            "postgres_pool_connections", "Connections to PostgreSQL.", "state", together="livesum"
        )
        self._pool_most = shown.gauge(
            "postgres_pool_connections_max",
            "Connections that PostgreSQL is asked for at most.",
            together="livesum",
        )
        self._waiting = shown.gauge(
            "postgres_pool_waiting", "Requests that wait for a connection to PostgreSQL.", together="livesum"
        )
        self._refused = shown.counter(
            "postgres_pool_errors", "Requests that got no connection to PostgreSQL in time."
        )
        self._catalog = shown.gauge("catalog_items", "Active items of the catalog.", together="livemostrecent")
        self._index = shown.gauge("index_items", "Items in the live index.", together="livemostrecent")
        self._backlog = shown.gauge(
            "backlog_items", "Items that the live index has yet to follow.", together="livemostrecent"
        )
        self._failing = shown.gauge(
            "backlog_failing_items", "Those of them that failed again and again.", together="livemostrecent"
        )
        self._oldest = shown.gauge(
            "backlog_oldest_seconds", "How long the oldest of them has waited.", together="livemostrecent"
        )
        self._refused_before = 0
        self._pool.begin((IDLE, IN_USE))
        for alone in (self._pool_most, self._waiting, self._refused):
            alone.begin()
        self.unknown()

    def pool(self, stats: Mapping[str, int]) -> None:
        """What psycopg's pool says of itself."""
        size, idle = stats.get("pool_size", 0), stats.get("pool_available", 0)
        self._pool(IDLE).set(idle)
        self._pool(IN_USE).set(size - idle)
        self._pool_most().set(stats.get("pool_max", 0))
        self._waiting().set(stats.get("requests_waiting", 0))
        refused = stats.get("requests_errors", 0)
        self._refused().inc(max(0, refused - self._refused_before))
        self._refused_before = refused

    def items(self, catalog: float, index: float) -> None:
        self._catalog().set(catalog)
        self._index().set(index)

    def backlog(self, pending: Pending) -> None:
        self._backlog().set(pending.total)
        self._failing().set(pending.failing)
        self._oldest().set(pending.oldest_seconds)

    def unknown(self) -> None:
        """Nothing is better than what was true once: no alert compares with what is not known."""
        for one in (self._catalog, self._index, self._backlog, self._failing, self._oldest):
            one().set(math.nan)


class Observe(Protocol):
    def __call__(self, name: str, seconds: float, /, *, failed: bool) -> None: ...


async def timed(observe: Observe, name: str, work: Awaitable[T]) -> T:
    """Whatever ends it without an answer is a failure, a caller who gave up as well."""
    began, failed = time.perf_counter(), True
    try:
        done = await work
        failed = False
    finally:
        observe(name, time.perf_counter() - began, failed=failed)
    return done


def reason_of(error: Unauthorized) -> str:
    return next((word for said, word in _WORDS if said in error.message), OTHER)


class Exposed:
    """The page that a process exposes, and what is described on it."""

    def __init__(self, exposition: Exposition) -> None:
        self.page, self.before_page = exposition.page, exposition.before_page
        self.described: Sequence[Described] = exposition.described


class Metrics(Exposed):
    """`folder` is what several processes of one server share: whoever of them is asked answers for all."""

    def __init__(self, folder: str = "") -> None:
        shown = Exposition(folder)
        super().__init__(shown)
        self.stores = StoreMetrics(shown)
        self._requests = shown.seconds("http_request", "HTTP requests by route.", "method", "route", "status")
        self._searches = shown.counter(
            "searches", "Searches by product and outcome.", "product", "search_type", "fusion", "outcome"
        )
        self._search = shown.seconds("search", "Searches, from end to end.", "product")
        self._stages = shown.seconds("search_stage", "Stages of searches.", "product", "stage")
        self._failures = shown.counter(
            "search_stage_failures", "Stages that failed, by error.", "product", "stage", "error"
        )
        self._degraded = shown.counter("searches_degraded", "Parts that searches went without.", "product", "part")
        self._embedding = shown.seconds("embedding", "Calls of the embedding model.", "kind", "outcome")
        self._engine = shown.seconds("engine", "Calls of Qdrant.", "product", "operation", "outcome")
        self._library = shown.seconds("library", "Reads of the library in MongoDB.", "operation", "outcome")
        self._mcp = shown.seconds("mcp_request", "MCP requests.", "method", "tool")
        self._mcp_requests = shown.counter("mcp_requests", "MCP requests by outcome.", "method", "tool", "outcome")
        self._put = shown.counter("documents_put", "Documents that were put, by what became of them.", "outcome")
        self._stopped = shown.counter("document_puts_stopped", "Puts that ended too early, by an error of ours.")
        self._passages = shown.counter("passages_indexed", "Passages of documents that were put.")
        self._limited = shown.counter("rate_limited", "Requests beyond what a plan allows in a minute.")
        self._refusals = shown.counter("refusals", "Requests refused unanswered.", "product", "reason")
        self._not_admitted = shown.seconds("admission_refusal", "Requests refused for lack of capacity.", "kind")
        self._refused = shown.counter("tokens_refused", "Tokens that were refused.", "reason")
        self._dropped = shown.counter("query_log_dropped", "Searches that could not be noted.", "reason")
        self._begin()
        self._reason = BoundedLabels(REASONS, maximum=0)
        self._route = route_labels()
        self._tools: frozenset[str] = frozenset()

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """`route` is a template, never a path; empty where none fits."""
        known = method if method in METHODS else OTHER
        self._requests(known, self._route(route) if route else UNMATCHED, str(status)).observe(seconds)
        if status == TOO_MANY_REQUESTS:
            self._refusals(product_of(route), RATE_LIMIT).inc()

    def not_admitted(self, kind: str, route: str, seconds: float) -> None:
        self._not_admitted(kind).observe(seconds)
        self.overloaded(product_of(route))

    def overloaded(self, product: str) -> None:
        """A request was turned away so that others can be answered."""
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
        """The tools that an installation has: what else somebody calls is one word for all."""
        self._tools = frozenset(names)
        self._mcp_requests.begin((MCP_CALL,), self._tools, MCP_OUTCOMES)
        self._mcp.begin((MCP_CALL,), self._tools)

    def mcp(self, method: str, tool: str, outcome: str, seconds: float) -> None:
        """`tool` is empty where none is called."""
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

    def token_refused(self, reason: str) -> None:
        self._refused(self._reason(reason)).inc()

    def query_log_dropped(self, count: int, reason: str) -> None:
        self._dropped(reason).inc(count)

    def _begin(self) -> None:
        self._not_admitted.begin(("read", "write"))
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
        for alone in (self._stopped, self._passages, self._limited):
            alone.begin()


class WorkerMetrics(Exposed):
    def __init__(self) -> None:
        shown = Exposition()
        super().__init__(shown)
        self.stores = StoreMetrics(shown)
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
