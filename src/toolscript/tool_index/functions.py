"""The definition of a Python function as a tool: its name, its docstring, and a JSON Schema of its parameters."""

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import JsonObject

Schema = dict[str, object]

_GOOGLE_SECTION = re.compile(
    r"(?:args|arguments|parameters|keyword args|keyword arguments)\s*:\s*$", re.IGNORECASE
)
_GOOGLE_PARAMETER = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\([^()]*\))?\s*:\s*(?P<text>.*)")
_NUMPY_SECTION = re.compile(r"(?:other )?parameters\s*$", re.IGNORECASE)
_NUMPY_PARAMETER = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?::.*)?$")
_FIELD = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(?P<name>\w+):\s*(?P<text>.*)"
)


def function_definition(function: Callable[..., object]) -> JsonObject:
    """Return the definition; raise for a function that has no name of its own."""
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    name = getattr(inner, "__name__", "") or type(inner).__name__
    if not name.isidentifier():
        raise InvalidRequest(f"{name} has no name to find it by", hint="define the function with `def`")
    text = inspect.getdoc(inner) or inspect.getdoc(type(inner).__call__) or ""
    description, parameters = split_docstring(text)
    return {"name": name, "description": description, "input_schema": _schema(function, parameters)}


def _schema(function: Callable[..., object], descriptions: dict[str, str]) -> Schema:
    schema = _typed_schema(function) or _schema_by_parameter(function)
    properties = schema.get("properties")
    for name, definition in properties.items() if isinstance(properties, dict) else ():
        if definition.get("title") == name.title().replace("_", " ").strip():
            del definition["title"]
        if name in descriptions:
            definition.setdefault("description", descriptions[name])
    return schema


def _typed_schema(function: Callable[..., object]) -> Schema | None:
    schema = _json_schema(function)
    return schema if schema is not None and schema.get("type") == "object" else None


def _json_schema(form: object) -> Schema | None:
    """Return the JSON Schema by Pydantic; None if it has none for a type, or a type hint cannot be resolved."""
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic.json_schema import PydanticJsonSchemaWarning

    try:
        with warnings.catch_warnings():
            # A default that is no JSON is left out, which is all that a search needs to know of it.
            warnings.simplefilter("ignore", PydanticJsonSchemaWarning)
            return TypeAdapter(cast("Any", form)).json_schema()
    except (PydanticUserError, NameError, SyntaxError, TypeError, ValueError):
        return None


def _schema_by_parameter(function: Callable[..., object]) -> Schema:
    """Return a schema in which a parameter of an unknown type, such as a framework's context, can be anything."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {"type": "object", "properties": {}}
    named = [each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    properties = {each.name: _schema_of_hint(each.annotation) for each in named}
    types = [properties[name].pop("$defs", {}) for name in properties]
    schema: Schema = {"type": "object", "properties": properties}
    if required := [each.name for each in named if each.default is each.empty]:
        schema["required"] = required
    if any(types):
        schema["$defs"] = {name: definition for each in types for name, definition in each.items()}
    return schema


def _schema_of_hint(hint: object) -> dict[str, Any]:
    if hint is inspect.Parameter.empty or isinstance(hint, str):
        return {}
    return _json_schema(hint) or {}


def split_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return a docstring without the parameters, and their descriptions: Google, NumPy and reST style."""
    kept, parameters = list[str](), dict[str, str]()
    lines = text.splitlines()
    row = 0
    while row < len(lines):
        line = lines[row]
        block = _block(lines, row + 1)
        if _GOOGLE_SECTION.match(line) and block:
            parameters |= dict(_entries(block, _GOOGLE_PARAMETER))
            row += 1 + len(block)
        elif _NUMPY_SECTION.match(line) and row + 1 < len(lines) and set(lines[row + 1].strip()) == {"-"}:
            block = _numpy_block(lines, row + 2)
            parameters |= dict(_entries(block, _NUMPY_PARAMETER))
            row += 2 + len(block)
        elif field := _FIELD.match(line):
            parameters[field["name"]] = _joined([field["text"], *block])
            row += 1 + len(block)
        else:
            kept.append(line)
            row += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip(), parameters


def _block(lines: list[str], start: int) -> list[str]:
    """Return the indented lines from here on, blank ones among them."""
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end][0].isspace()):
        end += 1
    return lines[start:end]


def _numpy_block(lines: list[str], start: int) -> list[str]:
    """Return the lines up to the next underlined title."""
    end = start
    while end < len(lines) and not (end + 1 < len(lines) and re.fullmatch(r"\s*-{3,}\s*", lines[end + 1])):
        end += 1
    return lines[start:end]


def _entries(block: list[str], parameter: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield each parameter with its text: the lines that are indented deeper belong to it."""
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in block if line.strip()]
    outermost = min((indent for indent, _ in lines), default=0)
    parameters: list[tuple[str, list[str]]] = []
    for indent, line in lines:
        if indent == outermost and (start := parameter.match(line)):
            parameters.append((start["name"], [start.groupdict().get("text") or ""]))
        elif parameters:
            parameters[-1][1].append(line)
    yield from ((name, _joined(texts)) for name, texts in parameters)


def _joined(texts: list[str]) -> str:
    return " ".join(" ".join(texts).split())
