"""Intersections of unions, which TypeScript multiplies out and refuses to compile when there are too many."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from .nodes import (
    BOOLEAN,
    UNKNOWN,
    Both,
    Either,
    Fields,
    ListOf,
    Named,
    Node,
    TupleOf,
    both,
    either,
)

MAX_ALTERNATIVES = 2_000
MAX_STEPS = 500
MAX_CHAIN = 40

Declared = Mapping[str, Node]


def without_wide_crossings(node: Node, declared: Declared) -> Node:
    """The type, with `unknown` for every intersection that could become too many alternatives."""
    match node:
        case Either(members):
            return either([without_wide_crossings(one, declared) for one in members])
        case Both(members):
            kept = [without_wide_crossings(one, declared) for one in members]
            return UNKNOWN if _Crossing(declared).is_too_wide(members) else both(kept)
        case ListOf(item):
            return ListOf(without_wide_crossings(item, declared))
        case TupleOf(items, required, rest):
            kept = [without_wide_crossings(one, declared) for one in items]
            return TupleOf(tuple(kept), required, rest and without_wide_crossings(rest, declared))
        case Fields(properties, others):
            fields = [replace(one, type=without_wide_crossings(one.type, declared)) for one in properties]
            return Fields(tuple(fields), others and without_wide_crossings(others, declared))
        case _:
            return node


class _Crossing:
    """One intersection, looked at together with what its members say of the same property, and so on inward."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self._seen: set[tuple[Node, ...]] = set()

    def is_too_wide(self, members: tuple[Node, ...]) -> bool:
        waiting = [members]
        while waiting:
            nodes = waiting.pop()
            if nodes in self._seen:
                continue
            self._seen.add(nodes)
            if len(self._seen) > MAX_STEPS or self._alternatives(Both(nodes)) > MAX_ALTERNATIVES:
                return True
            waiting += self._shared_properties(nodes)
        return False

    def _alternatives(self, node: Node, chain: int = 0) -> int:
        """How many there are, as far as it matters."""
        if chain > MAX_CHAIN:
            return MAX_ALTERNATIVES + 1
        match node:
            case Either(members):
                count = sum(self._alternatives(one, chain + 1) for one in members)
            case Both(members):
                count = math.prod(self._alternatives(one, chain + 1) for one in members)
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
        match node:
            case Either(members) | Both(members) if chain <= MAX_CHAIN:
                for one in members:
                    yield from self._properties(one, chain + 1)
            case Named(name) if chain <= MAX_CHAIN:
                yield from self._properties(self._declared.get(name, UNKNOWN), chain + 1)
            case Fields(properties, others):
                yield from ((one.name, one.type) for one in properties)
                if others is not None:
                    yield None, others
