"""The command line and HTTP return the same data about skills."""

import asyncio
import json
from typing import Any

import pytest

from tests.e2e.commands import run_here
from tests.unit.tools.skills_http.builders import AUDIT, SKILLS, SUGGESTIONS, Managed

pytestmark = pytest.mark.requirement("SK-001")


async def printed(managed: Managed, *arguments: str) -> Any:
    """Run a command on another thread, since it has its own event loop; return its JSON."""
    own = managed.installation.environment
    return json.loads((await asyncio.to_thread(run_here, own, "skills", *arguments, "--json")).stdout)


async def test_data_written_over_one_interface_is_read_the_same_over_both(managed: Managed) -> None:
    await managed.add("over_http", keywords=["web"], reviewer="ann")
    added = await printed(managed, "add", "over_the_line", "--name", "Typed", "--by", "bob")
    patched = await managed.ask("PATCH", f"{SKILLS}/over_the_line", json={"name": "Typed", "reviewer": "bob"})
    assert patched == added
    for skill in ("over_http", "over_the_line"):
        assert await printed(managed, "show", skill) == await managed.ask("GET", f"{SKILLS}/{skill}")
    assert await printed(managed, "list") == await managed.ask("GET", SKILLS, active=True)
    assert await printed(managed, "audit", "--limit", "1") == await managed.ask("GET", AUDIT, limit=1)


@pytest.mark.requirement("SK-006", "SK-008")
async def test_suggestions_evidence_and_assignments_are_the_same_over_both_interfaces(managed: Managed) -> None:
    await managed.add("mail", description="Send and read email messages")
    number = await managed.suggest("Email", "send_mail", description="Email messages")
    assert await printed(managed, "suggestions") == await managed.ask("GET", SUGGESTIONS)
    assert await printed(managed, "suggestion", str(number)) == await managed.ask("GET", f"{SUGGESTIONS}/{number}")
    item = await managed.item("readFile")
    body = {"skill_ids": ["mail"], "reviewer": "ann"}
    assigned = await managed.ask("PUT", f"/api/v1/tools/{item}/skills", json=body)
    assert await printed(managed, "of", str(item)) == assigned
    assert await printed(managed, "assign", str(item), "mail", "--by", "ann") == assigned
    tools = (await printed(managed, "show", "mail", "--limit", "5"))["tools"]
    assert tools == (await managed.ask("GET", f"{SKILLS}/mail/tools"))["results"]
