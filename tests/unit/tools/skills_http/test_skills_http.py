"""Skills over HTTP: added, changed, deactivated, activated, and listed page by page; and the audit."""

import asyncio
from typing import Any

import pytest

from tests.unit.tools.skills_http.builders import AUDIT, SKILLS, SUGGESTIONS, Managed, described
from toolscript.core.items import AssignedBy, Assignment
from toolscript.core.taxonomy import Classification, Classified
from toolscript.core.web.cursors import encode_cursor

pytestmark = pytest.mark.requirement("SK-001")


async def test_an_added_skill_can_be_read_and_searches_are_routed_to_it(managed: Managed) -> None:
    sent = described("crm", parent_domain="sales", keywords=["lead", "lead"], examples=["add_lead"])
    added = await managed.ask("POST", SKILLS, 201, sent)
    assert added["routing"] == "done"
    expected = {**sent, "keywords": ["lead"], "is_active": True, "tool_count": 0}
    assert {name: added[name] for name in expected} == expected
    del added["routing"]
    assert await managed.ask("GET", f"{SKILLS}/crm") == added
    point = await managed.point("crm")
    assert point is not None
    assert (point["name"], point["is_active"]) == ("Crm", True)


async def test_an_id_that_is_taken_is_a_conflict(managed: Managed) -> None:
    await managed.add("taken")
    error = await managed.refused("POST", SKILLS, 409, described("taken", name="Other"))
    assert (error["code"], error["details"]["skill_id"]) == ("CONFLICT", "taken")
    assert (await managed.ask("GET", f"{SKILLS}/taken"))["name"] == "Taken"


async def test_a_reserved_path_segment_is_no_id(managed: Managed) -> None:
    error = await managed.refused("POST", SKILLS, 422, described("search"))
    assert error["details"]["field"] == "id"


@pytest.mark.requirement("API-003")
@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"id": "Big Id"}, "id"),
        ({"name": ""}, "name"),
        ({"name": "   "}, "name"),
        ({"name": "n" * 256}, "name"),
        ({"description": "d" * 2001}, "description"),
        ({"keywords": ["k" * 101]}, "keywords"),
        ({"keywords": ["k"] * 51}, "keywords"),
        ({"examples": [""]}, "examples"),
        ({"parent_domain": "No Id"}, "parent_domain"),
        ({"reviewer": ""}, "reviewer"),
        ({"by": "ann"}, "by"),
        ({"unknown": 1}, "unknown"),
    ],
)
async def test_an_invalid_skill_is_refused_with_the_field(
    managed: Managed, wrong: dict[str, Any], where: str
) -> None:
    error = await managed.refused("POST", SKILLS, 422, {**described("never"), **wrong})
    assert error["code"] == "VALIDATION_ERROR"
    assert where in error["message"]
    await managed.refused("GET", f"{SKILLS}/never", 404)


async def test_a_put_replaces_all_of_a_skill(managed: Managed) -> None:
    await managed.add("whole", keywords=["old"], parent_domain="old")
    written = await managed.ask("PUT", f"{SKILLS}/whole", json={"name": "New", "examples": ["one"]})
    assert (written["name"], written["description"], written["keywords"]) == ("New", "", [])
    assert (written["examples"], written["parent_domain"], written["routing"]) == (["one"], None, "done")
    point = await managed.point("whole")
    assert point is not None
    assert point["name"] == "New"


async def test_a_patch_changes_what_it_names(managed: Managed) -> None:
    before = await managed.add("part", keywords=["old"], parent_domain="group")
    written = await managed.ask("PATCH", f"{SKILLS}/part", json={"keywords": [], "parent_domain": None})
    differs = {name for name in before if before[name] != written[name]}
    assert differs == {"keywords", "parent_domain", "updated_at"}
    assert await managed.ask("PATCH", f"{SKILLS}/part", json={}) == written


