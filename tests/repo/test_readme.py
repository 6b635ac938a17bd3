"""The README's commands are run as they stand: the gateway's in one shell, the service's in another."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.repo.shell_pages import BLOCK, ROOT, code_of, contains, json_values, run
from tests.support.kept_ports import kept_port
from tests.support.npm_servers_installed import entry_point
from toolscript.core.errors import ERROR_TABLE
from toolscript.gateway.config.connect import ENTRY
from toolscript.gateway.config.read import read_config

README = (ROOT / "README.md").read_text("utf-8")

LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")
NPM_SERVERS = ("filesystem", "memory")

# A command of the README that fails must not leave its server behind.
GATEWAY_PRELUDE = """
trap 'toolscript gateway stop >/dev/null 2>&1 || true' EXIT
"""
PRELUDE = """
trap 'test -z "${SERVER:-}" || kill "$SERVER" 2>/dev/null || true' EXIT
toolscript migrate --down-to base --yes
"""


def blocks(start: str, end: str, language: str) -> list[str]:
    return code_of(README.split(f"\n{start}\n")[1].split(f"\n{end}\n")[0], language)


def gateway_part(language: str) -> list[str]:
    return blocks("## Your own tools", "## The service", language)


def first_search(language: str) -> list[str]:
    return blocks("### A first search", "### Your own catalog", language)


@pytest.fixture
def port() -> Iterator[str]:
    with kept_port() as kept:
        yield str(kept)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Of somebody who uses Cursor with servers from npm."""
    home = tmp_path / "home"
    (home / ".cursor").mkdir(parents=True)
    args = {name: [entry_point(f"server-{name}")] for name in NPM_SERVERS}
    args["filesystem"].append(str(home))
    servers = {name: {"command": "node", "args": given} for name, given in args.items()}
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return home


async def test_the_gateway_works_as_written(home: Path, port: str, model_folder: str, tmp_path: Path) -> None:
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("TOOLSCRIPT_", "XDG_"))},
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "TOOLSCRIPT_GATEWAY_PORT": port,
        "TOOLSCRIPT_SEARCH_MODEL": model_folder,
    }
    code = await run(GATEWAY_PRELUDE + "\n".join(gateway_part("sh")), environment, tmp_path / "readme.out", home)
    output = (tmp_path / "readme.out").read_text("utf-8")
    assert code == 0, output + (tmp_path / "readme.err").read_text("utf-8")
    found = re.findall(r"^(\w+__\w+) +0\.\d\d +(\w+)", output, re.MULTILINE)
    assert ("filesystem__read_text_file", "Semantic") in found
    assert ("filesystem__read_file", "Fuzzy") in found
    answers = [one for one in json_values(output) if isinstance(one, dict) and "results" in one]
    assert [one["query"] for one in answers] == ["read a file", "read a file", "remember a fact"]
    assert "export const tools" in (home / "tools.ts").read_text("utf-8")
    assert "toolscript" in json.loads((home / ".cursor" / "mcp.json").read_text("utf-8"))["mcpServers"]


def test_the_config_file_of_the_readme_can_be_used(tmp_path: Path) -> None:
    example = next(text for text in gateway_part("json") if "includeTools" in text)
    path = tmp_path / ".toolscript.json"
    path.write_text(example, "utf-8")
    config = read_config([path], {"HOME": "h", "TICKETS_TOKEN": "t"})
    assert config.problems == ()
    filesystem, tickets = config.servers
    assert filesystem.args[-1] == "h/docs"
    assert not filesystem.offers("write_file")
    assert (tickets.url, tickets.headers["Authorization"]) == ("https://tickets.example.com/mcp", "Bearer t")
    assert tickets.offers("search_all")
    assert not tickets.offers("delete_ticket")


def test_the_entry_of_the_readme_is_the_one_that_connect_writes() -> None:
    assert json.loads(gateway_part("json")[0]) == {"mcpServers": {"toolscript": dict(ENTRY)}}


async def test_the_first_search_works_as_written(installation: Installation, port: str, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        **installation.environment,
        "TOOLSCRIPT_PORT": port,
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
