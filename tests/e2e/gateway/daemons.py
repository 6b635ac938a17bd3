"""Machines whose commands start the gateway, and what their servers did."""

import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.commands import command
from tests.e2e.gateway.machines import Machine, is_alive, mcp_server, new_machine, until
from toolscript.gateway.discovery import RunningFile
from toolscript.gateway.record import RunningGateway


@dataclass(frozen=True)
class Diary:
    """What the servers of `tests/support/mcp_servers/counting.py` wrote."""

    file: Path

    def entries(self) -> list[dict[str, object]]:
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text("utf-8").splitlines()]

    def count(self, event: str) -> int:
        return sum(entry["event"] == event for entry in self.entries())

    def calls(self) -> Counter[str]:
        """Return how often each call was made."""
        return Counter(str(entry["id"]) for entry in self.entries() if entry["event"] == "call")

    def living(self) -> set[int]:
        """Return the processes of servers that run now."""
        started = {int(str(entry["pid"])) for entry in self.entries() if entry["event"] == "start"}
        return {pid for pid in started if is_alive(pid)}


@dataclass(frozen=True)
class Home:
    machine: Machine
    diary: Diary

    def running(self) -> RunningGateway | None:
        return RunningFile(self.machine.data / "run").read()

    def daemon(self) -> RunningGateway:
        return until(self.running, "a running gateway")

    def ready(self) -> RunningGateway:
        """Return the gateway once it answers."""

        def look() -> RunningGateway | None:
            running = self.running()
            return running if running is not None and running.ready else None

        return until(look, "a gateway that is ready")

    def kill(self) -> int:
        """End the gateway without a chance to clean up."""
        pid = self.daemon().pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_alive(pid), "the end of the gateway")
        return pid

    def popen(self, *arguments: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            command(*arguments),
            env=self.machine.whole_environment(),
            cwd=self.machine.project,
            stdout=subprocess.DEVNULL,
        )

    def server(self, name: str = "note") -> dict[str, object]:
        return mcp_server("counting", str(self.diary.file), name)

    def daemons(self) -> list[int]:
        """Return every gateway process of this home folder."""
        marker = f"HOME={self.machine.home}\0".encode()
        found = []
        for folder in Path("/proc").iterdir():
            try:
                line = (folder / "cmdline").read_bytes()
                if b"gateway\0start" in line and marker in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except (OSError, ValueError):
                continue
        return [pid for pid in found if is_alive(pid)]


@contextmanager
def a_home(folder: Path, weights: Path, **environment: str) -> Iterator[Home]:
    """Return a machine whose commands start the gateway; it is ended at the end."""
    usual = {
        "TOOLSCRIPT_GATEWAY_ON_DEMAND": "true",
        "TOOLSCRIPT_GATEWAY_PORT": "0",
        "TOOLSCRIPT_GATEWAY_IDLE_SECONDS": "600",
        "TOOLSCRIPT_SEARCH_MODEL": "builtin",
    }
    machine = new_machine(folder, weights).also(**{**usual, **environment})
    home = Home(machine, Diary(folder / "diary.jsonl"))
    home.machine.configure({"own": home.server()})
    try:
        yield home
    finally:
        for pid in home.daemons():
            os.kill(pid, signal.SIGTERM)
        until(lambda: not home.daemons(), "the end of all gateways")
