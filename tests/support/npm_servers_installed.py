"""Real MCP servers from npm, installed once for all clones and all test runs of a machine."""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent / "npm_servers"
FILES = ("package.json", "package-lock.json")


def npm_servers() -> Path:
    """The `node_modules` folder with the packages of `tests/support/npm_servers/package-lock.json`."""
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in FILES)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"toolscript-npm-servers-{digest}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            _install(folder)
            (folder / "complete").touch()
    return folder / "node_modules"


def entry_point(package: str) -> str:
    """The file that `node` runs for one of the servers."""
    return str(npm_servers() / "@modelcontextprotocol" / package / "dist" / "index.js")


def _install(folder: Path) -> None:
    for name in FILES:
        shutil.copy(HERE / name, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"npm ci failed: {done.stderr[-2_000:]}")
