"""`python -m benchmarks day`: a day of use of a gateway, from the import of a config to a restart of everything.

A client of the official SDK searches and calls over `toolscript mcp`, as the client's config says, while a server
crashes, is upgraded and renamed in the config file, and the gateway restarts. It all happens in a home folder of
its own.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import JsonObject
from toolscript.core.values import OnProgress, Progress

SERVERS = "mcpServers"
ANSWER_SECONDS = 120.0
READ_SECONDS = 30.0
# A request between two calls each.
REQUESTS = (
    "what time is it in Tokyo",
    "read a file from disk",
    "remember a fact about a person",
    "show the last commits",
    "take a screenshot of a page",
    "add two numbers",
    "run an SQL query",
    "download a web page as markdown",
)
# Calls that change nothing, by server; servers that are not configured are not called.
CALLS: Mapping[str, tuple[str, JsonObject]] = {
    "time": ("get_current_time", {"timezone": "UTC"}),
    "everything": ("echo", {"message": "hello"}),
    "memory": ("read_graph", {}),
    "filesystem": ("list_allowed_directories", {}),
    "sqlite": ("list_tables", {}),
    "sequential-thinking": (
        "sequentialthinking",
        {"thought": "one", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
    ),
    "desktop-commander": ("get_config", {}),
    "git": ("git_status", {"repo_path": "/nonexistent"}),
}
RENAMED = "clock"


@dataclass(frozen=True)
class Plan:
    """`victim` is the server that crashes and is upgraded; `newer` is the command of its newer version."""

    servers: Path
    victim: str
    newer: str
    renamed: str
    steps: int = 200


@dataclass
class Day:
    """`told` are errors that the client got, by their text; `lost` are requests without any answer."""

    outcomes: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    resident_mib: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def as_json(self) -> dict[str, object]:
        return {
            "outcomes": dict(self.outcomes),
            "told": dict(self.told),
            "lost": self.lost,
            "events": self.events,
            "resident_mib": self.resident_mib,
            "seconds": round(self.seconds, 1),
        }


def run_day(plan: Plan, home: Path, on_progress: OnProgress) -> Day:
    """Run the day in this home folder, which is empty."""
    return asyncio.run(_Person(plan, home, on_progress).live())


class _Person:
    def __init__(self, plan: Plan, home: Path, on_progress: OnProgress) -> None:
        self._plan = plan
        self._home = home
        self._on_progress = on_progress
        self._day = Day()
        self._environment = {**os.environ, "HOME": str(home), "USERPROFILE": str(home)}
        self._link = home / "bin" / plan.victim

    async def live(self) -> Day:
        started = time.monotonic()
        entry = self._set_up()
        parameters = StdioServerParameters(
            command=entry["command"], args=entry.get("args", []), env=self._environment, cwd=self._home
        )
        try:
            async with Client(stdio_client(parameters), read_timeout_seconds=READ_SECONDS) as client:
                await self._work(client)
        finally:
            self._run("gateway", "stop", check=False)
        self._day.seconds = time.monotonic() - started
        return self._day

    def _set_up(self) -> dict[str, Any]:
        """Give the person a client with servers, import these, and connect the client; return our entry."""
        config = json.loads(self._plan.servers.read_text("utf-8"))
        entry = config[SERVERS].get(self._plan.victim)
        if entry is None or self._plan.renamed not in config[SERVERS]:
            raise InvalidRequest(
                f"{self._plan.servers} has no server {self._plan.victim} or no server {self._plan.renamed}"
            )
        self._link.parent.mkdir()
        self._link.symlink_to(entry["command"])
        entry["command"] = str(self._link)
        of_client = self._home / ".cursor" / "mcp.json"
        of_client.parent.mkdir()
        of_client.write_text(json.dumps(config, indent=2), "utf-8")
        self._run("config", "import", "cursor", "--yes")
        self._run("config", "connect", "cursor", "--yes")
        connected: dict[str, Any] = json.loads(of_client.read_text("utf-8"))[SERVERS]["toolscript"]
        return connected

    async def _work(self, client: Client) -> None:
        events: dict[int, Callable[[], Awaitable[None]]] = {
            self._plan.steps // 4: self._crash,
            self._plan.steps // 2: self._upgrade,
            self._plan.steps * 5 // 8: self._rename,
            self._plan.steps * 3 // 4: self._restart,
            self._plan.steps * 7 // 8: self._kill,
        }
        calls = [
            (f"{server}__{tool}", arguments)
            for server, (tool, arguments) in CALLS.items()
            if server in json.loads(self._plan.servers.read_text("utf-8"))[SERVERS]
        ]
        for step in range(self._plan.steps):
            if step in events:
                await events[step]()
            if step % 2:
                tool, arguments = calls[step // 2 % len(calls)]
                await self._ask(client, "call_tool", {"tool": tool, "arguments": arguments})
            else:
                await self._ask(client, "search_tools", {"query": REQUESTS[step // 2 % len(REQUESTS)]})
            self._on_progress(Progress("steps", step + 1, self._plan.steps))
        self._day.resident_mib = self._resident()

    async def _ask(self, client: Client, name: str, arguments: dict[str, Any]) -> None:
        try:
            result = await asyncio.wait_for(client.call_tool(name, arguments), ANSWER_SECONDS)
        except Exception as error:  # noqa: BLE001 - whatever the client gets instead of an answer is counted
            self._day.outcomes[f"{name} lost"] += 1
            self._day.lost.append(f"{name} {arguments}: {type(error).__name__}: {error}")
            return
        text = "".join(getattr(part, "text", "") for part in result.content)
        self._day.outcomes[f"{name} {'error' if result.is_error else 'ok'}"] += 1
        if result.is_error:
            self._day.told[text] += 1

    async def _crash(self) -> None:
        """Kill the server, perhaps while nobody uses it."""
        killed = self._kill_server()
        self._day.events.append(f"crash of {self._plan.victim}: {killed} processes killed")

    async def _upgrade(self) -> None:
        """Put another version of the server in its place, as an update of its package does."""
        self._link.unlink()
        self._link.symlink_to(self._plan.newer)
        killed = self._kill_server()
        self._day.events.append(f"upgrade of {self._plan.victim}: {killed} processes killed")

    async def _rename(self) -> None:
        own = self._home / ".toolscript.json"
        config = json.loads(own.read_text("utf-8"))
        config[SERVERS][RENAMED] = config[SERVERS].pop(self._plan.renamed)
        own.write_text(json.dumps(config, indent=2), "utf-8")
        self._day.events.append(f"{self._plan.renamed} is {RENAMED} in the config file")

    async def _restart(self) -> None:
        await asyncio.to_thread(self._run, "gateway", "stop")
        self._day.events.append("gateway stopped")

    async def _kill(self) -> None:
        killed = [pid for pid, arguments in self._processes() if "gateway" in arguments and "mcp" not in arguments]
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        self._day.events.append(f"gateway killed: {len(killed)} processes")

    def _kill_server(self) -> int:
        pids = [pid for pid, arguments in self._processes() if str(self._link) in arguments]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return len(pids)

    def _processes(self) -> list[tuple[int, Sequence[str]]]:
        """Return the processes with this home folder, by their environment; Linux only."""
        wanted = f"HOME={self._home}".encode()
        found: list[tuple[int, Sequence[str]]] = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append((int(folder.name), (folder / "cmdline").read_bytes().decode().split("\0")))
            except OSError:
                continue
        return found

    def _resident(self) -> dict[str, float]:
        """Return the memory at the end: of the gateway and its clients, and of the servers."""
        sums: dict[str, float] = defaultdict(float)
        for pid, arguments in self._processes():
            name = "toolscript" if any("toolscript" in argument for argument in arguments[:3]) else "servers"
            try:
                pages = int(Path(f"/proc/{pid}/statm").read_text("utf-8").split()[1])
            except OSError:
                continue
            sums[name] += pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        return {name: round(mib, 1) for name, mib in sums.items()}

    def _run(self, *arguments: str, check: bool = True) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "toolscript", *arguments],
            env=self._environment,
            cwd=self._home,
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_SECONDS,
        )
        if check and done.returncode:
            raise InvalidRequest(f"toolscript {' '.join(arguments)}: {done.stderr[-500:] or done.stdout[-500:]}")
        return done.stdout
