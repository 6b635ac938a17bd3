"""Explanations over HTTP: why an item has its place, and why another one is missing."""

from typing import Any

import pytest

from tests.unit.tools.search_http.builders import ALL, STRATEGIES, Searching, ids, names
from tests.unit.tools.search_http.catalog import BEES, ids_by_name

RETRIEVERS = {"meaning", "words"}


@pytest.mark.requirement("API-001")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_every_item_has_an_explanation_of_its_place(searching: Searching, strategy: str) -> None:
    answer = await searching.search("read a file", strategy=strategy, explain=True, limit=20, tool_threshold=0.0)
    explained = [tool["explanation"] for tool in answer["tools"]]
    assert [explanation["place"] for explanation in explained] == list(range(1, 21))
    fused_scores = [sum(explanation["parts"].values()) for explanation in explained]
    assert fused_scores == pytest.approx(sorted(fused_scores, reverse=True), abs=0.02)
    assert explained[0]["parts"].keys() >= RETRIEVERS
    assert explained[0]["similarity"] > explained[-1]["similarity"]
    assert explained[0]["word_score"] > 0


@pytest.mark.requirement("API-001", "BR-003")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_an_explanation_names_the_skills_that_the_item_was_found_by(
    searching: Searching, strategy: str
) -> None:
    answer = await searching.search("send an email and book a flight", strategy=strategy, explain=True, **ALL)
    used = answer["metadata"]["skill_ids_used"] or []
    for tool in answer["tools"]:
        assert tool["explanation"]["matched_skills"] == [skill for skill in tool["skill_ids"] if skill in used]
    through = [bool(tool["explanation"]["matched_skills"]) for tool in answer["tools"]]
    assert {"hierarchical": all(through), "direct": not any(through), "hybrid": True}[strategy]
    assert strategy != "hybrid" or len(set(through)) == 2


