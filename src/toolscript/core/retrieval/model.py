"""What goes into an index and what comes out of it, in no engine's words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from toolscript.model.items import ItemKind
from toolscript.model.models import Vector

Terms = Mapping[int, float]
Fields = Mapping[str, object]
Scalar = str | int | bool

RAREST_SHARE = 1 / 2_000


@dataclass(frozen=True)
class Point:
    """One indexed thing. `version` is that of the state it was made from: an older one never replaces a newer."""

    id: int
    version: int
    vector: Vector
    terms: Terms
    fields: Fields


@dataclass(frozen=True)
class KeptPoint:
    """What an index has of a point: that by which it is compared, and what it carries."""

    id: int
    vector: Vector
    fields: Fields


@dataclass(frozen=True)
class PointVersion:
    id: int
    version: int


@dataclass(frozen=True)
class Condition:
    """Holds when the field, or one of its values if it is a list, is any of these."""

    field: str
    any_of: tuple[Scalar, ...]


Where = tuple[Condition, ...]


def type_skills(kind: ItemKind, skill_ids: Sequence[str]) -> tuple[str, ...]:
    """Kind and skill in one value, for rare kinds: what two narrow filters share, a graph search misses."""
    return () if kind is ItemKind.TOOL else tuple(f"{kind}|{skill}" for skill in skill_ids)


@dataclass(frozen=True)
class Ask:
    """One question to the arms of an index. An arm that is not given is not asked.

    `only` are the points to choose from, none means all of them; `fields` come with each candidate.
    `exact` looks at every point: the truth that a faster way is measured against.
    """

    vector: Vector | None = None
    terms: Terms | None = None
    where: Where = ()
    limit: int = 100
    exact: bool = False
    only: tuple[int, ...] = ()
    fields: tuple[str, ...] = ()


NO_FIELDS: Fields = MappingProxyType({})


class Candidate(NamedTuple):
    """`revision` is the point's own: another one once the point was written again, 0 where nobody counts."""

    id: int
    score: float
    fields: Fields = NO_FIELDS
    revision: int = 0


@dataclass(frozen=True)
class Candidates:
    """The best of each arm, best first (None: that arm was not asked), among about so many points.

    About so many of the points are in no skill; `shares` tells of common terms which share of the points has them.
    """

    dense: Sequence[Candidate] | None = None
    words: Sequence[Candidate] | None = None
    points: int = 0
    shares: Mapping[int, float] = field(default_factory=dict)
    unskilled: int = 0

    @property
    def ids(self) -> frozenset[int]:
        """Whom either arm has named."""
        return frozenset(hit.id for arm in (self.dense, self.words) for hit in arm or ())

    def rarity(self, term: int) -> float:
        return rarity_of(self.shares.get(term, 0.0), self.points)


def rarity_of(share: float, points: int) -> float:
    """As of a sample, however exactly it is known: one point in so many is as rare as a term gets."""
    having = points * max(share, RAREST_SHARE)
    return math.log(1 + (points - having + 0.5) / (having + 0.5))
