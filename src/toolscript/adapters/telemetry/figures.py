"""What `serve` counts and times, for Prometheus.

However many tenants, paths and ids there are, there are as many series as this program has words for: every label
is one of a few (labels.py).
"""

from collections.abc import Callable, Iterable, Sequence

from toolscript.adapters.telemetry.exposition import Described, Exposition
from toolscript.adapters.telemetry.labels import (
    EMBEDDED,
    ENGINE,
    ERROR,
    EXECUTE,
    FAILURES,
    LIBRARY,
    MCP_CALL,
    MCP_METHODS,
    MCP_OUTCOMES,
    METHODS,
    NONE,
    OK,
    OUTCOMES,
    OVERLOAD,
    PARTS,
    PRODUCTS,
    RATE_LIMIT,
    REASONS_TO_DROP,
    REFUSAL_REASONS,
    REFUSED_PRODUCTS,
    SEARCHED_BY,
    STAGES,
    UNMATCHED,
    WORKED,
    failure_of,
    product_of,
)
from toolscript.adapters.telemetry.refusals import REASONS
from toolscript.adapters.telemetry.store_figures import StoreFigures
from toolscript.adapters.telemetry.timing import Observe
from toolscript.adapters.telemetry.words import OTHER, FewWords, few_routes
from toolscript.model.documents import PutOutcome, PutResult

TOO_MANY_REQUESTS = 429


class Figures:
    """`folder` is what several processes of one server share: whoever of them is asked answers for all."""

    def __init__(self, folder: str = "") -> None:
        shown = self._shown = Exposition(folder)
        self.stores = StoreFigures(shown)
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
        self._reason = FewWords(REASONS, most=0)
        self._route = few_routes()
        self._tools: frozenset[str] = frozenset()

    @property
    def page(self) -> Callable[[], bytes]:
        return self._shown.page

    @property
    def described(self) -> Sequence[Described]:
        return self._shown.described

    @property
    def before_page(self) -> Callable[[Callable[[], None]], None]:
        return self._shown.before_page

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
                self._searches.begin((product,), *((one,) for one in by), OUTCOMES)
            self._search.begin((product,))
            self._stages.begin((product,), STAGES[product])
            self._failures.begin((product,), (EXECUTE, *STAGES[product]), FAILURES)
            self._degraded.begin((product,), PARTS[product])
            self._engine.begin((product,), ENGINE[product], WORKED)
        self._embedding.begin(EMBEDDED, WORKED)
        self._library.begin(LIBRARY, WORKED)
        self._mcp_requests.begin(MCP_METHODS, (NONE,), MCP_OUTCOMES)
        self._mcp.begin(MCP_METHODS, (NONE,))
        self._put.begin([one.value for one in PutOutcome])
        self._refusals.begin(REFUSED_PRODUCTS, REFUSAL_REASONS)
        self._refused.begin(REASONS)
        self._dropped.begin(REASONS_TO_DROP)
        for alone in (self._stopped, self._passages, self._limited):
            alone.begin()
