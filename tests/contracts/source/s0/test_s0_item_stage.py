"""S0, stage 2: which items are found, in which order and with which score."""

from typing import Any

import pytest

from tests.contracts.source.s0.builders import LITERAL, Truth, are_the_same
from tests.contracts.source.s0.test_s0_skill_stage import QUERIES
from tests.unit.tools.search_http.builders import STRATEGIES, Searching, ids, names, scores
from tests.unit.tools.search_http.catalog import REMOVED

PRESETS = {"precision": (0.7, 0.6), "balanced": (0.4, 0.3), "recall": (0.2, 0.1)}


@pytest.mark.states(
    "S0-010",
    "S0-011",
    "S0-012",
    "S0-017",
    "S0-018",
    "S0-036",
    "S0-037",
    "S0-038",
    "S0-039",
    "S0-043",
    "S0-044",
    "S0-106",
    "S0-206",
    "S0-226",
)
async def test_items_of_the_matched_skills_come_by_cosine(
    searching: Searching, truth: Truth, subtests: pytest.Subtests
) -> None:
    for query in QUERIES:
        for limit, threshold in [(5, 0.3), (1, 0.0), (20, 0.1), (100, 0.2), (5, 0.6), (5, 1.0)]:
            with subtests.test(query=query, limit=limit, threshold=threshold):
                answer = await searching.search(query, limit=limit, tool_threshold=threshold, **LITERAL)
                used = answer["metadata"]["skill_ids_used"]
                assert used == (ids(answer["matched_skills"]) or None)
                are_the_same(answer["tools"], await truth.items_for(query, used, limit, threshold))


@pytest.mark.states("S0-015", "S0-207")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("search_type", ["semantic", "hybrid"])
async def test_the_best_score_comes_first_and_of_equals_the_lower_id(
    searching: Searching, strategy: str, search_type: str
) -> None:
    result = await searching.search("ring the bell", strategy=strategy, search_type=search_type, tool_threshold=0)
    assert scores(result["tools"]) == sorted(scores(result["tools"]), reverse=True)
    twins = [tool["db_id"] for tool in result["tools"] if tool["name"] == "ring_bell"]
    assert len(twins) == 2
    assert twins == sorted(twins)


@pytest.mark.states("S0-042", "S0-116", "S0-122", "S0-136", "S0-139", "S0-141")
@pytest.mark.parametrize("search_type", ["semantic", "hybrid"])
async def test_left_out_a_search_is_hierarchical_with_a_limit_of_5_and_balanced_thresholds(
    searching: Searching, search_type: str
) -> None:
    message = {"limit": 5, "tool_threshold": 0.3, "skill_threshold": 0.4, "strategy": "hierarchical"}
    bare = await searching.search("read a file", search_type=search_type)
    whole = await searching.search("read a file", search_type=search_type, **message)
    assert bare["tools"] == whole["tools"]
    assert len(bare["tools"]) == 5
    assert bare["metadata"]["strategy_used"] == "hierarchical"
    named = await searching.search("read a file", search_type=search_type, preset="balanced")
    assert named["tools"] == bare["tools"]
    many = await searching.search("read a file", search_type=search_type, limit=100)
    assert min(scores(many["tools"])) >= 0.3


@pytest.mark.states("S0-114", "S0-116", "S0-117", "S0-119", "S0-210")
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("query", QUERIES)
async def test_each_preset_is_its_two_thresholds(
    searching: Searching, truth: Truth, query: str, preset: str
) -> None:
    skill, tool = PRESETS[preset]
    answer = await searching.search(query, preset=preset, limit=100, **LITERAL)
    matched = await truth.skills_for(query, 3, skill)
    are_the_same(answer["matched_skills"], matched)
    are_the_same(answer["tools"], await truth.items_for(query, dict(matched) or None, 100, tool))


@pytest.mark.states("S0-115", "S0-118", "S0-119", "S0-120")
async def test_stricter_presets_return_fewer_items_and_nearer_ones(searching: Searching, truth: Truth) -> None:
    request: dict[str, Any] = {"strategy": "direct", "limit": 100, **LITERAL}
    result = [await searching.search("read a file", preset=preset, **request) for preset in PRESETS]
    result.append(await searching.search("read a file", tool_threshold=0.0, skill_threshold=0.0, **request))
    counts = [len(answer["tools"]) for answer in result]
    assert counts == sorted(counts)
    assert 0 < counts[0] < counts[1] < counts[2] <= counts[3]
    assert min(scores(result[0]["tools"])) >= 0.6
    assert min(scores(result[2]["tools"])) < 0.3
    are_the_same(result[3]["tools"], await truth.items_for("read a file", None, 100, 0.0))


