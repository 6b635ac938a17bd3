"""Vectors, models, points, conditions and candidates: what goes into an index and what comes out."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from toolscript.core.errors import EmbedderRejected
from toolscript.core.item_text import ITEM_TEXT_VERSION
from toolscript.core.items import ItemKind
from toolscript.core.retrieval.terms import WORDS_VERSION

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]

Terms = Mapping[int, float]
Fields = Mapping[str, object]
Scalar = str | int | bool

RAREST_SHARE = 1 / 2_000

NO_FIELDS: Fields = MappingProxyType({})


@dataclass(frozen=True)
class ModelCard:
    """All that decides what vector a text gets."""

    name: str
    revision: str
    dimensions: int
    pooling: str = "mean"
    query_prefix: str = ""
    passage_prefix: str = ""


@dataclass(frozen=True)
class IndexCard:
    """What an index was built with. Equal cards, interchangeable vectors and words."""

    model: ModelCard
    words_version: int = WORDS_VERSION
    text_version: int = ITEM_TEXT_VERSION

    @property
    def fingerprint(self) -> str:
        canonical = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class IndexOrigin:
    """Which model made a collection. `source` says how it is loaded; empty: nobody recorded it."""

    collection: str
    model: ModelCard
    source: str = ""


def checked_vectors(vectors: Matrix, count: int, card: ModelCard) -> Matrix:
    """The vectors, unit length; refused when missing, of the wrong size, not finite or zero."""
    if vectors.shape != (count, card.dimensions):
        raise EmbedderRejected(
            f"{card.name} gave vectors of shape {vectors.shape}, expected {(count, card.dimensions)}"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or (lengths < 1e-9).any():
        raise EmbedderRejected(f"{card.name} gave a vector that is zero or not finite")
    return np.asarray(vectors / lengths, dtype=np.float32)


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

    def idf(self, term: int) -> float:
        return idf_of(self.shares.get(term, 0.0), self.points)


def idf_of(share: float, points: int) -> float:
    """As of a sample, however exactly it is known: one point in so many is as rare as a term gets."""
    having = points * max(share, RAREST_SHARE)
    return math.log(1 + (points - having + 0.5) / (having + 0.5))
