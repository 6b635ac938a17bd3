"""S2: observability of searches, plans, rerankers, and the debug bypass."""

import json
import math
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.source.s2_service import LIBRARY, Json, Running, running
from tests.e2e.commands import run_here
from tests.unit.core.embedding.tiny_cross_encoder import NOTHING_COMMON, write_cross_encoder
from tests.unit.core.llm.text_endpoint import TextEndpoint
from tests.unit.server.metrics.metrics_page import value
from tests.unit.server.metrics.otlp_receiver import OtlpReceiver, otlp_receiver
from toolscript.core.settings.service import Settings

BYPASS = {"x-debug-bypass-auth": "1"}
PLANS = {"plans": {"default": {}, "small": {"max_top_k": 2, "metadata_fields": ["title", "year"]}}}
ANIMALS = (
    {"id": "fish", "text": "the fish and the fish in the sea"},
    {"id": "cat", "text": "the cat sat on the mat"},
    {"id": "dog", "text": "a dog, a blue dog, and the sky"},
)
SOON = 20.0


@dataclass(frozen=True)
class Watched:
    service: Running
    receiver: OtlpReceiver
    queries: Path

    def ask(self, asked: Json, status: int = 200, **headers: str) -> Any:
        answer = self.service.send("POST", "/search", asked, {**BYPASS, **headers})
        assert answer.status_code == status, answer.text
        return answer