async def test_an_invalid_patch_changes_nothing(managed: Managed) -> None:
    before = await managed.add("firm")
    await managed.refused("PATCH", f"{SKILLS}/firm", 422, {"name": "Fine", "keywords": [" "]})
    await managed.refused("PATCH", f"{SKILLS}/firm", 422, {"id": "other"})
    del before["routing"]
    assert await managed.ask("GET", f"{SKILLS}/firm") == before


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_an_unknown_skill_cannot_be_changed(managed: Managed, method: str) -> None:
    await managed.refused(method, f"{SKILLS}/nowhere", 404, {"name": "x"})
    await managed.refused("GET", f"{SKILLS}/nowhere/tools", 404)
    await managed.refused("GET", f"{SKILLS}/nowhere", 404)


async def test_an_invalid_id_in_the_path_is_refused_before_any_engine_is_queried(managed: Managed) -> None:
    await managed.refused("GET", f"{SKILLS}/No-Id", 422)
    await managed.refused("PATCH", f"{SKILLS}/a%00b", 422, {})
    for cursor in ("\0", "calendar", encode_cursor(7)):
        error = await managed.refused("GET", SKILLS, 422, cursor=cursor)
        assert error["details"]["field"] == "cursor"


async def test_a_deactivated_skill_leaves_routing_at_once_and_can_come_back(managed: Managed) -> None:
    await managed.add("passing")
    body = {"is_active": False, "reviewer": "ann"}
    ended = await managed.ask("PATCH", f"{SKILLS}/passing", json=body)
    assert (ended["is_active"], ended["routing"]) == (False, "done")
    point = await managed.point("passing")
    assert point is not None
    assert point["is_active"] is False
    assert (await managed.ask("GET", f"{SKILLS}/passing"))["is_active"] is False
    back = await managed.ask("PATCH", f"{SKILLS}/passing", json={"is_active": True})
    assert (back["is_active"], back["routing"]) == (True, "done")
    point = await managed.point("passing")
    assert point is not None
    assert point["is_active"] is True


async def test_pages_hold_every_skill_once_in_order_of_id(managed: Managed) -> None:
    for number in (3, 1, 5, 2, 4):
        await managed.add(f"zz_page_{number}", is_active=number != 3)
    seen: list[str] = []
    cursor: str | None = encode_cursor("zz_page_")
    while cursor is not None:
        page = await managed.ask("GET", SKILLS, cursor=cursor, limit=2)
        assert len(page["results"]) <= 2
        seen += [skill["id"] for skill in page["results"]]
        cursor = page["next_cursor"]
    assert seen == [f"zz_page_{number}" for number in (1, 2, 3, 4, 5)]
    active = await managed.ask("GET", SKILLS, cursor=encode_cursor("zz_page_"), active=True)
    assert [skill["id"] for skill in active["results"]] == [f"zz_page_{number}" for number in (1, 2, 4, 5)]
    assert active["next_cursor"] is None


@pytest.mark.parametrize("limit", [0, 201, "many"])
async def test_a_page_has_its_limits(managed: Managed, limit: object) -> None:
    for path in (SKILLS, AUDIT, SUGGESTIONS, f"{SKILLS}/crm/tools"):
        await managed.refused("GET", path, 422, limit=limit)


async def test_the_items_of_a_skill_are_paged_with_the_source_of_each_assignment(managed: Managed) -> None:
    await managed.add("reading")
    items = sorted([await managed.item(name) for name in ("readFile", "write_file", "send_mail")])
    await managed.stores.assignments.reclassify(0, 1000)
    stored = await managed.stores.catalog.items(items)
    classification = Classification((Assignment("reading", 0.75, AssignedBy.LLM, "it reads"),))
    await managed.stores.assignments.record([Classified(item.id, item.version, classification) for item in stored])
    first = await managed.ask("GET", f"{SKILLS}/reading/tools", limit=2)
    rest = await managed.ask("GET", f"{SKILLS}/reading/tools", limit=2, cursor=first["next_cursor"])
    assert [tool["id"] for tool in first["results"] + rest["results"]] == items
    assert rest["next_cursor"] is None
    tool = first["results"][0]
    assert (tool["skill_id"], tool["confidence"], tool["source"]) == ("reading", 0.75, "llm")
    assert (tool["reason"], tool["is_primary"], tool["server"]) == ("it reads", True, "files")
    assert tool["kind"] == "tool"


