"""Traces of the API at a real collector, within the trace of the caller."""

import pytest

from tests.unit.core.embedding.embedding_endpoint import EmbeddingEndpoint
from tests.unit.server.composition.observed_app import put_two, settings_of, watched
from tests.unit.server.metrics.otlp_receiver import OtlpReceiver, Received, otlp_receiver
from toolscript.core.embedding.openai import OpenAIEmbedder
from toolscript.core.observability.tracing import trace_headers
from toolscript.core.retrieval.model import ModelCard
from toolscript.core.retrieval.timings import NoSpans
from toolscript.core.web.logs import no_trace
from toolscript.server.observability import ids_for_logs, metrics_folder, open_observability

pytestmark = [pytest.mark.requirement("DOC-005"), pytest.mark.requirement("DOC-007"), pytest.mark.slow]

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
SAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
UNSAMPLED = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
STAGES = {"search.embed", "search.statistics", "search.retrieve", "search.fuse", "search.rerank", "search.enrich"}


def of_trace(receiver: OtlpReceiver, trace: str = TRACE) -> dict[str, Received]:
    return {span.name: span for span in receiver.spans if span.trace_id == trace}


async def test_a_search_is_a_span_with_a_child_for_each_stage_in_the_callers_trace() -> None:
    with otlp_receiver() as receiver:
        async with watched({"otlp_endpoint": receiver.url}) as client:
            await put_two(client)
            body = {"query": "where are the keys", "rerank": "cross_encoder"}
            result = await client.post("/search", json=body, headers=SAMPLED)
            assert [hit["doc_id"] for hit in result.json()["hits"]][:1] == ["doc-1"]
        spans = of_trace(receiver)
    request, search = spans["POST /search"], spans["search.execute"]
    assert request.parent_id == PARENT
    assert search.parent_id == request.span_id
    assert search.facts == {"product": "documents", "search_type": "hybrid", "tenant": "ann"}
    assert {name for name, item in spans.items() if item.parent_id == search.span_id} == STAGES
    assert request.facts["http.route"] == "/search"
    assert request.facts["http.response.status_code"] == 200


async def test_nothing_that_was_searched_found_or_shown_is_in_a_trace() -> None:
    with otlp_receiver() as receiver:
        async with watched({"otlp_endpoint": receiver.url}) as client:
            await put_two(client)
            await client.post("/search", json={"query": "where are the keys"})
            await client.get("/api/v1/search/tools?query=undisclosed")
            await client.post("/search", json={"query": "undisclosed"}, headers={"authorization": "Bearer wrong1"})
        sent = b"".join(receiver.raw)
    assert len(receiver.spans) >= 8
    for private in (b"keys", b"mat.", b"Mail", b"undisclosed", b"token-of-ann", b"wrong1", b"doc-1"):
        assert private not in sent


async def test_a_request_with_an_unsampled_trace_is_not_recorded() -> None:
    with otlp_receiver() as receiver:
        async with watched({"otlp_endpoint": receiver.url}) as client:
            assert (await client.post("/search", json={"query": "keys"}, headers=UNSAMPLED)).status_code == 200
        assert receiver.spans == []


async def test_a_request_with_a_sampled_trace_is_recorded_whatever_the_share() -> None:
    with otlp_receiver() as receiver:
        async with watched({"otlp_endpoint": receiver.url, "trace_share": 0.0}) as client:
            await client.post("/search", json={"query": "keys"})
            await client.post("/search", json={"query": "keys"}, headers=SAMPLED)
        assert {span.trace_id for span in receiver.spans} == {TRACE}


@pytest.mark.parametrize("header", ["00-zz", "", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "x" * 5_000])
async def test_a_header_that_names_no_trace_begins_a_new_one(header: str) -> None:
    with otlp_receiver() as receiver:
        async with watched({"otlp_endpoint": receiver.url}) as client:
            result = await client.post("/search", json={"query": "keys"}, headers={"traceparent": header})
            assert result.status_code == 200
        spans = {span.name: span for span in receiver.spans}
    assert spans["POST /search"].parent_id == ""


async def test_health_checks_and_metrics_are_not_traced() -> None:
    with otlp_receiver() as receiver:
        async with watched({"otlp_endpoint": receiver.url, "metrics": True}) as client:
            for path in ("/livez", "/readyz", "/search/health", "/metrics"):
                assert (await client.get(path)).status_code == 200
        assert receiver.spans == []


async def test_requests_to_the_embeddings_endpoint_continue_the_trace() -> None:
    with otlp_receiver() as receiver, EmbeddingEndpoint(64) as endpoint:
        remote = OpenAIEmbedder(endpoint.url, ModelCard("hash", "1", 64), headers=trace_headers)
        async with watched({"otlp_endpoint": receiver.url}, embedder=remote) as client:
            await client.post(
                "/search", json={"query": "keys"}, headers={**SAMPLED, "baggage": "secret=of-the-caller"}
            )
        await remote.close()
        (heard,) = endpoint.headers
        span = of_trace(receiver)["search.embed"]
    assert heard["traceparent"].startswith(f"00-{TRACE}-{span.span_id}-")
    assert "baggage" not in heard


@pytest.mark.states("S2-073")
async def test_without_a_collector_nothing_is_traced_and_nothing_is_loaded_for_it() -> None:
    settings = settings_of({})
    assert ids_for_logs(settings) is no_trace
    async with open_observability(settings, None) as observability:  # type: ignore[arg-type]
        assert isinstance(observability.spans, NoSpans)
        assert observability.telemetry == {
            "tracing": False,
            "metrics": False,
            "logs": False,
            "auto_configure": False,
        }
        assert observability.headers() == {}
        assert observability.query_log is None
    with metrics_folder(settings) as folder:
        assert folder == ""
