"""The inventory has a line for each thing that the outside sees, so a change of one is a changed line."""

import copy
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
import typer.main

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import inventory  # noqa: E402

from toolscript.gateway.model import DEFAULT_LIMIT, DEFAULT_THRESHOLD  # noqa: E402
from toolscript.gateway.openapi import openapi_document  # noqa: E402

pytestmark = pytest.mark.requirement("TR-004")


def test_a_field_that_an_answer_no_longer_has_is_a_line_less() -> None:
    document: Any = openapi_document(DEFAULT_LIMIT, DEFAULT_THRESHOLD)
    changed = copy.deepcopy(document)
    lines = {*inventory.route_lines("gateway", document)}
    schema = changed["paths"]["/search"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    answer = inventory.resolved(schema, changed)
    del answer["properties"]["good_match"]
    gone = lines - {*inventory.route_lines("gateway", changed)}
    assert gone
    assert all("good_match" in line for line in gone)


def test_an_option_that_is_renamed_changes_its_line() -> None:
    def lines(option: str) -> set[str]:
        app = typer.Typer()

        @app.command()
        def search(limit: Annotated[int, typer.Option(option)] = 3) -> None: ...

        return {*inventory.command_lines("toolscript", typer.main.get_command(app))}

    assert lines("--limit") ^ lines("--count") == {
        "command toolscript option --limit",
        "command toolscript option --count",
    }


def test_every_kind_of_line_is_there() -> None:
    text = inventory.PAGE.read_text("utf-8")
    for line in (
        "command toolscript search option --limit",
        "config entry includeTools",
        "error NotFound: NOT_FOUND, status 404, exit 2",
        "mcp gateway search_tools inputSchema query!",
        "mcp method tools/call",
        "name in source TOOLSCRIPT_CONFIG",
        "service POST /api/v1/search body application/json query!",
        "setting service TOOLSCRIPT_POSTGRES_URL",
    ):
        assert f"\n{line}" in text, line
