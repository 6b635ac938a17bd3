"""Proposals over HTTP and on the command line: what they would change, the decision, and its undoing."""

import asyncio
import json

import pytest

from tests.e2e.commands import run
from tests.support.audit_entries import by_me
from tests.unit.tools.skills_http.builders import SKILLS, SUGGESTIONS, Managed
from toolscript.core.taxonomy import Skill
from toolscript.server.indexing import propose_every, run_skills_command
from toolscript.tools.model.proposals import Proposal, ProposalEvidence

pytestmark = pytest.mark.requirement("SK-011")


async def _submitted(managed: Managed, skill_id: str, *items: str) -> int:
    """Put a proposal in place of those that wait; return its id."""
    ids = [await managed.item(name) for name in items]
    skill = Skill(skill_id, skill_id.title(), "Plan meetings.", keywords=("meeting",), examples=items)
    evidence = ProposalEvidence(len(ids), 10, items)
    proposal = Proposal(skill, dict.fromkeys(ids, 0.8), evidence)
    await managed.stores.suggestions.submit([proposal])
    (pending,) = await managed.stores.suggestions.page(0, 10)
    return pending.id


async def test_a_proposal_shows_what_it_changes_and_its_evidence(managed: Managed) -> None:
    number = await _submitted(managed, "dates", "create_event")
    (listed,) = (await managed.ask("GET", SUGGESTIONS))["results"]
    shown = await managed.ask("GET", f"{SUGGESTIONS}/{number}")
    assert listed["kind"] == shown["kind"] == "new"
    assert [skill["id"] for skill in shown["change"]["creates"]] == ["dates"]
    assert shown["change"]["evidence"]["samples"] == ["create_event"]
    assert [tool["name"] for tool in shown["tools"]] == ["create_event"]


async def test_an_approved_proposal_creates_its_skill_and_can_be_undone(managed: Managed) -> None:
    number = await _submitted(managed, "meetings", "create_event")
    body = {"reviewer": "ann", "skill": {"description": "Meetings of people."}}
    decided = await managed.ask("POST", f"{SUGGESTIONS}/{number}/approve", json=body)
    assert (decided["state"], decided["skill_id"], decided["routing"]) == ("approved", "meetings", "done")
    skill = await managed.ask("GET", f"{SKILLS}/meetings")
    assert (skill["description"], skill["keywords"]) == ("Meetings of people.", ["meeting"])
    undone = await managed.ask("POST", f"{SUGGESTIONS}/{number}/undo", json={"reviewer": "bob"})
    assert undone["state"] == "undone"
    assert not (await managed.ask("GET", f"{SKILLS}/meetings"))["is_active"]
    await managed.refused("POST", f"{SUGGESTIONS}/{number}/undo", 409, {"reviewer": "bob"})
    assert [one["id"] for one in (await managed.ask("GET", SUGGESTIONS, state="undone"))["results"]] == [number]


async def test_a_proposal_can_be_merged_into_a_skill_that_exists(managed: Managed) -> None:
    await managed.add("files")
    number = await _submitted(managed, "rooms", "create_event")
    merged = await managed.ask("POST", f"{SUGGESTIONS}/{number}/merge", json={"reviewer": "ann", "into": "files"})
    assert (merged["state"], merged["skill_id"]) == ("merged", "files")


async def test_the_command_proposes_nothing_for_a_dry_run_and_fills_the_queue_without(managed: Managed) -> None:
    environment = managed.installation.environment
    await managed.stores.suggestions.submit([])
    dry = json.loads(run(environment, "skills", "propose", "--dry-run", "--json").stdout)
    assert dry["submitted"] is None
    assert not (await managed.ask("GET", SUGGESTIONS))["results"]
    done = json.loads(run(environment, "skills", "propose", "--json").stdout)
    assert [one["key"] for one in done["proposals"]] == [one["key"] for one in dry["proposals"]]
    assert done["submitted"]["added"] == len(done["proposals"])
    again = json.loads(run(environment, "skills", "propose", "--json").stdout)
    assert again["proposals"] == done["proposals"]
    assert again["submitted"]["added"] == 0
    assert by_me(environment, "skills.propose") == [("skills.propose", len(done["proposals"]))]


async def test_the_worker_proposes_in_a_process_of_its_own_and_not_unless_it_is_told(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in managed.installation.environment.items():
        monkeypatch.setenv(name, value)
    await managed.stores.suggestions.submit([])
    await asyncio.wait_for(propose_every(0), 5)
    assert await run_skills_command("propose") == 0
    assert (await managed.ask("GET", SUGGESTIONS))["results"]
    monkeypatch.setenv("TOOLSCRIPT_POSTGRES_URL", "postgresql://127.0.0.1:1/none")
    assert await run_skills_command("propose") != 0


async def test_the_command_describes_skills_by_their_items_beside_what_people_wrote(managed: Managed) -> None:
    environment = managed.installation.environment
    await managed.add("journeys")
    await managed.stores.assignments.set_by_hand(await managed.item("create_event"), ["journeys"], "ann")
    run(environment, "worker", "--drain")
    done = json.loads(run(environment, "skills", "describe", "--json").stdout)["described"]
    assert done
    shown = await managed.ask("GET", f"{SKILLS}/{done[0]['id']}")
    assert shown["enhanced_description"] == done[0]["text"]
    assert shown["description"] != shown["enhanced_description"]
    assert (
        f"made from its items: {done[0]['text'][:20]}" in run(environment, "skills", "show", done[0]["id"]).stdout
    )
    assert json.loads(run(environment, "skills", "describe", "--json").stdout)["described"] == []
    assert by_me(environment, "skills.describe") == [("skills.describe", len(done))]
