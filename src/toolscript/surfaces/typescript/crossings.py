"""Intersections of unions, which TypeScript multiplies out and refuses to compile when there are too many."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from .nodes import (
    BOOLEAN,
    UNKNOWN,
    Both,
    Declaration,
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
MAX_CHAIN = 40
# How many types are looked at for one tool, so that no schema can make this take long.
MAX_LOOKS = 100_000


def without_wide_crossings(made: Sequence[Declaration]) -> tuple[Declaration, ...]:
    """The types of a tool, with `unknown` for every intersection that could become too many alternatives."""
    crossings = _Crossings({one.name: one.type for one in made})
    return tuple(replace(one, type=crossings.narrowed(one.type)) for one in made)


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
