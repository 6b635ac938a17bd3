"""What POST /api/v1/search and its stages have beyond the source document: verdict, steps, servers, why not."""

from typing import Any
from uuid import UUID

import pytest

from tests.unit.server.http.captured_logs import lines, logged
from tests.unit.tools.search_http.builders import SEARCH, STRATEGIES, Json, Searching
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS

pytestmark = pytest.mark.requirement("API-001")

SKILLS, TOOLS = f"{SEARCH}/skills", f"{SEARCH}/tools"
QUERY = "read a file"


async def search(searching: Searching, **body: Any) -> Json:
    return await searching.search(body.pop("query", QUERY), **body)


async def test_an_answer_has_the_parts_of_the_source_document_first(searching: Searching) -> None:
    answer = await search(searching, limit=1)
    assert [*answer] == ["query", "tools", "matched_skills", "metadata", "query_id", "steps", "why_not"]
    assert [*answer["tools"][0]][:6] == ["id", "db_id", "type", "name", "description", "score"]
    assert (answer["tools"][0]["namespace"], answer["why_not"]) == ("default", None)


async def test_the_stages_alone_find_what_a_search_finds(searching: Searching) -> None:
    whole = await search(searching, skill_threshold=0.1, include_schemas=False, strategy="direct", limit=10)
    (first, *_) = await searching.tools(QUERY, namespaces="default")
    assert {name: whole["tools"][0][name] for name in first} == first
    routed = await search(searching, skill_threshold=0.1, skill_limit=3)
    skills = await searching.skills(QUERY, limit=3, threshold=0.1, namespaces="default")
    # A whole search adds those that only words matched.
    assert skills == routed["matched_skills"][: len(skills)] != []


@pytest.mark.parametrize("path", ["/api/v1/tools/search", "/api/v1/skills/search"])
async def test_there_is_no_second_path(searching: Searching, path: str) -> None:
    answer = await searching.service.client.post(path, json={"query": QUERY})
    assert answer.status_code in (404, 405)
    assert answer.json()["error"]["code"] in ("NOT_FOUND", "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize(
    ("search_type", "version"), [("hybrid", DEFAULT_WEIGHTS.version), ("semantic", None), ("keyword", None)]
)
async def test_the_answer_names_the_weights_that_ranked_it(
    searching: Searching, search_type: str, version: str | None
) -> None:
    assert (await search(searching, search_type=search_type))["metadata"]["weights_version"] == version


async def test_near_misses_and_why_not_speak_of_the_fields_of_this_request(searching: Searching) -> None:
    first = (await search(searching, limit=1))["tools"][0]
    answer = await search(searching, tool_threshold=1.0, why_not=first["id"])
    misses = answer["metadata"]["near_misses"]
    assert {miss["id"] for miss in misses} >= {first["id"]}
    assert misses[0].keys() == {
        "id",
        "db_id",
        "type",
        "namespace",
        "server",
        "name",
        "description",
        "score",
        "confidence",
    }
    assert (answer["why_not"]["id"], answer["why_not"]["reason"]) == (first["id"], "below_threshold")
    assert "`tool_threshold`" in answer["why_not"]["message"]


async def test_only_items_of_named_skills_are_searched(searching: Searching) -> None:
    answer = await search(searching, skill_ids=["file_operations"], tool_threshold=0.0)
    assert answer["metadata"]["skill_ids_used"] == ["file_operations"]
    assert answer["tools"]
    assert all("file_operations" in tool["skill_ids"] for tool in answer["tools"])
    assert (await search(searching, skill_ids=["never_heard_of"]))["tools"] == []


async def test_the_id_of_a_search_is_in_the_log_line_of_its_request(searching: Searching) -> None:
    with logged("info") as output:
        answer = await search(searching)
        await searching.skills(QUERY)
    assert str(UUID(answer["query_id"])) == answer["query_id"]
    requests = [line for line in lines(output) if line["event"] == "request"]
    assert [(line["path"], line.get("query_id")) for line in requests] == [
        (SEARCH, answer["query_id"]),
        (SKILLS, None),
    ]


