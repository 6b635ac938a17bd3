"""The compilers and the runtime for TypeScript, installed once for each state of their lock file."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

CHECKS = Path(__file__).parent / "typescript_checks"
FILES = ("package.json", "package-lock.json")


@cache
def npm_tools() -> Path:
    """Return the folder with `node_modules/.bin`. It is outside the checkout, so that it outlives a clone."""
    return installed(CHECKS)


def installed(project: Path) -> Path:
    """Return the folder of the packages of a locked npm project; `npm ci` installs them the first time."""
    locked = b"".join((project / name).read_bytes() for name in FILES)
    key = hashlib.sha256(locked).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"toolscript-npm-{os.getuid()}-{key}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} belongs to somebody else")
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".installed").exists():
            _install(project, folder)
            (folder / ".installed").touch()
    return folder


def _install(project: Path, folder: Path) -> None:
    for name in FILES:
        shutil.copy(project / name, folder / name)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"npm ci failed: {done.stderr}")


def run_check(script: str, *arguments: str) -> str:
    """Return the output of a script of `typescript_checks`; it uses the packages of its folder."""
    command = ["node", str(CHECKS / script), *arguments]
    done = subprocess.run(command, cwd=npm_tools(), check=False, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(f"{script} failed: {done.stderr[-2000:]}")
    return done.stdout
