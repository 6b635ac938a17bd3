"""S0, stage 1, in literal mode: which skills match, and their fields."""

from typing import Any

import pytest

from tests.contracts.source.s0.builders import LITERAL, Truth, are_the_same
from tests.unit.tools.search_http.builders import SEARCH, Searching, ids, scores
from tests.unit.tools.search_http.catalog import ORIGAMI
from toolscript.core.settings.service import Settings

QUERIES = [
    "schedule a meeting with John tomorrow",
    "read a file",
    "send an email and book a flight",
    'delete "Q3 budget.xlsx" in the folder <finance>',
    "quarks and gluons in the early universe",
]
EVERY: dict[str, Any] = {"skill_limit": 32, "skill_threshold": 0.0}


@pytest.mark.states(
    "S0-007", "S0-008", "S0-020", "S0-021", "S0-022", "S0-023", "S0-026", "S0-028", "S0-029", "S0-103", "S0-206"
)
async def test_the_nearest_skills_by_cosine_match_and_no_others(
    searching: Searching, truth: Truth, subtests: pytest.Subtests
) -> None:
    for query in QUERIES:
        for limit, threshold in [(3, 0.4), (1, 0.0), (5, 0.25), (32, 0.1), (3, 0.7), (3, 1.0)]:
            with subtests.test(query=query, limit=limit, threshold=threshold):
                answer = await searching.search(query, skill_limit=limit, skill_threshold=threshold, **LITERAL)
                are_the_same(answer["matched_skills"], await truth.skills_for(query, limit, threshold))
                assert {skill["matched_by"] for skill in answer["matched_skills"]} <= {"vector"}


@pytest.mark.states("S0-006", "S0-009", "S0-035", "S0-224", "S0-225")
async def test_both_collections_have_the_names_of_the_source(searching: Searching, truth: Truth) -> None:
    """Tests use other names, and find the same points in them as searches."""
    default = Settings.model_fields
    assert default["qdrant_skills_alias"].default == "mcp_skills"
    assert default["qdrant_alias"].default == "mcp_unified_search"
    answer = await searching.search("read a file", strategy="hybrid", limit=100, tool_threshold=0.0, **EVERY)
    assert set(ids(answer["tools"])) <= {str(item.fields["db_id"]) for item in truth.items}
    assert set(ids(answer["matched_skills"])) <= {item.fields["id"] for item in truth.skills}


@pytest.mark.states("S0-025", "S0-137", "S0-138")
@pytest.mark.parametrize("query", QUERIES)
async def test_left_out_the_threshold_is_0_4_and_the_limit_3(
    searching: Searching, truth: Truth, query: str
) -> None:
    answer = await searching.search(query, **LITERAL)
    are_the_same(answer["matched_skills"], await truth.skills_for(query, 3, 0.4))


@pytest.mark.states("S0-024", "S0-030", "S0-031", "S0-032", "S0-033", "S0-034", "S0-154")
async def test_a_matched_skill_has_the_fields_of_the_catalog(searching: Searching) -> None:
    answer = await searching.search("schedule a meeting with John", **EVERY, **LITERAL)
    assert "calendar_management" in ids(answer["matched_skills"])
    for skill in answer["matched_skills"][:5]:
        recorded = await searching.service.ask("GET", f"/api/v1/skills/{skill['id']}")
        members = await searching.service.ask("GET", f"/api/v1/skills/{skill['id']}/tools", limit=200)
        assert (skill["name"], skill["description"]) == (recorded["name"], recorded["description"])
        assert skill["tool_count"] == len(members["results"])
        assert isinstance(skill["tool_count"], int)
        assert 0.0 <= skill["score"] <= 1.0


@pytest.mark.states("S0-027")
@pytest.mark.parametrize("search_type", ["semantic", "hybrid"])
async def test_an_inactive_skill_does_not_match(searching: Searching, truth: Truth, search_type: str) -> None:
    inactive = [skill.fields["id"] for skill in truth.skills if not skill.fields["is_active"]]
    assert inactive == [ORIGAMI.id]
    answer = await searching.search("fold an origami crane", search_type=search_type, **EVERY)
    assert answer["matched_skills"]
    assert ORIGAMI.id not in ids(answer["matched_skills"])


@pytest.mark.states("S0-190", "S0-210", "S0-213", "S0-229")
@pytest.mark.parametrize("limit", [1, 3, 8])
async def test_where_every_skill_matches_the_best_are_taken(
    searching: Searching, truth: Truth, limit: int
) -> None:
    query = "do something useful with any of my things"
    answer = await searching.search(query, skill_limit=limit, skill_threshold=0.0, **LITERAL)
    assert len(answer["matched_skills"]) == limit
    are_the_same(answer["matched_skills"], await truth.skills_for(query, limit, 0.0))


@pytest.mark.states("S0-162", "S0-164", "S0-165", "S0-166", "S0-167")
@pytest.mark.parametrize("query", QUERIES)
async def test_the_skill_stage_alone_is_a_bare_list_of_the_nearest(
    searching: Searching, truth: Truth, query: str
) -> None:
    default = await searching.skills(query, **LITERAL)
    are_the_same(default, await truth.skills_for(query, 5, 0.4))
    every = await searching.skills(query, limit=7, threshold=0.1, **LITERAL)
    are_the_same(every, await truth.skills_for(query, 7, 0.1))
    assert all(skill.keys() >= {"id", "name", "description", "score", "tool_count"} for skill in every)


@pytest.mark.states("S0-163", "S0-169", "S0-212")
@pytest.mark.parametrize("path", ["skills", "tools"])
async def test_the_stages_alone_need_a_query(searching: Searching, path: str) -> None:
    error = await searching.service.refused("GET", f"{SEARCH}/{path}", 422)
    assert error["code"] == "VALIDATION_ERROR"


@pytest.mark.states("S0-219", "S0-220")
@pytest.mark.parametrize("path", ["skills", "tools"])
@pytest.mark.parametrize("wrong", [{"limit": "1.5"}, {"limit": "many"}, {"threshold": "high"}])
async def test_the_stages_alone_take_text_a_whole_limit_and_a_number_as_threshold(
    searching: Searching, path: str, wrong: dict[str, Any]
) -> None:
    request: dict[str, Any] = {"query": "42", "limit": "2", "threshold": "0.05"}
    assert len(await searching.service.ask("GET", f"{SEARCH}/{path}", **request)) <= 2
    error = await searching.service.refused("GET", f"{SEARCH}/{path}", 422, **request | wrong)
    assert error["code"] == "VALIDATION_ERROR"


@pytest.mark.states("S0-063")
@pytest.mark.parametrize("kind", ["tool", "prompt", "resource"])
async def test_the_type_of_item_does_not_change_which_skills_match(searching: Searching, kind: str) -> None:
    every = await searching.search("read a file", **EVERY, **LITERAL)
    narrow = await searching.search("read a file", item_type=kind, **EVERY, **LITERAL)
    assert len(every["matched_skills"]) > 8
    assert narrow["matched_skills"] == every["matched_skills"]
    assert scores(narrow["matched_skills"]) == sorted(scores(narrow["matched_skills"]), reverse=True)