async def test_the_audit_lists_decisions_latest_first(managed: Managed) -> None:
    await managed.add("told", reviewer="ann")
    await managed.ask("PATCH", f"{SKILLS}/told", json={"name": "Other", "reviewer": "bob"})
    await managed.ask("PATCH", f"{SKILLS}/told", json={"is_active": False, "reviewer": "cleo"})
    page = await managed.ask("GET", AUDIT, limit=2)
    older = await managed.ask("GET", AUDIT, limit=1, cursor=page["next_cursor"])
    entries = page["results"] + older["results"]
    assert [(entry["actor"], entry["action"], entry["subject"]) for entry in entries] == [
        ("cleo", "skill.deactivate", "told"),
        ("bob", "skill.change", "told"),
        ("ann", "skill.add", "told"),
    ]
    assert entries[1]["details"] == {"before": {"name": "Told"}, "after": {"name": "Other"}}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", SKILLS, {"id": "sneaky", "name": "Sneaky"}),
        ("PUT", f"{SKILLS}/crm", {"name": "x"}),
        ("PATCH", f"{SKILLS}/crm", {"name": "x"}),
        ("POST", f"{SUGGESTIONS}/1/approve", {"reviewer": "x"}),
        ("POST", f"{SUGGESTIONS}/1/reject", {"reviewer": "x"}),
        ("POST", f"{SUGGESTIONS}/1/merge", {"reviewer": "x", "into": "crm"}),
        ("PUT", "/api/v1/tools/1/skills", {"skill_ids": [], "reviewer": "x"}),
        ("DELETE", "/api/v1/tools/1/skills?reviewer=x", None),
    ],
)
async def test_a_page_of_another_origin_cannot_write(
    managed: Managed, method: str, path: str, body: dict[str, Any] | None
) -> None:
    answer = await managed.client.request(method, path, json=body, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    assert answer.json()["error"]["code"] == "FORBIDDEN"


async def test_the_openapi_document_models_every_response(managed: Managed) -> None:
    paths = (await managed.ask("GET", "/openapi.json"))["paths"]
    words = ("skills", "suggestions", "audit")
    mine = {
        path: methods
        for path, methods in paths.items()
        if any(word in path for word in words) and "search" not in path
    }
    assert mine.keys() == {
        SKILLS,
        f"{SKILLS}/{{skill_id}}",
        f"{SKILLS}/{{skill_id}}/tools",
        SUGGESTIONS,
        f"{SUGGESTIONS}/{{suggestion_id}}",
        f"{SUGGESTIONS}/{{suggestion_id}}/approve",
        f"{SUGGESTIONS}/{{suggestion_id}}/reject",
        f"{SUGGESTIONS}/{{suggestion_id}}/merge",
        f"{SUGGESTIONS}/{{suggestion_id}}/undo",
        AUDIT,
        "/api/v1/tools/{tool_id}/skills",
    }
    for methods in mine.values():
        for method, route in methods.items():
            for status, answer in route["responses"].items():
                assert "$ref" in answer["content"]["application/json"]["schema"], (method, status)
            assert {"401", "403", "422", "503"} <= route["responses"].keys()


async def test_edits_of_one_skill_at_the_same_time_all_stay(managed: Managed) -> None:
    await managed.add("shared")
    edits: list[dict[str, Any]] = [
        {"name": "Shared by all"},
        {"description": "What everybody has."},
        {"keywords": ["common"]},
    ]
    await asyncio.gather(*(managed.ask("PATCH", f"{SKILLS}/shared", 200, edit) for edit in edits))
    skill = await managed.ask("GET", f"{SKILLS}/shared")
    assert all(skill[name] == value for edit in edits for name, value in edit.items())
