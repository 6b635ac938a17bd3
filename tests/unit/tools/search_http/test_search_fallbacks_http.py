"""When skills do not help, over HTTP: none matched, none there, none with items, items without any."""

import logging
from collections.abc import AsyncIterator

import pytest

from tests.conftest import Installation
from tests.unit.tools.search_http.builders import ALL, Searching, by_vector, ids, names, scores
from tests.unit.tools.search_http.catalog import BEES, VOLCANOES, stored_items
from tests.unit.tools.sources_http.builders import serving

NO_SKILL_MATCHES = "fold an origami crane"


@pytest.mark.states("S0-069", "S0-073", "S0-129")
@pytest.mark.requirement("BR-006")
async def test_when_no_skill_matches_all_items_are_searched_and_that_is_logged(
    searching: Searching, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        answer = await searching.search(NO_SKILL_MATCHES)
    direct = await searching.search(NO_SKILL_MATCHES, strategy="direct")
    metadata = answer["metadata"]
    assert (metadata["strategy_used"], metadata["skill_ids_used"]) == ("direct", None)
    assert (answer["matched_skills"], metadata["stage1_skill_count"], metadata["degraded"]) == ([], 0, [])
    assert answer["tools"] == direct["tools"]
    assert names(answer["tools"]) == ["fold_crane"]
    warnings = [line for line in caplog.records if "No skills matched" in line.message]
    assert [line.levelno for line in warnings] == [logging.WARNING]


@pytest.mark.requirement("BR-006")
async def test_a_skill_that_matches_after_all_ends_the_fallback(searching: Searching) -> None:
    near = await searching.search(NO_SKILL_MATCHES, skill_threshold=0.0, skill_limit=1)
    assert near["metadata"]["strategy_used"] == "hierarchical"
    assert near["metadata"]["skill_ids_used"] == ids(by_vector(near))
    assert "fold_crane" not in names(near["tools"])


@pytest.fixture
async def unskilled(filled: Installation) -> AsyncIterator[Searching]:
    """A catalog that fits a screen, and no skill at all."""
    async with serving(filled) as service:
        yield Searching(service)


@pytest.mark.states("S0-071", "S0-188", "S0-189", "S0-213")
@pytest.mark.requirement("EC-001", "BR-006")
@pytest.mark.parametrize("strategy", ["hierarchical", "hybrid"])
async def test_without_any_skill_in_the_index_a_search_is_direct(
    unskilled: Searching, strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        answer = await unskilled.search("read a file", strategy=strategy, skill_threshold=0.0)
    direct = await unskilled.search("read a file", strategy="direct")
    assert answer["tools"] == direct["tools"]
    assert answer["tools"][0]["name"] == "readFile"
    assert answer["matched_skills"] == []
    metadata = answer["metadata"]
    assert (metadata["strategy_used"], metadata["skill_ids_used"], metadata["degraded"]) == ("direct", None, [])
    assert any("No skills matched" in line.message for line in caplog.records)
    assert await unskilled.skills("read a file", threshold=0) == []


@pytest.mark.requirement("EC-002")
@pytest.mark.parametrize("limit", [1, 3, 8])
async def test_when_every_skill_matches_the_best_are_used_and_no_more_than_the_limit(
    searching: Searching, limit: int
) -> None:
    query = "do something useful with any of my things"
    everything = by_vector(await searching.search(query, skill_threshold=0.0, skill_limit=32))
    answer = await searching.search(query, skill_threshold=0.0, skill_limit=limit)
    assert len(everything) > 8
    assert by_vector(answer) == everything[:limit]
    rest = [skill for skill in everything if skill not in by_vector(answer)]
    assert min(scores(by_vector(answer))) >= max(scores(rest))


@pytest.mark.states("S0-191", "S0-192")
@pytest.mark.requirement("EC-003")
@pytest.mark.parametrize("search_type", ["hybrid", "semantic"])
async def test_a_matched_skill_without_items_gives_an_empty_answer(searching: Searching, search_type: str) -> None:
    answer = await searching.search("volcanoes, magma and lava", search_type=search_type, tool_threshold=0.0)
    metadata = answer["metadata"]
    assert [(skill["id"], skill["tool_count"]) for skill in answer["matched_skills"]] == [(VOLCANOES.id, 0)]
    assert (answer["tools"], metadata["near_misses"], metadata["degraded"]) == ([], [], [])
    assert (metadata["strategy_used"], metadata["skill_ids_used"]) == ("hierarchical", [VOLCANOES.id])
    assert (metadata["stage1_skill_count"], metadata["stage2_candidate_count"], metadata["final_count"]) == (
        1,
        0,
        0,
    )


@pytest.mark.requirement("EC-003")
async def test_hybrid_is_the_safe_way_past_a_skill_without_items(searching: Searching) -> None:
    answer = await searching.search("volcanoes, magma and lava", strategy="hybrid", tool_threshold=0.0)
    assert ids(answer["matched_skills"]) == [VOLCANOES.id]
    assert answer["tools"]


@pytest.mark.states("S0-201", "S0-202")
@pytest.mark.requirement("EC-008")
@pytest.mark.parametrize("search_type", ["hybrid", "semantic", "keyword"])
async def test_an_item_without_a_skill_is_left_out_of_a_hierarchical_search(
    searching: Searching, search_type: str
) -> None:
    query = "blow smoke into a beehive"
    routed = await searching.search(query, search_type=search_type, skill_threshold=0.3, **ALL)
    assert BEES.id in routed["metadata"]["skill_ids_used"]
    assert "smoke_beehive" not in names(routed["tools"])
    assert all(tool["skill_ids"] for tool in routed["tools"])
    direct = await searching.search(query, search_type=search_type, strategy="direct", **ALL)
    assert names(direct["tools"])[0] == "smoke_beehive"
    assert direct["tools"][0]["primary_skill_id"] is None


@pytest.mark.requirement("EC-008")
@pytest.mark.parametrize("strategy", ["hierarchical", "direct", "hybrid"])
async def test_every_answer_has_the_number_of_items_in_no_skill(searching: Searching, strategy: str) -> None:
    alone = [stored for stored in await stored_items(searching.service.stores) if not stored.skill_ids]
    answer = await searching.search("read a file", strategy=strategy)
    assert answer["metadata"]["unskilled_count"] == len(alone) >= 1
