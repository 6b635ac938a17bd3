"""What the outside sees of both products, a line each: docs/inventory.txt.

Routes with their parameters and fields, commands with their options, settings, keys of the config file, tools over
MCP with their fields, codes of errors, and what the source says of environment names, MCP methods and files. A
change of any of them is a changed line, so none is lost unseen.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

import typer
import typer.main
from contract_pages import ROOT

from toolscript.cli.app import build_cli
from toolscript.client.settings import ClientSettings
from toolscript.core.errors import ERROR_TABLE
from toolscript.core.settings.service import Settings
from toolscript.documents import mcp as documents
from toolscript.gateway.config import curation, entries, read, rules
from toolscript.gateway.mcp.definitions import definitions_of_tools
from toolscript.gateway.model import DEFAULT_LIMIT, DEFAULT_THRESHOLD
from toolscript.gateway.openapi import openapi_document
from toolscript.gateway.settings import GatewaySettings
from toolscript.knowledge.mcp import definitions as knowledge
from toolscript.server.app import create_app
from toolscript.tools.mcp import definitions as tools
from toolscript_eval.cli import evaluate_commands

Json = Mapping[str, Any]

PAGE = ROOT / "docs" / "inventory.txt"
SOURCES = (ROOT / "src", ROOT / "packages")
REFERENCE = "#/components/schemas/"
METHODS = ("get", "put", "post", "patch", "delete")
MAX_DEPTH = 6

ENVIRONMENT = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
MCP_METHOD = re.compile(
    r"(?:initialize|ping)|(?:tools|prompts|resources|completion|logging|notifications|roots|sampling|elicitation|server)"
    r"/[a-zA-Z_/]+"
)
FILE = re.compile(
    r"[\w.-]*\w\.(?:json|jsonl|sqlite3?|db|toml|sock|log|lock|npy|ts|md|plist|service|socket|desktop)"
)


def inventory() -> dict[Path, str]:
    """Return the page with its text."""
    return {PAGE: "".join(f"{line}\n" for line in sorted({*_lines()}))}


def _lines() -> Iterator[str]:
    nothing = cast("Any", None)
    yield from route_lines("service", create_app(nothing, nothing, nothing, nothing, nothing).openapi())
    yield from route_lines("gateway", openapi_document(DEFAULT_LIMIT, DEFAULT_THRESHOLD))
    # The vendored parser of Typer has no public types.
    yield from command_lines("toolscript", typer.main.get_command(build_cli()))
    yield from command_lines("toolscript-eval", typer.main.get_command(evaluate_commands()))
    yield from _settings()
    yield from _config_keys()
    for product, definitions in (
        ("gateway", (*definitions_of_tools(split=False), *definitions_of_tools(split=True))),
        ("service", (*tools.DEFINITIONS.values(), *knowledge.DEFINITIONS.values(), documents.DEFINITION)),
    ):
        for definition in definitions:
            yield from _mcp_tool(product, definition)
    for error, row in ERROR_TABLE.items():
        codes = row.code if row.kind in ("", row.code) else f"{row.code} or {row.kind}"
        yield f"error {error.__name__}: {codes}, status {row.http_status}, exit {row.exit_code}"
    yield from _in_source()


def route_lines(product: str, document: Json) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                yield from _operation(f"{product} {method.upper()} {path}", methods[method], document)


def _operation(name: str, operation: Json, document: Json) -> Iterator[str]:
    yield name
    for parameter in operation.get("parameters", ()):
        yield f"{name} {parameter['in']} {parameter['name']}{_is_required(parameter)}"
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        yield from (f"{name} body {kind} {field}" for field in _fields(body.get("schema", {}), document))
    for status, answer in operation["responses"].items():
        yield f"{name} answers {status}"
        for kind, body in resolved(answer, document).get("content", {}).items():
            if status < "400":
                yield from (
                    f"{name} answers {status} {kind} {field}" for field in _fields(body["schema"], document)
                )


def _fields(schema: Json, document: Json, within: str = "", depth: int = 0) -> Iterator[str]:
    """Yield the path of every field that a value may have."""
    schema = resolved(schema, document)
    if depth > MAX_DEPTH:
        return
    for name, inner in schema.get("properties", {}).items():
        path = f"{within}.{name}" if within else name
        yield path + ("!" if name in schema.get("required", ()) else "")
        yield from _fields(inner, document, path, depth + 1)
    for key in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(key), Mapping):
            yield from _fields(inner, document, f"{within}[]", depth + 1)
    for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _fields(choice, document, within, depth + 1)


def resolved(schema: Json, document: Json) -> Json:
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    found: Any = document
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return cast("Json", found)


def _is_required(parameter: Json) -> str:
    return "!" if parameter.get("required") else ""


def command_lines(name: str, command: Any) -> Iterator[str]:
    yield f"command {name}"
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            yield f"command {name} argument {parameter.name}{'!' if parameter.required else ''}"
        else:
            hidden = " (hidden)" if parameter.hidden else ""
            for option in (*parameter.opts, *parameter.secondary_opts):
                yield f"command {name} option {option}{'!' if parameter.required else ''}{hidden}"
    for inner_name, inner in getattr(command, "commands", {}).items():
        yield from command_lines(f"{name} {inner_name}", inner)


def _settings() -> Iterator[str]:
    prefix = str(Settings.model_config.get("env_prefix", ""))
    yield from (f"setting service {prefix}{name.upper()}" for name in Settings.model_fields)
    for product, settings in (("gateway", GatewaySettings), ("client", ClientSettings)):
        for field in fields(settings):
            if field.metadata:
                yield f"setting {product} TOOLSCRIPT_{field.name.upper()}"


def _config_keys() -> Iterator[str]:
    for of, keys in (
        ("file", read.KNOWN),
        ("entry", entries.KEYS),
        ("entry.oauth", entries.OAUTH_KEYS),
        ("rule", rules.KEYS),
        ("curation", curation.KEYS),
    ):
        yield from (f"config {of} {key}" for key in keys)


def _mcp_tool(product: str, definition: Json) -> Iterator[str]:
    name = f"mcp {product} {definition['name']}"
    yield name
    for part in ("inputSchema", "outputSchema"):
        yield from (f"{name} {part} {field}" for field in _fields(definition.get(part, {}), definition))


def _in_source() -> Iterator[str]:
    """Yield the environment names, MCP methods and names of files among the texts of the source."""
    for text in _texts():
        if ENVIRONMENT.fullmatch(text) and (text.startswith("TOOLSCRIPT_") or "_" in text):
            yield f"name in source {text}"
        elif MCP_METHOD.fullmatch(text):
            yield f"mcp method {text}"
        elif FILE.fullmatch(text):
            yield f"file {text}"


def _texts() -> Iterable[str]:
    for file in sorted(file for folder in SOURCES for file in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
