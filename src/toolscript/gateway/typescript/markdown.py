"""An example call, for a reader who sees the client for the first time."""

from collections.abc import Mapping, Sequence

from toolscript.model.items import Item

from .literals import PLAIN_NAME, property_name, string_literal
from .nodes import (
    BOOLEAN,
    NEVER,
    NUMBER,
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
)
from .typed_tools import TypedTool, typed_tools

MAX_DEPTH = 6
_VALUES = {STRING: '"..."', NUMBER: "1", BOOLEAN: "true", UNKNOWN: "null"}
# Fits every type, for what no short value fits.
_ANYTHING = "{} as never"


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
            return f"[{', '.join(_value(one, declared, depth) for one in items[:required])}]"
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
