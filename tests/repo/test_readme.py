"""The README is short, and its commands run unchanged: the gateway's in one shell, the demo's in another."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.repo.shell_pages import (
    BLOCK,
    GATEWAY_PRELUDE,
    code_of,
    contains,
    demo_environment,
    finished,
    gateway_environment,
    json_values,
    page,
    section,
)

README = page("README.md")
GATEWAY = section(README, "60 seconds with the gateway")
DEMO = section(README, "60 seconds with the service")

MAX_WORDS = 800
DEMO_PRELUDE = """
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
"""


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= MAX_WORDS


async def test_the_gateway_works_as_written(home: Path, port: str, model_folder: str, tmp_path: Path) -> None:
    script = GATEWAY_PRELUDE + "\n".join(code_of(GATEWAY, "sh"))
    output, _ = await finished(script, gateway_environment(home, port, model_folder), tmp_path, home)
    assert re.search(r"^filesystem__read_text_file +0\.\d\d +Semantic", output, re.MULTILINE), output
    assert "toolscript" in json.loads((home / ".cursor" / "mcp.json").read_text("utf-8"))["mcpServers"]


@pytest.mark.requirement("AP-002")
async def test_the_python_works_as_written(home: Path, port: str, model_folder: str, tmp_path: Path) -> None:
    (program,) = code_of(section(README, "From Python"), "python")
    lines = [line for line in program.splitlines() if line.strip()]
    assert len(lines) <= 10
    (home / "main.py").write_text(program, "utf-8")
    # As after the first section: the servers have been listed before.
    first = "toolscript config import --yes >/dev/null\ntoolscript list-servers >/dev/null || true\n"
    script = f"{GATEWAY_PRELUDE}{first}python main.py"
    output, _ = await finished(script, gateway_environment(home, port, model_folder), tmp_path, home)
    assert output.splitlines()[0].startswith("filesystem__read_"), output


async def test_the_demo_works_as_written(port: str, tmp_path: Path) -> None:
    script = DEMO_PRELUDE + "\n".join(code_of(DEMO, "sh"))
    output, _ = await finished(script, demo_environment(port), tmp_path, tmp_path)
    (displayed,) = map(json.loads, code_of(DEMO, "json"))
    answers = [value for value in json_values(output) if isinstance(value, dict)]
    assert any(contains(answer, displayed) for answer in answers), output


def test_only_installing_is_not_run() -> None:
    skipped = [block["text"] for block in BLOCK.finditer(README) if block["skip"]]
    commands = [line.split()[0] for text in skipped for line in text.splitlines()]
    assert set(commands) == {"pip"}


def test_the_saving_is_the_one_that_was_counted() -> None:
    wording = r"the ([\d,]+) tools of (\d+) public MCP servers takes ([\d,]+) tokens.*? take (\d+)"
    message = re.search(wording, README, re.DOTALL)
    assert message is not None
    counted = section(page("docs/gateway.md"), "What it costs and saves")
    assert [figure for figure in message.groups() if figure not in counted] == []


def test_the_overview_is_drawn_without_anything_from_elsewhere() -> None:
    picture = page("docs/overview.svg")
    assert ET.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"
    assert re.findall(r"href|@import|<script|<image|<foreignObject|data:", picture) == []
    assert picture.count("http") == 1
