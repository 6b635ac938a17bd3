"""A tool that is held, as agents see it: the reason, and no command that they would run themselves."""

import pytest

from tests.unit.gateway.mcp.clients import call, text_of
from tests.unit.gateway.mcp.gateway_double import GatewayDouble
from toolscript.core.errors import Forbidden
from toolscript.gateway.approvals import HELD, Review, Status
from toolscript.gateway.mcp.definitions import DEFINITIONS

READ, DROP = "files__read_file", "files__drop_file"
REVIEW = Review("0" * 32, DROP, "tool", "files", "drop_file", Status.NEW, held=True, seen_at=0.0, difference="+a")
ONLY_THE_USER = "Only the user can approve it: tell them, and do without it until they have."

pytestmark = pytest.mark.requirement("TR-002")


async def test_a_call_of_a_held_tool_gives_an_agent_the_reason_and_no_command() -> None:
    refused = Forbidden(
        f"{READ} is held: it changed", hint="`toolscript review approve`", details={HELD: "changed"}
    )
    answer = await call(GatewayDouble(replies={READ: refused}), "call_tool", {"tool": READ})
    assert answer.is_error
    assert text_of(answer) == f"{READ} is held: it changed. {ONLY_THE_USER}"


async def test_another_refusal_keeps_its_own_words() -> None:
    answer = await call(GatewayDouble(replies={READ: Forbidden("no")}), "call_tool", {"tool": READ})
    assert text_of(answer) == "no"


async def test_a_held_tool_is_not_described_and_the_reason_is_given() -> None:
    gateway = GatewayDouble(waiting=[REVIEW])
    alone = await call(gateway, "describe_tool", {"tool": DROP})
    assert alone.is_error
    assert text_of(alone) == f"{DROP} is held: it is new since its server was trusted. {ONLY_THE_USER}"
    both = await call(gateway, "describe_tool", {"tools": [READ, DROP]})
    assert text_of(both).endswith(ONLY_THE_USER)
    assert "toolscript" not in text_of(both)


def test_no_tool_approves_anything() -> None:
    assert not any("approve" in str(definition).lower() for definition in DEFINITIONS)
