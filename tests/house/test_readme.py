"""The README's first search is run as it stands, top to bottom, in one shell."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Installation
from toolscript.surfaces.error_table import ERROR_TABLE

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")

BLOCK = re.compile(r"(?P<skip><!-- not run: [^>]+ -->\n)?```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")

# A command of the README that fails must not leave its server behind.
PRELUDE = """
trap 'test -z "${SERVER:-}" || kill "$SERVER" 2>/dev/null || true' EXIT
toolscript migrate --down-to base
"""


def first_search(language: str) -> list[str]:
    section = README.split("## A first search\n")[1].split("\n## ")[0]
    found = [block for block in BLOCK.finditer(section) if block["language"] == language]
    return [block["text"] for block in found if not block["skip"]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def run(script: str, environment: dict[str, str], output: Path) -> int:
    """The exit code of the script; its output goes to a file, which a server left behind cannot hold open."""
    with output.open("wb") as file, output.with_suffix(".err").open("wb") as errors:
        shell = await asyncio.create_subprocess_exec(
            *("bash", "-e", "-o", "pipefail", "-c", script),
            cwd=ROOT,
            env=environment,
            stdout=file,
            stderr=errors,
            start_new_session=True,
        )
    try:
        return await asyncio.wait_for(shell.wait(), 180)
    except TimeoutError:
        os.killpg(shell.pid, signal.SIGTERM)
        raise


def json_values(text: str) -> list[Any]:
    """The JSON values of an output that has other lines between them."""
    values, at, decoder = list[Any](), 0, json.JSONDecoder()
    while found := re.compile(r"[\[{]").search(text, at):
        value, at = decoder.raw_decode(text, found.start())
        values.append(value)
    return values


def contains(whole: Any, part: Any) -> bool:
    """Whether a shortened answer holds of the whole one."""
    if isinstance(part, dict):
        return all(name in whole and contains(whole[name], value) for name, value in part.items())
    if isinstance(part, list):
        return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


async def test_the_first_search_works_as_written(installation: Installation, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        **installation.environment,
        "TOOLSCRIPT_PORT": str(free_port()),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    script = PRELUDE + "\n".join(first_search("sh"))
    code = await run(script, environment, tmp_path / "readme.out")
    output = (tmp_path / "readme.out").read_text("utf-8")
    assert code == 0, output + (tmp_path / "readme.err").read_text("utf-8")
    _ready, answer, russian, chinese = json_values(output)
    assert contains(answer, json.loads(first_search("json")[0])), answer
    assert russian[0]["server"] == "trains"
    assert chinese[0]["server"] == "library"


def test_only_installing_and_starting_engines_is_not_run() -> None:
    skipped = [block["text"] for block in BLOCK.finditer(README) if block["skip"]]
    commands = [line.split()[0] for text in skipped for line in text.splitlines()]
    assert set(commands) <= {"python3", ".", "pip", "eval"}


def test_the_table_of_errors_names_every_code_and_status() -> None:
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| ([\d, ]+) \|", README, re.MULTILINE))
    used = {(row.code, str(row.http_status)) for row in ERROR_TABLE.values()}
    assert [(code, status) for code, status in sorted(used) if status not in rows.get(code, "")] == []


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
)
def test_every_link_leads_to_a_file(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text("utf-8")) if not (page.parent / link).exists()]
    assert missing == []
