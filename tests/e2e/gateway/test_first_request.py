"""What a client of `toolscript mcp` waits for before its first request, and what a session of it costs."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.commands import command
from tests.e2e.gateway.daemons import Home, a_home
from tests.e2e.gateway.machines import until

pytestmark = [pytest.mark.requirement("GW-001"), pytest.mark.slow]
BEGIN = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CHANGED = "notifications/tools/list_changed"


@pytest.fixture
def home(tmp_path: Path, weights: Path) -> Iterator[Home]:
    with a_home(tmp_path / "machine", weights) as home:
        yield home


class Client:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.told: list[str] = []
        self._number = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        while (message := self.read()).get("id") != self._number:
            self.told.append(message["method"])
        return dict(message["result"])

    def begin(self) -> dict[str, Any]:
        answer = self.ask("initialize", **BEGIN)
        self.send({"method": "notifications/initialized"})
        return answer

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        return dict(json.loads(self.process.stdout.readline()))

    def seconds(self) -> float:
        """Return the CPU time of its own process."""
        used = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")

    def private_kib(self) -> int:
        found = re.findall(
            r"^Private_\w+:\s+(\d+)", Path(f"/proc/{self.process.pid}/smaps_rollup").read_text(), re.MULTILINE
        )
        return sum(map(int, found))


@contextmanager
def client_on(home: Home, *options: str) -> Iterator[Client]:
    process = subprocess.Popen(
        command("mcp", *options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=home.machine.whole_environment(),
        cwd=home.machine.project,
    )
    with process:
        yield Client(process)
        assert process.stdin is not None
        process.stdin.close()


def test_the_first_answers_do_not_wait_for_the_gateway(home: Home) -> None:
    with client_on(home) as client:
        assert client.begin()["serverInfo"]["name"] == "toolscript"
        tools = client.ask("tools/list")["tools"]
        running = home.running()
        assert running is None or not running.ready
        assert [tool["name"] for tool in tools][:3] == ["search_tools", "describe_tool", "call_tool"]
        found = client.ask("tools/call", name="search_tools", arguments={"query": "note that something was done"})
        assert "own__note" in str(found)
        # Its servers are named now.
        while CHANGED not in client.told:
            client.told.append(client.read()["method"])
        assert "Servers: own" in str(client.ask("tools/list"))


def test_those_of_the_current_version_do_not_wait_either(home: Home) -> None:
    with client_on(home) as client:
        assert "2026-07-28" in client.ask("server/discover", _meta=META)["supportedVersions"]
        assert "search_tools" in str(client.ask("tools/list", _meta=META))
        running = home.running()
        assert running is None or not running.ready


def test_a_subscription_is_taken_at_once_and_told_of_everything_once_the_gateway_is_there(home: Home) -> None:
    """Claude Code asks for the tools only after it."""
    with client_on(home) as client:
        wanted = {"toolsListChanged": True, "promptsListChanged": True}
        client.send(
            {"id": "listen", "method": "subscriptions/listen", "params": {"_meta": META, "notifications": wanted}}
        )
        taken = client.read()
        assert taken["method"] == "notifications/subscriptions/acknowledged"
        assert taken["params"]["notifications"] == wanted
        running = home.running()
        assert running is None or not running.ready
        told = [client.read() for _ in range(2)]
        assert {message["method"] for message in told} == {CHANGED, "notifications/prompts/list_changed"}
        assert all(message["params"]["_meta"] == taken["params"]["_meta"] for message in told)
        client.process.kill()


def test_they_are_those_of_the_last_gateway(home: Home) -> None:
    home.machine.run("gateway", "start", "--background")
    home.machine.here().run("gateway", "stop")
    with client_on(home) as client:
        assert "Servers: own" in client.begin()["instructions"]


def test_a_client_that_gets_all_tools_waits_for_the_gateway(home: Home) -> None:
    with client_on(home, "--direct") as client:
        client.begin()
        until(home.running, "the gateway")
        assert "read_result" in str(client.ask("tools/list"))


def test_a_gateway_is_ready_once_it_has_answered_mcp(home: Home) -> None:
    home.machine.run("gateway", "start", "--background")
    kept = json.loads((home.machine.data / "first_answers.json").read_text("utf-8"))
    assert "Servers: own" in str(kept["own"])


@pytest.mark.alone
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_session_costs_little(home: Home) -> None:
    with client_on(home) as cold:
        cold.begin()
        assert cold.seconds() <= 0.25
        cold.ask("tools/call", name="search_tools", arguments={"query": "note"})
        with client_on(home) as warm:
            warm.begin()
            assert warm.seconds() <= 0.15
            warm.ask("tools/call", name="call_tool", arguments={"tool": "own__note", "arguments": {"id": "1"}})
            assert warm.private_kib() <= 15 * 1024
        assert cold.private_kib() <= 15 * 1024
