"""TypeScript types as values: simplification and printing."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from toolscript.gateway.typescript.text import block_comment

_INHERITED = {
    *("constructor", "toString", "toLocaleString", "valueOf"),
    *("hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
}

MAX_ALTERNATIVES = 2_000
MAX_CHAIN = 40
# Maximum number of types visited for one tool, so that no schema can make this take long.
MAX_VISITS = 100_000

MAX_DEPTH = 8
MAX_ITEMS = 100
MAX_SAFE_INTEGER = 2**53 - 1
# Names without quotes. Non-ASCII names are quoted: compilers differ in the letters they accept.
PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*", re.ASCII)

STEP = "  "


@dataclass(frozen=True)
class Word:
    """A keyword or a literal, exactly as it is written."""

    text: str


@dataclass(frozen=True)
class Named:
    """A type that the module declares."""

    name: str


@dataclass(frozen=True)
class Either:
    members: tuple["Node", ...]


@dataclass(frozen=True)
class Both:
    members: tuple["Node", ...]


@dataclass(frozen=True)
class ListOf:
    item: "Node"


@dataclass(frozen=True)
class TupleOf:
    """The first `required` items are mandatory; `rest` is the type of further items, None if there are none."""

    items: tuple["Node", ...]
    required: int
    rest: "Node | None"


@dataclass(frozen=True)
class Property:
    """`notes` are the lines of its comment, from the schema."""

    name: str
    type: "Node"
    optional: bool = False
    notes: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Fields:
    """An object; `others` is the type of further properties, None if there are none."""

    properties: tuple[Property, ...]
    others: "Node | None" = None


@dataclass(frozen=True)
class Declaration:
    name: str
    type: "Node"
    notes: tuple[str, ...] = ()


Node: TypeAlias = Word | Named | Either | Both | ListOf | TupleOf | Fields

UNKNOWN = Word("unknown")
NEVER = Word("never")
NULL = Word("null")
UNDEFINED = Word("undefined")
STRING = Word("string")
NUMBER = Word("number")
BOOLEAN = Word("boolean")
ANY_OBJECT = Fields((), UNKNOWN)


def either(nodes: Iterable[Node]) -> Node:
    """Return the union without duplicates; `unknown` absorbs all other members."""
    flat = [member for node in nodes for member in (node.members if isinstance(node, Either) else (node,))]
    members = tuple(dict.fromkeys(member for member in flat if member != NEVER))
    if UNKNOWN in members:
        return UNKNOWN
    if len(members) < 2:
        return members[0] if members else NEVER
    return Either(members)


def both(nodes: Iterable[Node]) -> Node:
    """Return the intersection; objects without common properties become one object."""
    flat = [member for node in nodes for member in (node.members if isinstance(node, Both) else (node,))]
    members = tuple(dict.fromkeys(member for member in flat if member != UNKNOWN))
    if NEVER in members:
        return NEVER
    objects = [member for member in members if isinstance(member, Fields)]
    if len(objects) == len(members) > 1 and _are_disjoint(objects):
        return Fields(tuple(property_ for node in objects for property_ in node.properties))
    if len(members) < 2:
        return members[0] if members else UNKNOWN
    return Both(members)


def _are_disjoint(objects: list[Fields]) -> bool:
    names = [property_.name for node in objects for property_ in node.properties]
    return len(names) == len(set(names)) and all(node.others is None for node in objects)


def parts(node: Node) -> tuple[Node, ...]:
    """Return the direct component types of a type."""
    match node:
        case Either(members) | Both(members):
            return members
        case ListOf(item):
            return (item,)
        case TupleOf(items, _, rest):
            return items if rest is None else (*items, rest)
        case Fields(properties, others):
            types = tuple(property_.type for property_ in properties)
            return types if others is None else (*types, others)
        case _:
            return ()


def names_in(node: Node) -> set[str]:
    if isinstance(node, Named):
        return {node.name}
    return {name for part in parts(node) for name in names_in(part)}


def is_inherited(property_: Property) -> bool:
    """Return whether every object inherits a property of that name, which TypeScript types differently."""
    return property_.name in _INHERITED


def accepts_empty_object(node: Node, declared: Mapping[str, Node]) -> bool:
    """Return whether `{}` is a value of the type."""
    seen: set[str] = set()

    def accepts(candidate: Node) -> bool:
        match candidate:
            case Fields(properties):
                return all(property_.optional and not is_inherited(property_) for property_ in properties)
            case Either(members):
                return any(map(accepts, members))
            case Both(members):
                return all(map(accepts, members))
            case Named(name) if name not in seen:
                seen.add(name)
                return name in declared and accepts(declared[name])
            case _:
                return False

    return accepts(node)


def without_wide_intersections(declarations: Sequence[Declaration]) -> tuple[Declaration, ...]:
    """Return the declarations, with `unknown` for intersections that would expand to too many alternatives."""
    crossings = _Crossings({declaration.name: declaration.type for declaration in declarations})
    return tuple(replace(declaration, type=crossings.narrowed(declaration.type)) for declaration in declarations)


class _Crossings:
    """Checks an intersection, and recursively the types its members give to a common property."""

    def __init__(self, declared: Mapping[str, Node]) -> None:
        self._declared = declared
        self._visits = 0

    def narrowed(self, node: Node) -> Node:
        match node:
            case Either(members):
                return either(map(self.narrowed, members))
            case Both(members):
                return UNKNOWN if self._is_too_wide(members) else both(map(self.narrowed, members))
            case ListOf(item):
                return ListOf(self.narrowed(item))
            case TupleOf(items, required, rest):
                return TupleOf(tuple(map(self.narrowed, items)), required, rest and self.narrowed(rest))
            case Fields(properties, others):
                narrowed = tuple(
                    replace(property_, type=self.narrowed(property_.type)) for property_ in properties
                )
                return Fields(narrowed, others and self.narrowed(others))
            case _:
                return node

    def _is_too_wide(self, members: tuple[Node, ...]) -> bool:
        waiting, seen = [members], set[tuple[Node, ...]]()
        while waiting:
            nodes = waiting.pop()
            if nodes in seen:
                continue
            seen.add(nodes)
            if self._alternatives(Both(nodes)) > MAX_ALTERNATIVES:
                return True
            waiting += self._shared_properties(nodes)
            if self._visits > MAX_VISITS:
                return True
        return False

    def _alternatives(self, node: Node, chain: int = 0) -> int:
        """Count the alternatives, up to just above the maximum."""
        self._visits += 1
        if chain > MAX_CHAIN or self._visits > MAX_VISITS:
            return MAX_ALTERNATIVES + 1
        match node:
            case Either(members):
                count = sum(self._alternatives(member, chain + 1) for member in members)
            case Both(members):
                count = math.prod(self._alternatives(member, chain + 1) for member in members)
            case Named(name):
                count = self._alternatives(self._declared.get(name, UNKNOWN), chain + 1)
            case _:
                count = 2 if node == BOOLEAN else 1
        return min(count, MAX_ALTERNATIVES + 1)

    def _shared_properties(self, nodes: tuple[Node, ...]) -> list[tuple[Node, ...]]:
        types: dict[str | None, dict[int, list[Node]]] = {}
        for number, node in enumerate(nodes):
            for name, type_ in self._properties(node):
                types.setdefault(name, {}).setdefault(number, []).append(type_)
        return [tuple(map(either, by_node.values())) for by_node in types.values() if len(by_node) > 1]

    def _properties(self, node: Node, chain: int = 0) -> Iterator[tuple[str | None, Node]]:
        """Yield names and types of the properties of an object or its alternatives; None names further ones."""
        self._visits += 1
        if chain > MAX_CHAIN or self._visits > MAX_VISITS:
            return
        match node:
            case Either(members) | Both(members):
                for member in members:
                    yield from self._properties(member, chain + 1)
            case Named(name):
                yield from self._properties(self._declared.get(name, UNKNOWN), chain + 1)
            case Fields(properties, others):
                self._visits += len(properties)
                yield from ((property_.name, property_.type) for property_ in properties)
                yield from [] if others is None else [(None, others)]


def string_literal(text: str) -> str:
    """Return a quoted string. Invisible characters are escaped: they could make code look different."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if quoted.isprintable() else "".join(map(_visible, quoted))


