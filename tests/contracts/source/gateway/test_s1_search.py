"""The search command and its endpoint, as users and programs see them."""

import re
from urllib.parse import urlencode

import pytest

from tests.contracts.source.gateway.recorder import recorded
from tests.contracts.source.gateway.tools import NAMES, TOOLS
from tests.e2e.gateway.machines import Gateway, Machine

READ = "desktop-commander__read_file"
ROW = re.compile(r"(?P<tool>\S+__\S+) {2,}(?P<confidence>[01]\.\d\d) {2,}(?P<reason>\S.*)")
GIT = "commit my changes to git"


@pytest.mark.states("S1-005")
def test_every_tool_of_every_server_can_be_found(gateway: Gateway) -> None:
    assert gateway.tool_names() == NAMES
    assert {gateway.search(name)["results"][0]["toolId"] for name in NAMES} == NAMES


@pytest.mark.states("S1-059", "S1-061", "S1-062", "S1-063", "S1-064", "S1-065", "S1-066")
def test_a_search_shows_a_table_with_three_columns(person: Machine) -> None:
    head, *rows = person.run("search", "read file contents").stdout.splitlines()
    assert re.fullmatch(r"Tool +Confidence  Reason", head.rstrip())
    read = [ROW.fullmatch(row.rstrip()) for row in rows]
    assert 1 <= len(rows) <= 3
    assert all(item and item.start(2) == head.index("Confidence") for item in read)
    assert all(item and item.start(3) == head.index("Reason") for item in read)
    first = read[0]
    assert first is not None
    assert first["tool"] == READ
    assert "Semantic similarity" in first["reason"]
    assert first["reason"].endswith("(file operations)")


@pytest.mark.states("S1-066", "S1-147")
@pytest.mark.parametrize("search_type", ["hybrid", "semantic"])
def test_a_reason_joins_all_matches_of_a_tool(gateway: Gateway, search_type: str) -> None:
    [best] = gateway.search("read file contents", limit=1, search_type=search_type)["results"]
    evidence, _, domain = best["reason"].partition(" (")
    assert evidence.split(" + ")[-2:] == ["Semantic similarity", "words read, file, contents"]
    assert domain == "file operations)"


@pytest.mark.states("S1-007", "S1-008", "S1-009", "S1-112")
@pytest.mark.parametrize("search_type", ["hybrid", "semantic"])
def test_results_have_confidences_and_reasons_the_highest_first(gateway: Gateway, search_type: str) -> None:
    results = gateway.search("search for files", threshold=0, limit=100, search_type=search_type)["results"]
    assert len(results) == len(TOOLS)
    confidences = [item["confidence"] for item in results]
    assert confidences == sorted(confidences, reverse=True)
    assert all(0 <= item <= 1 for item in confidences)
    assert len({*confidences}) > 3
    assert all(item["reason"] for item in results)


@pytest.mark.states("S1-003", "S1-006")
@pytest.mark.parametrize("search_type", ["hybrid", "semantic"])
def test_a_request_for_what_grep_does_finds_it(gateway: Gateway, search_type: str) -> None:
    answer = gateway.search("find files containing specific text", search_type=search_type)
    assert "desktop-commander__search_code" in [result["toolId"] for result in answer["results"]]


@pytest.mark.states("S1-014")
def test_a_shell_is_no_answer_where_nothing_is_known_of_what_shells_can_do(spare: Machine) -> None:
    [boosted] = spare.json("search", GIT, "--limit", "1")["results"]
    (spare.data / "capabilities.toml").write_text("[general]\n[capability]\n", "utf-8")
    plain = spare.json("search", GIT, "--threshold", "0", "--limit", "100")["results"]
    [same] = (item for item in plain if item["serverName"] == "shell")
    assert boosted["toolId"] == same["toolId"] == "shell__execute_command"
    assert same["confidence"] < 0.35 < boosted["confidence"]
    assert "Capability" not in same["reason"]


@pytest.mark.states("S1-079", "S1-080", "S1-081", "S1-148")
def test_types_of_a_search_are_two_calls_of_the_gateway(person: Machine, gateway: Gateway) -> None:
    result = [item["toolId"] for item in gateway.search("read file")["results"]]
    assert len(result) > 1
    with recorded(gateway) as recorder:
        output = person.also(TOOLSCRIPT_GATEWAY_URL=recorder.url)
        assert "export const tools" in output.run("search", "read file", "--output", "types").stdout
    first, second = recorder.asked
    assert (first.method, first.path) == ("GET", "/search")
    assert (first.query["q"], first.query["limit"]) == ("read file", "3")
    assert (second.method, second.path) == ("GET", "/runtime/tools.ts")
    assert second.query["filter"] == ",".join(result)


@pytest.mark.states("S1-108", "S1-109", "S1-110", "S1-111", "S1-119", "S1-120")
def test_the_endpoint_returns_the_query_the_count_and_the_threshold(gateway: Gateway) -> None:
    answer = gateway.ask("/search?q=find+files&limit=1")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    data = answer.json()
    assert (data["query"], data["threshold"], len(data["results"])) == ("find files", 0.35, 1)
    every = gateway.ask("/search?q=find+files&limit=100").json()
    assert data["totalResults"] == every["totalResults"] == len(every["results"]) >= 1
    assert data["results"] == every["results"][:1]
    assert gateway.ask("/search?q=find+files&threshold=0.2").json()["threshold"] == 0.2


@pytest.mark.states("S1-113", "S1-114", "S1-115", "S1-116", "S1-117", "S1-118")
def test_a_result_of_the_endpoint_has_six_fields(gateway: Gateway) -> None:
    request = urlencode({"q": "find files", "limit": 5})
    results = {item["toolId"]: item for item in gateway.ask(f"/search?{request}").json()["results"]}
    result = results["desktop-commander__search_files"]
    confidence, reason = result.pop("confidence"), result.pop("reason")
    assert result == {
        "toolId": "desktop-commander__search_files",
        "serverName": "desktop-commander",
        "toolName": "search_files",
        "description": "Search for files by name pattern",
    }
    assert isinstance(confidence, float)
    assert 0.35 <= confidence <= 1
    assert "files" in reason


@pytest.mark.states("S1-068")
def test_a_domain_is_named_and_adds_nothing(gateway: Gateway) -> None:
    """In literal mode every part of the score is returned, and none of them is the domain."""
    results = gateway.search("read file contents", search_type="semantic", explain=1)["results"]
    assert results[0]["reason"].endswith("(file operations)")
    for result in results:
        assert {*result["parts"]["contributions"]} == {"meaning", "words"}
        assert sum(result["parts"]["contributions"].values()) == pytest.approx(result["confidence"], abs=2e-4)