@pytest.mark.requirement("API-003")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"query": " "}, 400),
        ({"query": "x" * 1001}, 422),
        ({}, 422),
        ({"query": "a", "limit": 0}, 422),
        ({"query": "a", "tool_threshold": 1.5}, 422),
        ({"query": "a", "threshold": 0.5}, 422),
        ({"query": "a", "kind": "tool"}, 422),
        ({"query": "a", "search_type": "magic"}, 422),
    ],
)
async def test_an_invalid_search_is_refused(searching: Searching, body: Json, status: int) -> None:
    error = await searching.service.refused("POST", SEARCH, status, body)
    assert error["code"] == "VALIDATION_ERROR"


@pytest.mark.requirement("API-003")
@pytest.mark.parametrize("path", [SKILLS, TOOLS])
@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"query": " "}, 400),
        ({"query": "x" * 1001}, 422),
        ({}, 422),
        ({"query": "a", "limit": 0}, 422),
        ({"query": "a", "threshold": 1.5}, 422),
        ({"query": "a", "namespaces": "Not a name"}, 422),
        ({"query": "a", "search_type": "magic"}, 422),
    ],
)
async def test_an_invalid_stage_is_refused(searching: Searching, path: str, query: Json, status: int) -> None:
    answer = await searching.service.client.get(path, params=query)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, "VALIDATION_ERROR")


@pytest.mark.requirement("AP-001")
@pytest.mark.parametrize("search_type", ["semantic", "keyword", "hybrid"])
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_search_of_some_servers_finds_their_items_alone(
    searching: Searching, strategy: str, search_type: str
) -> None:
    options: Any = {"strategy": strategy, "search_type": search_type, "tool_threshold": 0.0, "limit": 100}
    everything = (await search(searching, **options))["tools"]
    servers = sorted({tool["server"] for tool in everything})[:2]
    assert len(servers) == 2
    for chosen in (servers[:1], servers):
        found = (await search(searching, servers=chosen, **options))["tools"]
        assert {tool["server"] for tool in found} <= set(chosen)
        of_all = {tool["id"] for tool in everything if tool["server"] in chosen}
        # Which skills match by words depends on the items that are searched.
        assert of_all <= {tool["id"] for tool in found} or strategy == "hierarchical"


@pytest.mark.requirement("AP-001")
async def test_servers_narrow_together_with_kind_and_skills(searching: Searching) -> None:
    first, *_ = (await search(searching, item_type="tool", limit=1))["tools"]
    chosen = {
        "item_type": "tool",
        "skill_ids": first["skill_ids"],
        "servers": [first["server"]],
        "tool_threshold": 0.0,
    }
    found = (await search(searching, **chosen))["tools"]
    assert first["id"] in {tool["id"] for tool in found}
    assert {(tool["type"], tool["server"]) for tool in found} == {("tool", first["server"])}
    assert (await search(searching, servers=["nobody"]))["tools"] == []


@pytest.mark.requirement("AP-001")
async def test_an_item_of_another_server_is_explained_by_its_server(searching: Searching) -> None:
    first, *_ = (await search(searching, limit=1))["tools"]
    other = await search(searching, servers=["nobody"], why_not=str(first["id"]))
    absence = other["why_not"]
    assert absence["reason"] == "other_server"
    assert absence["message"] == f"it is of {first['server']}; the search is limited to nobody"


@pytest.mark.requirement("AP-001")
@pytest.mark.parametrize("servers", [[""], ["x" * 501], ["x"] * 33, "files", [1]])
async def test_names_of_servers_have_bounds(searching: Searching, servers: Any) -> None:
    refused = await searching.service.refused("POST", SEARCH, 422, {"query": QUERY, "servers": servers})
    assert "servers" in refused["message"]


async def test_each_step_of_a_request_has_its_own_results(searching: Searching) -> None:
    text = "create a pull request and read the contents of a file"
    answer = await search(searching, query=text, strategy="direct", tool_threshold=0.0, limit=2)
    steps = answer["steps"]
    assert [step["query"] for step in steps] == ["create a pull request", "read the contents of a file"]
    assert all(1 <= len(step["tools"]) <= 2 for step in steps)
    assert steps[0]["tools"][0]["id"] != steps[1]["tools"][0]["id"]
    assert steps[0]["tools"][0].keys() == answer["tools"][0].keys()
    assert (await search(searching))["steps"] == []
