"""Runs the commands of our pages unchanged."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

# A command that fails must not leave its server behind.
GATEWAY_PRELUDE = """
trap 'toolscript gateway stop >/dev/null 2>&1 || true' EXIT
"""
SERVER_PRELUDE = """
trap 'test -z "${SERVER:-}" || kill "$SERVER" 2>/dev/null || true' EXIT
"""
SERVICE_PRELUDE = (
    SERVER_PRELUDE
    + """
toolscript migrate --down-to base --yes
"""
)

BLOCK = re.compile(r"(?P<skip><!-- not run: [^>]+ -->\n)?```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)


def code_of(part: str, language: str) -> list[str]:
    """Return the code of a part of a page, except blocks marked as not run."""
    result = [block for block in BLOCK.finditer(part) if block["language"] == language]
    return [block["text"] for block in result if not block["skip"]]


def page(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def section(text: str, title: str) -> str:
    """A section of a page, with its subsections."""
    return text.split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]


def gateway_environment(home: Path, port: str, model: str) -> dict[str, str]:
    """Return an environment without our settings."""
    return {
        **_without_settings(),
        "HOME": str(home),
        "TOOLSCRIPT_GATEWAY_PORT": port,
        "TOOLSCRIPT_SEARCH_MODEL": model,
    }


def demo_environment(port: str) -> dict[str, str]:
    return {**_without_settings(), "TOOLSCRIPT_PORT": port}


def service_environment(settings: Mapping[str, str], port: str) -> dict[str, str]:
    # As our readers have it: `serve` follows the catalog.
    usual = {"TOOLSCRIPT_SERVE_WORKER": "true"}
    return {**os.environ, **settings, **usual, "TOOLSCRIPT_PORT": port, "PATH": _path()}


def _without_settings() -> dict[str, str]:
    foreign = {name: value for name, value in os.environ.items() if not name.startswith(("TOOLSCRIPT_", "XDG_"))}
    return {**foreign, "PATH": _path()}


def _path() -> str:
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


async def finished(script: str, environment: dict[str, str], folder: Path, cwd: Path = ROOT) -> tuple[str, str]:
    """Return stdout and stderr of a script that must succeed."""
    code = await run(script, environment, folder / "page.out", cwd)
    output, errors = ((folder / f"page.{end}").read_text("utf-8") for end in ("out", "err"))
    assert code == 0, output + errors
    return output, errors


async def run(script: str, environment: dict[str, str], output: Path, cwd: Path = ROOT) -> int:
    """Return the exit code. Output goes to a file, so that a leftover server cannot block a pipe."""
    with output.open("wb") as file, output.with_suffix(".err").open("wb") as errors:
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-e", "-o", "pipefail", "-c", script),
            cwd=cwd,
            env=environment,
            stdout=file,
            stderr=errors,
            start_new_session=True,
        )
    try:
        return await asyncio.wait_for(shell.wait(), 480)
    except TimeoutError:
        os.killpg(shell.pid, signal.SIGTERM)
        raise


def json_values(text: str) -> list[Any]:
    """Return the JSON values in an output with other lines."""
    values, index, decoder = list[Any](), 0, json.JSONDecoder()
    while result := re.compile(r"[\[{]").search(text, index):
        try:
            value, index = decoder.raw_decode(text, result.start())
        except ValueError:
            index = result.end()
        else:
            values.append(value)
    return values


def contains(whole: Any, part: Any) -> bool:
    """Return whether the whole answer contains the shortened one."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            name in whole and contains(whole[name], value) for name, value in part.items()
        )
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)
