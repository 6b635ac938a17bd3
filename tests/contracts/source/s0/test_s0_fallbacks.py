"""S0, when skills do not help, in literal mode; and the edge cases that need no broken engine."""

import asyncio
import logging

import pytest

from tests.contracts.source.s0.builders import LITERAL, Truth, are_the_same
from tests.contracts.source.s0.test_s0_skill_stage import QUERIES
from tests.unit.tools.search_http.builders import Searching, ids, names, without_times
from tests.unit.tools.search_http.catalog import BEES, VOLCANOES
from toolscript.core.settings.service import Settings

WARNING = "No skills matched, falling back to unfiltered search"


@pytest.mark.states("S0-066", "S0-067", "S0-068", "S0-069", "S0-070", "S0-073", "S0-129", "S0-206", "S0-208")
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("threshold", [0.9, 1.0])
async def test_when_all_skills_are_below_the_threshold_all_items_are_searched(
    searching: Searching, truth: Truth, query: str, threshold: float, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        answer = await searching.search(query, skill_threshold=threshold, tool_threshold=0.35, **LITERAL)
    assert [line.levelname for line in caplog.records if line.getMessage() == WARNING] == ["WARNING"]
    metadata = answer["metadata"]
    assert (metadata["skill_ids_used"], answer["matched_skills"], metadata["degraded"]) == (None, [], [])
    direct = await searching.search(query, strategy="direct", tool_threshold=0.35, **LITERAL)
    assert answer["tools"] == direct["tools"]
    are_the_same(answer["tools"], await truth.items_for(query, None, 5, 0.35))


@pytest.mark.states("S0-067")
async def test_a_search_that_matched_a_skill_does_not_warn(
    searching: Searching, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        answer = await searching.search("read a file", skill_threshold=0.1, **LITERAL)
    assert answer["metadata"]["skill_ids_used"]
    assert [line.getMessage() for line in caplog.records if "skill" in line.getMessage().lower()] == []


@pytest.mark.states("S0-191", "S0-192", "S0-213")
async def test_a_matched_skill_without_items_gives_an_empty_list(searching: Searching) -> None:
    query = "volcanoes, magma chambers, lava and eruptions"
    answer = await searching.search(query, skill_limit=1, tool_threshold=0.0, **LITERAL)
    assert [(skill["id"], skill["tool_count"]) for skill in answer["matched_skills"]] == [(VOLCANOES.id, 0)]
    assert (answer["tools"], answer["metadata"]["degraded"]) == ([], [])
    assert answer["metadata"]["skill_ids_used"] == [VOLCANOES.id]


@pytest.mark.states("S0-201", "S0-202", "S0-213")
async def test_an_item_in_no_skill_is_found_by_a_direct_search_alone(searching: Searching) -> None:
    query = "blow smoke into a beehive so that its bees stay calm"
    routed = await searching.search(query, skill_threshold=0.2, limit=100, tool_threshold=0.0, **LITERAL)
    assert BEES.id in ids(routed["matched_skills"])
    assert "smoke_beehive" not in names(routed["tools"])
    assert all(tool["skill_ids"] for tool in routed["tools"])
    direct = await searching.search(query, strategy="direct", **LITERAL)
    assert (direct["tools"][0]["name"], direct["tools"][0]["skill_ids"]) == ("smoke_beehive", [])


@pytest.mark.states("S0-195", "S0-196", "S0-213")
@pytest.mark.parametrize(
    "query",
    [
        "'; DROP TABLE mcp.items; -- read a file",
        '<script>alert("read a file")</script>',
        "read the file `a.txt` and then mail it to <anna@example.com>",
        "{{7*7}} ${env:HOME} readFile(path='../../etc/passwd')",
        "https://example.com/a?b=c#d 550e8400-e29b-41d4-a716-446655440000 42",
    ],
)
async def test_any_query_is_embedded_unchanged(searching: Searching, truth: Truth, query: str) -> None:
    answer = await searching.search(query, strategy="direct", limit=20, tool_threshold=0.0, **LITERAL)
    assert answer["query"] == query
    are_the_same(answer["tools"], await truth.items_for(query, None, 20, 0.0))


@pytest.mark.states("S0-197", "S0-213")
@pytest.mark.parametrize("search_type", ["semantic", "hybrid"])
async def test_concurrent_equal_queries_get_the_same_answer(searching: Searching, search_type: str) -> None:
    requests = (searching.search("find a file on the nas", search_type=search_type) for _ in range(20))
    answers = await asyncio.gather(*requests)
    assert len({str(without_times(answer)) for answer in answers}) == 1
    assert answers[0]["tools"]


@pytest.mark.states("S0-204")
def test_a_search_may_take_ten_seconds() -> None:
    """The tests with hanging embeddings show that the deadline holds."""
    assert Settings.model_fields["deadline_seconds"].default == 10.0
