"""Vectors, models, points, conditions and candidates: the input and output of an index."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache
from itertools import starmap
from types import MappingProxyType
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from toolscript.core.errors import EmbedderRejected
from toolscript.core.item_text import ITEM_TEXT_VERSION
from toolscript.core.items import ItemKind
from toolscript.core.namespaces import DEFAULT_NAMESPACE
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
    """The identity of an embedding model: everything that determines the vector of a text."""

    name: str
    revision: str
    dimensions: int
    pooling: str = "mean"
    query_prefix: str = ""
    passage_prefix: str = ""


@dataclass(frozen=True)
class IndexCard:
    """The identity of an index version. Vectors and terms of equal identities are interchangeable."""

    model: ModelCard
    words_version: int = WORDS_VERSION
    text_version: int = ITEM_TEXT_VERSION

    @property
    def fingerprint(self) -> str:
        return _fingerprint(self)


@lru_cache(maxsize=64)
def _fingerprint(card: IndexCard) -> str:
    """Cached: every search names the index version that it read."""
    canonical = json.dumps(asdict(card), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class IndexOrigin:
    """The model that built a collection. `source` is where to load it from; empty if not recorded."""

    collection: str
    model: ModelCard
    source: str = ""


def checked_vectors(vectors: Matrix, count: int, card: ModelCard) -> Matrix:
    """Return the vectors with unit length; raise when some are missing, of the wrong size, not finite or zero."""
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
    """An indexed point. `version` is that of its source state: an older one never replaces a newer one."""

    id: int
    version: int
    vector: Vector
    terms: Terms
    fields: Fields
    namespace: str = DEFAULT_NAMESPACE


@dataclass(frozen=True)
class StoredPoint:
    """A point as the index stores it: its vector and its payload."""

    id: int
    vector: Vector
    fields: Fields


@dataclass(frozen=True)
class PointVersion:
    """`namespace` None: unknown."""

    id: int
    version: int
    namespace: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Condition:
    """Matches when the field, or one of its values if it is a list, is any of these."""

    field: str
    any_of: tuple[Scalar, ...]


Where = tuple[Condition, ...]


def type_skills(kind: ItemKind, skill_ids: Sequence[str]) -> tuple[str, ...]:
    """Return kind and skill in one value, for rare kinds: HNSW misses points that two narrow filters share."""
    return () if kind is ItemKind.TOOL else tuple(f"{kind}|{skill}" for skill in skill_ids)


@dataclass(frozen=True)
class IndexQuery:
    """A query to the retrievers of an index: `vector` for dense, `terms` for sparse; None skips one.

    `only` restricts the search to these points, empty means all; `fields` of the payload come with each candidate.
    `exact` compares every point: the ground truth for approximate search.
    """

    vector: Vector | None = None
    terms: Terms | None = None
    where: Where = ()
    limit: int = 100
    exact: bool = False
    only: tuple[int, ...] = ()
    fields: tuple[str, ...] = ()


class Candidate(NamedTuple):
    """A point that a retriever found. `revision` changes with every write of the point; 0 if not counted."""

    id: int
    score: float
    fields: Fields = NO_FIELDS
    revision: int = 0


class CandidateArrays(Sequence[Candidate]):
    """Candidates without fields, as the arrays that an index in memory has and that fusion reads: of hundreds, few
    are needed as objects."""

    def __init__(self, ids: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        self.ids = ids
        self.scores = scores

    @classmethod
    def of(cls, candidates: Sequence[Candidate] | None) -> "CandidateArrays":
        if isinstance(candidates, cls):
            return candidates
        listed = candidates or ()
        ids = np.array([candidate.id for candidate in listed], dtype=np.int64)
        return cls(ids, np.array([candidate.score for candidate in listed], dtype=np.float64))

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Candidate]:
        return starmap(Candidate, zip(self.ids.tolist(), self.scores.tolist(), strict=True))

    @overload
    def __getitem__(self, place: int) -> Candidate: ...
    @overload
    def __getitem__(self, place: slice) -> "CandidateArrays": ...
    def __getitem__(self, place: int | slice) -> "Candidate | CandidateArrays":
        if isinstance(place, slice):
            return CandidateArrays(self.ids[place], self.scores[place])
        return Candidate(int(self.ids[place]), float(self.scores[place]))


@dataclass(frozen=True)
class Candidates:
    """The best candidates of each retriever, best first; None if it was not used.

    `points` and `unskilled` estimate how many points there are, and how many are in no skill. `shares` maps common
    terms to the share of points that contain them. `unlisted` are the sparse candidates that are not among the
    dense ones, with their cosines, where the index knows them. `baseline` is how much nearer the request is to
    tools of any kind than most requests are.
    """

    dense: Sequence[Candidate] | None = None
    words: Sequence[Candidate] | None = None
    points: int = 0
    shares: Mapping[int, float] = field(default_factory=dict)
    unskilled: int = 0
    unlisted: Sequence[Candidate] = ()
    baseline: float = 0.0

    @cached_property
    def ids(self) -> frozenset[int]:
        """Ids of the candidates of either retriever."""
        return frozenset(hit.id for hits in (self.dense, self.words) for hit in hits or ())

    def idf(self, term: int) -> float:
        return idf_of(self.shares.get(term, 0.0), self.points)


def idf_of(share: float, points: int) -> float:
    """Return the IDF of a term, as from a sample: no term is rarer than RAREST_SHARE."""
    frequency = points * max(share, RAREST_SHARE)
    return math.log(1 + (points - frequency + 0.5) / (frequency + 0.5))
