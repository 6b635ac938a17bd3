"""Metadata of a search over HTTP: timings, counts and what ran; the scale of the scores; schemas."""

from typing import Any

import pytest

from tests.unit.tools.search_http.builders import ALL, STRATEGIES, Searching, ids, scores
from tests.unit.tools.search_http.catalog import stored_items

STAGES = ("query_embedding", "skill_search", "tool_search", "schema_load")
SCHEMAS = ("input_schema", "output_schema", "annotations")
# Building the response takes a little time. A busy machine may pause the test there, but not every time.
BETWEEN_STAGES_MS = 5.0
ROUNDED_MS = 0.01
TRIES = 3


def times(answer: dict[str, Any]) -> dict[str, float]:
    return {stage: answer["metadata"][f"{stage}_time_ms"] for stage in (*STAGES, "total", "ranking")}


@pytest.mark.requirement("BR-007")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("search_type", ["hybrid", "semantic", "keyword"])
async def test_the_times_of_the_stages_add_up_to_the_total(
    searching: Searching, strategy: str, search_type: str
) -> None:
    unaccounted = []
    for number in range(TRIES):
        query = f"read a {strategy} file by {search_type} {number}"
        answer = await searching.search(query, strategy=strategy, search_type=search_type)
        spent = times(answer)
        assert all(time >= 0 for time in spent.values())
        assert 0 < spent["tool_search"] >= spent["ranking"]
        assert (spent["skill_search"] > 0) is (strategy != "direct")
        assert (spent["schema_load"] > 0) is bool(answer["tools"])
        unaccounted.append(spent["total"] - sum(spent[stage] for stage in STAGES))
    assert min(unaccounted) > -ROUNDED_MS
    assert min(unaccounted) < BETWEEN_STAGES_MS


@pytest.mark.requirement("BR-007")
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("limit", "threshold"), [(1, 0.0), (5, 0.3), (100, 0.4), (5, 1.0)])
async def test_the_counts_match_the_response(
    searching: Searching, strategy: str, limit: int, threshold: float
) -> None:
    options: dict[str, Any] = {"strategy": strategy, "tool_threshold": threshold}
    answer = await searching.search("read a file", limit=limit, **options)
    unlimited = await searching.search("read a file", limit=100, **options)
    metadata = answer["metadata"]
    assert metadata["stage1_skill_count"] == len(answer["matched_skills"])
    assert metadata["final_count"] == len(answer["tools"])
    assert metadata["final_count"] == min(limit, metadata["stage2_candidate_count"])
    assert metadata["stage2_candidate_count"] == unlimited["metadata"]["stage2_candidate_count"]
    assert len(unlimited["tools"]) == min(100, metadata["stage2_candidate_count"])


@pytest.mark.requirement("BR-007")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_an_answer_reports_what_ran_and_that_nothing_failed(searching: Searching, strategy: str) -> None:
    answer = await searching.search("read a file", strategy=strategy)
    metadata = answer["metadata"]
    assert metadata["strategy_used"] == strategy
    assert metadata["search_type_used"] == "hybrid"
    assert metadata["degraded"] == []
    assert metadata["skill_ids_used"] == (None if strategy == "direct" else ids(answer["matched_skills"]))
    assert bool(answer["matched_skills"]) is (strategy != "direct")


@pytest.mark.requirement("BR-009")
async def test_every_score_is_between_0_and_1(searching: Searching, subtests: pytest.Subtests) -> None:
    for strategy in STRATEGIES:
        for search_type in ["hybrid", "semantic", "keyword"]:
            for query in ["read_file", "quarks and gluons in the early universe", "?!"]:
                with subtests.test(strategy=strategy, search_type=search_type, query=query):
                    answer = await searching.search(
                        query,
                        strategy=strategy,
                        search_type=search_type,
                        skill_limit=32,
                        skill_threshold=0.0,
                        **ALL,
                    )
                    item_scores = scores(answer["tools"]) + scores(answer["metadata"]["near_misses"])
                    compared = [score for score in scores(answer["matched_skills"]) if score is not None]
                    assert all(0.0 <= score <= 1.0 for score in item_scores + compared)


@pytest.mark.requirement("BR-009")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_semantic_search_returns_unchanged_cosines(searching: Searching, strategy: str) -> None:
    answer = await searching.search(
        "read a file", strategy=strategy, search_type="semantic", explain=True, limit=20, tool_threshold=0.0
    )
    assert len(answer["tools"]) == 20
    assert scores(answer["tools"]) == [tool["explanation"]["similarity"] for tool in answer["tools"]]


@pytest.mark.requirement("BR-009", "BR-002")
async def test_the_score_of_a_skill_is_its_cosine_and_the_threshold_applies_to_it(searching: Searching) -> None:
    every = await searching.skills("quarks and gluons in the early universe", limit=32, threshold=0)
    by_vector = [skill for skill in every if skill["matched_by"] == "vector"]
    middle = by_vector[len(by_vector) // 2]["score"]
    above = await searching.skills("quarks and gluons in the early universe", limit=32, threshold=middle + 1e-5)
    assert [skill for skill in above if skill["matched_by"] == "vector"] == [
        skill for skill in by_vector if skill["score"] > middle + 1e-5
    ]


@pytest.mark.requirement("BR-004")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_items_come_with_the_schemas_of_the_catalog_and_null_where_it_has_none(
    searching: Searching, strategy: str
) -> None:
    tools = (await searching.search("honey from a beehive", strategy=strategy, **ALL))["tools"]
    returned = {tool["db_id"]: [tool[name] for name in SCHEMAS] for tool in tools}
    stored = {item.id: item.item for item in await stored_items(searching.service.stores)}
    assert returned == {id_: [getattr(stored[id_], name) for name in SCHEMAS] for id_ in returned}
    by_name = {tool["name"]: tool for tool in tools}
    assert all(by_name["plan_honey_harvest"][name] is not None for name in SCHEMAS)
    assert all(by_name["feed_bees"][name] is None for name in SCHEMAS)


@pytest.mark.requirement("BR-004", "BR-005")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_a_prompt_does_not_get_the_schema_of_a_tool_of_the_same_name(
    searching: Searching, strategy: str
) -> None:
    tools = (await searching.search("read a file", strategy=strategy))["tools"]
    alike = [tool for tool in tools if (tool["server"], tool["name"]) == ("harbor_files", "read_file")]
    assert {tool["type"]: tool["input_schema"] is None for tool in alike} == {"tool": False, "prompt": True}


@pytest.mark.requirement("BR-004")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_schemas_are_not_returned_unless_requested(searching: Searching, strategy: str) -> None:
    with_schemas = await searching.search("read a file", strategy=strategy)
    bare = await searching.search("read a file", strategy=strategy, include_schemas=False)
    assert bare["tools"] == [{**tool, **dict.fromkeys(SCHEMAS)} for tool in with_schemas["tools"]]
