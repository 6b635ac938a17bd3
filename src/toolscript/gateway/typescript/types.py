"""Types as values, simplified, and printed as TypeScript."""

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
# How many types are looked at for one tool, so that no schema can make this take long.
MAX_LOOKS = 100_000

MAX_DEPTH = 8
MAX_ITEMS = 100
MAX_SAFE_INTEGER = 2**53 - 1
# What needs no quotes. Names with letters beyond ASCII are quoted: not every compiler knows the same ones.
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
    """The first `required` items must be there; `rest` is what may follow the last, if anything may."""

    items: tuple["Node", ...]
    required: int
    rest: "Node | None"


@dataclass(frozen=True)
class Property:
    """`notes` are the lines of its comment, as the schema has them."""

    name: str
    type: "Node"
    optional: bool = False
    notes: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Fields:
    """An object; `others` is the type of the properties it does not name, if it may have any."""

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
    """The union, without repetitions; what may be anything takes everything else in."""
    flat = [one for node in nodes for one in (node.members if isinstance(node, Either) else (node,))]
    members = tuple(dict.fromkeys(one for one in flat if one != NEVER))
    if UNKNOWN in members:
        return UNKNOWN
    if len(members) < 2:
        return members[0] if members else NEVER
    return Either(members)


def both(nodes: Iterable[Node]) -> Node:
    """The intersection; objects that share no property become one object."""
    flat = [one for node in nodes for one in (node.members if isinstance(node, Both) else (node,))]
    members = tuple(dict.fromkeys(one for one in flat if one != UNKNOWN))
    if NEVER in members:
        return NEVER
    objects = [one for one in members if isinstance(one, Fields)]
    if len(objects) == len(members) > 1 and _can_be_one(objects):
        return Fields(tuple(one for node in objects for one in node.properties))
    if len(members) < 2:
        return members[0] if members else UNKNOWN
    return Both(members)


def _can_be_one(objects: list[Fields]) -> bool:
    names = [one.name for node in objects for one in node.properties]
    return len(names) == len(set(names)) and all(node.others is None for node in objects)


def parts(node: Node) -> tuple[Node, ...]:
    """The types a type is directly made of."""
    match node:
        case Either(members) | Both(members):
            return members
        case ListOf(item):
            return (item,)
        case TupleOf(items, _, rest):
            return items if rest is None else (*items, rest)
        case Fields(properties, others):
            types = tuple(one.type for one in properties)
            return types if others is None else (*types, others)
        case _:
            return ()


def names_in(node: Node) -> set[str]:
    if isinstance(node, Named):
        return {node.name}
    return {name for part in parts(node) for name in names_in(part)}


def is_inherited(one: Property) -> bool:
    """Every object has a property of that name already, which TypeScript takes for a value of another type."""
    return one.name in _INHERITED


def accepts_nothing_given(node: Node, declared: Mapping[str, Node]) -> bool:
    """Whether `{}` is a value of the type."""
    seen: set[str] = set()

    def accepts(one: Node) -> bool:
        match one:
            case Fields(properties):
                return all(each.optional and not is_inherited(each) for each in properties)
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


def without_wide_crossings(made: Sequence[Declaration]) -> tuple[Declaration, ...]:
    """The types of a tool, with `unknown` for every intersection that could become too many alternatives."""
    crossings = _Crossings({declaration.name: declaration.type for declaration in made})
    return tuple(replace(declaration, type=crossings.narrowed(declaration.type)) for declaration in made)


class _Crossings:
    """An intersection is looked at together with what its members say of the same property, and so on inward."""

    def __init__(self, declared: Mapping[str, Node]) -> None:
        self._declared = declared
        self._looks = 0

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
                narrowed = tuple(replace(one, type=self.narrowed(one.type)) for one in properties)
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
            if self._looks > MAX_LOOKS:
                return True
        return False

    def _alternatives(self, node: Node, chain: int = 0) -> int:
        """How many there are, as far as it matters."""
        self._looks += 1
        if chain > MAX_CHAIN or self._looks > MAX_LOOKS:
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
            for name, one in self._properties(node):
                types.setdefault(name, {}).setdefault(number, []).append(one)
        return [tuple(map(either, by_node.values())) for by_node in types.values() if len(by_node) > 1]

    def _properties(self, node: Node, chain: int = 0) -> Iterator[tuple[str | None, Node]]:
        """What an object, or an alternative, says of its properties; None stands for those it does not name."""
        self._looks += 1
        if chain > MAX_CHAIN or self._looks > MAX_LOOKS:
            return
        match node:
            case Either(members) | Both(members):
                for one in members:
                    yield from self._properties(one, chain + 1)
            case Named(name):
                yield from self._properties(self._declared.get(name, UNKNOWN), chain + 1)
            case Fields(properties, others):
                self._looks += len(properties)
                yield from ((one.name, one.type) for one in properties)
                yield from [] if others is None else [(None, others)]


def string_literal(text: str) -> str:
    """A string in quotes. What cannot be seen is escaped, as it could make a reader see other code than runs."""
    quoted = json.dumps(text, ensure_ascii=False)
    return quoted if quoted.isprintable() else "".join(map(_visible, quoted))


def _visible(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


def property_name(text: str) -> str:
    return text if PLAIN_NAME.fullmatch(text) else string_literal(text)


def literal_type(value: object, depth: int = 0) -> Node:
    """The type that only this value has, or the next wider one that can be written."""
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
            return TupleOf(tuple(literal_type(one, depth + 1) for one in value), len(value), None)
        case _:
            return wide_type(value)


def wide_type(value: object) -> Node:
    """The keyword for values of this sort."""
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
    properties = tuple(Property(str(name), literal_type(one, depth)) for name, one in value.items())
    return Fields(properties, None if properties else NEVER)


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
