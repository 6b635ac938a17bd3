"""POST /api/v1/tools/search and /api/v1/skills/search: the same search as the aliases, in the words of the API."""

from typing import Any
from uuid import UUID

import pytest

from tests.unit.server.http.captured_logs import lines, logged
from tests.unit.tools.search_http.builders import SEARCH, STRATEGIES, Json, Searching
from toolscript.core.retrieval.weights import DEFAULT_WEIGHTS

pytestmark = pytest.mark.requirement("API-001")

TOOLS, SKILLS = "/api/v1/tools/search", "/api/v1/skills/search"
QUERY = "read a file"


async def search(searching: Searching, path: str = TOOLS, **body: Any) -> Json:
    return dict(await searching.service.ask("POST", path, 200, {"query": QUERY, **body}))


async def test_results_are_those_of_the_alias_under_the_names_of_the_api(searching: Searching) -> None:
    alias = await searching.search(QUERY, item_type="tool", tool_threshold=0.2, limit=3, explain=True)
    answer = await search(searching, kind="tool", threshold=0.2, limit=3, explain=True)
    assert answer.keys() == {"query_id", "results", "steps", "metadata"}
    renamed = [
        {"kind" if name == "type" else name: value for name, value in tool.items() if name != "id"}
        for tool in alias["tools"]
    ]
    expected = [{"id" if name == "db_id" else name: value for name, value in tool.items()} for tool in renamed]
    assert answer["results"] == [{**tool, "namespace": "default"} for tool in expected]
    assert expected


async def test_metadata_has_what_the_alias_has_with_one_word_for_each_thing(searching: Searching) -> None:
    alias, answer = await searching.search(QUERY), await search(searching)
    old, new = alias["metadata"], answer["metadata"]
    assert new["matched_skills"] == alias["matched_skills"]
    names = {
        "strategy": "strategy_used",
        "search_type": "search_type_used",
        "skill_ids": "skill_ids_used",
        "candidate_count": "stage2_candidate_count",
        "index_version": "index",
        **{name: name for name in ("unskilled_count", "degraded", "good_match", "unmatched_words", "near_misses")},
    }
    assert {name: new[name] for name in names} == {name: old[before] for name, before in names.items()}
    assert new["took_ms"] >= new["stages_ms"]["tools"] > 0
    assert new["why_not"] is None


@pytest.mark.parametrize(
    ("search_type", "version"), [("hybrid", DEFAULT_WEIGHTS.version), ("semantic", None), ("keyword", None)]
)
async def test_the_answer_names_the_weights_that_ranked_it(
    searching: Searching, search_type: str, version: str | None
) -> None:
    assert (await search(searching, search_type=search_type))["metadata"]["weights_version"] == version


async def test_near_misses_and_why_not_speak_of_the_fields_of_this_request(searching: Searching) -> None:
    first = (await search(searching, limit=1))["results"][0]
    metadata = (await search(searching, threshold=1.0, why_not=str(first["id"])))["metadata"]
    assert {miss["id"] for miss in metadata["near_misses"]} >= {first["id"]}
    assert metadata["near_misses"][0].keys() == {
        "id",
        "namespace",
        "kind",
        "server",
        "name",
        "description",
        "score",
        "confidence",
    }
    assert (metadata["why_not"]["id"], metadata["why_not"]["reason"]) == (first["id"], "below_threshold")
    assert "`threshold`" in metadata["why_not"]["message"]
    assert "tool_threshold" not in metadata["why_not"]["message"]


async def test_only_items_of_named_skills_are_searched(searching: Searching) -> None:
    answer = await search(searching, skill_ids=["file_operations"], threshold=0.0)
    assert answer["metadata"]["skill_ids"] == ["file_operations"]
    assert answer["results"]
    assert all("file_operations" in tool["skill_ids"] for tool in answer["results"])
    assert (await search(searching, skill_ids=["never_heard_of"]))["results"] == []


async def test_skills_are_those_of_the_alias(searching: Searching) -> None:
    answer = await search(searching, SKILLS, limit=3, threshold=0.1)
    assert answer["results"] == await searching.skills(QUERY, limit=3, threshold=0.1)
    metadata = answer["metadata"]
    assert (metadata["search_type"], metadata["degraded"], metadata["weights_version"]) == ("hybrid", [], None)
    assert metadata["index_version"] == (await search(searching))["metadata"]["index_version"]
    assert metadata["took_ms"] > 0


