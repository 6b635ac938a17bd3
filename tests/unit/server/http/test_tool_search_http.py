"""Direct tool search over HTTP, on the real engines and a real model."""

import asyncio
import json
from operator import eq

import pytest

from tests.unit.conftest import Api
from toolscript.tools.search import NEAR_MISSES

TIMINGS = {
    "query_embedding_time_ms",
    "skill_search_time_ms",
    "tool_search_time_ms",
    "ranking_time_ms",
    "schema_load_time_ms",
    "total_time_ms",
}


def names(tools: list[dict[str, object]]) -> list[object]:
    return [tool["name"] for tool in tools]


@pytest.mark.requirement("BR-001", "BR-008", "API-001")
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("create pull request", "create_pull_request"),
        ("readFile", "readFile"),
        ("read_file", "readFile"),
        ("set up an appointment with colleagues", "create_event"),
        ("天气预报", "get_forecast"),
        ("прогноз погоды", "get_forecast_ru"),
    ],
)
async def test_the_sensible_tool_comes_first(api: Api, query: str, first: str) -> None:
    answer = (await api.search(query, tool_threshold=0.0)).json()
    assert names(answer["tools"])[0] == first
    assert answer["matched_skills"] == []
    scores = [tool["score"] for tool in answer["tools"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.requirement("BR-007")
async def test_the_metadata_has_strategy_and_timings(api: Api) -> None:
    answer = (await api.search("read a file", limit=2)).json()
    metadata = answer["metadata"]
    assert metadata.keys() >= TIMINGS
    assert metadata["strategy_used"] == "direct"
    assert metadata["search_type_used"] == "hybrid"
    assert metadata["skill_ids_used"] is None
    assert metadata["degraded"] == []
    assert metadata["stage1_skill_count"] == 0
    assert metadata["stage2_candidate_count"] >= metadata["final_count"] == len(answer["tools"]) == 2
    assert metadata["total_time_ms"] >= metadata["query_embedding_time_ms"] > 0
    assert metadata["tool_search_time_ms"] >= metadata["ranking_time_ms"] > 0
    assert (metadata["good_match"], metadata["near_misses"]) == (True, [])


async def test_every_tool_says_how_likely_it_is_the_right_one(api: Api) -> None:
    answer = (await api.search("create pull request", tool_threshold=0.0)).json()
    sure = [tool["confidence"] for tool in answer["tools"]]
    assert sure == sorted(sure, reverse=True)
    assert all(0.0 < confidence < 1.0 for confidence in sure)
    assert sure[0] > 0.5


@pytest.mark.parametrize("threshold", [0.0, 1.0])
async def test_without_a_good_match_the_answer_says_so_whatever_the_threshold(api: Api, threshold: float) -> None:
    answer = (await api.search("xylophone lessons for marsupials", tool_threshold=threshold)).json()
    metadata = answer["metadata"]
    assert metadata["good_match"] is False
    assert metadata["unmatched_words"] == ["xylophone", "lessons", "marsupials"]
    assert bool(answer["tools"]) is not bool(metadata["near_misses"])


async def test_near_misses_are_the_best_of_what_the_threshold_keeps_out(api: Api) -> None:
    everything = (await api.search("create pull request", tool_threshold=0.0)).json()
    metadata = (await api.search("create pull request", tool_threshold=1.0)).json()["metadata"]
    kept = ("id", "type", "server", "name", "description", "score")
    nearest = [{name: tool[name] for name in kept} for tool in everything["tools"]]
    misses = [{name: miss[name] for name in kept} for miss in metadata["near_misses"]]
    assert (metadata["final_count"], metadata["good_match"]) == (0, False)
    assert all(map(eq, misses, nearest))
    assert all(miss["confidence"] < 0.35 for miss in metadata["near_misses"])
    assert 1 <= len(metadata["near_misses"]) <= NEAR_MISSES


async def test_vectors_alone_give_no_verdict(api: Api) -> None:
    answer = (await api.search("read a file", search_type="semantic", tool_threshold=0.0)).json()
    assert answer["metadata"]["good_match"] is None
    assert answer["metadata"]["unmatched_words"] == []
    assert {tool["confidence"] for tool in answer["tools"]} == {None}


@pytest.mark.parametrize(("text", "fits"), [("create pull request", True), ("xylophone request lessons", False)])
async def test_words_alone_give_a_verdict(api: Api, text: str, fits: bool) -> None:
    answer = (await api.search(text, search_type="keyword", tool_threshold=0.0)).json()
    assert answer["metadata"]["good_match"] is fits
    assert answer["tools"]
    assert {tool["confidence"] for tool in answer["tools"]} == {None}


async def test_the_verdict_is_documented(api: Api) -> None:
    schemas = (await api.client.get("/openapi.json")).json()["components"]["schemas"]
    verdict = ("good_match", "unmatched_words", "near_misses", "ranking_time_ms")
    assert all(schemas["Metadata"]["properties"][name]["description"] for name in verdict)
    assert schemas["EnrichedTool"]["properties"]["confidence"]["description"]


@pytest.mark.requirement("BR-004")
async def test_returned_tools_have_schemas_only_when_requested(api: Api) -> None:
    result = (await api.search("create pull request", limit=1)).json()["tools"][0]
    assert result["input_schema"]["required"] == ["title"]
    assert result["output_schema"]["properties"]["number"] == {"type": "integer"}
    assert result["annotations"] == {"readOnlyHint": False}
    bare = (await api.search("create pull request", limit=1, include_schemas=False)).json()["tools"][0]
    assert bare["input_schema"] is bare["output_schema"] is bare["annotations"] is None


@pytest.mark.requirement("BR-005", "BR-004")
@pytest.mark.parametrize("kind", ["tool", "prompt", "resource"])
async def test_only_items_of_the_requested_kind_are_returned(api: Api, kind: str) -> None:
    tools = (await api.search("files and email", item_type=kind, tool_threshold=0.0)).json()["tools"]
    assert tools
    assert {tool["type"] for tool in tools} == {kind}
    if kind != "tool":
        assert all(tool["input_schema"] is None for tool in tools)


@pytest.mark.requirement("BR-003", "BR-009")
@pytest.mark.parametrize("search_type", ["semantic", "keyword", "hybrid"])
async def test_no_item_below_the_threshold_and_every_score_between_0_and_1(api: Api, search_type: str) -> None:
    everything = (await api.search("read a file", tool_threshold=0.0, search_type=search_type, limit=100)).json()
    scores = [tool["score"] for tool in everything["tools"]]
    assert all(0.0 <= score <= 1.0 for score in scores)
    middle = scores[len(scores) // 2]
    cut = (await api.search("read a file", tool_threshold=middle + 1e-5, search_type=search_type)).json()
    assert all(tool["score"] > middle for tool in cut["tools"])
    assert cut["metadata"]["search_type_used"] == search_type


@pytest.mark.requirement("API-001")
async def test_the_short_form_answers_a_list_without_schemas(api: Api) -> None:
    answer = await api.client.get("/api/v1/search/tools", params={"query": "send an email", "limit": 2})
    result = answer.json()
    assert result[0]["name"] == "send_mail"
    assert result[0].keys() == {
        "id",
        "db_id",
        "type",
        "server",
        "name",
        "description",
        "score",
        "confidence",
        "skill_ids",
        "primary_skill_id",
    }


@pytest.mark.requirement("BR-003")
async def test_a_skill_without_items_finds_nothing(api: Api) -> None:
    params = {"query": "send an email", "skill_ids": "communication,calendar_management"}
    assert (await api.client.get("/api/v1/search/tools", params=params)).json() == []


@pytest.mark.requirement("EC-005")
@pytest.mark.parametrize(
    "query", ["'; DROP TABLE mcp.items; --", "<script>alert(1)</script>", "${jndi:x}", "\x00\ud800"]
)
async def test_a_hostile_query_is_only_text(api: Api, query: str) -> None:
    body = '{"query": ' + json.dumps(query) + "}"
    answer = await api.client.post("/api/v1/search", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in {200, 422}
    assert (await api.search("read a file")).json()["tools"]


@pytest.mark.requirement("EC-006")
async def test_concurrent_equal_queries_get_the_same_answer(api: Api) -> None:
    answers = await asyncio.gather(*(api.search("read a file") for _ in range(20)))
    assert len({str(answer.json()["tools"]) for answer in answers}) == 1
