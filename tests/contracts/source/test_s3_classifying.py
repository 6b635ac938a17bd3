"""S3: a language model classifies tools into skills: its prompt, and the validation of its replies."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.conftest import Installation
from tests.contracts.source.s3_builders import (
    CALENDAR,
    CATEGORIES,
    CIRCUS,
    FILES,
    MAIL,
    SCHEMA,
    SKILLS,
    SUGGESTIONS,
    World,
    installed,
    world,
)
from tests.unit.tools.classify.models import items_in
from toolscript.core.settings.service import Settings


@pytest.fixture(scope="module")
def own(
    engines: Settings, migrated_database: str, model_folder: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    with installed(engines, migrated_database, model_folder, tmp_path_factory.mktemp("s3")) as fresh:
        yield fresh


@pytest.fixture(scope="module")
async def sorted_tools(own: Installation) -> AsyncIterator[World]:
    async with world(own) as opened:
        yield opened


def instructions(asked: World) -> str:
    return str(asked.endpoint.asked[0]["messages"][0]["content"])


def schema(asked: World) -> dict[str, Any]:
    form: dict[str, Any] = asked.endpoint.asked[0]["response_format"]
    assert form["type"] == "json_schema"
    return dict(form["json_schema"]["schema"]["properties"]["items"]["items"]["properties"])


@pytest.mark.states("S3-014", "S3-084", "S3-089", "S3-091", "S3-101", "S3-202")
async def test_a_language_model_classifies_each_tool_in_a_chat(sorted_tools: World) -> None:
    assert [message["role"] for message in sorted_tools.endpoint.asked[0]["messages"]] == ["system", "user"]
    text = instructions(sorted_tools)
    assert "Sort items into skills" in text
    assert "Judge by what an item does" in text
    assert "one to 3 skills, the fewest that are right" in text


@pytest.mark.states("S3-048", "S3-049", "S3-085", "S3-100")
async def test_the_prompt_has_every_category_as_json_with_its_keywords_and_examples(sorted_tools: World) -> None:
    lines = [json.loads(line) for line in instructions(sorted_tools).split("\n") if line.startswith("{")]
    told_of = {"id", "name", "description", "keywords", "examples"}
    assert {line["id"]: line for line in lines} == {
        category["id"]: {"keywords": [], "examples": []}
        | {name: category[name] for name in told_of & category.keys()}
        for category in CATEGORIES
    }


@pytest.mark.states("S3-086", "S3-087", "S3-088", "S3-100")
async def test_the_prompt_has_name_description_and_parameters_of_each_tool(sorted_tools: World) -> None:
    items = {item["name"]: item for requests in sorted_tools.endpoint.asked for item in items_in(requests)}
    event = items["create_calendar_event"]
    assert event["description"] == "Create a calendar event or schedule a meeting at a given time"
    assert event["parameters"] == list(SCHEMA["properties"])


@pytest.mark.states("S3-042", "S3-090", "S3-092", "S3-093", "S3-094", "S3-097")
async def test_the_answer_is_json_with_up_to_three_known_skills_or_a_suggestion(sorted_tools: World) -> None:
    form = schema(sorted_tools)
    assert form["assignments"]["maxItems"] == 3
    row = form["assignments"]["items"]["properties"]
    assert row["skill_id"]["enum"] == sorted([CALENDAR, MAIL, FILES])
    assert (row["confidence"]["minimum"], row["confidence"]["maximum"]) == (0, 1)
    suggested, nothing = form["suggested_new_skill"]["anyOf"]
    assert (set(suggested["properties"]), nothing) == ({"name", "description"}, {"type": "null"})
    assert "When no skill is right, give none, and suggest a new skill" in instructions(sorted_tools)
    assert "0.5 means as likely right as wrong" in instructions(sorted_tools)


@pytest.mark.states("S3-095", "S3-096")
async def test_the_model_gives_a_reason_before_the_confidence_and_no_primary_skill(sorted_tools: World) -> None:
    form = schema(sorted_tools)
    assert list(form) == ["item", "assignments", "suggested_new_skill"]
    assert list(form["assignments"]["items"]["properties"]) == ["skill_id", "reason", "confidence"]


@pytest.mark.states("S3-099")
async def test_several_tools_are_classified_concurrently(sorted_tools: World) -> None:
    assert len(items_in(sorted_tools.endpoint.asked[0])) == 7


@pytest.mark.states("S3-009", "S3-011", "S3-015", "S3-102", "S3-103", "S3-106", "S3-229")
async def test_only_known_skills_that_are_sure_enough_are_taken(sorted_tools: World) -> None:
    event = await sorted_tools.skills_of("create_calendar_event")
    assert [(skill["skill_id"], skill["confidence"]) for skill in event["skills"]] == [
        (CALENDAR, 0.95),
        (MAIL, 0.6),
    ]
    assert {skill["source"] for skill in event["skills"]} == {"llm"}
    exactly = await sorted_tools.skills_of("write_file")
    assert [(skill["skill_id"], skill["confidence"]) for skill in exactly["skills"]] == [(FILES, 0.5)]


@pytest.mark.states("S3-080", "S3-081", "S3-105", "S3-107", "S3-108", "S3-242")
async def test_a_tool_has_a_confidence_for_each_skill_and_the_surest_is_primary(sorted_tools: World) -> None:
    invite = await sorted_tools.skills_of("send_meeting_invite")
    assert invite["tool_id"] == (await sorted_tools.item("send_meeting_invite"))["id"]
    assert invite.keys() == {"tool_id", "skills"}
    assert {skill["skill_id"]: (skill["confidence"], skill["is_primary"]) for skill in invite["skills"]} == {
        MAIL: (0.9, True),
        CALENDAR: (0.7, False),
    }


@pytest.mark.states("S3-104", "S3-171", "S3-177", "S3-212")
async def test_a_suggested_skill_waits_for_a_person_and_becomes_one_when_approved(sorted_tools: World) -> None:
    service = sorted_tools.service
    (waiting,) = (await service.ask("GET", SUGGESTIONS))["results"]
    assert (waiting["name"], waiting["description"]) == (CIRCUS["name"], CIRCUS["description"])
    assert (waiting["state"], waiting["reviewed_by"]) == ("pending", None)
    await service.refused("GET", f"{SKILLS}/circus", 404)
    decided = await service.ask("POST", f"{SUGGESTIONS}/{waiting['id']}/approve", 200, {"reviewer": "ann"})
    assert (decided["state"], decided["reviewed_by"], decided["skill_id"]) == ("approved", "ann", "circus")
    await sorted_tools.work()
    juggling = await sorted_tools.skills_of("juggle_clubs")
    assert [skill["skill_id"] for skill in juggling["skills"]] == ["circus"]


@pytest.mark.states("S3-013", "S3-204", "S3-227", "S3-239")
async def test_a_new_tool_of_an_mcp_server_is_classified_by_the_sync(sorted_tools: World) -> None:
    await sorted_tools.service.synced({"servers": ["plain"]})
    await sorted_tools.work()
    added = await sorted_tools.skills_of("add")
    assert [(skill["skill_id"], skill["source"]) for skill in added["skills"]] == [(FILES, "llm")]
    fields, _ = sorted_tools.points("mcp_unified_search")["add"]
    assert fields["skill_ids"] == [FILES]
