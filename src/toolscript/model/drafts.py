"""A draft of a judged set, made from a catalog for a person to correct."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolscript.model.items import Item
from toolscript.model.judged import JudgedQuery, JudgedSet


@dataclass(frozen=True)
class DraftedQuery:
    """`note` says what a person has to look at, where a rule cannot be trusted with it."""

    kind: str
    query: JudgedQuery
    note: str = ""


@dataclass(frozen=True)
class Draft:
    """The items by the keys that the queries name."""

    items: Sequence[Item]
    queries: Sequence[DraftedQuery]

    def judged(self, name: str) -> JudgedSet:
        return JudgedSet(name, self.items, [one.query for one in self.queries])

    @property
    def counts(self) -> Mapping[str, int]:
        """How many queries there are of each kind, in the order they were drafted."""
        return dict(Counter(one.kind for one in self.queries))


@dataclass(frozen=True)
class WrittenDraft:
    folder: str
    tools: int
    counts: Mapping[str, int]
    refused_lines: int = 0
