"""Memory of MCP servers at rest, with a gateway for each client and one for all, and what broken servers cost.

It runs the installed commands in a home folder of its own, with the servers of a config file.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from toolscript.core.errors import SetupError
from toolscript.core.values import OnProgress, Progress
from toolscript.gateway.discovery import RunningFile

CLIENTS = 3
SETTLE_SECONDS = 180.0
LOOK_SECONDS = 0.25
IDLE_SECONDS = 10.0
# A server that never answers, and one that ends at once.
HUNG = {"command": "sleep", "args": ["1000000"]}
CRASHING = {"command": "false"}
REQUEST = "read the contents of a file"


@dataclass(frozen=True)
class Memory:
    """MB of some processes: proportional, where what they share is divided among them, and resident."""

    processes: int
    proportional: float
    resident: float


@dataclass(frozen=True)
class DaemonFigures:
    """`alone`: one client with servers of its own. `at_rest`: all servers asleep, with so many clients.

    `seconds` are medians of a search and a call; `with_broken` those with a hung and a crashing server more.
    """

    servers: int
    tools: int
    alone: Memory
    at_rest: Mapping[int, Memory]
    awake: Memory
    wake_seconds: float
    seconds: Mapping[str, float]
    with_broken: Mapping[str, float]


def measure_daemon(
    config: Path, tool: str, arguments: str, repeats: int, on_progress: OnProgress
) -> DaemonFigures:
    """`tool` and its arguments are called to wake its server, and to time a call."""
    if not Path("/proc/self/smaps_rollup").exists():
        raise SetupError("memory can be measured on Linux only", hint="run it there, or in a container")
    servers = dict(json.loads(config.read_text("utf-8"))["mcpServers"])
    with tempfile.TemporaryDirectory(prefix="toolscript-daemon-") as folder:
        home = _Home(Path(folder), servers)
        steps = iter(range(1, 5))

        def step(name: str) -> None:
            on_progress(Progress(name, next(steps), 4))

        step("servers of one client")
        alone = _alone(home)
        step("servers of the gateway")
        with home.daemon():
            tools = home.until_asleep()
            at_rest = _at_rest(home)
            began = time.monotonic()
            home.run("call", tool, arguments)
            wake_seconds = time.monotonic() - began
            awake = home.memory()
            step("servers of a gateway with broken ones")
            beside = _Home(home.folder / "broken", {**servers, "hung": HUNG, "crashing": CRASHING})
            with beside.daemon():
                beside.until_asleep(but=2)
                step("commands")
                seconds, with_broken = _seconds([home, beside], tool, arguments, repeats)
        return DaemonFigures(len(servers), tools, alone, at_rest, awake, wake_seconds, seconds, with_broken)


@dataclass(frozen=True)
class _Home:
    folder: Path
    servers: Mapping[str, object]

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.configure(self.servers)

    def configure(self, servers: Mapping[str, object]) -> None:
        (self.folder / ".toolscript.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")

    def environment(self, **more: str) -> dict[str, str]:
        usual = {"TOOLSCRIPT_GATEWAY_PORT": "0", "TOOLSCRIPT_GATEWAY_IDLE_SECONDS": str(IDLE_SECONDS)}
        own = {name: value for name, value in os.environ.items() if not name.startswith("TOOLSCRIPT_")}
        model = os.environ.get("TOOLSCRIPT_SEARCH_MODEL")
        chosen = {"TOOLSCRIPT_SEARCH_MODEL": model} if model else {}
        return {**own, "HOME": str(self.folder), **usual, **chosen, **more}

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            _command(*arguments),
            env=self.environment(),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SetupError(f"{' '.join(arguments)} failed: {done.stderr.strip()[-500:]}")
        return done.stdout

    def pid(self) -> int:
        running = RunningFile(self.folder / ".toolscript" / "run").read()
        if running is None:
            raise SetupError("no gateway is running", hint="see the log of the benchmark")
        return running.pid

    def memory(self) -> Memory:
        return _memory(_tree(self.pid()))

    def until_asleep(self, but: int = 0) -> int:
        """Wait until so many servers, and no more, are not asleep; return the number of tools."""
        ends_at = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < ends_at:
            states = json.loads(self.run("list-servers", "--json"))["servers"]
            if sum(state["status"] != "asleep" for state in states) <= but:
                return sum(int(state["tools"]) for state in states)
            time.sleep(LOOK_SECONDS)
        raise SetupError(f"the servers are not asleep after {SETTLE_SECONDS:g} seconds: {states}")

    @contextmanager
    def daemon(self) -> Iterator[None]:
        self.run("search", REQUEST, "--threshold", "0")
        try:
            yield
        finally:
            self.run("gateway", "stop")

    @contextmanager
    def client(self, *arguments: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
        """Run an MCP client's `toolscript mcp`, initialized."""
        with subprocess.Popen(
            _command("mcp", *arguments),
            env=self.environment(**environment),
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            about = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "b", "version": "1"},
            }
            _ask(process, 1, "initialize", about)
            _ask(process, 2, "tools/call", {"name": "search_tools", "arguments": {"query": REQUEST}})
            try:
                yield process
            finally:
                process.terminate()


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "toolscript", *arguments]


