"""Runs the MCP project's own conformance suite for servers, at the version that tests/support/conformance pins."""

import fcntl
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import anyio

PINNED = Path(__file__).parents[3] / "support" / "conformance"
SECONDS = 240
FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT.*")


def installed() -> Path:
    """Return the folder of the suite, installed by the first process."""
    lock = (PINNED / "package-lock.json").read_bytes() + (PINNED / "package.json").read_bytes()
    folder = Path(tempfile.gettempdir()) / f"toolscript-conformance-{hashlib.sha256(lock).hexdigest()[:16]}"
    with Path(f"{folder}.lock").open("w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not folder.is_dir():
            _install(Path(f"{folder}.partial")).rename(folder)
    return folder


def _install(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PINNED, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def required(revision: str) -> set[str]:
    """Return the scenarios that a server of this revision must pass."""
    page = _package() / "requirements" / f"{revision}.yaml"
    listed = re.search(r"^server:\n((?:  - .*\n)+)", page.read_text("utf-8"), re.MULTILINE)
    assert listed, "the suite lists its requirements differently now"
    return {line.removeprefix("  - ").strip() for line in listed[1].splitlines()}


async def failing_checks(url: str, results: Path, *what: str) -> dict[str, list[str]]:
    """Return every scenario that ran with the messages of its failing checks; an empty list if all passed."""
    shim = PINNED / "older_node.mjs"
    command = ["node", "--import", str(shim), str(_package() / "dist" / "index.js"), "server", "--url", url]
    with anyio.fail_after(SECONDS):
        await anyio.run_process([*command, *what, "-o", str(results)], check=False)
    return _read(results)


def _read(results: Path) -> dict[str, list[str]]:
    return {_scenario(path): _failures(path) for path in sorted(results.glob("*/checks.json"))}


def _package() -> Path:
    return installed() / "node_modules" / "@modelcontextprotocol" / "conformance"


def _scenario(path: Path) -> str:
    named = FOLDER.fullmatch(path.parent.name)
    assert named, f"the suite names its results differently now: {path.parent.name}"
    return named["scenario"]


def _failures(path: Path) -> list[str]:
    checks = json.loads(path.read_text("utf-8"))
    return [f"{check['id']}: {check.get('errorMessage')}" for check in checks if check["status"] == "FAILURE"]
