"""Searches routed by skills over HTTP, on the real engines and a real model: which skills, then which items."""

from itertools import pairwise
from typing import Any

import pytest

from tests.unit.tools.search_http.builders import (
    ALL,
    STRATEGIES,
    Searching,
    by_vector,
    by_words,
    ids,
    names,
    scores,
)
from tests.unit.tools.search_http.catalog import BEES, ORIGAMI, REMOVED
from toolscript.core.retrieval.request import parse_query
from toolscript.core.retrieval.rewriting import default_rewriter

QUERIES = [
    "read a file",
    "send an email and book a flight",
    "schedule a meeting with John",
    "honey from a beehive",
    "прогноз погоды",
    "merge a pull request of my branch",
]
# The maximum number of skills, at any distance.
EVERY_SKILL = {"skill_limit": 32, "skill_threshold": 0.0}


@pytest.mark.requirement("BR-001", "BR-003")
async def test_every_item_is_in_a_skill_that_the_query_was_routed_to(
    searching: Searching, subtests: pytest.Subtests
) -> None:
    for query in QUERIES:
        for search_type in ["hybrid", "semantic", "keyword"]:
            with subtests.test(query=query, search_type=search_type):
                answer = await searching.search(query, search_type=search_type, **ALL | {"tool_threshold": 0.1})
                used = answer["metadata"]["skill_ids_used"]
                if used is None:
                    assert (answer["matched_skills"], answer["metadata"]["strategy_used"]) == ([], "direct")
                    return
                assert answer["metadata"]["strategy_used"] == "hierarchical"
                assert used == ids(answer["matched_skills"])
                assert [tool["id"] for tool in answer["tools"] if not set(tool["skill_ids"]) & set(used)] == []


@pytest.mark.requirement("BR-001", "BR-003")
async def test_routing_narrows_the_search_and_loses_nothing_of_the_skills_it_keeps(searching: Searching) -> None:
    options: dict[str, Any] = {"search_type": "semantic", "limit": 100, "tool_threshold": 0.2}
    routed = await searching.search("read a file", strategy="hierarchical", **options)
    direct = await searching.search("read a file", strategy="direct", **options)
    used = set(routed["metadata"]["skill_ids_used"])
    kept = [tool for tool in direct["tools"] if used & set(tool["skill_ids"])]
    assert routed["tools"] == kept
    assert len(kept) < len(direct["tools"])


@pytest.mark.requirement("BR-001")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("search_type", ["hybrid", "semantic", "keyword"])
async def test_the_best_score_comes_first_and_ties_are_ordered_by_id(
    searching: Searching, strategy: str, search_type: str
) -> None:
    tools = (await searching.search("ring the bell", strategy=strategy, search_type=search_type, **ALL))["tools"]
    order = [(-tool["score"], tool["db_id"]) for tool in tools]
    assert [later for earlier, later in pairwise(order) if later[0] < earlier[0]] == []
    twins = [tool for tool in tools if tool["name"] == "ring_bell"]
    assert [tool["db_id"] for tool in twins] == sorted(tool["db_id"] for tool in twins)
    assert (len(twins), twins[0]["score"]) == (2, twins[1]["score"])
    assert tools[:2] == twins


@pytest.mark.requirement("BR-002")
@pytest.mark.parametrize(("limit", "threshold"), [(3, 0.4), (1, 0.0), (2, 0.3), (8, 0.1), (32, 0.0), (3, 0.9)])
async def test_matching_by_vector_returns_the_nearest_skills_above_the_threshold_within_the_limit(
    searching: Searching, limit: int, threshold: float
) -> None:
    nearest = by_vector(await searching.search("send an email and book a flight", **EVERY_SKILL))
    assert len(nearest) == 32
    answer = await searching.search(
        "send an email and book a flight", skill_limit=limit, skill_threshold=threshold
    )
    assert by_vector(answer) == [skill for skill in nearest if skill["score"] >= threshold][:limit]
    assert scores(by_vector(answer)) == sorted(scores(by_vector(answer)), reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores(answer["matched_skills"]))


@pytest.mark.requirement("BR-002")
async def test_the_item_count_of_a_skill_is_returned_and_does_not_affect_matching(searching: Searching) -> None:
    nearest = by_vector(await searching.search("honey from a beehive", **EVERY_SKILL))
    counts = [skill["tool_count"] for skill in nearest]
    assert (nearest[0]["id"], counts[0]) == (BEES.id, 2)
    assert max(counts) > 2
    for skill in nearest[:3]:
        members = await searching.service.ask("GET", f"/api/v1/skills/{skill['id']}/tools", limit=200)
        assert len(members["results"]) == skill["tool_count"]


@pytest.mark.requirement("BR-002")
@pytest.mark.parametrize("query", QUERIES)
async def test_matching_by_words_returns_skills_of_the_items_that_share_the_most_words(
    searching: Searching, query: str
) -> None:
    answer = await searching.search(query, skill_limit=1, skill_threshold=0.0)
    parts = [part.text for part in parse_query(default_rewriter().read(query)).parts]
    alike, *of_steps = [
        await searching.search(part, search_type="keyword", strategy="direct", **ALL | {"limit": 10})
        for part in parts
    ]
    theirs = {skill for found in (alike, *of_steps) for tool in found["tools"] for skill in tool["skill_ids"]}
    assert set(ids(by_words(answer))) <= theirs
    matched = set(ids(answer["matched_skills"]))
    assert [
        tool["name"] for tool in alike["tools"] if tool["skill_ids"] and not set(tool["skill_ids"]) & matched
    ] == []