@pytest.mark.parametrize("search_type", ["semantic", "keyword", "hybrid"])
async def test_a_skill_search_names_the_retrievers_that_ran(searching: Searching, search_type: str) -> None:
    answer = await search(searching, SKILLS, search_type=search_type)
    assert answer["metadata"]["search_type"] == search_type


@pytest.mark.parametrize("path", [TOOLS, SKILLS])
async def test_the_id_of_a_search_is_in_the_log_line_of_its_request(searching: Searching, path: str) -> None:
    with logged("info") as output:
        answer = await search(searching, path)
        await searching.search(QUERY)
    assert str(UUID(answer["query_id"])) == answer["query_id"]
    requests = [line for line in lines(output) if line["event"] == "request"]
    assert [(line["path"], line.get("query_id")) for line in requests] == [
        (path, answer["query_id"]),
        (SEARCH, None),
    ]


@pytest.mark.requirement("API-003")
@pytest.mark.parametrize("path", [TOOLS, SKILLS])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"query": " "}, 400),
        ({"query": "x" * 1001}, 422),
        ({}, 422),
        ({"query": "a", "limit": 0}, 422),
        ({"query": "a", "threshold": 1.5}, 422),
        ({"query": "a", "tool_threshold": 0.5}, 422),
        ({"query": "a", "search_type": "magic"}, 422),
    ],
)
async def test_an_invalid_search_is_refused(searching: Searching, path: str, body: Json, status: int) -> None:
    error = await searching.service.refused("POST", path, status, body)
    assert error["code"] == "VALIDATION_ERROR"


@pytest.mark.requirement("AP-001")
@pytest.mark.parametrize("search_type", ["semantic", "keyword", "hybrid"])
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_search_of_some_servers_finds_their_items_alone(
    searching: Searching, strategy: str, search_type: str
) -> None:
    options: Any = {"strategy": strategy, "search_type": search_type, "threshold": 0.0, "limit": 100}
    everything = (await search(searching, **options))["results"]
    servers = sorted({tool["server"] for tool in everything})[:2]
    assert len(servers) == 2
    for chosen in (servers[:1], servers):
        found = (await search(searching, servers=chosen, **options))["results"]
        assert {tool["server"] for tool in found} <= set(chosen)
        of_all = {tool["id"] for tool in everything if tool["server"] in chosen}
        # Which skills match by words depends on the items that are searched.
        assert of_all <= {tool["id"] for tool in found} or strategy == "hierarchical"


@pytest.mark.requirement("AP-001")
async def test_servers_narrow_together_with_kind_and_skills(searching: Searching) -> None:
    first, *_ = (await search(searching, kind="tool", limit=1))["results"]
    chosen = {"kind": "tool", "skill_ids": first["skill_ids"], "servers": [first["server"]], "threshold": 0.0}
    found = (await search(searching, **chosen))["results"]
    assert first["id"] in {tool["id"] for tool in found}
    assert {(tool["kind"], tool["server"]) for tool in found} == {("tool", first["server"])}
    assert (await search(searching, servers=["nobody"]))["results"] == []


@pytest.mark.requirement("AP-001")
async def test_an_item_of_another_server_is_explained_by_its_server(searching: Searching) -> None:
    first, *_ = (await search(searching, limit=1))["results"]
    other = await search(searching, servers=["nobody"], why_not=str(first["id"]))
    absence = other["metadata"]["why_not"]
    assert absence["reason"] == "other_server"
    assert absence["message"] == f"it is of {first['server']}; the search is limited to nobody"


@pytest.mark.requirement("AP-001")
@pytest.mark.parametrize("servers", [[""], ["x" * 501], ["x"] * 33, "files", [1]])
async def test_names_of_servers_have_bounds(searching: Searching, servers: Any) -> None:
    refused = await searching.service.refused("POST", TOOLS, 422, {"query": QUERY, "servers": servers})
    assert "servers" in refused["message"]


async def test_each_step_of_a_request_has_its_own_results(searching: Searching) -> None:
    text = "create a pull request and read the contents of a file"
    answer = await search(searching, query=text, strategy="direct", threshold=0.0, limit=2)
    steps = answer["steps"]
    assert [step["query"] for step in steps] == ["create a pull request", "read the contents of a file"]
    assert all(1 <= len(step["results"]) <= 2 for step in steps)
    assert steps[0]["results"][0]["id"] != steps[1]["results"][0]["id"]
    assert steps[0]["results"][0].keys() == answer["results"][0].keys()
    assert (await search(searching))["steps"] == []
