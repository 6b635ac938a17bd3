"""No client can create series, whatever it sends."""

import uuid

import pytest

from tests.unit.server.metrics.metrics_page import shown
from tests.unit.server.metrics.test_metrics import OneRequest, Refusing
from toolscript.core.auth.model import Fault, Plan, Tenant
from toolscript.core.errors import TokenRefused, Unauthorized
from toolscript.core.retrieval.timings import NoSpans
from toolscript.documents.model.document import PutOutcome, PutResult
from toolscript.documents.model.query import DocumentQuery
from toolscript.server.measured import CountedBudget, CountedTokenVerifier, MeasuredSpans
from toolscript.server.metrics import (
    DOCUMENTS,
    MCP_METHODS,
    MCP_OUTCOMES,
    OTHER,
    PARTS,
    REASONS,
    REFUSAL_REASONS,
    REFUSED_PRODUCTS,
    STAGES,
    BoundedLabels,
    Metrics,
)

pytestmark = [pytest.mark.requirement("DOC-007"), pytest.mark.slow]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


async def test_ten_thousand_tenants_paths_and_ids_add_no_series(metrics: Metrics) -> None:
    spans = MeasuredSpans(NoSpans(), metrics, DOCUMENTS)
    verifier = CountedTokenVerifier(Refusing(TokenRefused(Fault.EXPIRED, "no")), metrics)
    budget = CountedBudget(OneRequest(), metrics)

    async def one(name: str) -> None:
        query = DocumentQuery(name)
        with spans.span("search.execute", tenant=name):
            metrics.searched(DOCUMENTS, query.search_type.value, "empty", (), "best")
        metrics.put([PutResult(name, PutOutcome.CREATED, 1)])
        await budget.take(Tenant(name), Plan(name))
        with pytest.raises(Unauthorized):
            await verifier.verify(name)
        metrics.request("GET", "/documents/{id}", 200, 0.01)

    await one("first")
    before = set(shown(metrics.page()))
    for number in range(10_000):
        await one(f"tenant-{number}")
    assert set(shown(metrics.page())) == before


def test_label_values_are_bounded(metrics: Metrics) -> None:
    for _ in range(10_000):
        name = f"x{uuid.uuid4().hex}"
        metrics.request(name, f"/documents/{name}", 200, 0.01)
        metrics.stage(DOCUMENTS, name, 0.01, type(name, (Exception,), {}))
        metrics.mcp(name, name, "ok", 0.01)
        metrics.mcp("tools/call", name, "ok", 0.01)
        metrics.overloaded(name)
        metrics.token_refused(name)
        metrics.searched(DOCUMENTS, "hybrid", "degraded", (name,), "best")
    labels: dict[str, set[tuple[tuple[str, str], ...]]] = {}
    for name, value in shown(metrics.page()):
        labels.setdefault(name, set()).add(tuple(item for item in value if item[0] != "le"))
    assert len(labels["toolscript_http_request_seconds_count"]) == 301
    assert len(labels["toolscript_tokens_refused_total"]) == len(REASONS)
    assert len(labels["toolscript_searches_degraded_total"]) == sum(map(len, PARTS.values())) + 1
    assert len(labels["toolscript_search_stage_seconds_count"]) == sum(map(len, STAGES.values())) + 1
    assert len(labels["toolscript_mcp_requests_total"]) == len(MCP_METHODS) * len(MCP_OUTCOMES) + 2
    assert len(labels["toolscript_refusals_total"]) == len(REFUSED_PRODUCTS) * len(REFUSAL_REASONS)


def test_no_label_can_name_a_tenant(metrics: Metrics) -> None:
    names = {label for _, labels in shown(metrics.page()) for label, _ in labels}
    assert names & {"tenant", "tenant_id", "path", "id", "doc_id", "query"} == set()


def test_an_accepted_label_value_stays() -> None:
    words = BoundedLabels(maximum=2)
    assert [words(item) for item in ("a", "b", "c", "a")] == ["a", "b", OTHER, "a"]
