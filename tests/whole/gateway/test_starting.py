"""How a gateway starts: nothing that loads at the same time gets in the way of the rest."""

import subprocess
import sys

import pytest

from tests.whole.gateway.machines import ROOT, WAIT_SECONDS


@pytest.mark.requirement("TS-011")
def test_the_servers_and_the_mcp_endpoint_can_load_the_sdk_at_the_same_time() -> None:
    """Its packages import each other: begun at two ends at once, both threads failed, and no server started."""
    command = [sys.executable, "-m", "tests.whole.gateway.two_imports"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
