"""Why an item is where it is, and why another one is not there, over HTTP."""

from typing import Any

import pytest

from tests.unit.tools.search_http.builders import ALL, STRATEGIES, Searching, ids, names
from tests.unit.tools.search_http.catalog import BEES, ids_by_name

ARMS = {"meaning", "words"}


@pytest.mark.requirement("API-001")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_every_item_says_how_it_came_to_its_place(searching: Searching, strategy: str) -> None:
    answer = await searching.search("read a file", strategy=strategy, explain=True, limit=20, tool_threshold=0.0)
    explained = [tool["explanation"] for tool in answer["tools"]]
    assert [one["place"] for one in explained] == list(range(1, 21))
    fused_scores = [sum(one["parts"].values()) for one in explained]
    assert fused_scores == pytest.approx(sorted(fused_scores, reverse=True), abs=0.02)
    assert explained[0]["parts"].keys() >= ARMS
    assert explained[0]["similarity"] > explained[-1]["similarity"]
    assert explained[0]["word_score"] > 0


@pytest.mark.requirement("API-001", "BR-003")
@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_an_item_names_those_of_its_skills_that_it_was_found_through(
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
async def test_one_arm_alone_is_explained_by_what_it_gave(searching: Searching, search_type: str) -> None:
    answer = await searching.search("read a file", search_type=search_type, explain=True, tool_threshold=0.0)
    one = answer["tools"][0]["explanation"]
    assert (one["place"], one["parts"]) == (1, {})
    assert (one["similarity"] is None, one["word_score"] is None) == (
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


async def test_what_is_returned_is_said_to_be_by_name_and_by_id(searching: Searching) -> None:
    by_name = await absence(searching, "honey from a beehive", "hivekeeper__feed_bees")
    assert (by_name["reason"], by_name["skill_ids"]) == ("returned", [BEES.id])
    assert by_name["explanation"]["place"] == names(by_name["returned"]).index("feed_bees") + 1
    assert by_name["explanation"]["matched_skills"] == [BEES.id]
    by_id = await absence(searching, "honey from a beehive", by_name["id"])
    assert {**by_id, "about": ""} == {**by_name, "about": ""}
    assert (await absence(searching, "honey from a beehive", "feed_bees"))["id"] == by_name["id"]


@pytest.mark.parametrize("about", ["nobody__nothing", "hivekeeper__weigh_beehive", "999999", "hivekeeper__", "?!"])
async def test_what_is_not_in_the_index_is_unknown(searching: Searching, about: str) -> None:
    said = await absence(searching, "honey from a beehive", about)
    assert (said["reason"], said["id"], said["score"], said["explanation"]) == ("unknown", None, None, None)


@pytest.mark.requirement("BR-005")
async def test_an_item_of_another_kind_is_named_as_that(searching: Searching) -> None:
    said = await absence(searching, "read a file", "harbor_files__write_file", item_type="prompt")
    assert said["reason"] == "other_kind"


@pytest.mark.requirement("BR-005")
@pytest.mark.parametrize("kind", ["tool", "prompt"])
async def test_of_two_that_are_called_the_same_the_one_of_the_kind_that_is_asked_for_is_meant(
    searching: Searching, kind: str
) -> None:
    said = await absence(searching, "read a file", "harbor_files__read_file", item_type=kind)
    assert said["reason"] == "returned"
    assert said["id"] in ids(said["returned"])


@pytest.mark.requirement("EC-008")
async def test_an_item_without_a_skill_is_told_so(searching: Searching) -> None:
    said = await absence(searching, "honey from a beehive", "hivekeeper__smoke_beehive")
    assert (said["reason"], said["skill_ids"]) == ("no_skill", [])
    assert said["explanation"]["place"] == 0
    assert said["explanation"]["similarity"] > 0.3
    advised = await absence(searching, "honey from a beehive", "hivekeeper__smoke_beehive", strategy="hybrid")
    assert "hybrid" in said["message"]
    assert advised["reason"] == "returned"


async def test_an_item_of_skills_that_did_not_match_is_told_which_did(searching: Searching) -> None:
    said = await absence(searching, "honey from a beehive", "pigeonpost__send_email")
    assert said["reason"] == "skills_not_matched"
    assert not set(said["skill_ids"]) & set(said["used"])
    assert all(skill in said["message"] for skill in [*said["skill_ids"], *said["used"]])
    assert said["explanation"]["matched_skills"] == []


async def test_an_item_of_an_inactive_skill_is_told_the_same(searching: Searching) -> None:
    said = await absence(searching, "honey from a beehive", "paperfold__fold_crane")
    assert (said["reason"], said["skill_ids"]) == ("skills_not_matched", ["origami"])


async def test_an_item_that_no_arm_named_is_told_that_others_were_better(searching: Searching) -> None:
    found = await searching.search("read a file", strategy="direct", search_type="semantic", **ALL)
    assert len(found["tools"]) == 100
    known = await ids_by_name(searching.service.stores)
    other = next(str(id_) for id_ in known.values() if str(id_) not in ids(found["tools"]))
    said = await absence(searching, "read a file", other, strategy="direct", search_type="semantic")
    assert (said["reason"], said["score"]) == ("not_a_candidate", None)
    assert said["explanation"]["place"] == 0
    assert said["explanation"]["similarity"] <= min(tool["score"] for tool in found["tools"])


async def test_an_item_below_the_threshold_is_told_its_score_and_what_would_bring_it_back(
    searching: Searching,
) -> None:
    about = "hivekeeper__feed_bees"
    said = await absence(searching, "honey from a beehive", about, tool_threshold=0.9)
    assert (said["reason"], said["returned"]) == ("below_threshold", [])
    assert 0 < said["score"] < 0.9
    again = await absence(searching, "honey from a beehive", about, tool_threshold=said["score"] - 1e-5)
    assert again["reason"] == "returned"


async def test_an_item_beyond_the_limit_is_told_its_place(searching: Searching) -> None:
    everything = await searching.search("read a file", tool_threshold=0.1)
    last = everything["tools"][-1]
    said = await absence(searching, "read a file", last["id"], tool_threshold=0.1, limit=2)
    assert (said["reason"], said["explanation"]["place"]) == ("beyond_limit", 5)
    assert said["score"] == last["score"]
    back = await absence(searching, "read a file", last["id"], tool_threshold=0.1, limit=5)
    assert back["reason"] == "returned"
