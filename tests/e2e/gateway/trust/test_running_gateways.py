"""A running gateway and `toolscript mcp` use no untrusted file, whenever it appears."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.gateway.machines import Gateway, Machine, mcp_server, until
from tests.e2e.gateway.surfaces import mcp_over_stdio
from tests.e2e.gateway.trust.traps import NAME, SECRET, Trap, give_to_nobody, set_up

pytestmark = pytest.mark.requirement("TR-001")
# Files are checked at least every two seconds.
LOOKED_AT_SECONDS = 3.5
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")


@contextmanager
def gateway_of(trap: Trap) -> Iterator[Gateway]:
    """Run a gateway, as it serves a client in the folder of the trap, whether its file is there or not."""
    with trap.machine.gateway() as gateway:
        yield gateway.with_files(trap.machine.config, trap.machine.project / NAME, TRAP_SECRET=SECRET)


@pytest.fixture
def trap(machine: Machine) -> Iterator[Trap]:
    machine.configure({"plain": mcp_server("plain")})
    with set_up(machine) as trap:
        yield trap


def test_a_file_that_appears_starts_nothing_until_it_is_trusted(trap: Trap) -> None:
    with gateway_of(trap) as gateway:
        path = trap.put(trap.machine.project)
        until(lambda: gateway.server("build"), "the gateway to have seen the file")
        time.sleep(0.5)
        assert trap.sprung() == []
        assert f"toolscript trust {path}" in gateway.server("build")["error"]
        assert f"toolscript trust {path}" in gateway.search("read a file")["hint"]
        trap.trust(path)
        until(lambda: len(trap.sprung()) >= 2, "the servers of the file that is trusted now")


@pytest.mark.nightly
def test_a_trusted_file_that_changes_starts_nothing_more(trap: Trap) -> None:
    fine = trap.put(trap.machine.project, trap.harmless)
    trap.trust(fine)
    with gateway_of(trap) as gateway:
        trap.put(trap.machine.project)
        until(lambda: gateway.server("build"), "the gateway to have seen the change")
        time.sleep(0.5)
        assert trap.sprung() == []
        assert "changed since it was trusted" in gateway.server("build")["error"]


@as_root
def test_a_file_of_another_user_is_ignored(trap: Trap) -> None:
    trap.machine.project.chmod(0o1777)
    with gateway_of(trap) as gateway:
        beside = trap.put(trap.machine.project / "beside")
        give_to_nobody(beside)
        beside.replace(trap.machine.project / beside.name)
        time.sleep(LOOKED_AT_SECONDS)
        assert trap.sprung() == []
        assert {server["name"] for server in gateway.health()["servers"]} == {"plain"}


def test_a_gateway_started_among_untrusted_files_serves_the_persons_own(trap: Trap) -> None:
    trap.put(trap.machine.project)
    with trap.machine.gateway() as gateway:
        until(lambda: gateway.server("plain").get("status") == "ready", "the person's own server")
        assert trap.sprung() == []


async def test_a_client_in_an_untrusted_folder_starts_nothing_and_gets_a_hint(trap: Trap) -> None:
    trap.put(trap.machine.project)
    async with mcp_over_stdio(trap.machine) as mcp:
        await mcp.client.list_tools()
        result = await mcp.client.call_tool("search_tools", {"query": "add two numbers"})
        assert "ask the user to review and trust them" in str(result.content)
    assert trap.sprung() == []


@pytest.mark.nightly
async def test_a_client_that_joins_a_running_gateway_gets_the_hint_as_well(trap: Trap, tmp_path: Path) -> None:
    """The gateway runs elsewhere, and does not know the folder of the client."""
    with trap.machine.gateway() as gateway:
        until(lambda: gateway.server("plain").get("status") == "ready", "the person's own server")
        trap.put(trap.machine.project)
        shutil.copytree(trap.machine.home / ".toolscript" / "run", tmp_path / "run")
        async with mcp_over_stdio(trap.machine) as mcp:
            result = await mcp.client.call_tool("search_tools", {"query": "add two numbers"})
            assert "ask the user to review and trust them" in str(result.content)
            assert "plain__add" in str(result.content)
    assert trap.sprung() == []


@pytest.mark.nightly
def test_a_person_at_a_terminal_is_asked_once_for_each_content(trap: Trap) -> None:
    trap.put(trap.machine.project, '{"mcpServers": {"mine": {"command": "true", "args": ["${TRAP_SECRET}"]}}}')
    message = trap.machine.on_a_terminal("list-tools", answer="n\n")
    assert "TRAP_SECRET" in message
    assert "trust it?" in message
    assert "the-secret" not in message
    again = trap.machine.on_a_terminal("list-tools")
    assert "trust it?" not in again
    assert "toolscript trust" in again
    message = trap.machine.on_a_terminal("trust", answer="y\n")
    assert "trusted: " in message
    assert "toolscript trust" not in trap.machine.on_a_terminal("list-tools")
