"""Commands of our pages, run as they stand."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

BLOCK = re.compile(r"(?P<skip><!-- not run: [^>]+ -->\n)?```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)


def code_of(part: str, language: str) -> list[str]:
    """The code of a part of a page that is not marked as not run."""
    found = [block for block in BLOCK.finditer(part) if block["language"] == language]
    return [block["text"] for block in found if not block["skip"]]


async def run(script: str, environment: dict[str, str], output: Path, cwd: Path = ROOT) -> int:
    """The exit code of the script; its output goes to a file, which a server left behind cannot hold open."""
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
    """The JSON values of an output that has other lines between them."""
    values, at, decoder = list[Any](), 0, json.JSONDecoder()
    while found := re.compile(r"[\[{]").search(text, at):
        try:
            value, at = decoder.raw_decode(text, found.start())
        except ValueError:
            at = found.end()
        else:
            values.append(value)
    return values


def contains(whole: Any, part: Any) -> bool:
    """Whether a shortened answer holds of the whole one."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            name in whole and contains(whole[name], value) for name, value in part.items()
        )
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)
