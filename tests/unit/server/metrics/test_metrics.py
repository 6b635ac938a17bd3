"""Figures: what is counted, and that nobody can make them many."""

import ast
import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.server.metrics.shown_metrics import shown, value
from toolscript.core.auth import tokens
from toolscript.core.auth.model import Anonymous, Budget, Plan, Principal, Tenant
from toolscript.core.errors import EmbedderUnavailable, IndexUnavailable, InvalidRequest, Unauthorized
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
    reason_of,
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
        tuple(dict(labels).values()): found
        for (name, labels), found in shown(page).items()
        if name == "toolscript_searches_total" and found
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


def test_documents_are_counted_by_what_became_of_them_and_passages_when_they_were_written(
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
    assert [value(page, "toolscript_documents_put_total", outcome=one) for one in PutOutcome] == [1, 1, 1, 1]
    assert value(page, "toolscript_passages_indexed_total") == 5


def test_every_series_that_can_be_is_there_before_anything_happens(metrics: Metrics) -> None:
    before = shown(metrics.page())
    names = {name for name, _ in before}
    for name, values in KNOWN_LABELS:
        assert name in names
        there = {tuple(value for _, value in labels) for found, labels in before if found == name}
        missing = {tuple(one) for one in values} - there
        assert not missing, (name, missing)
    counters = {one for one in names if one.endswith("_total") and one.startswith("toolscript_")}
    assert counters
    assert all(found == 0 for (name, _), found in before.items() if name in counters)
    families = {family.name: family.samples for family in text_string_to_metric_families(metrics.page().decode())}
    # Which tools there are is told when MCP is opened; which routes are asked for, nobody knows before.
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

    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        raise EmbedderUnavailable("down")


async def test_embedding_takes_its_time_whether_it_works_or_not(metrics: Metrics) -> None:
    plain = HashEmbedder()
    works, fails = MeasuredEmbedder(plain, metrics), MeasuredEmbedder(Broken(), metrics)
    assert np.array_equal(await works.embed_query("a"), await plain.embed_query("a"))
    assert (await works.embed_passages(["a", "b"])).shape[0] == 2
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
    def __init__(self, message: str) -> None:
        self._message = message

    async def verify(self, token: str) -> Principal:
        if token == "right":
            return Principal(Tenant("ann"))
        raise Unauthorized(self._message)


@pytest.mark.parametrize(
    ("message", "reason"), [("the token has expired", "expired"), ("I do not like you", OTHER)]
)
async def test_tokens_are_counted_by_why_they_were_refused(metrics: Metrics, message: str, reason: str) -> None:
    verifier = CountedTokenVerifier(Refusing(message), metrics)
    assert (await verifier.verify("right")).tenant == Tenant("ann")
    with pytest.raises(Unauthorized):
        await verifier.verify("wrong")
    assert value(metrics.page(), "toolscript_tokens_refused_total", reason=reason) == 1
    assert value(metrics.page(), "toolscript_tokens_refused_total") == 1


def test_for_every_refusal_of_a_token_there_is_a_word() -> None:
    folder = Path(tokens.__file__).parent
    said = [one for file in folder.glob("*.py") for one in _refusals(ast.parse(file.read_text()))]
    assert len(said) > 8
    assert [one for one in said if reason_of(Unauthorized(one)) == OTHER] == []


def _refusals(tree: ast.AST) -> list[str]:
    """What is said when `Unauthorized` is made, as far as it is written there."""
    calls = (one for one in ast.walk(tree) if isinstance(one, ast.Call))
    named = (one for one in calls if isinstance(one.func, ast.Name) and one.func.id == "Unauthorized")
    return [said for one in named if (said := _constant_words(one.args[0]))]


def _constant_words(node: ast.AST) -> str:
    parts = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
    return " ".join(one for one in parts if isinstance(one, str))


class OneRequest:
    def __init__(self) -> None:
        self._left = 1

    async def take(self, who: Tenant | Anonymous, plan: Plan) -> Budget:
        self._left -= 1
        return Budget(1, max(0, self._left), 60, self._left >= 0)


async def test_requests_beyond_the_budget_are_counted(metrics: Metrics) -> None:
    budget = CountedBudget(OneRequest(), metrics)
    taken = [await budget.take(Tenant("ann"), Plan("small")) for _ in range(3)]
    assert [one.allowed for one in taken] == [True, False, False]
    assert value(metrics.page(), "toolscript_rate_limited_total") == 2


async def test_counting_at_once_loses_nothing(metrics: Metrics) -> None:
    await asyncio.gather(*(asyncio.to_thread(_count, metrics) for _ in range(4)))
    assert value(metrics.page(), "toolscript_rate_limited_total") == 4_000


def _count(metrics: Metrics) -> None:
    for _ in range(1_000):
        metrics.rate_limited()
