"""Types as values, between a schema that is read and a module that is written."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


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
_INHERITED = {
    *("constructor", "toString", "toLocaleString", "valueOf"),
    *("hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
}


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
    return {name for one in parts(node) for name in names_in(one)}


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