@pytest.mark.states(
    "S0-059", "S0-060", "S0-061", "S0-062", "S0-064", "S0-065", "S0-088", "S0-135", "S0-206", "S0-209"
)
@pytest.mark.parametrize("strategy", ["hierarchical", "direct"])
@pytest.mark.parametrize("kind", [None, "tool", "prompt", "resource"])
async def test_only_the_requested_type_is_found(
    searching: Searching, truth: Truth, strategy: str, kind: str | None
) -> None:
    request: dict[str, Any] = {"strategy": strategy, "item_type": kind, "limit": 100, "tool_threshold": 0.0}
    answer = await searching.search("read a file", **request, **LITERAL)
    used = answer["metadata"]["skill_ids_used"]
    are_the_same(answer["tools"], await truth.items_for("read a file", used, 100, 0.0, kind))
    types = {tool["type"] for tool in answer["tools"]}
    assert types == ({kind} if kind else {"tool", "prompt", "resource"})


@pytest.mark.states("S0-045", "S0-046")
@pytest.mark.parametrize("search_type", ["semantic", "hybrid"])
async def test_what_is_inactive_is_neither_found_nor_in_the_index(
    searching: Searching, truth: Truth, search_type: str
) -> None:
    assert {item.fields["is_active"] for item in truth.items} == {True}
    assert REMOVED not in {item.fields["name"] for item in truth.items}
    result = await searching.search(REMOVED, search_type=search_type, limit=100, tool_threshold=0.0)
    assert result["tools"]
    assert REMOVED not in names(result["tools"])


@pytest.mark.states("S0-040", "S0-041", "S0-151", "S0-152")
@pytest.mark.parametrize("search_type", ["semantic", "hybrid"])
async def test_an_item_comes_with_the_skills_the_catalog_has_of_it(searching: Searching, search_type: str) -> None:
    result = await searching.search("read a file", search_type=search_type)
    assert len(result["tools"]) == 5
    for tool in result["tools"]:
        recorded = await searching.service.ask("GET", f"/api/v1/tools/{tool['db_id']}/skills")
        assert tool["skill_ids"] == [skill["skill_id"] for skill in recorded["skills"]] != []
        assert tool["primary_skill_id"] == tool["skill_ids"][0]


@pytest.mark.states("S0-094", "S0-097", "S0-206")
@pytest.mark.parametrize("search_type", ["semantic", "hybrid"])
@pytest.mark.parametrize("query", ["read_file", "read a file", "quarks and gluons", "?!", "прогноз погоды"])
async def test_every_score_is_between_0_and_1(searching: Searching, search_type: str, query: str) -> None:
    request: dict[str, Any] = {"strategy": "direct", "limit": 100, "tool_threshold": 0.0}
    answer = await searching.search(query, search_type=search_type, **request)
    output = scores(answer["tools"]) + scores(answer["metadata"]["near_misses"])
    assert output
    assert all(0.0 <= score <= 1.0 for score in output)


@pytest.mark.states("S0-086", "S0-087", "S0-089", "S0-090", "S0-206", "S0-207")
@pytest.mark.parametrize("query", QUERIES)
async def test_a_direct_search_uses_no_skill_and_searches_all_items(
    searching: Searching, truth: Truth, query: str
) -> None:
    answer = await searching.search(query, strategy="direct", limit=100, tool_threshold=0.1, **LITERAL)
    metadata = answer["metadata"]
    assert (answer["matched_skills"], metadata["skill_ids_used"], metadata["stage1_skill_count"]) == ([], None, 0)
    assert (metadata["strategy_used"], metadata["skill_search_time_ms"]) == ("direct", 0)
    are_the_same(answer["tools"], await truth.items_for(query, None, 100, 0.1))


@pytest.mark.states("S0-168", "S0-170", "S0-171", "S0-172", "S0-173", "S0-174", "S0-175", "S0-220")
@pytest.mark.parametrize("query", QUERIES)
async def test_the_item_stage_alone_is_a_bare_list_of_the_nearest(
    searching: Searching, truth: Truth, query: str
) -> None:
    default = await searching.tools(query, **LITERAL)
    are_the_same(default, await truth.items_for(query, None, 10, 0.3))
    skills = ["communication", "file_operations"]
    request: dict[str, Any] = {"item_type": "tool", "limit": 4, "threshold": 0.05, **LITERAL}
    named = await searching.tools(query, skill_ids=",".join(skills), **request)
    are_the_same(named, await truth.items_for(query, skills, 4, 0.05, "tool"))
    fields = {"id", "db_id", "type", "name", "description", "score", "skill_ids", "primary_skill_id"}
    assert all(tool.keys() == fields | {"server", "confidence"} for tool in default + named)
