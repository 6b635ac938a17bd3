"""Real servers at fixed versions, installed by npm into a folder, and what clients do with each of them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.features.steps import Step, Target
from toolscript.core.errors import SetupError

PACKAGE = Path(__file__).parent / "package.json"
RECORDER = Path(__file__).parent / "recorder.py"
INSTALL_SECONDS = 600
_OFFICIAL = "@modelcontextprotocol/server-"
# Without an account, which lists need not have.
_NO_ACCOUNT = {"NOTION_TOKEN": "none", "GITHUB_PERSONAL_ACCESS_TOKEN": "none"}


@dataclass(frozen=True)
class Server:
    """A server of a config file; `notes` is a file with the messages that clients sent to it."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    notes: Path | None = None

    @property
    def target(self) -> Target:
        return Target(self._recorded, {**os.environ, **self.env})

    @property
    def entry(self) -> Mapping[str, object]:
        """The server as an entry of a config file."""
        program, *arguments = self._recorded
        return {"command": program, "args": arguments, "env": {**self.env}}

    @property
    def _recorded(self) -> list[str]:
        return [sys.executable, str(RECORDER), str(self.notes), *self.command] if self.notes else [*self.command]

    def received(self) -> list[str]:
        """Return the methods of the messages that its clients have sent."""
        return self.notes.read_text("utf-8").splitlines() if self.notes and self.notes.exists() else []


def install(folder: Path) -> Path:
    """Install servers and clients where they are not yet; return the folder of the packages."""
    packages = folder / "node_modules"
    if (folder / "complete").exists():
        return packages
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(PACKAGE, folder)
    _npm(folder, "install", "--ignore-scripts", "--no-audit", "--no-fund")
    # The Inspector needs a newer Node than many machines have; its package is complete after its own script.
    _npm(folder, "rebuild", "node")
    (folder / "complete").touch()
    return packages


def _npm(folder: Path, *arguments: str) -> None:
    command = ["npm", *arguments, "--loglevel=error"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    if done.returncode:
        raise SetupError(f"npm {arguments[0]} failed: {done.stderr[-1_000:]}")


def pinned_servers(packages: Path, work: Path) -> list[Server]:
    (work / "files").mkdir(exist_ok=True)
    (work / "files" / "a.txt").write_text("one\ntwo\n", "utf-8")
    programs: dict[str, tuple[str, ...]] = {
        "everything": (f"{_OFFICIAL}everything/dist/index.js", "stdio"),
        "filesystem": (f"{_OFFICIAL}filesystem/dist/index.js", str(work / "files")),
        "memory": (f"{_OFFICIAL}memory/dist/index.js",),
        "thinking": (f"{_OFFICIAL}sequential-thinking/dist/index.js",),
        "github": (f"{_OFFICIAL}github/dist/index.js",),
        "playwright": ("@playwright/mcp/cli.js", "--headless"),
        "devtools": ("chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js", "--headless"),
        "context7": ("@upstash/context7-mcp/dist/index.js",),
        "notion": ("@notionhq/notion-mcp-server/bin/cli.mjs",),
    }
    env = {**_NO_ACCOUNT, "MEMORY_FILE_PATH": str(work / "memory.jsonl")}
    return [
        Server(name, ("node", str(packages / file), *arguments), env, work / f"{name}.received")
        for name, (file, *arguments) in programs.items()
    ]


def configured_servers(config: Path) -> list[Server]:
    """Return the servers of a config file that are started by a command."""
    entries: Mapping[str, Any] = json.loads(config.read_text("utf-8")).get("mcpServers", {})
    return [
        Server(name, (entry["command"], *entry.get("args", ())), entry.get("env", {}))
        for name, entry in entries.items()
        if "command" in entry
    ]


def _call(
    feature: str,
    tool: str,
    arguments: Mapping[str, object] | None = None,
    *,
    key: str = "",
    cancel_after: float = 0.0,
    wait_for: str = "",
) -> Step:
    params = {"name": tool, "arguments": {**(arguments or {})}}
    return Step(feature, key or tool, "tools/call", params, cancel_after, wait_for)


_THOUGHT = {"thought": "a", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
_OPERATION = "trigger-long-running-operation"
_NUMBERED = "demo://resource/dynamic/text/{resourceId}"
# What is done beside the lists, the prompts and the resources; nothing of it needs a network or changes files.
STEPS: Mapping[str, Sequence[Step]] = {
    "everything": [
        _call("calls", "echo", {"message": "x"}),
        _call("calls", "get-sum", {"a": 1, "b": 2}),
        _call("calls", "get-structured-content", {"location": "Chicago"}),
        _call("calls", "get-annotated-message", {"messageType": "error", "includeImage": True}),
        _call("calls", "get-tiny-image"),
        _call("calls", "get-resource-links", {"count": 2}),
        _call("calls", "get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
        _call("errors", "get-sum", {"a": "x"}),
        Step("templates", "a text", "resources/read", {"uri": "demo://resource/dynamic/text/3"}),
        Step(
            "completion",
            "a prompt's argument",
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "completable-prompt"},
                "argument": {"name": "department", "value": "S"},
            },
        ),
        Step(
            "completion",
            "a template's variable",
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": _NUMBERED}, "argument": {"name": "resourceId", "value": "1"}},
        ),
        _call("progress", _OPERATION, {"duration": 1, "steps": 4}),
        _call("elicitation", "trigger-elicitation-request"),
        _call("sampling", "trigger-sampling-request", {"prompt": "hello", "maxTokens": 10}),
        _call("roots", "get-roots-list"),
        _call("logging", "toggle-simulated-logging", key="on"),
        _call("calls", "toggle-simulated-logging", key="off"),
        _call(
            "list_changed",
            "gzip-file-as-resource",
            {"name": "made-0.gz", "data": "data:text/plain,a"},
            wait_for="notifications/resources/list_changed",
        ),
        _call("cancellation", _OPERATION, {"duration": 3, "steps": 4}, cancel_after=0.5),
        _call("cancellation", "echo", {"message": "still here"}, key="another call after it"),
    ],
    "filesystem": [
        _call("calls", "list_allowed_directories"),
        _call("errors", "read_text_file", {"path": "/nowhere"}),
    ],
    "memory": [_call("calls", "read_graph")],
    "thinking": [_call("calls", "sequentialthinking", _THOUGHT)],
    # These fail in the server: without an account, a browser or a network.
    "github": [_call("errors", "search_repositories", {"query": "search"})],
    "playwright": [_call("errors", "browser_resize", {"width": 800, "height": 600})],
    "devtools": [_call("errors", "click", {"pageId": 1, "uid": "none"})],
    "context7": [_call("errors", "query-docs", {"libraryId": "/none/none", "query": "search"})],
    "notion": [],
}
