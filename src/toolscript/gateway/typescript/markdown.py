"""Types as Markdown: a table of the hits, the module, an example."""

import re
from collections.abc import Iterable, Mapping, Sequence

from toolscript.core.items import Item
from toolscript.gateway.typescript.module import TypedTool, typed_tools
from toolscript.gateway.typescript.types import (
    BOOLEAN,
    NEVER,
    NUMBER,
    PLAIN_NAME,
    STRING,
    UNDEFINED,
    UNKNOWN,
    Either,
    Fields,
    ListOf,
    Named,
    Node,
    TupleOf,
    Word,
    is_inherited,
    property_name,
    string_literal,
)

# Characters that could end a cell, start code, or become a link or a tag.
_SPECIAL = re.compile(r"[\\|`<>\[\]*~]")
_SAVED_AS = (
    "`toolscript get-types > toolscript.ts` saves such a module; import it as `./toolscript.ts` where "
    "`toolscript` is mapped to nothing.\n"
)
_TABLE_HEAD = "| Tool | Confidence | Reason |\n|------|-----------|--------|\n"

MAX_DEPTH = 6
_VALUES = {STRING: '"..."', NUMBER: "1", BOOLEAN: "true", UNKNOWN: "null"}
# Fits every type, for types without a short value.
_ANYTHING = "{} as never"


def search_preamble(rows: Sequence[tuple[str, float, str]]) -> str:
    """Return the table of tool, confidence and reason."""
    lines = [_row((tool, f"{confidence:.2f}", reason)) for tool, confidence, reason in rows]
    return f"## Search Results\n\n{_TABLE_HEAD}{''.join(lines)}"


def types_document(rows: Sequence[tuple[str, float, str]], module: str, usage: str) -> str:
    """Return the table, the module, and the example if there is one."""
    parts = [search_preamble(rows), fenced(module)]
    if usage:
        parts += ["Usage example:\n" + fenced(usage), _SAVED_AS]
    return "\n".join(parts)


def fenced(code: str) -> str:
    """Return TypeScript between fences that are longer than any within it."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}typescript\n{code.rstrip()}\n{fence}\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _cell(text: str) -> str:
    visible = "".join(char if char.isprintable() else " " for char in text)
    return _SPECIAL.sub(r"\\\g<0>", " ".join(visible.split()))


def client_usage(items: Sequence[Item]) -> str:
    """Return one call of the first tool, with a value for each required property; empty without a tool."""
    tools = typed_tools(items)
    if not tools:
        return ""
    return (
        'import { tools } from "toolscript";\n\n'
        "// Call tools using the generated client\n"
        f"const result = await {_call(tools[0])};\n"
    )


def _call(typed: TypedTool) -> str:
    name = typed.tool.item.name
    method = f".{name}" if PLAIN_NAME.fullmatch(name) else f"[{string_literal(name)}]"
    value = _value(typed.params, typed.declared)
    return f"tools.{typed.tool.server_key}{method}({'' if value == '{}' else value})"


def _value(node: Node, declared: Mapping[str, Node], depth: int = 0) -> str:
    value = _ANYTHING
    match node:
        case Word(text) if node not in (NEVER, UNDEFINED):
            value = _VALUES.get(node, text)
        case ListOf():
            value = "[]"
        case Fields() | TupleOf() | Named() | Either() if depth < MAX_DEPTH:
            value = _composed_value(node, declared, depth + 1)
    return value


def _composed_value(node: Fields | TupleOf | Named | Either, declared: Mapping[str, Node], depth: int) -> str:
    match node:
        case Named(name):
            return _value(declared[name], declared, depth)
        case Either(members):
            return _value(members[0], declared, depth)
        case TupleOf(items, required):
            return f"[{', '.join(_value(item, declared, depth) for item in items[:required])}]"
        case Fields():
            return _object(node, declared, depth)


def _object(node: Fields, declared: Mapping[str, Node], depth: int) -> str:
    if any(property_.optional and is_inherited(property_) for property_ in node.properties):
        return _ANYTHING
    required = [property_ for property_ in node.properties if not property_.optional]
    texts = [f"{_key(property_.name)}: {_value(property_.type, declared, depth)}" for property_ in required]
    return f"{{ {', '.join(texts)} }}" if texts else "{}"


def _key(name: str) -> str:
    """Return the key, in brackets where the plain name would set the object's prototype."""
    return '["__proto__"]' if name == "__proto__" else property_name(name)
