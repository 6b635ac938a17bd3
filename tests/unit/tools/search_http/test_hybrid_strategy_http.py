"""The hybrid strategy over HTTP: both routes run, and no item of the direct one is lost."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.unit.tools.search_http.builders import ALL, Searching, by_words, ids, scores
from tests.unit.tools.search_http.catalog import GOLDEN, own_items
from toolscript.core.items import Item
from toolscript.core.retrieval.terms import words_of
from toolscript.tools.catalog.files import read_items

pytestmark = pytest.mark.requirement("BR-010")

ITEMS = [*own_items(), *(item for item in read_items(GOLDEN) if isinstance(item, Item))]
WORDS = sorted({word for item in ITEMS for word in words_of(f"{item.name} {item.description}")})

Queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
Options = st.fixed_dictionaries(
    {
        "limit": st.sampled_from([1, 5, 20, 100]),
        "tool_threshold": st.sampled_from([0.0, 0.1, 0.3, 0.45, 0.6]),
        "search_type": st.sampled_from(["hybrid", "hybrid", "semantic", "keyword"]),
        "item_type": st.sampled_from([None, None, "tool", "prompt"]),
        "skill_limit": st.sampled_from([1, 3, 8]),
    }
)


async def both(searching: Searching, query: str, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    direct = await searching.search(query, strategy="direct", **more)
    return direct, await searching.search(query, strategy="hybrid", **more)


def keeps_all(direct: dict[str, Any], hybrid: dict[str, Any]) -> None:
    kept = hybrid["tools"][: len(direct["tools"])]
    assert list(zip(ids(kept), scores(kept), strict=True)) == list(
        zip(ids(direct["tools"]), scores(direct["tools"]), strict=True)
    )


@pytest.mark.nightly
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example("get_pod_logs", {"limit": 100, "tool_threshold": 0.3})
@example("cloudshelf__readFile", {"limit": 5, "tool_threshold": 0.5})
@example("searchDocuments", {"limit": 100, "tool_threshold": 0.0})
@given(Queries, Options)
async def test_hybrid_results_begin_with_the_direct_results_for_any_query(
    searching: Searching, query: str, options: dict[str, Any]
) -> None:
    direct, hybrid = await both(searching, query, **options)
    keeps_all(direct, hybrid)
    used = hybrid["metadata"]["skill_ids_used"]
    assert hybrid["metadata"]["strategy_used"] == ("hybrid" if used else "direct")
    assert (used or []) == ids(hybrid["matched_skills"])


@pytest.mark.states("S0-125")
@pytest.mark.parametrize("query", ["read a file", "send an email and book a flight", "set_thermostat"])
@pytest.mark.parametrize(("limit", "threshold"), [(1, 0.0), (5, 0.3), (100, 0.0), (100, 0.35), (20, 0.7)])
async def test_both_routes_run_and_the_order_of_the_direct_one_is_kept(
    searching: Searching, query: str, limit: int, threshold: float
) -> None:
    direct, hybrid = await both(searching, query, limit=limit, tool_threshold=threshold)
    keeps_all(direct, hybrid)
    assert hybrid["metadata"]["strategy_used"] == "hybrid"
    assert hybrid["matched_skills"]
    assert len(hybrid["tools"]) <= limit


async def test_the_same_skills_match_as_in_a_hierarchical_search(searching: Searching) -> None:
    hybrid = await searching.search("read a file", strategy="hybrid")
    routed = await searching.search("read a file", strategy="hierarchical")
    assert hybrid["matched_skills"] == routed["matched_skills"]
    assert hybrid["metadata"]["skill_ids_used"] == routed["metadata"]["skill_ids_used"]
    assert by_words(hybrid)


@pytest.mark.states("S0-126")
async def test_skills_add_items_that_the_direct_route_alone_does_not_reach(searching: Searching) -> None:
    direct, hybrid = await both(searching, "searchDocuments", **ALL)
    reached = hybrid["metadata"]["stage2_candidate_count"]
    assert reached > direct["metadata"]["stage2_candidate_count"] == len(direct["tools"])


@pytest.mark.states("S0-202")
@pytest.mark.requirement("EC-008")
async def test_items_without_a_skill_are_found(searching: Searching) -> None:
    hybrid = await searching.search("blow smoke into a beehive", strategy="hybrid")
    assert (hybrid["tools"][0]["name"], hybrid["tools"][0]["skill_ids"]) == ("smoke_beehive", [])
    assert hybrid["metadata"]["strategy_used"] == "hybrid"


@pytest.mark.requirement("BR-006")
async def test_without_a_matching_skill_the_search_is_direct_and_reported_as_such(searching: Searching) -> None:
    direct, hybrid = await both(searching, "fold an origami crane")
    keeps_all(direct, hybrid)
    assert (hybrid["metadata"]["strategy_used"], hybrid["metadata"]["skill_ids_used"]) == ("direct", None)
