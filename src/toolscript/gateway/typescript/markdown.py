"""Types as Markdown: a table of the tools that were found, the module, an example."""

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

# What could end a cell, start code, or become a link or a tag.
_SPECIAL = re.compile(r"[\\|`<>\[\]*~]")
_SAVED_AS = (
    "`toolscript get-types > toolscript.ts` saves such a module; import it as `./toolscript.ts` where "
    "`toolscript` is mapped to nothing.\n"
)
_TABLE_HEAD = "| Tool | Confidence | Reason |\n|------|-----------|--------|\n"

MAX_DEPTH = 6
_VALUES = {STRING: '"..."', NUMBER: "1", BOOLEAN: "true", UNKNOWN: "null"}
# Fits every type, for what no short value fits.
_ANYTHING = "{} as never"


def search_preamble(rows: Sequence[tuple[str, float, str]]) -> str:
    """The table of tool, confidence and reason."""
    lines = [_row((tool, f"{confidence:.2f}", reason)) for tool, confidence, reason in rows]
    return f"## Search Results\n\n{_TABLE_HEAD}{''.join(lines)}"


def types_document(rows: Sequence[tuple[str, float, str]], module: str, usage: str) -> str:
    """The table, the module, and the example where there is one."""
    parts = [search_preamble(rows), fenced(module)]
    if usage:
        parts += ["Usage example:\n" + fenced(usage), _SAVED_AS]
    return "\n".join(parts)


def fenced(code: str) -> str:
    """TypeScript between fences that are longer than any within it."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}typescript\n{code.rstrip()}\n{fence}\n"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |\n"


def _cell(text: str) -> str:
    shown = "".join(one if one.isprintable() else " " for one in text)
    return _SPECIAL.sub(r"\\\g<0>", " ".join(shown.split()))


def client_usage(items: Sequence[Item]) -> str:
    """One call of the first tool, with a value for everything it requires; empty without a tool."""
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
            value = _made_of_others(node, declared, depth + 1)
    return value


def _made_of_others(node: Fields | TupleOf | Named | Either, declared: Mapping[str, Node], depth: int) -> str:
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
    if any(one.optional and is_inherited(one) for one in node.properties):
        return _ANYTHING
    required = [one for one in node.properties if not one.optional]
    texts = [f"{_key(one.name)}: {_value(one.type, declared, depth)}" for one in required]
    return f"{{ {', '.join(texts)} }}" if texts else "{}"


def _key(name: str) -> str:
    """In brackets where the plain name would set the object's prototype."""
    return '["__proto__"]' if name == "__proto__" else property_name(name)
