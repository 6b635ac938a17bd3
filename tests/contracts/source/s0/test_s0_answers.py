"""S0, the HTTP contract: requests, responses, metadata and errors of a search."""

from typing import Any

import pytest

from tests.contracts.source.s0.builders import LITERAL
from tests.unit.tools.search_http.builders import SEARCH, Searching, ids
from tests.unit.tools.search_http.catalog import stored_items

SCHEMAS = ("input_schema", "output_schema", "annotations")
TIMES = [
    f"{stage}_time_ms" for stage in ("query_embedding", "skill_search", "tool_search", "schema_load", "total")
]
SAMPLE: dict[str, Any] = {
    "query": "schedule a meeting with John",
    "item_type": "tool",
    "limit": 5,
    "skill_limit": 3,
    "skill_threshold": 0.4,
    "tool_threshold": 0.3,
    "include_schemas": True,
    "strategy": "hierarchical",
}


@pytest.mark.states("S0-133", "S0-134", "S0-135", "S0-140", "S0-142", "S0-143", "S0-144", "S0-206")
@pytest.mark.parametrize("more", [{}, LITERAL])
async def test_the_sample_request_is_taken_as_it_stands(searching: Searching, more: dict[str, str]) -> None:
    answer = await searching.service.client.post(SEARCH, json=SAMPLE | more)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    body = answer.json()
    assert body["query"] == "schedule a meeting with John"
    assert body["tools"][0]["primary_skill_id"] == "calendar_management"
    assert {tool["type"] for tool in body["tools"]} == {"tool"}
    assert all(tool["input_schema"]["type"] == "object" for tool in body["tools"])


@pytest.mark.states("S0-004", "S0-098")
async def test_the_example_of_the_flow_is_routed_by_calendars_and_finds_a_tool_of_theirs(
    searching: Searching,
) -> None:
    answer = await searching.search("schedule a meeting with John tomorrow")
    assert "calendar_management" in answer["metadata"]["skill_ids_used"]
    assert answer["metadata"]["strategy_used"] == "hierarchical"
    assert answer["tools"][0]["primary_skill_id"] == "calendar_management"


@pytest.mark.states("S0-145", "S0-146", "S0-147", "S0-148", "S0-149", "S0-150", "S0-153")
@pytest.mark.parametrize("search_type", ["semantic", "hybrid"])
async def test_an_item_has_the_fields_of_the_catalog(searching: Searching, search_type: str) -> None:
    result = (await searching.search("read a file", search_type=search_type, item_type="tool"))["tools"]
    stored = {stored_item.id: stored_item.item for stored_item in await stored_items(searching.service.stores)}
    assert len(result) == 5
    for tool in result:
        item = stored[tool["db_id"]]
        assert tool["id"] == str(tool["db_id"])
        assert (tool["type"], tool["name"], tool["description"]) == (item.kind, item.name, item.description)
        assert isinstance(tool["score"], float)
        assert tool["input_schema"] == item.input_schema != {}


@pytest.mark.states(
    "S0-076",
    "S0-077",
    "S0-078",
    "S0-079",
    "S0-080",
    "S0-081",
    "S0-082",
    "S0-083",
    "S0-084",
    "S0-085",
    "S0-155",
    "S0-156",
    "S0-206",
)
@pytest.mark.parametrize("strategy", ["hierarchical", "direct", "hybrid"])
@pytest.mark.parametrize("search_type", ["semantic", "hybrid"])
async def test_the_metadata_counts_and_times_what_ran(
    searching: Searching, strategy: str, search_type: str
) -> None:
    request: dict[str, Any] = {"strategy": strategy, "search_type": search_type, "tool_threshold": 0.2}
    answer = await searching.search("read a file", skill_threshold=0.1, limit=2, **request)
    every = await searching.search("read a file", skill_threshold=0.1, limit=100, **request)
    metadata = answer["metadata"]
    assert metadata["strategy_used"] == strategy
    assert metadata["skill_ids_used"] == (None if strategy == "direct" else ids(answer["matched_skills"]))
    assert metadata["stage1_skill_count"] == len(answer["matched_skills"])
    assert (metadata["stage1_skill_count"] > 0) is (strategy != "direct")
    assert metadata["stage2_candidate_count"] == len(every["tools"]) > 2
    assert metadata["final_count"] == len(answer["tools"]) == 2
    spent = [metadata[name] for name in TIMES]
    assert all(isinstance(time, int | float) and time >= 0 for time in spent)
    assert sum(spent[:4]) <= spent[4] + 0.01


