"""Metrics: what they count, and that their number is bounded."""

import ast
import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.server.metrics.metrics_page import shown, value
from toolscript.core.auth import tokens
from toolscript.core.auth.model import Anonymous, Budget, Fault, Plan, Principal, Tenant
from toolscript.core.errors import (
    EmbedderUnavailable,
    IndexUnavailable,
    InvalidRequest,
    TokenRefused,
    Unauthorized,
)
from toolscript.core.retrieval.model import Matrix, ModelCard, Vector
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.retrieval.results import Total
from toolscript.core.retrieval.timings import NoSpans
from toolscript.documents.model.answer import DocumentAnswer, DocumentHit
from toolscript.documents.model.document import PutOutcome, PutResult
from toolscript.documents.model.query import DocumentQuery
from toolscript.server.measured import CountedBudget, CountedTokenVerifier, MeasuredEmbedder, MeasuredSpans
from toolscript.server.metrics import (
    DOCUMENTS,
    FAILURES,
    KNOWLEDGE,
    OTHER,
    OUTCOMES,
    PARTS,
    REFUSAL_REASONS,
    REFUSED_PRODUCTS,
    STAGES,
    TOOLS,
    Metrics,
    product_of,
)
from toolscript.server.observability import Observability
from toolscript.testing import HashEmbedder

pytestmark = [pytest.mark.requirement("DOC-007"), pytest.mark.slow]

ANSWER = DocumentAnswer((), Total(0))

# In the alphabetical order of the labels.
KNOWN_LABELS = (
    (
        "toolscript_searches_total",
        [("none", outcome, product, "hybrid") for product in (TOOLS, KNOWLEDGE) for outcome in OUTCOMES]
        + [("best", outcome, DOCUMENTS, "hybrid") for outcome in OUTCOMES],
    ),
    (
        "toolscript_search_stage_failures_total",
        [
            (error, product, stage)
            for product, stages in STAGES.items()
            for stage in ("execute", *stages)
            for error in FAILURES
        ],
    ),
    ("toolscript_searches_degraded_total", [(part, product) for product in PARTS for part in PARTS[product]]),
    ("toolscript_search_seconds_count", [(product,) for product in (TOOLS, DOCUMENTS, KNOWLEDGE)]),
    (
        "toolscript_refusals_total",
        [(product, reason) for product in REFUSED_PRODUCTS for reason in REFUSAL_REASONS],
    ),
    ("toolscript_mcp_requests_total", [("tools/list", "ok", "none"), ("initialize", "refused", "none")]),
    ("toolscript_library_seconds_count", [("chunks", "ok"), ("chunks", "error")]),
    ("toolscript_postgres_pool_errors_total", [()]),
    ("toolscript_rate_limited_total", [()]),
)


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


HIT = DocumentHit("doc-1", "doc-1", 1.0, {})
CALLER = Principal(Tenant("ann"))


def test_searches_for_documents_are_counted_by_type_fusion_and_outcome(metrics: Metrics) -> None:
    observability = Observability(NoSpans(), metrics)

    def searched(query: DocumentQuery, answer: DocumentAnswer) -> None:
        observability.searched(CALLER, query, answer, query_id="1", took_ms=1.0)

    searched(DocumentQuery("a"), DocumentAnswer((HIT,), Total(1)))
    searched(DocumentQuery("a", fusion=Fusion.RRF), DocumentAnswer((HIT,), Total(1)))
    searched(DocumentQuery("a", search_type=SearchType.KEYWORD), ANSWER)
    searched(DocumentQuery("a"), DocumentAnswer((), Total(0), degraded=("embedding",)))
    observability.search_failed(DocumentQuery("a"), InvalidRequest("what?"))
    observability.search_failed(DocumentQuery("a", search_type=SearchType.SEMANTIC), IndexUnavailable("down"))
    page = metrics.page()
    counted = {
        tuple(dict(labels).values()): result
        for (name, labels), result in shown(page).items()
        if name == "toolscript_searches_total" and result
    }
    assert counted == {
        ("best", "ok", "documents", "hybrid"): 1,
        ("rrf", "ok", "documents", "hybrid"): 1,
        ("none", "empty", "documents", "keyword"): 1,
        ("best", "degraded", "documents", "hybrid"): 1,
        ("best", "refused", "documents", "hybrid"): 1,
        ("none", "error", "documents", "semantic"): 1,
    }
    assert value(page, "toolscript_searches_degraded_total", product="documents", part="embedding") == 1


def test_documents_are_counted_by_outcome_and_chunks_when_written(
    metrics: Metrics,
) -> None:
    metrics.put(
        [
            PutResult("a", PutOutcome.CREATED, 3),
            PutResult("b", PutOutcome.UPDATED, 2),
            PutResult("c", PutOutcome.UNCHANGED, 7),
            PutResult("d", PutOutcome.REFUSED, problem="no room"),
        ]
    )
    page = metrics.page()
    assert [value(page, "toolscript_documents_put_total", outcome=item) for item in PutOutcome] == [1, 1, 1, 1]
    assert value(page, "toolscript_passages_indexed_total") == 5


def test_every_possible_series_exists_from_the_start(metrics: Metrics) -> None:
    before = shown(metrics.page())
    names = {name for name, _ in before}
    for name, values in KNOWN_LABELS:
        assert name in names
        there = {tuple(value for _, value in labels) for result, labels in before if result == name}
        missing = {tuple(item) for item in values} - there
        assert not missing, (name, missing)
    counters = {item for item in names if item.endswith("_total") and item.startswith("toolscript_")}
    assert counters
    assert all(result == 0 for (name, _), result in before.items() if name in counters)
    families = {family.name: family.samples for family in text_string_to_metric_families(metrics.page().decode())}
    # The tools are known when MCP is opened; the requested routes are not known in advance.
    assert [name for name, samples in families.items() if not samples] == ["toolscript_http_request_seconds"]


