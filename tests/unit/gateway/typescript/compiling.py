"""Runs the TypeScript compiler on modules."""

import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.npm_tools import npm_tools

ERROR = re.compile(r"(?P<file>[\w.-]+)\.ts\(\d+,\d+\): error ")


def errors_of(modules: Mapping[str, str]) -> list[str]:
    """Return the output lines of `tsc --noEmit --strict`; the modules can import each other by name."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in modules.items():
            (Path(folder) / f"{name}.ts").write_text(text, "utf-8")
        tsc = npm_tools() / "node_modules" / "typescript" / "bin" / "tsc"
        files = [f"{name}.ts" for name in modules]
        command = [str(tsc), "--noEmit", "--strict", "--pretty", "false", *files]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=900)
    lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    if done.returncode and not lines:
        raise RuntimeError(f"tsc failed: {done.stderr}")
    return lines


def errors_by_module(modules: Mapping[str, str]) -> dict[str, list[str]]:
    errors: dict[str, list[str]] = {name: [] for name in modules}
    for line in errors_of(modules):
        match = ERROR.match(line)
        if not match:
            raise RuntimeError(f"tsc says something else: {line}")
        errors[match["file"]].append(line)
    return errors
