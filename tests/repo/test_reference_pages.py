"""First steps on the reference pages run unchanged: the gateway's in one shell, the service's in another."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import Installation
from tests.repo.shell_pages import (
    BLOCK,
    GATEWAY_PRELUDE,
    SERVICE_PRELUDE,
    code_of,
    contains,
    finished,
    gateway_environment,
    json_values,
    page,
    section,
    service_environment,
)
from toolscript.core.errors import ERROR_TABLE
from toolscript.gateway.config.connect import ENTRY
from toolscript.gateway.config.read import read_config

GATEWAY = page("docs/gateway.md")
GET_STARTED = section(GATEWAY, "Get started")
FIRST_SEARCH = section(page("docs/tools.md"), "A first search")


@pytest.mark.nightly
async def test_the_gateway_works_as_written(home: Path, port: str, model_folder: str, tmp_path: Path) -> None:
    script = GATEWAY_PRELUDE + "\n".join(code_of(GET_STARTED, "sh"))
    output, _ = await finished(script, gateway_environment(home, port, model_folder), tmp_path, home)
    hits = re.findall(r"^(\w+__\w+) +0\.\d\d +(\w+)", output, re.MULTILINE)
    assert ("filesystem__read_text_file", "Semantic") in hits
    assert ("filesystem__read_file", "Fuzzy") in hits
    answers = [value for value in json_values(output) if isinstance(value, dict) and "results" in value]
    assert [answer["query"] for answer in answers] == ["read a file", "read a file", "remember a fact"]
    assert "export const tools" in (home / "tools.ts").read_text("utf-8")
    assert "toolscript" in json.loads((home / ".cursor" / "mcp.json").read_text("utf-8"))["mcpServers"]


async def test_the_first_search_works_as_written(installation: Installation, port: str, tmp_path: Path) -> None:
    script = SERVICE_PRELUDE + "\n".join(code_of(FIRST_SEARCH, "sh"))
    output, _ = await finished(script, service_environment(installation.environment, port), tmp_path)
    _ready, answer, russian, chinese = json_values(output)
    assert contains(answer, json.loads(code_of(FIRST_SEARCH, "json")[0])), answer
    assert russian[0]["server"] == "trains"
    assert chinese[0]["server"] == "library"


@pytest.mark.parametrize("part", [GET_STARTED, FIRST_SEARCH], ids=["gateway", "tools"])
def test_only_installing_and_starting_engines_is_not_run(part: str) -> None:
    skipped = [block["text"] for block in BLOCK.finditer(part) if block["skip"]]
    commands = [line.split()[0] for text in skipped for line in text.splitlines()]
    assert set(commands) <= {"python3", ".", "pip", "eval"}


def test_the_config_file_of_the_page_can_be_used(tmp_path: Path) -> None:
    example = next(text for text in code_of(section(GATEWAY, "Config file"), "json") if "includeTools" in text)
    path = tmp_path / ".toolscript.json"
    path.write_text(example, "utf-8")
    config = read_config([path], {"HOME": "h", "TICKETS_TOKEN": "t"})
    assert config.problems == ()
    files, tickets = config.servers
    assert files.args[-1].endswith("/docs")
    assert not files.offers("write_file")
    assert (tickets.url, tickets.headers["Authorization"]) == ("https://tickets.example.com/mcp", "Bearer t")
    assert tickets.offers("search_all")
    assert not tickets.offers("delete_ticket")


def test_the_entry_of_the_page_is_the_one_that_connect_writes() -> None:
    assert {"mcpServers": {"toolscript": dict(ENTRY)}} == json.loads(code_of(section(GATEWAY, "MCP"), "json")[0])


def test_the_table_of_errors_names_every_code_and_status() -> None:
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| ([\d, ]+) \|", page("docs/api.md"), re.MULTILINE))
    used = {(code, str(row.http_status)) for row in ERROR_TABLE.values() for code in (row.code, row.kind) if code}
    assert [(code, status) for code, status in sorted(used) if status not in rows.get(code, "")] == []