def _visible(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def property_name(text: str) -> str:
    return text if PLAIN_NAME.fullmatch(text) else string_literal(text)


def literal_type(value: object, depth: int = 0) -> Node:
    """Return the literal type of the value, or the narrowest wider type."""
    match value:
        case bool():
            return Word("true" if value else "false")
        case str():
            return Word(string_literal(value))
        case int() | float():
            return _number(value)
        case Mapping() if depth < MAX_DEPTH:
            return _object(value, depth + 1)
        case list() if depth < MAX_DEPTH and len(value) <= MAX_ITEMS:
            return TupleOf(tuple(literal_type(item, depth + 1) for item in value), len(value), None)
        case _:
            return wide_type(value)


def wide_type(value: object) -> Node:
    """Return the keyword type of a value."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case str():
            return STRING
        case int() | float():
            return NUMBER
        case _:
            return UNKNOWN


def _number(value: float) -> Node:
    exact = math.isfinite(value) if isinstance(value, float) else abs(value) <= MAX_SAFE_INTEGER
    return Word(repr(value)) if exact else NUMBER


def _object(value: Mapping[object, object], depth: int) -> Node:
    properties = tuple(Property(str(name), literal_type(item, depth)) for name, item in value.items())
    return Fields(properties, None if properties else NEVER)


def declaration(declared: Declaration, *, compact: bool) -> str:
    comment = "" if compact else block_comment(declared.notes, "")
    text = expression(declared.type, "", compact=compact)
    if isinstance(declared.type, Fields):
        return f"{comment}export interface {declared.name} {text}\n"
    return f"{comment}export type {declared.name} = {text};\n"


def expression(node: Node, indent: str, *, compact: bool) -> str:
    match node:
        case Word(text) | Named(text):
            return text
        case Either(members):
            return " | ".join(_grouped(member, indent, compact) for member in members)
        case Both(members):
            return " & ".join(_grouped(member, indent, compact) for member in members)
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
    texts = [_grouped(item, indent, compact) for item in node.items]
    items = [text if place < node.required else f"{text}?" for place, text in enumerate(texts)]
    if node.rest is not None:
        items.append(f"...{_grouped(node.rest, indent, compact)}[]")
    return f"[{', '.join(items)}]"


def _one_line(node: Fields) -> str:
    lines = [_property(property_, "", compact=True) for property_ in node.properties]
    if node.others is not None:
        lines.append(f"[key: string]: {expression(node.others, '', compact=True)}")
    return f"{{ {'; '.join(lines)} }}" if lines else "{}"


def _many_lines(node: Fields, indent: str) -> str:
    inner = indent + STEP
    lines = [
        f"{block_comment(property_.notes, inner)}{inner}{_property(property_, inner, compact=False)};\n"
        for property_ in node.properties
    ]
    if node.others is not None:
        lines.append(f"{inner}[key: string]: {expression(node.others, inner, compact=False)};\n")
    return f"{{\n{''.join(lines)}{indent}}}" if lines else "{}"


def _property(property_: Property, indent: str, *, compact: bool) -> str:
    mark = "?" if property_.optional else ""
    return f"{property_name(property_.name)}{mark}: {expression(property_.type, indent, compact=compact)}"
