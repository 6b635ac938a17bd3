"""The public names, and requirements of every error and command."""

import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
import typer.main

import toolscript
import toolscript.testing
from tests.repo.sources import ROOT
from toolscript.cli.app import build_cli
from toolscript.client.settings import ClientSettings
from toolscript.core import errors
from toolscript.core.errors import ERROR_TABLE, ToolscriptError
from toolscript.core.settings.service import Settings
from toolscript.gateway.settings import gateway_setting_fields

CODES = {
    *("VALIDATION_ERROR", "NOT_FOUND", "UNAUTHORIZED", "FORBIDDEN"),
    *("RATE_LIMITED", "UNAVAILABLE", "INTERNAL_ERROR"),
}


def error_classes() -> set[type[ToolscriptError]]:
    return {var for var in vars(errors).values() if isinstance(var, type) and issubclass(var, ToolscriptError)}


def commands() -> Iterator[tuple[str, Any]]:
    def below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield name, command
        for inner_name, inner in getattr(command, "commands", {}).items():
            yield from below(f"{name} {inner_name}", inner)

    return below("toolscript", typer.main.get_command(build_cli()))


def test_the_package_exports_exactly_these_names() -> None:
    expected = {
        *("AsyncClient", "Client", "Gateway", "ToolIndex", "answers", "__version__"),
        *("Conflict", "Forbidden", "InvalidRequest", "NotFound", "Rejected", "SetupError", "TooManyRequests"),
        *("ToolscriptError", "Unauthorized", "Unavailable"),
    }
    assert set(toolscript.__all__) == expected
    assert all(hasattr(toolscript, name) for name in expected)
    assert expected <= set(dir(toolscript))
    with pytest.raises(AttributeError, match="no attribute 'Ghost'"):
        getattr(toolscript, "Ghost")  # noqa: B009 - a type checker knows that there is none


def test_the_doubles_are_exactly_these() -> None:
    expected = {
        "HashEmbedder",
        "MemoryAssignments",
        "MemoryCatalog",
        "MemoryCatalogContents",
        "MemoryCurationRules",
        "MemoryDirtySet",
        "MemoryDocuments",
        "MemoryIndexes",
        "MemoryItemChanges",
        "MemoryLibrary",
        "MemoryQueryLog",
        "MemoryRequestBudget",
        "MemorySearchLog",
        "MemorySkillVectors",
        "MemorySuggestions",
        "MemorySyncJobs",
        "MemoryTaxonomy",
        "MemoryTenants",
    }
    assert set(toolscript.testing.__all__) == expected


def test_every_error_has_a_row_in_the_error_table() -> None:
    assert set(ERROR_TABLE) == error_classes()
    assert {row.code for row in ERROR_TABLE.values()} <= CODES


def test_the_tree_at_the_top_of_errors_is_the_tree_of_the_classes() -> None:
    assert _drawn(errors.__doc__ or "") == {
        error_class.__name__: None if error_class is ToolscriptError else error_class.__mro__[1].__name__
        for error_class in error_classes()
    }


def _drawn(drawing: str) -> dict[str, str | None]:
    """Yield each name of the drawing with its parent, by indentation."""
    parents: dict[str, str | None] = {}
    above: list[str] = []
    for line in drawing.splitlines():
        result = re.match(r"(?P<stem>(?:[│ ]   )*(?:[├└]── )?)(?P<name>[A-Z]\w+)(?:\s|$)", line)
        if result and (result["stem"] or result["name"] == ToolscriptError.__name__):
            depth = len(result["stem"]) // 4
            above = [*above[:depth], result["name"]]
            parents[result["name"]] = above[depth - 1] if depth else None
    return parents


def test_every_setting_is_described_and_documented() -> None:
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    described = {name: field.description for name, field in Settings.model_fields.items()}
    plain = [*gateway_setting_fields(), *fields(ClientSettings)]
    described |= {item.name: item.metadata.get("description") for item in plain}
    assert [name for name, description in described.items() if not description] == []
    assert [name for name in described if f"`TOOLSCRIPT_{name.upper()}`" not in page] == []


def test_every_setting_of_the_gateway_says_what_it_accepts_and_how_it_is_read() -> None:
    silent = [
        gateway_setting_field.name
        for gateway_setting_field in gateway_setting_fields()
        if not {"accepts", "read"} <= gateway_setting_field.metadata.keys()
    ]
    assert silent == []


def test_every_command_and_every_parameter_has_help() -> None:
    silent = [name for name, command in commands() if not (command.help or "").strip()]
    silent += [
        f"{name} {value.name}"
        for name, command in commands()
        for value in command.params
        if not (value.help or "").strip()
    ]
    assert silent == []


def test_every_port_is_named_in_the_glossary_or_the_architecture() -> None:
    files = sorted((ROOT / "src/toolscript").rglob("ports.py"))
    assert len(files) >= 4
    text = "\n".join(file.read_text("utf-8") for file in files)
    ports = re.findall(r"^class (\w+)\(Protocol\)", text, re.MULTILINE)
    pages = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("architecture.md", "glossary.md"))
    assert [port for port in ports if f"`{port}`" not in pages] == []
