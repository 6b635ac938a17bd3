"""A user's machine: a separate home folder and environment, commands, and a running gateway."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests.e2e.commands import command, environment, run_in
from tests.e2e.terminals import in_a_terminal, run_watched

ROOT = Path(__file__).parents[3]
WAIT_SECONDS = 60.0
LOOK_EVERY_SECONDS = 0.05
# Variables that would point outside the home folder of the test, or change colours.
ELSEWHERE = ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "APPDATA", "NO_COLOR", "FORCE_COLOR")
# A proxy that does not exist: no network on any machine.
NO_NETWORK = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": ""}

T = TypeVar("T")


def until(look: Callable[[], T | None], what: str, seconds: float = WAIT_SECONDS) -> T:
    """Wait for the first truthy result and return it."""
    ends_at = time.monotonic() + seconds
    while time.monotonic() < ends_at:
        if result := look():
            return result
        time.sleep(LOOK_EVERY_SECONDS)
    raise AssertionError(f"not within {seconds:g} s: {what}")


def mcp_server(module: str, *arguments: str, **more: object) -> dict[str, object]:
    """A config file's entry for one of the servers in tests/support/mcp_servers."""
    program = ["-m", f"tests.support.mcp_servers.{module}", *arguments]
    return {"command": sys.executable, "args": program, "cwd": str(ROOT), **more}