def _ask(process: "subprocess.Popen[str]", number: int, method: str, params: Mapping[str, object]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    process.stdout.readline()


def _alone(home: _Home) -> Memory:
    """Return the memory of a client with a gateway of its own, whose servers never sleep."""
    with home.client("--alone", TOOLSCRIPT_GATEWAY_IDLE_SECONDS="0") as process:
        ends_at = time.monotonic() + SETTLE_SECONDS
        sizes = [0.0]
        while time.monotonic() < ends_at:
            time.sleep(4.0)
            memory = _memory(_tree(process.pid))
            # Settled: nothing grew for a while.
            if sizes[-1] and abs(memory.proportional - sizes[-1]) < 0.01 * memory.proportional:
                return memory
            sizes.append(memory.proportional)
        return memory


def _at_rest(home: _Home) -> dict[int, Memory]:
    """Return the memory of the gateway and what it runs, with more and more clients."""
    figures = {0: home.memory()}
    with ExitStack() as clients:
        for number in range(1, CLIENTS + 1):
            clients.enter_context(home.client())
            figures[number] = home.memory()
    return figures


def _seconds(homes: Sequence[_Home], tool: str, arguments: str, repeats: int) -> list[dict[str, float]]:
    """Return the median seconds of both commands in each home, in turn: the machine is not always as busy."""
    commands = {"search": ("search", REQUEST, "--threshold", "0"), "call": ("call", tool, arguments)}
    times: list[dict[str, list[float]]] = [{name: [] for name in commands} for _ in homes]
    for number in range(repeats):
        for index in range(len(homes)):
            turn = (index + number) % len(homes)
            # Awake, however long the others took.
            homes[turn].run("call", tool, arguments)
            for name, command in commands.items():
                began = time.monotonic()
                homes[turn].run(*command)
                times[turn][name].append(time.monotonic() - began)
    return [{name: statistics.median(seconds) for name, seconds in of_home.items()} for of_home in times]


def _tree(pid: int) -> list[int]:
    """Return a process and all that descend from it. Servers have sessions of their own."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text("utf-8").rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
        except (OSError, ValueError):
            continue
    tree, added = [pid], [pid]
    while added:
        added = [child for child, parent in parents.items() if parent in added]
        tree += added
    return tree


def _memory(pids: Sequence[int]) -> Memory:
    counted, proportional, resident = 0, 0.0, 0.0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines()
        except OSError:
            continue
        sizes = {line.split()[0]: float(line.split()[1]) for line in lines[1:]}
        counted, proportional, resident = counted + 1, proportional + sizes["Pss:"], resident + sizes["Rss:"]
    return Memory(counted, round(proportional / 1024, 1), round(resident / 1024, 1))


def daemon_text(figures: DaemonFigures) -> str:
    """Return the figures as lines."""
    rows = [
        ("one client with its own servers", figures.alone),
        *((f"all asleep, {clients} clients", memory) for clients, memory in figures.at_rest.items()),
        ("one server awake", figures.awake),
    ]
    lines = [f"{figures.servers} servers, {figures.tools} tools; MB of memory, proportional and resident"]
    lines += [f"{name:34}{m.proportional:9.1f}{m.resident:9.1f}  {m.processes:3} processes" for name, m in rows]
    lines += [f"a call that wakes its server: {figures.wake_seconds:.2f} s"]
    for name, seconds in figures.seconds.items():
        broken = figures.with_broken[name]
        lines.append(f"{name}: {seconds:.3f} s, beside a hung and a crashing server {broken:.3f} s")
    return "\n".join(lines)


def daemon_json(figures: DaemonFigures) -> dict[str, object]:
    return asdict(figures)
