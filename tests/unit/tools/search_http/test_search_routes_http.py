"""The three search routes over HTTP: defaults, responses and errors."""

import asyncio
from typing import Any

import pytest

from tests.unit.tools.search_http.builders import SEARCH, Searching, ids, names, scores, without_times

FOUND = {
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
SKILL = {"id", "name", "description", "score", "tool_count", "matched_by"}
SCHEMAS = {"input_schema", "output_schema", "annotations"}


@pytest.mark.requirement("API-001")
async def test_omitted_parameters_have_the_documented_defaults(searching: Searching) -> None:
    defaults = {
        "item_type": None,
        "limit": 5,
        "skill_limit": 3,
        "skill_threshold": 0.4,
        "tool_threshold": 0.3,
        "include_schemas": True,
        "strategy": "hierarchical",
        "search_type": "hybrid",
        "preset": "balanced",
    }
    bare, whole = await searching.search("read a file"), await searching.search("read a file", **defaults)
    assert without_times(bare) == without_times(whole)
    assert bare.keys() == {"query", "tools", "matched_skills", "metadata", "absence"}
    assert bare["query"] == "read a file"
    assert len(bare["tools"]) == 5
    assert all(tool.keys() == FOUND | SCHEMAS | {"explanation"} for tool in bare["tools"])
    assert all(tool["id"] == str(tool["db_id"]) for tool in bare["tools"])
    assert all(skill.keys() == SKILL for skill in bare["matched_skills"])


@pytest.mark.requirement("API-001", "BR-002")
async def test_the_skill_stage_alone_returns_the_skills_that_a_search_is_routed_to(searching: Searching) -> None:
    answer = await searching.search("read a file", skill_limit=5)
    alone = await searching.skills("read a file")
    assert alone == answer["matched_skills"][:5]
    assert {skill["matched_by"] for skill in alone} == {"vector", "words"}
    assert alone == await searching.skills("read a file", limit=5, threshold=0.4)


@pytest.mark.requirement("API-001", "BR-002")
@pytest.mark.parametrize("limit", [1, 2, 32])
async def test_the_skill_stage_alone_returns_at_most_limit_skills(searching: Searching, limit: int) -> None:
    query = "send an email and book a flight"
    every = await searching.skills(query, limit=32, threshold=0)
    some = await searching.skills(query, limit=limit, threshold=0)
    assert some == every[:limit]
    vectors = [skill["score"] for skill in every if skill["matched_by"] == "vector"]
    assert vectors == sorted(vectors, reverse=True)
    assert await searching.skills(query, limit=32, threshold=1) == []


@pytest.mark.requirement("API-001", "BR-003")
async def test_the_item_stage_alone_searches_the_skills_that_are_named(searching: Searching) -> None:
    tools = await searching.tools("read a file", skill_ids="communication, database_query")
    assert tools
    assert all(tool.keys() == FOUND for tool in tools)
    assert all({"communication", "database_query"} & set(tool["skill_ids"]) for tool in tools)
    assert await searching.tools("read a file", skill_ids="nobody_has_this") == []


@pytest.mark.requirement("API-001", "BR-005")
async def test_the_item_stage_alone_searches_all_items_unless_skills_are_named(searching: Searching) -> None:
    direct = await searching.search("read a file", strategy="direct", limit=10)
    tools = await searching.tools("read a file")
    assert ids(tools) == ids(direct["tools"])
    assert len(tools) == 10
    assert tools == await searching.tools("read a file", limit=10, threshold=0.3, search_type="hybrid")
    prompts = await searching.tools("read a file", item_type="prompt", threshold=0)
    assert {tool["type"] for tool in prompts} == {"prompt"}
    assert all(score >= 0.6 for score in scores(await searching.tools("read a file", threshold=0.6)))


@pytest.mark.requirement("API-001")
@pytest.mark.parametrize(
    ("preset", "skill", "tool"), [("precision", 0.7, 0.6), ("balanced", 0.4, 0.3), ("recall", 0.2, 0.1)]
)
@pytest.mark.parametrize("query", ["honey from a beehive", "send an email and book a flight"])
async def test_a_preset_sets_two_thresholds(
    searching: Searching, query: str, preset: str, skill: float, tool: float
) -> None:
    named = await searching.search(query, preset=preset, limit=100)
    explicit = await searching.search(query, skill_threshold=skill, tool_threshold=tool, limit=100)
    assert without_times(named) == without_times(explicit)


@pytest.mark.requirement("API-001")
async def test_a_threshold_overrides_the_preset(searching: Searching) -> None:
    query = "send an email and book a flight"
    recall = await searching.search(query, preset="recall", limit=100)
    precision = await searching.search(query, preset="precision", limit=100)
    assert len(precision["tools"]) < len(recall["tools"])
    # Skills that the words of items name do not depend on the threshold, and may be the same ones.
    by_vector = [
        [skill["id"] for skill in answer["matched_skills"] if skill["matched_by"] == "vector"]
        for answer in (precision, recall)
    ]
    assert len(by_vector[0]) < len(by_vector[1])
    mixed = await searching.search(query, preset="precision", tool_threshold=0.1, skill_threshold=0.2, limit=100)
    assert without_times(mixed) == without_times(recall)
    half = await searching.search(query, preset="recall", tool_threshold=0.6, limit=100)
    assert half["matched_skills"] == recall["matched_skills"]
    assert all(score >= 0.6 for score in scores(half["tools"]))


@pytest.mark.requirement("API-002", "API-003")
@pytest.mark.parametrize(
    "more",
    [
        {"strategy": "astrology"},
        {"strategy": None},
        {"preset": "guesswork"},
        {"preset": None},
        {"skill_limit": 0},
        {"skill_limit": 33},
        {"skill_threshold": -0.1},
        {"skill_threshold": 1.1},
        {"skill_threshold": "high"},
        {"explain": "perhaps"},
        {"why_not": "x" * 501},
        {"why_not": 7},
        {"skill_ids": ["communication"]},
    ],
)
async def test_a_parameter_out_of_range_is_refused(searching: Searching, more: dict[str, Any]) -> None:
    assert (await searching.refused("read a file", 422, **more))["code"] == "VALIDATION_ERROR"


@pytest.mark.requirement("API-002", "API-003", "EC-004")
@pytest.mark.parametrize(
    ("path", "params", "status"),
    [
        ("skills", {}, 422),
        ("skills", {"query": ""}, 400),
        ("skills", {"query": " \t"}, 400),
        ("skills", {"query": "x" * 1001}, 422),
        ("skills", {"query": "x", "limit": 0}, 422),
        ("skills", {"query": "x", "limit": 33}, 422),
        ("skills", {"query": "x", "threshold": 1.5}, 422),
        ("skills", {"query": "x", "threshold": "nan"}, 422),
        ("tools", {}, 422),
        ("tools", {"query": "\n"}, 400),
        ("tools", {"query": "x" * 1001}, 422),
        ("tools", {"query": "x", "limit": 101}, 422),
        ("tools", {"query": "x", "threshold": -1}, 422),
        ("tools", {"query": "x", "item_type": "spoon"}, 422),
        ("tools", {"query": "x", "skill_ids": "No Id"}, 422),
        ("tools", {"query": "x", "skill_ids": ",".join(f"skill_{number}" for number in range(33))}, 422),
    ],
)
async def test_the_single_stages_return_errors_in_the_same_shape(
    searching: Searching, path: str, params: dict[str, Any], status: int
) -> None:
    error = await searching.service.refused("GET", f"{SEARCH}/{path}", status, **params)
    assert error["code"] == "VALIDATION_ERROR"
    assert error["message"]


@pytest.mark.requirement("EC-004")
@pytest.mark.parametrize("strategy", ["hierarchical", "hybrid"])
async def test_a_query_may_be_a_thousand_characters_long_and_no_longer(
    searching: Searching, strategy: str
) -> None:
    query = ("read a file " * 100)[:999] + "s"
    assert (await searching.search(query, strategy=strategy))["query"] == query
    await searching.refused(query + "s", 422, strategy=strategy)


@pytest.mark.states("S0-195")
@pytest.mark.requirement("EC-005")
@pytest.mark.parametrize("strategy", ["hierarchical", "hybrid"])
@pytest.mark.parametrize(
    "query",
    [
        "'; DROP TABLE mcp.items; -- read a file",
        '<script>alert("read a file")</script>',
        'read a file" OR is_active = false --',
        "{{7*7}} ${env:HOME} read a file",
        "read a file ￿ \U0001f4c1",
        "../../../etc/passwd",
    ],
)
async def test_a_hostile_query_is_text_and_routed_like_any_other(
    searching: Searching, strategy: str, query: str
) -> None:
    answer = await searching.search(query, strategy=strategy, tool_threshold=0.0, limit=20)
    assert answer["query"] == query
    assert answer["metadata"]["degraded"] == []
    if "read a file" in query:
        assert "read_file" in names(answer["tools"])
        near = await searching.search(query, strategy=strategy, skill_threshold=0.1)
        assert "file_operations" in ids(near["matched_skills"])


@pytest.mark.states("S0-197", "S0-198")
@pytest.mark.requirement("EC-006")
@pytest.mark.parametrize("strategy", ["hierarchical", "hybrid"])
async def test_concurrent_identical_queries_get_the_same_answer(searching: Searching, strategy: str) -> None:
    queries = ["find a file on the nas", "send an email and book a flight"] * 10
    answers = await asyncio.gather(*(searching.search(query, strategy=strategy) for query in queries))
    assert len({str(without_times(answer)) for answer in answers}) == 2