@pytest.mark.requirement("BR-002")
async def test_threshold_and_limit_do_not_apply_to_word_matches(searching: Searching) -> None:
    query = "read a file"
    nearest = by_vector(await searching.search(query, skill_limit=1))
    answer = await searching.search(query, skill_limit=1, skill_threshold=nearest[0]["score"] - 0.001)
    assert by_vector(answer) == nearest
    assert len(by_words(answer)) > 1
    assert max(scores(by_words(answer))) < nearest[0]["score"]
    assert "read_file" in names(answer["tools"])


@pytest.mark.requirement("BR-002", "BR-006")
async def test_words_do_not_match_a_skill_that_is_far(searching: Searching) -> None:
    answer = await searching.search("read a file", skill_threshold=1.0)
    assert (answer["matched_skills"], answer["metadata"]["skill_ids_used"]) == ([], None)
    assert "read_file" in names(answer["tools"])


@pytest.mark.requirement("BR-002")
@pytest.mark.parametrize(("limit", "words"), [(1, 7), (3, 5), (5, 3), (6, 3), (8, 3)])
async def test_there_are_at_most_eight_skills_and_always_room_for_word_matches(
    searching: Searching, limit: int, words: int
) -> None:
    """Ten words, each of one item, in ten skills."""
    query = "snapshot promql replicas watermark thermostat sprints ozone visa mailbox squash"
    answer = await searching.search(query, skill_limit=limit, skill_threshold=0.0)
    assert (len(by_vector(answer)), len(by_words(answer))) == (limit, words)
    assert len(set(ids(answer["matched_skills"]))) == limit + words


@pytest.mark.requirement("BR-002")
async def test_an_inactive_skill_never_matches_even_if_its_items_match_the_query(
    searching: Searching,
) -> None:
    direct = await searching.search("fold an origami crane", strategy="direct")
    assert direct["tools"][0]["skill_ids"] == [ORIGAMI.id]
    answer = await searching.search("fold an origami crane", **EVERY_SKILL)
    assert ORIGAMI.id not in ids(answer["matched_skills"])
    assert ORIGAMI.id not in ids(await searching.skills("fold an origami crane", limit=32, threshold=0))


@pytest.mark.requirement("BR-003")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("search_type", ["hybrid", "semantic", "keyword"])
async def test_an_item_removed_from_the_catalog_is_not_found(
    searching: Searching, strategy: str, search_type: str
) -> None:
    answer = await searching.search("weigh_beehive", strategy=strategy, search_type=search_type, **ALL)
    assert answer["tools"]
    assert REMOVED not in names(answer["tools"])


@pytest.mark.requirement("BR-003")
async def test_items_reach_the_threshold_and_are_the_best_of_no_more_than_the_limit(
    searching: Searching, subtests: pytest.Subtests
) -> None:
    for strategy in STRATEGIES:
        for limit, threshold in [(1, 0.0), (5, 0.3), (7, 0.25), (100, 0.45), (5, 0.95)]:
            with subtests.test(strategy=strategy, limit=limit, threshold=threshold):
                everything = await searching.search("read a file", strategy=strategy, **ALL)
                cut = await searching.search(
                    "read a file", strategy=strategy, limit=limit, tool_threshold=threshold
                )
                assert cut["tools"] == [tool for tool in everything["tools"] if tool["score"] >= threshold][:limit]


@pytest.mark.requirement("BR-003")
@pytest.mark.parametrize("query", QUERIES)
async def test_an_item_is_returned_with_its_skills_in_the_catalog(searching: Searching, query: str) -> None:
    tools = (await searching.search(query, strategy="hybrid", limit=5, tool_threshold=0.0))["tools"]
    for tool in tools:
        recorded = await searching.service.ask("GET", f"/api/v1/tools/{tool['db_id']}/skills")
        skills = [assignment["skill_id"] for assignment in recorded["skills"]]
        assert tool["skill_ids"] == skills
        assert tool["primary_skill_id"] == (skills[0] if skills else None)


@pytest.mark.requirement("BR-005")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", ["tool", "prompt", "resource"])
async def test_every_strategy_returns_only_the_requested_kind(
    searching: Searching, strategy: str, kind: str
) -> None:
    everything = await searching.search("read a file", strategy=strategy, **ALL)
    assert {tool["type"] for tool in everything["tools"]} == {"tool", "prompt", "resource"}
    answer = await searching.search("read a file", strategy=strategy, item_type=kind, **ALL)
    assert answer["metadata"]["strategy_used"] == strategy
    assert {tool["type"] for tool in answer["tools"]} == {kind}


@pytest.mark.requirement("BR-005", "BR-003")
@pytest.mark.parametrize("kind", ["prompt", "resource"])
async def test_all_items_of_a_rare_kind_in_the_skills_are_found(searching: Searching, kind: str) -> None:
    direct = await searching.search("read a file", strategy="direct", item_type=kind, **ALL)
    routed = await searching.search("read a file", item_type=kind, **ALL)
    used = set(routed["metadata"]["skill_ids_used"])
    assert set(ids(routed["tools"])) == {tool["id"] for tool in direct["tools"] if used & set(tool["skill_ids"])}
    assert len(direct["tools"]) == 3


@pytest.mark.requirement("BR-008")
@pytest.mark.parametrize("query", QUERIES)
async def test_a_direct_search_matches_no_skills_and_searches_all_items(searching: Searching, query: str) -> None:
    answer = await searching.search(query, strategy="direct", **ALL)
    metadata = answer["metadata"]
    assert (answer["matched_skills"], metadata["skill_ids_used"], metadata["stage1_skill_count"]) == ([], None, 0)
    assert (metadata["strategy_used"], metadata["skill_search_time_ms"]) == ("direct", 0)
    assert [] in [tool["skill_ids"] for tool in answer["tools"]]
