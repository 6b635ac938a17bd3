"""The TypeScript client as its users have it: built, packed, and installed into a fresh project."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.support.npm_tools import installed, npm_tools

ROOT = Path(__file__).parents[3]
CLIENT = ROOT / "clients" / "typescript"
DRIVER = Path(__file__).with_name("driver.mjs")
# What `npm` and `git` leave in a working copy.
LEFT_BEHIND = shutil.ignore_patterns("node_modules", "dist", "*.tgz")
NOTHING: Mapping[str, str] = MappingProxyType({})


def run(*command: str | Path, cwd: Path, environment: Mapping[str, str] = NOTHING) -> str:
    """Return the output of a program that must succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def tsc() -> Path:
    """Return the compiler that the client's own lock file names."""
    return installed(CLIENT) / "node_modules" / "typescript" / "bin" / "tsc"


def deno(*arguments: str | Path, cwd: Path, environment: Mapping[str, str] = NOTHING) -> str:
    program = npm_tools() / "node_modules" / ".bin" / "deno"
    # A cache of its own: none of the home folder.
    return run(program, *arguments, cwd=cwd, environment={"DENO_DIR": str(cwd / ".deno"), **environment})


def built(folder: Path) -> Path:
    """Return a copy of the client with `dist`."""
    copy = folder / "typescript"
    shutil.copytree(CLIENT, copy, ignore=LEFT_BEHIND)
    (copy / "node_modules").symlink_to(installed(CLIENT) / "node_modules")
    run("npm", "run", "build", "--silent", cwd=copy)
    return copy


def packed(folder: Path) -> Path:
    """Return the tarball that would be published."""
    copy = built(folder)
    (name,) = run("npm", "pack", "--silent", "--ignore-scripts", cwd=copy).split()
    return copy / name


def project_with(tarball: Path, folder: Path) -> Path:
    """Return a new project that has installed the tarball and nothing else, without a network."""
    folder.mkdir()
    (folder / "package.json").write_text('{"name": "consumer", "private": true, "type": "module"}', "utf-8")
    run("npm", "install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", tarball, cwd=folder)
    return folder


def driver_command(folder: Path) -> list[str]:
    """Return the command of the driver for the behaviour suite; `folder` takes the built client."""
    return ["node", str(DRIVER), str(built(folder) / "dist" / "index.js")]
