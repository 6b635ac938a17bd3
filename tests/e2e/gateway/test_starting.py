"""Startup of a gateway: concurrent imports do not block each other."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.gateway.machines import ROOT, WAIT_SECONDS, new_machine
from tests.e2e.gateway.surfaces import mcp_over_stdio


@pytest.mark.requirement("TS-011")
def test_the_servers_and_the_mcp_endpoint_can_load_the_sdk_at_the_same_time() -> None:
    """Its packages import each other: begun at two ends at once, both threads failed, and no server started."""
    command = [sys.executable, "-m", "tests.e2e.gateway.two_imports"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.requirement("TS-011")
async def test_a_first_search_waits_for_the_first_server(tmp_path: Path, weights: Path) -> None:
    """An agent searches as soon as it is connected; a server takes time to start."""
    machine = new_machine(tmp_path / "machine", weights)
    server = "tests.support.mcp_servers.plain"
    late = f"import runpy, time; time.sleep(3); runpy.run_module('{server}', run_name='__main__')"
    machine.configure({"plain": {"command": sys.executable, "args": ["-c", late], "cwd": str(ROOT)}})
    async with mcp_over_stdio(machine) as mcp:
        result = await mcp.client.call_tool("search_tools", {"query": "add two numbers"})
    assert not result.is_error, result.content
    assert "plain__add" in str(result.content)