@pytest.mark.parametrize("search_type", ["semantic", "keyword"])
async def test_a_search_with_a_single_retriever_is_explained_by_its_scores(
    searching: Searching, search_type: str
) -> None:
    answer = await searching.search("read a file", search_type=search_type, explain=True, tool_threshold=0.0)
    explanation = answer["tools"][0]["explanation"]
    assert (explanation["place"], explanation["parts"]) == (1, {})
    assert (explanation["similarity"] is None, explanation["word_score"] is None) == (
        search_type == "keyword",
        search_type == "semantic",
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_explaining_changes_nothing_else(searching: Searching, strategy: str) -> None:
    plain = await searching.search("read a file", strategy=strategy)
    explained = await searching.search("read a file", strategy=strategy, explain=True, why_not="jotpad__add_todo")
    assert {tool["explanation"] is None for tool in plain["tools"]} == {True}
    assert plain["absence"] is None
    assert [{**tool, "explanation": None} for tool in explained["tools"]] == plain["tools"]
    assert explained["matched_skills"] == plain["matched_skills"]


async def absence(searching: Searching, query: str, about: str, **more: Any) -> dict[str, Any]:
    answer = await searching.search(query, why_not=about, **more)
    assert answer["absence"]["about"] == about
    assert answer["absence"]["message"]
    return {**answer["absence"], "used": answer["metadata"]["skill_ids_used"], "returned": answer["tools"]}


async def test_a_returned_item_is_reported_as_returned_by_name_and_by_id(searching: Searching) -> None:
    by_name = await absence(searching, "honey from a beehive", "hivekeeper__feed_bees")
    assert (by_name["reason"], by_name["skill_ids"]) == ("returned", [BEES.id])
    assert by_name["explanation"]["place"] == names(by_name["returned"]).index("feed_bees") + 1
    assert by_name["explanation"]["matched_skills"] == [BEES.id]
    by_id = await absence(searching, "honey from a beehive", by_name["id"])
    assert {**by_id, "about": ""} == {**by_name, "about": ""}
    assert (await absence(searching, "honey from a beehive", "feed_bees"))["id"] == by_name["id"]


@pytest.mark.parametrize("about", ["nobody__nothing", "hivekeeper__weigh_beehive", "999999", "hivekeeper__", "?!"])
async def test_an_item_that_is_not_in_the_index_is_unknown(searching: Searching, about: str) -> None:
    why_not = await absence(searching, "honey from a beehive", about)
    assert (why_not["reason"], why_not["id"], why_not["score"], why_not["explanation"]) == (
        "unknown",
        None,
        None,
        None,
    )


@pytest.mark.requirement("BR-005")
async def test_an_item_of_another_kind_is_explained_by_its_kind(searching: Searching) -> None:
    why_not = await absence(searching, "read a file", "harbor_files__write_file", item_type="prompt")
    assert why_not["reason"] == "other_kind"


@pytest.mark.requirement("BR-005")
@pytest.mark.parametrize("kind", ["tool", "prompt"])
async def test_of_two_items_of_the_same_name_the_one_of_the_requested_kind_is_explained(
    searching: Searching, kind: str
) -> None:
    why_not = await absence(searching, "read a file", "harbor_files__read_file", item_type=kind)
    assert why_not["reason"] == "returned"
    assert why_not["id"] in ids(why_not["returned"])


@pytest.mark.requirement("EC-008")
async def test_an_item_without_a_skill_is_explained_by_that(searching: Searching) -> None:
    why_not = await absence(searching, "honey from a beehive", "hivekeeper__smoke_beehive")
    assert (why_not["reason"], why_not["skill_ids"]) == ("no_skill", [])
    assert why_not["explanation"]["place"] == 0
    assert why_not["explanation"]["similarity"] > 0.3
    advised = await absence(searching, "honey from a beehive", "hivekeeper__smoke_beehive", strategy="hybrid")
    assert "hybrid" in why_not["message"]
    assert advised["reason"] == "returned"


async def test_an_item_of_skills_that_did_not_match_is_explained_with_those_that_did(searching: Searching) -> None:
    why_not = await absence(searching, "honey from a beehive", "pigeonpost__send_email")
    assert why_not["reason"] == "skills_not_matched"
    assert not set(why_not["skill_ids"]) & set(why_not["used"])
    assert all(skill in why_not["message"] for skill in [*why_not["skill_ids"], *why_not["used"]])
    assert why_not["explanation"]["matched_skills"] == []


async def test_an_item_of_an_inactive_skill_is_explained_by_skills_that_did_not_match(
    searching: Searching,
) -> None:
    why_not = await absence(searching, "honey from a beehive", "paperfold__fold_crane")
    assert (why_not["reason"], why_not["skill_ids"]) == ("skills_not_matched", ["origami"])


async def test_an_item_that_no_retriever_returned_is_explained_by_better_ones(searching: Searching) -> None:
    answer = await searching.search("read a file", strategy="direct", search_type="semantic", **ALL)
    assert len(answer["tools"]) == 100
    all_ids = await ids_by_name(searching.service.stores)
    other = next(str(id_) for id_ in all_ids.values() if str(id_) not in ids(answer["tools"]))
    why_not = await absence(searching, "read a file", other, strategy="direct", search_type="semantic")
    assert (why_not["reason"], why_not["score"]) == ("not_a_candidate", None)
    assert why_not["explanation"]["place"] == 0
    assert why_not["explanation"]["similarity"] <= min(tool["score"] for tool in answer["tools"])


async def test_an_item_below_the_threshold_is_explained_with_its_score_and_a_remedy(
    searching: Searching,
) -> None:
    about = "hivekeeper__feed_bees"
    why_not = await absence(searching, "honey from a beehive", about, tool_threshold=0.9)
    assert (why_not["reason"], why_not["returned"]) == ("below_threshold", [])
    assert 0 < why_not["score"] < 0.9
    again = await absence(searching, "honey from a beehive", about, tool_threshold=why_not["score"] - 1e-5)
    assert again["reason"] == "returned"


async def test_an_item_beyond_the_limit_is_explained_with_its_place(searching: Searching) -> None:
    everything = await searching.search("read a file", tool_threshold=0.1)
    last = everything["tools"][-1]
    why_not = await absence(searching, "read a file", last["id"], tool_threshold=0.1, limit=2)
    assert (why_not["reason"], why_not["explanation"]["place"]) == ("beyond_limit", 5)
    assert why_not["score"] == last["score"]
    back = await absence(searching, "read a file", last["id"], tool_threshold=0.1, limit=5)
    assert back["reason"] == "returned"
