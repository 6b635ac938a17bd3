"""The skills of one item over HTTP: decisions by hand are permanent."""

import pytest

from tests.unit.tools.skills_http.builders import AUDIT, Managed
from toolscript.core.items import AssignedBy, Assignment
from toolscript.core.taxonomy import Classification, Classified
from toolscript.core.values import silent
from toolscript.server.indexing import open_index_writer

pytestmark = pytest.mark.requirement("SK-008")


def path(item: int) -> str:
    return f"/api/v1/tools/{item}/skills"


async def test_a_person_assigns_an_item_to_skills_with_the_first_as_primary(managed: Managed) -> None:
    await managed.add("first")
    await managed.add("second")
    item = await managed.item("readFile")
    assigned = await managed.ask("PUT", path(item), json={"skill_ids": ["second", "first"], "reviewer": "ann"})
    rows = [
        (skill["skill_id"], skill["source"], skill["confidence"], skill["is_primary"])
        for skill in assigned["skills"]
    ]
    assert rows == [("second", "human", 1.0, True), ("first", "human", 1.0, False)]
    assert await managed.ask("GET", path(item)) == assigned == {"tool_id": item, "skills": assigned["skills"]}
    members = await managed.ask("GET", "/api/v1/skills/second/tools")
    assert [(tool["id"], tool["source"]) for tool in members["results"]] == [(item, "human")]


async def test_no_classifier_changes_a_decision_by_hand_until_the_item_is_released(managed: Managed) -> None:
    await managed.add("mine", keywords=["nothing that any item says"])
    await managed.add("theirs")
    item = await managed.item("create_event")
    assigned = await managed.ask("PUT", path(item), json={"skill_ids": ["mine"], "reviewer": "ann"})
    await managed.stores.assignments.reclassify(0, 1000)
    (stored,) = await managed.stores.catalog.items([item])
    other = Classification((Assignment("theirs", 1.0, AssignedBy.LLM),))
    await managed.stores.assignments.record([Classified(item, stored.version, other)])
    async with open_index_writer(managed.installation.settings) as writer:
        await writer.worker(silent).drain()
    assert await managed.ask("GET", path(item)) == assigned
    released = await managed.ask("DELETE", path(item), reviewer="ann")
    assert released == assigned
    (stored,) = await managed.stores.catalog.items([item])
    assert stored.needs_skills
    await managed.stores.assignments.record([Classified(item, stored.version, other)])
    now = await managed.ask("GET", path(item))
    assert [(skill["skill_id"], skill["source"]) for skill in now["skills"]] == [("theirs", "llm")]


async def test_an_empty_assignment_by_hand_is_a_decision_too(managed: Managed) -> None:
    await managed.add("tempting")
    item = await managed.item("send_mail")
    assert await managed.ask("PUT", path(item), json={"skill_ids": [], "reviewer": "ann"}) == {
        "tool_id": item,
        "skills": [],
    }
    (stored,) = await managed.stores.catalog.items([item])
    classification = Classification((Assignment("tempting", 1.0, AssignedBy.LLM),))
    await managed.stores.assignments.record([Classified(item, stored.version, classification)])
    assert (await managed.ask("GET", path(item)))["skills"] == []


async def test_an_item_is_assigned_only_to_active_skills_and_to_few(managed: Managed) -> None:
    await managed.add("dormant", is_active=False)
    item = await managed.item("write_file")
    for wrong in (["dormant"], ["nowhere"], ["No Id"], [f"skill_{number}" for number in range(11)]):
        error = await managed.refused("PUT", path(item), 422, {"skill_ids": wrong, "reviewer": "ann"})
        assert "skill" in error["message"]
    await managed.refused("PUT", path(item), 422, {"reviewer": "ann"})


@pytest.mark.parametrize(("number", "status"), [(999_999, 404), (0, 422), (2**63, 422)])
async def test_an_unknown_item_has_no_skills(managed: Managed, number: int, status: int) -> None:
    await managed.refused("GET", path(number), status)
    await managed.refused("PUT", path(number), status, {"skill_ids": [], "reviewer": "ann"})
    await managed.refused("DELETE", path(number), status, reviewer="ann")


async def test_a_release_refuses_a_reviewer_without_a_name(managed: Managed) -> None:
    item = await managed.item("list_issues")
    for query in ({"reviewer": ""}, {"reviewer": " "}, {"reviewer": "x" * 201}):
        assert "reviewer" in (await managed.refused("DELETE", path(item), 422, **query))["message"]


async def test_a_decision_about_an_item_is_audited(managed: Managed) -> None:
    await managed.add("recorded")
    item = await managed.item("list_issues")
    await managed.ask("PUT", path(item), json={"skill_ids": ["recorded"], "reviewer": "ann"})
    await managed.ask("DELETE", path(item), reviewer="bob")
    entries = (await managed.ask("GET", AUDIT, limit=2))["results"]
    assert [(entry["actor"], entry["action"], entry["subject"]) for entry in entries] == [
        ("bob", "item.release", str(item)),
        ("ann", "item.assign", str(item)),
    ]
