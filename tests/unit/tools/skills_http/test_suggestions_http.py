"""Suggested skills over HTTP: the evidence, and the three decisions."""

import pytest

from tests.unit.tools.skills_http.builders import SKILLS, SUGGESTIONS, Managed
from toolscript.core.web.cursors import encode_cursor

pytestmark = pytest.mark.requirement("SK-006")


async def test_a_suggestion_has_the_requesting_items_and_the_nearest_skills(managed: Managed) -> None:
    await managed.add("mail", description="Send and read email messages")
    await managed.add("skies", description="Forecasts of rain, sun and wind")
    number = await managed.suggest("Email", "send_mail", "summarise", description="Email messages and threads")
    suggestion = await managed.ask("GET", f"{SUGGESTIONS}/{number}", limit=1)
    assert (suggestion["name"], suggestion["state"], suggestion["tool_count"]) == ("Email", "pending", 2)
    assert [(item["server"], item["name"]) for item in suggestion["tools"]] == [("mail", "summarise")]
    assert suggestion["tools"][0]["description"] == "Summarise an email thread"
    assert suggestion["nearest"][0]["id"] == "mail"
    scores = [near["score"] for near in suggestion["nearest"]]
    assert scores == sorted(scores, reverse=True)
    rest = await managed.ask("GET", f"{SUGGESTIONS}/{number}", cursor=suggestion["next_cursor"])
    assert ([item["name"] for item in rest["tools"]], rest["next_cursor"]) == (["send_mail"], None)


async def test_approving_adds_a_skill_that_routes_and_reclassifies_the_requesting_items(
    managed: Managed,
) -> None:
    number = await managed.suggest("Meeting Rooms", "create_event", description="Rooms for meetings")
    item = await managed.item("create_event")
    body = {"reviewer": "ann", "skill": {"id": "rooms", "keywords": ["room"]}}
    decided = await managed.ask("POST", f"{SUGGESTIONS}/{number}/approve", json=body)
    assert (decided["state"], decided["skill_id"], decided["reviewed_by"]) == ("approved", "rooms", "ann")
    assert decided["routing"] == "done"
    assert decided["reviewed_at"] is not None
    skill = await managed.ask("GET", f"{SKILLS}/rooms")
    assert (skill["name"], skill["description"], skill["keywords"]) == (
        "Meeting Rooms",
        "Rooms for meetings",
        ["room"],
    )
    assert await managed.point("rooms") is not None
    (stored,) = await managed.stores.catalog.items([item])
    assert stored.needs_skills


async def test_a_skill_approved_unchanged_gets_its_id_from_the_name(managed: Managed) -> None:
    number = await managed.suggest("Pull Requests!", "create_pull_request")
    decided = await managed.ask("POST", f"{SUGGESTIONS}/{number}/approve", json={"reviewer": "ann"})
    assert decided["skill_id"] == "pull_requests"


async def test_a_taken_id_is_a_conflict_and_the_suggestion_stays_pending(managed: Managed) -> None:
    await managed.add("occupied")
    number = await managed.suggest("Occupied", "readFile")
    await managed.refused("POST", f"{SUGGESTIONS}/{number}/approve", 409, {"reviewer": "ann"})
    assert (await managed.ask("GET", f"{SUGGESTIONS}/{number}"))["state"] == "pending"


async def test_a_rejected_suggestion_is_closed(managed: Managed) -> None:
    number = await managed.suggest("Nonsense", "readFile")
    decided = await managed.ask("POST", f"{SUGGESTIONS}/{number}/reject", json={"reviewer": "bob"})
    assert (decided["state"], decided["reviewed_by"], decided["skill_id"]) == ("rejected", "bob", None)


async def test_a_merged_suggestion_assigns_the_existing_skill_to_the_requesting_items(managed: Managed) -> None:
    await managed.add("files")
    number = await managed.suggest("Disk things", "write_file")
    body = {"reviewer": "cleo", "into": "files"}
    decided = await managed.ask("POST", f"{SUGGESTIONS}/{number}/merge", json=body)
    assert (decided["state"], decided["skill_id"], decided["reviewed_by"]) == ("merged", "files", "cleo")


async def test_a_suggestion_cannot_be_merged_into_a_missing_or_inactive_skill(managed: Managed) -> None:
    await managed.add("asleep", is_active=False)
    number = await managed.suggest("Sleepy", "list_issues")
    await managed.refused("POST", f"{SUGGESTIONS}/{number}/merge", 404, {"reviewer": "ann", "into": "nowhere"})
    await managed.refused("POST", f"{SUGGESTIONS}/{number}/merge", 422, {"reviewer": "ann", "into": "asleep"})
    assert (await managed.ask("GET", f"{SUGGESTIONS}/{number}"))["state"] == "pending"


async def test_a_decided_suggestion_cannot_be_decided_again(managed: Managed) -> None:
    await managed.add("late")
    number = await managed.suggest("Decided", "get_forecast")
    await managed.ask("POST", f"{SUGGESTIONS}/{number}/reject", json={"reviewer": "ann"})
    for how, more in (("approve", {}), ("reject", {}), ("merge", {"into": "late"})):
        await managed.refused("POST", f"{SUGGESTIONS}/{number}/{how}", 409, {"reviewer": "bob", **more})
    assert (await managed.ask("GET", f"{SUGGESTIONS}/{number}"))["reviewed_by"] == "ann"


async def test_suggestions_are_listed_by_state_page_by_page(managed: Managed) -> None:
    items = ("get_forecast_ru", "get_forecast", "readFile")
    numbers = [await managed.suggest(f"Listed by {item}", item) for item in items]
    await managed.ask("POST", f"{SUGGESTIONS}/{numbers[1]}/reject", json={"reviewer": "ann"})
    before = encode_cursor(numbers[0] - 1)
    pending = await managed.ask("GET", SUGGESTIONS, cursor=before)
    assert [suggestion["id"] for suggestion in pending["results"]] == [numbers[0], numbers[2]]
    rejected = await managed.ask("GET", SUGGESTIONS, cursor=before, state="rejected")
    assert [suggestion["id"] for suggestion in rejected["results"]] == [numbers[1]]
    first = await managed.ask("GET", SUGGESTIONS, cursor=before, state="all", limit=2)
    rest = await managed.ask("GET", SUGGESTIONS, cursor=first["next_cursor"], state="all", limit=2)
    assert [suggestion["id"] for suggestion in first["results"] + rest["results"]] == numbers
    assert rest["next_cursor"] is None
    await managed.refused("GET", SUGGESTIONS, 422, state="lost")


async def test_a_decision_needs_a_body_and_a_suggestion(managed: Managed) -> None:
    number = await managed.suggest("Anonymous", "readFile")
    for body in (None, {"reviewer": ""}, {"reviewer": "   "}, {"reviewer": "x" * 201}):
        await managed.refused("POST", f"{SUGGESTIONS}/{number}/reject", 422, body)
    await managed.refused("POST", f"{SUGGESTIONS}/999999/reject", 404, {"reviewer": "ann"})
    await managed.refused("GET", f"{SUGGESTIONS}/999999", 404)
    await managed.refused("GET", f"{SUGGESTIONS}/{2**63}", 422)
    assert (await managed.ask("GET", f"{SUGGESTIONS}/{number}"))["state"] == "pending"
