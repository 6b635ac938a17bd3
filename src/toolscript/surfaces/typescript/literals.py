"""Values of a schema, written so that they stay values."""

import json
import math
import re
from collections.abc import Mapping

from .nodes import BOOLEAN, NEVER, NULL, NUMBER, STRING, UNKNOWN, Fields, Node, Property, TupleOf, Word

MAX_DEPTH = 8
MAX_ITEMS = 100
MAX_SAFE_INTEGER = 2**53 - 1
# What needs no quotes. Names with letters beyond ASCII are quoted: not every compiler knows the same ones.
PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*", re.ASCII)


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