@pytest.mark.states(
    "S0-013",
    "S0-047",
    "S0-048",
    "S0-049",
    "S0-050",
    "S0-051",
    "S0-052",
    "S0-054",
    "S0-140",
    "S0-206",
    "S0-211",
    "S0-227",
)
@pytest.mark.parametrize("search_type", ["semantic", "hybrid"])
async def test_items_come_with_the_schemas_of_their_own_record(searching: Searching, search_type: str) -> None:
    request: dict[str, Any] = {
        "search_type": search_type,
        "limit": 20,
        "tool_threshold": 0.1,
        "strategy": "direct",
    }
    result = (await searching.search("honey from a beehive", **request))["tools"]
    stored = {stored_item.id: stored_item.item for stored_item in await stored_items(searching.service.stores)}
    output = {tool["db_id"]: [tool[name] for name in SCHEMAS] for tool in result}
    assert output == {id_: [getattr(stored[id_], name) for name in SCHEMAS] for id_ in output}
    by_name = {tool["name"]: tool for tool in result}
    assert all(by_name["plan_honey_harvest"][name] is not None for name in SCHEMAS)
    assert all(by_name["feed_bees"][name] is None for name in SCHEMAS)


@pytest.mark.states("S0-014", "S0-109", "S0-211")
@pytest.mark.parametrize("search_type", ["semantic", "hybrid"])
async def test_without_include_schemas_no_item_has_one(searching: Searching, search_type: str) -> None:
    answer = await searching.search("read a file", search_type=search_type, include_schemas=False)
    assert len(answer["tools"]) == 5
    assert {tool[name] for tool in answer["tools"] for name in SCHEMAS} == {None}


@pytest.mark.states("S0-110", "S0-111", "S0-112", "S0-113")
async def test_the_parts_of_an_answer_have_names_in_the_api(searching: Searching) -> None:
    schemas = (await searching.service.ask("GET", "/openapi.json"))["components"]["schemas"]
    parts = schemas["SearchResponse"]["properties"]
    assert parts["tools"]["items"] == {"$ref": "#/components/schemas/EnrichedTool"}
    assert parts["matched_skills"]["items"] == {"$ref": "#/components/schemas/SkillMatch"}
    assert parts["metadata"]["$ref"] == "#/components/schemas/Metadata"


@pytest.mark.states("S0-158")
@pytest.mark.parametrize("query", ["", " ", "\n\t"])
@pytest.mark.parametrize("more", [{}, LITERAL])
async def test_an_empty_query_is_a_bad_request(searching: Searching, query: str, more: dict[str, str]) -> None:
    assert (await searching.refused(query, 400, **more))["code"] == "VALIDATION_ERROR"


@pytest.mark.states("S0-159", "S0-193", "S0-212", "S0-213")
@pytest.mark.parametrize("more", [{}, LITERAL])
async def test_a_thousand_characters_are_taken_and_one_more_is_not(
    searching: Searching, more: dict[str, str]
) -> None:
    longest = ("read a file " * 100)[:999] + "s"
    assert (await searching.search(longest, **more))["query"] == longest
    assert (await searching.refused(longest + "s", 422, **more))["code"] == "VALIDATION_ERROR"


OUT_OF_RANGE: list[dict[str, Any]] = [
    *({name: value} for name in ("skill_threshold", "tool_threshold") for value in (-0.1, 1.1, "high")),
    *({name: value} for name in ("limit", "skill_limit") for value in (0, -1, 10_000, 1.5, "many")),
    *({name: "astrology"} for name in ("strategy", "item_type", "search_type", "include_schemas")),
]


@pytest.mark.states("S0-160", "S0-210", "S0-212")
async def test_a_parameter_out_of_range_is_refused(searching: Searching, subtests: pytest.Subtests) -> None:
    for wrong in OUT_OF_RANGE:
        with subtests.test(wrong=wrong):
            assert (await searching.refused("read a file", 422, **wrong))["code"] == "VALIDATION_ERROR"


@pytest.mark.states("S0-210")
@pytest.mark.parametrize("edge", [0.0, 1.0])
async def test_the_edges_of_a_threshold_are_taken(searching: Searching, edge: float) -> None:
    answer = await searching.search("read a file", tool_threshold=edge, skill_threshold=edge, **LITERAL)
    assert bool(answer["tools"]) is (edge == 0.0)