@dataclass(frozen=True)
class Gateway:
    """A gateway process, with an HTTP client."""

    url: str
    process: "subprocess.Popen[bytes]"
    log: Path
    token: str = ""

    def ask(self, path: str, method: str = "GET", **more: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        # No TLS on loopback, and loading CA certificates takes longer than most responses.
        with httpx.Client(trust_env=False, verify=False, timeout=WAIT_SECONDS) as client:
            return client.request(method, self.url + path, **{"headers": headers, **more})

    def search(self, q: str, **more: object) -> dict[str, Any]:
        answer = self.ask("/search", params={"q": q, **{name: str(value) for name, value in more.items()}})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def call(self, tool: str, **arguments: object) -> httpx.Response:
        return self.ask(f"/tools/{tool}", "POST", json=arguments)

    def with_files(self, *files: Path, **variables: str) -> "Gateway":
        """Return the gateway as it serves a client with these config files, and variables that they reference."""
        body = {"files": list(map(str, files)), "variables": variables}
        answer = self.ask("/workspaces", "POST", json=body)
        assert answer.status_code == 200, answer.text
        return replace(self, url=self.url + answer.json()["path"])

    def health(self) -> dict[str, Any]:
        return dict(self.ask("/health").json())

    def server(self, name: str) -> dict[str, Any]:
        return next((server for server in self.health()["servers"] if server["name"] == name), {})

    def tool_names(self) -> set[str]:
        return {tool["toolId"] for tool in self.ask("/tools").json()["tools"]}

    def until_embedded(self, tools: int) -> "Gateway":
        """Wait until so many tools are indexed and embedded, by the model that was chosen."""

        def embedded() -> bool:
            health = self.ask("/health").json()
            if health["items"] != tools or health["is_fallback"]:
                return False
            result = self.search("x", kind="any", limit=100, threshold=0, explain=1)["results"]
            by_meaning = [item for item in result if item["parts"]["semantic"] is not None]
            return len(by_meaning) == min(tools, 100)

        until(embedded, f"{tools} tools with vectors; {self.health()}")
        return self


@dataclass(frozen=True)
class Machine:
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    runs_here: bool = False

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        """The folder that commands are run in."""
        return self.folder / "project"

    @property
    def data(self) -> Path:
        """Data folder of the gateway."""
        return self.home / ".toolscript"

    @property
    def config(self) -> Path:
        return self.home / ".toolscript.json"

    def also(self, **extra: str) -> "Machine":
        """Return the same machine with more environment variables."""
        return replace(self, environment={**self.environment, **extra})

    def here(self) -> "Machine":
        """Return the same machine with commands in this process, where all modules are loaded."""
        return replace(self, runs_here=True)

    def without(self, *names: str) -> "Machine":
        return replace(self, environment={key: item for key, item in self.environment.items() if key not in names})

    def configure(self, servers: Mapping[str, object]) -> None:
        self.write_config(json.dumps({"mcpServers": servers}))

    def write_config(self, text: str) -> None:
        """Write atomically, as editors do."""
        new = self.config.with_suffix(".new")
        new.write_text(text, "utf-8")
        new.replace(self.config)

    def whole_environment(self) -> dict[str, str]:
        default = {name: value for name, value in environment({}).items() if name not in ELSEWHERE}
        return {**default, "HOME": str(self.home), **self.environment}

    def run(self, *arguments: str, code: int = 0, standard_input: str = "") -> "subprocess.CompletedProcess[str]":
        own = self.whole_environment()
        if self.runs_here:
            return run_in(own, self.project, *arguments, code=code, standard_input=standard_input)
        done = subprocess.run(
            command(*arguments),
            env=own,
            cwd=self.project,
            input=standard_input,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
        )
        assert done.returncode == code, f"{arguments} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done

    def by_person(
        self, *arguments: str, code: int = 0, standard_input: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in a person's terminal; without one, what they decide is refused."""
        whole = self.whole_environment()
        done = run_watched(whole, self.project, *arguments, standard_input=standard_input)
        assert done.returncode == code, f"{arguments} ended with {done.returncode}: {done.stdout}{done.stderr}"
        return done

    def json(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        return dict(json.loads(self.run(*arguments, "--json", code=code).stdout))

    def on_a_terminal(self, *arguments: str, answer: str = "", code: int = 0) -> str:
        """Return the terminal output of a command; `answer` is typed as soon as it runs."""
        environment = {**self.whole_environment(), "TERM": "xterm-256color"}
        with in_a_terminal(environment, self.project, *arguments) as terminal:
            for line in answer.splitlines():
                terminal.type(line)
            assert terminal.ended() == code, terminal.shown
            return terminal.shown

    def popen(self, *arguments: str, stdout: Path, stderr: Path) -> "subprocess.Popen[bytes]":
        with stdout.open("wb") as out, stderr.open("wb") as err:
            return subprocess.Popen(
                command(*arguments), env=self.whole_environment(), cwd=self.project, stdout=out, stderr=err
            )

    @contextmanager
    def gateway(self, *arguments: str) -> Iterator[Gateway]:
        """Run a gateway. Logs go to files: it would block on a full pipe."""
        number = len([*self.folder.glob("gateway-*.log")])
        output, log = self.folder / f"gateway-{number}.out", self.folder / f"gateway-{number}.log"
        process = self.popen("gateway", "start", "--port", "0", "--json", *arguments, stdout=output, stderr=log)
        try:
            url = until(lambda: _url(process, output, log), "an address of the gateway")
            yield Gateway(url, process, log, self.environment.get("TOOLSCRIPT_GATEWAY_TOKEN", ""))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=WAIT_SECONDS)


def _url(process: "subprocess.Popen[bytes]", told: Path, log: Path) -> str:
    assert process.poll() is None, f"the gateway ended with {process.returncode}: {log.read_text('utf-8')}"
    text = told.read_text("utf-8")
    return str(json.loads(text)["url"]) if text.endswith("\n") else ""


def new_machine(folder: Path, weights: Path) -> Machine:
    """Return an empty machine without a network, with a real model."""
    machine = Machine(folder, {**NO_NETWORK, "TOOLSCRIPT_SEARCH_MODEL": str(weights)})
    machine.home.mkdir(parents=True)
    machine.project.mkdir()
    return machine


def copy_of(machine: Machine, folder: Path) -> Machine:
    """Return a copy of the machine that a test may modify."""
    shutil.copytree(machine.folder, folder)
    return replace(machine, folder=folder)


def is_alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