@pytest.fixture(scope="module")
def watched(
    engines: Settings, migrated_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("s2")
    plans, queries = folder / "plans.json", folder / "queries.ndjson"
    plans.write_text(json.dumps(PLANS), "utf-8")
    with ExitStack() as stack:
        receiver = stack.enter_context(otlp_receiver())
        scores = [{"passage": 1, "score": 10}, {"passage": 2, "score": 90}, {"passage": 3, "score": 50}]
        text = stack.enter_context(TextEndpoint({"scores": scores}))
        settings = {
            "TOOLSCRIPT_ENVIRONMENT": "development",
            "TOOLSCRIPT_DEBUG_BYPASS_AUTH": "true",
            "TOOLSCRIPT_OTLP_ENDPOINT": receiver.url,
            "TOOLSCRIPT_METRICS": "true",
            "TOOLSCRIPT_PLANS": str(plans),
            "TOOLSCRIPT_QUERY_LOG": str(queries),
            "TOOLSCRIPT_QUERY_LOG_KEEPS": "text",
            "TOOLSCRIPT_RERANK_MODEL": str(write_cross_encoder(folder / "reranker")),
            "TOOLSCRIPT_TEXT_URL": text.url,
            "TOOLSCRIPT_TEXT_MODEL": "judge",
        }
        service = stack.enter_context(running(engines, migrated_database, folder, **settings))
        service.put(*LIBRARY, tenant="debug")
        service.put(*ANIMALS, tenant="animals")
        yield Watched(service, receiver, queries)


def until(holds: Any) -> Any:
    """Wait for a result: logs and metrics may arrive after the response."""
    ends_at = time.monotonic() + SOON
    while not (result := holds()):
        assert time.monotonic() < ends_at
        time.sleep(0.05)
    return result


@pytest.mark.states("S2-076", "S2-100")
def test_with_the_debug_bypass_a_header_replaces_the_token(watched: Watched) -> None:
    assert watched.ask({"query": "lighthouse", "search_type": "keyword"}).json()["total"] == 1
    assert watched.service.send("POST", "/search", {"query": "x"}).status_code == 401
    wrong = watched.service.send("POST", "/search", {"query": "x"}, {"x-debug-bypass-auth": "0"})
    assert wrong.status_code == 401


@pytest.mark.states("S2-076")
def test_production_does_not_start_with_the_debug_bypass(watched: Watched) -> None:
    settings = {**watched.service.environment, "TOOLSCRIPT_ENVIRONMENT": "production"}
    output = run_here(settings, "serve", code=2)
    assert "TOOLSCRIPT_DEBUG_BYPASS_AUTH is for TOOLSCRIPT_ENVIRONMENT=development alone" in output.stderr


@pytest.mark.states("S2-028", "S2-068", "S2-069", "S2-070")
def test_every_call_has_an_id_in_its_answer_and_in_the_log(watched: Watched) -> None:
    answers = [watched.ask({"query": "tax"}), watched.ask({"query": "tax", "top_k": 0}, 422)]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert ids[0] != ids[1]
    assert [uuid.UUID(item).version for item in ids] == [4, 4]
    for id_, status in zip(ids, (200, 422), strict=True):
        (line,) = until(
            lambda id_=id_: [item for item in watched.service.lines() if item.get("request_id") == id_]
        )
        assert (line["event"], line["method"], line["path"]) == ("request", "POST", "/search")
        assert (line["status"], line["tenant"], line["took_ms"] > 0) == (status, "debug", True)


@pytest.mark.states("S2-029", "S2-074", "S2-089")
def test_a_search_is_a_span_with_its_stages_sent_to_a_collector_of_opentelemetry(watched: Watched) -> None:
    trace = uuid.uuid4().hex
    watched.ask({"query": "tax"}, traceparent=f"00-{trace}-b7ad6b7169203331-01")

    def spans() -> Any:
        mine = [span for span in watched.receiver.spans if span.trace_id == trace]
        return mine if any(span.name == "search.execute" for span in mine) else None

    output = until(spans)
    (whole,) = [span for span in output if span.name == "search.execute"]
    assert (whole.facts["product"], whole.facts["search_type"]) == ("documents", "hybrid")
    stages = {span.name for span in output if span.parent_id == whole.span_id}
    assert stages >= {"search.embed", "search.retrieve", "search.fuse", "search.enrich"}


@pytest.mark.states("S2-090")
def test_searches_are_counted_by_type_and_outcome(watched: Watched) -> None:
    def counted(**labels: str) -> float:
        page = watched.service.send("GET", "/metrics").content
        return value(page, "toolscript_searches_total", product="documents", **labels)

    before = counted(search_type="keyword", outcome="ok"), counted(outcome="empty")
    watched.ask({"query": "yeast", "search_type": "keyword"})
    watched.ask({"query": "submarine", "search_type": "keyword"})
    assert (counted(search_type="keyword", outcome="ok"), counted(outcome="empty")) == (
        before[0] + 1,
        before[1] + 1,
    )


@pytest.mark.states("S2-093")
def test_queries_are_logged_to_a_file_with_the_id_of_the_response(watched: Watched) -> None:
    answer = watched.ask({"query": "the tax of patience", "top_k": 2, "fusion": "rrf"}).json()

    def noted() -> list[Json]:
        lines = watched.queries.read_text("utf-8").splitlines() if watched.queries.exists() else []
        return [item for item in map(json.loads, lines) if item["query_id"] == answer["query_id"]]

    (line,) = until(noted)
    assert (line["tenant"], line["text"], line["top_k"]) == ("debug", "the tax of patience", 2)
    assert (line["search_type"], line["fusion"], line["hits"]) == ("hybrid", "rrf", len(answer["hits"]))


@pytest.mark.states("S2-091", "S2-092")
def test_a_plan_ends_at_its_top_k_and_its_fields(watched: Watched) -> None:
    service = watched.service
    small = service.as_tenant("debug", plan="small")

    def asked(**more: object) -> tuple[int, Json]:
        answer = service.send("POST", "/search", {"query": "harbour", "top_k": 2, **more}, small)
        return answer.status_code, answer.json()

    status, output = asked(search_type="keyword")
    assert (status, [hit["metadata"].keys() for hit in output["hits"]]) == (200, [{"title", "year"}] * 2)
    beyond: list[Json] = [
        {"top_k": 3},
        {"metadata_fields": ["title", "path"]},
        {"filters": {"must": [{"field": "path", "op": "exists"}]}},
    ]
    for more in beyond:
        status, output = asked(**more)
        assert (status, output["error"]["code"]) == (403, "FORBIDDEN"), more
    assert service.search({"query": "harbour", "top_k": 3, "metadata_fields": ["path"]}, "debug")["hits"]


@pytest.mark.states("S2-011", "S2-032", "S2-085", "S2-086", "S2-098")
def test_a_cross_encoder_or_a_language_model_reranks_on_request(watched: Watched) -> None:
    request = {"query": "blue dog sky", "search_type": "semantic"}
    plain = watched.service.search(request, "animals")
    learned = watched.service.search({**request, "rerank": "cross_encoder"}, "animals")
    judged = watched.service.search({**request, "rerank": "llm"}, "animals")
    first, second, third = (hit["doc_id"] for hit in plain["hits"])
    # Score of the model for two texts with so many words in common, between 0 and 1.
    common = {"dog": 4, "fish": 0, "cat": 0}
    assert {hit["doc_id"]: hit["score"] for hit in learned["hits"]} == pytest.approx(
        {name: 1 / (1 + math.exp(-(NOTHING_COMMON + count))) for name, count in common.items()}, abs=1e-4
    )
    assert [hit["doc_id"] for hit in judged["hits"]] == [second, third, first]
    assert (plain["reranked_by"], judged["reranked_by"]) == (None, "judge")
    assert learned["reranked_by"]
    assert learned["degraded"] == judged["degraded"] == []
