"""Types as text: on many lines with comments, or on one line without."""

from .comments import block_comment
from .literals import property_name
from .nodes import Both, Declaration, Either, Fields, ListOf, Named, Node, Property, TupleOf, Word

STEP = "  "


def declaration(one: Declaration, *, compact: bool) -> str:
    comment = "" if compact else block_comment(one.notes, "")
    text = expression(one.type, "", compact=compact)
    if isinstance(one.type, Fields):
        return f"{comment}export interface {one.name} {text}\n"
    return f"{comment}export type {one.name} = {text};\n"


def expression(node: Node, indent: str, *, compact: bool) -> str:
    match node:
        case Word(text) | Named(text):
            return text
        case Either(members):
            return " | ".join(_grouped(one, indent, compact) for one in members)
        case Both(members):
            return " & ".join(_grouped(one, indent, compact) for one in members)
        case ListOf(item):
            return f"{_grouped(item, indent, compact)}[]"
        case TupleOf():
            return _tuple(node, indent, compact)
        case Fields():
            return _one_line(node) if compact else _many_lines(node, indent)


def _grouped(node: Node, indent: str, compact: bool) -> str:
    text = expression(node, indent, compact=compact)
    return f"({text})" if isinstance(node, Either | Both) else text


def _tuple(node: TupleOf, indent: str, compact: bool) -> str:
    texts = [_grouped(one, indent, compact) for one in node.items]
    items = [text if place < node.required else f"{text}?" for place, text in enumerate(texts)]
    if node.rest is not None:
        items.append(f"...{_grouped(node.rest, indent, compact)}[]")
    return f"[{', '.join(items)}]"


def _one_line(node: Fields) -> str:
    lines = [_property(one, "", compact=True) for one in node.properties]
    if node.others is not None:
        lines.append(f"[key: string]: {expression(node.others, '', compact=True)}")
    return f"{{ {'; '.join(lines)} }}" if lines else "{}"


def _many_lines(node: Fields, indent: str) -> str:
    inner = indent + STEP
    lines = [
        f"{block_comment(one.notes, inner)}{inner}{_property(one, inner, compact=False)};\n"
        for one in node.properties
    ]
    if node.others is not None:
        lines.append(f"{inner}[key: string]: {expression(node.others, inner, compact=False)};\n")
    return f"{{\n{''.join(lines)}{indent}}}" if lines else "{}"


def _property(one: Property, indent: str, *, compact: bool) -> str:
    mark = "?" if one.optional else ""
    return f"{property_name(one.name)}{mark}: {expression(one.type, indent, compact=compact)}"