def test_a_span_of_a_search_is_a_stage_and_others_are_not(metrics: Metrics) -> None:
    spans = MeasuredSpans(NoSpans(), metrics, DOCUMENTS)
    with spans.span("search.execute", tenant="ann"), spans.span("search.embed"):
        pass
    with spans.span("documents.put"):
        pass
    page = metrics.page()
    assert value(page, "toolscript_search_seconds_count", product=DOCUMENTS) == 1
    assert value(page, "toolscript_search_stage_seconds_count", product=DOCUMENTS, stage="embed") == 1
    assert value(page, "toolscript_search_stage_seconds_count") == 1
    assert value(page, "toolscript_search_stage_failures_total") == 0


def test_a_stage_that_fails_is_timed_and_counted_by_its_error(metrics: Metrics) -> None:
    spans = MeasuredSpans(NoSpans(), metrics, DOCUMENTS)
    with pytest.raises(IndexUnavailable), spans.span("search.retrieve"):
        raise IndexUnavailable("down")
    page = metrics.page()
    assert value(page, "toolscript_search_stage_seconds_count", stage="retrieve") == 1
    failed = {"stage": "retrieve", "error": "IndexUnavailable"}
    assert value(page, "toolscript_search_stage_failures_total", **failed) == 1


class Broken:
    model = ModelCard("broken", "1", 8)

    async def embed_query(self, text: str) -> Vector:
        raise EmbedderUnavailable("down")

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        raise EmbedderUnavailable("down")


async def test_embedding_is_timed_whether_it_succeeds_or_not(metrics: Metrics) -> None:
    plain = HashEmbedder()
    works, fails = MeasuredEmbedder(plain, metrics), MeasuredEmbedder(Broken(), metrics)
    assert np.array_equal(await works.embed_query("a"), await plain.embed_query("a"))
    assert (await works.embed_texts(["a", "b"])).shape[0] == 2
    assert works.model == plain.model
    with pytest.raises(EmbedderUnavailable):
        await fails.embed_query("a")
    page = metrics.page()
    counted = {
        (kind, outcome): value(page, "toolscript_embedding_seconds_count", kind=kind, outcome=outcome)
        for kind in ("query", "passages")
        for outcome in ("ok", "error")
    }
    assert counted == {
        ("query", "ok"): 1,
        ("query", "error"): 1,
        ("passages", "ok"): 1,
        ("passages", "error"): 0,
    }


class Refusing:
    def __init__(self, refusal: Unauthorized) -> None:
        self._refusal = refusal

    async def verify(self, token: str) -> Principal:
        if token == "right":
            return Principal(Tenant("ann"))
        raise self._refusal


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [(TokenRefused(fault, "no"), fault.value) for fault in Fault] + [(Unauthorized("I do not like you"), OTHER)],
)
async def test_refused_tokens_are_counted_by_reason(metrics: Metrics, refusal: Unauthorized, reason: str) -> None:
    verifier = CountedTokenVerifier(Refusing(refusal), metrics)
    assert (await verifier.verify("right")).tenant == Tenant("ann")
    with pytest.raises(Unauthorized):
        await verifier.verify("wrong")
    assert value(metrics.page(), "toolscript_tokens_refused_total", reason=reason) == 1
    assert value(metrics.page(), "toolscript_tokens_refused_total") == 1


def test_every_refusal_of_a_token_has_a_reason() -> None:
    folder = Path(tokens.__file__).parent
    calls = [
        item.func.id
        for file in folder.glob("*.py")
        for item in ast.walk(ast.parse(file.read_text()))
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Name)
    ]
    assert calls.count("TokenRefused") > 8
    assert "Unauthorized" not in calls


class OneRequest:
    def __init__(self) -> None:
        self._left = 1

    async def take(self, who: Tenant | Anonymous, plan: Plan) -> Budget:
        self._left -= 1
        return Budget(1, max(0, self._left), 60, self._left >= 0)


async def test_requests_above_the_rate_limit_are_counted(metrics: Metrics) -> None:
    budget = CountedBudget(OneRequest(), metrics)
    taken = [await budget.take(Tenant("ann"), Plan("small")) for _ in range(3)]
    assert [item.allowed for item in taken] == [True, False, False]
    assert value(metrics.page(), "toolscript_rate_limited_total") == 2


@pytest.mark.parametrize(
    ("route", "product"),
    [
        ("/search", DOCUMENTS),
        ("/api/v1/documents/search", DOCUMENTS),
        ("/api/v1/documents/{document_id}", DOCUMENTS),
        ("/api/v1/tenants", DOCUMENTS),
        ("/api/v1/search", TOOLS),
        ("/api/v1/tools/search", TOOLS),
        ("/search_knowledge", KNOWLEDGE),
        ("/api/v1/knowledge/search", KNOWLEDGE),
        ("/readyz", OTHER),
    ],
)
def test_a_refusal_counts_for_the_product_of_its_path_or_alias(route: str, product: str) -> None:
    assert product_of(route) == product


async def test_concurrent_increments_are_not_lost(metrics: Metrics) -> None:
    await asyncio.gather(*(asyncio.to_thread(_count, metrics) for _ in range(4)))
    assert value(metrics.page(), "toolscript_rate_limited_total") == 4_000


def _count(metrics: Metrics) -> None:
    for _ in range(1_000):
        metrics.rate_limited()
