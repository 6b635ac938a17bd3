"""Figures for Prometheus.

However many tenants, paths and ids there are, there are as many series as this program has words for: every label
is one of a few.
"""

from collections.abc import Iterable, Sequence
from itertools import product

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from toolscript.adapters.telemetry.refusals import REASONS
from toolscript.adapters.telemetry.words import OTHER, FewWords, few_routes
from toolscript.model.document_queries import DocumentQuery, Fusion
from toolscript.model.document_results import DocumentAnswer
from toolscript.model.documents import PutOutcome, PutResult
from toolscript.model.queries import SearchType
from toolscript.search.fallbacks import Part

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
STAGES = ("execute", "embed", "statistics", "retrieve", "fuse", "rerank", "enrich")
ANSWERED, DEGRADED, REFUSED, FAILED = OUTCOMES = ("answered", "degraded", "refused", "failed")
EMBEDDED = ("query", "passages")
ENGINE = ("search", "statistics", "headers", "passages", "page", "count", "put", "remove", "erase")
PARTS = (Part.EMBEDDING, Part.INDEX, Part.RERANK)
REASONS_TO_DROP = ("full", "failed")
NONE = "none"
UNMATCHED = "unmatched"

# When a series began is one more series for each, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Figures:
    """`folder` is what several processes of one server share: whoever of them is asked answers for all."""

    def __init__(self, folder: str = "") -> None:
        self._folder = folder
        self._registry = CollectorRegistry()
        self._requests = self._seconds("http_request", "HTTP requests by route.", "method", "route", "status")
        self._searches = self._counter("searches", "Searches by outcome.", "search_type", "fusion", "outcome")
        self._stages = self._seconds("search_stage", "Stages of searches; execute is the whole.", "stage")
        self._failures = self._counter("search_stage_failures", "Stages that failed, by error.", "stage", "error")
        self._degraded = self._counter("searches_degraded", "Parts that searches went without.", "part")
        self._embedding = self._seconds("embedding", "Calls of the embedding model.", "kind", "outcome")
        self._engine = self._seconds("engine", "Calls of the documents' engine.", "operation", "outcome")
        self._put = self._counter("documents_put", "Documents that were put, by what became of them.", "outcome")
        self._stopped = self._counter("document_puts_stopped", "Puts that ended too early, by an error of ours.")
        self._passages = self._counter("passages_indexed", "Passages of documents that were put.")
        self._limited = self._counter("rate_limited", "Requests beyond what a plan allows in a minute.")
        self._refused = self._counter("tokens_refused", "Tokens that were refused.", "reason")
        self._dropped = self._counter("query_log_dropped", "Searches that could not be noted.", "reason")
        self._begin()
        self._stage, self._part, self._error = FewWords(STAGES), FewWords(Part), FewWords()
        self._reason = FewWords(REASONS, most=0)
        self._route = few_routes()

    def page(self) -> bytes:
        """As Prometheus reads it. Reads files where processes share figures: nothing for the event loop."""
        if not self._folder:
            return generate_latest(self._registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared, path=self._folder)  # type: ignore[no-untyped-call]
        return generate_latest(shared)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """`route` is a template, never a path; empty where none fits."""
        known = method if method in METHODS else OTHER
        self._requests.labels(known, self._route(route) if route else UNMATCHED, status).observe(seconds)

    def searched(self, query: DocumentQuery, answer: DocumentAnswer) -> None:
        self._search(query, DEGRADED if answer.degraded else ANSWERED)
        for part in answer.degraded:
            self._degraded.labels(self._part(part)).inc()

    def search_refused(self, query: DocumentQuery) -> None:
        self._search(query, REFUSED)

    def search_failed(self, query: DocumentQuery) -> None:
        self._search(query, FAILED)

    def stage(self, stage: str, seconds: float, error: type[BaseException] | None = None) -> None:
        word = self._stage(stage)
        self._stages.labels(word).observe(seconds)
        if error is not None:
            self._failures.labels(word, self._error(error.__name__)).inc()

    def embedded(self, kind: str, seconds: float, *, failed: bool) -> None:
        self._embedding.labels(kind, FAILED if failed else ANSWERED).observe(seconds)

    def engine(self, operation: str, seconds: float, *, failed: bool) -> None:
        self._engine.labels(operation, FAILED if failed else ANSWERED).observe(seconds)

    def put(self, results: Sequence[PutResult]) -> None:
        for result in results:
            self._put.labels(result.outcome).inc()
        written = (PutOutcome.CREATED, PutOutcome.UPDATED)
        self._passages.inc(sum(result.passages for result in results if result.outcome in written))

    def put_stopped(self) -> None:
        self._stopped.inc()

    def rate_limited(self) -> None:
        self._limited.inc()

    def token_refused(self, reason: str) -> None:
        self._refused.labels(self._reason(reason)).inc()

    def query_log_dropped(self, count: int, reason: str) -> None:
        self._dropped.labels(reason).inc(count)

    def _search(self, query: DocumentQuery, outcome: str) -> None:
        hybrid = query.search_type is SearchType.HYBRID
        fusion = (query.fusion or Fusion.BEST) if hybrid else NONE
        self._searches.labels(query.search_type, fusion, outcome).inc()

    def _begin(self) -> None:
        """A series that begins with its first event hides that event from every rate."""
        alone = [one for one in SearchType if one is not SearchType.HYBRID]
        _make(self._searches, alone, (NONE,), OUTCOMES)
        _make(self._searches, (SearchType.HYBRID,), Fusion, OUTCOMES)
        _make(self._stages, STAGES)
        _make(self._degraded, PARTS)
        _make(self._embedding, EMBEDDED, (ANSWERED, FAILED))
        _make(self._engine, ENGINE, (ANSWERED, FAILED))
        _make(self._put, PutOutcome)
        _make(self._refused, REASONS)
        _make(self._dropped, REASONS_TO_DROP)

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(f"toolscript_{name}", says, labels, registry=self._registry)

    def _seconds(self, name: str, says: str, *labels: str) -> Histogram:
        return Histogram(f"toolscript_{name}_seconds", says, labels, registry=self._registry, buckets=SECONDS)


def _make(metric: Counter | Histogram, *labels: Iterable[str]) -> None:
    for values in product(*labels):
        metric.labels(*values)
