"""Centroids of skills, as sums in integers: exact, in whatever order items are added and removed.

Components of a unit vector are multiples of 2^-24 and confidences are ten-thousandths, so that 64 bits hold the
sum of fifty million items, and subtracting an item leaves no remainder."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.retrieval.model import Vector
from toolscript.core.taxonomy import Skill, skill_point_id

UNIT = 1 << 24

Whole = NDArray[np.int64]
Key = TypeVar("Key", str, "SkillKey")


class SkillKey(NamedTuple):
    """A skill in a namespace: each has a centroid of its own."""

    skill_id: str
    namespace: str


@dataclass(frozen=True)
class Centroid:
    total: Whole
    weight: int = 0
    members: int = 0

    @staticmethod
    def nothing() -> "Centroid":
        """Return the empty sum; it can be added to a sum of any dimension."""
        return Centroid(np.zeros(1, dtype=np.int64))

    @staticmethod
    def of(vector: Vector, weight: int) -> "Centroid":
        """Return the contribution of one item."""
        return Centroid(np.rint(vector.astype(np.float64) * UNIT).astype(np.int64) * weight, weight, 1)

    def __add__(self, other: "Centroid") -> "Centroid":
        return Centroid(self.total + other.total, self.weight + other.weight, self.members + other.members)

    def __sub__(self, other: "Centroid") -> "Centroid":
        return Centroid(self.total - other.total, self.weight - other.weight, self.members - other.members)

    @property
    def is_nothing(self) -> bool:
        return not (self.weight or self.members or self.total.any())

    def mean(self) -> Vector | None:
        """Return the confidence-weighted mean at unit length; None when there is none."""
        length = float(np.linalg.norm(self.total.astype(np.float64)))
        if not self.members or length < UNIT:
            return None
        return np.asarray(self.total / length, dtype=np.float32)


@dataclass(frozen=True)
class Counted:
    """The contribution of an item: its vector, the hash of its text, and its weight in each of its skills."""

    item_id: int
    text_hash: str
    vector: Vector
    weights: Mapping[str, int]
    namespace: str = DEFAULT_NAMESPACE


def sum_by_skill(counted: Iterable[Counted], to: Mapping[str, Centroid] | None = None) -> dict[str, Centroid]:
    """Return the sum of each skill that any of these items is in, added to the sums in `to`."""
    sums = dict(to or {})
    for item in counted:
        for skill, weight in item.weights.items():
            sums[skill] = sums.get(skill, Centroid.nothing()) + Centroid.of(item.vector, weight)
    return sums


def sum_by_namespace(
    counted: Iterable[Counted], to: Mapping[SkillKey, Centroid] | None = None
) -> dict[SkillKey, Centroid]:
    """Return the sum of each skill in each namespace, added to the sums in `to`."""
    sums = dict(to or {})
    for item in counted:
        for skill, weight in item.weights.items():
            key = SkillKey(skill, item.namespace)
            sums[key] = sums.get(key, Centroid.nothing()) + Centroid.of(item.vector, weight)
    return sums


def differences(before: Mapping[Key, Centroid], after: Mapping[Key, Centroid]) -> dict[Key, Centroid]:
    """Return, for each sum that differs, the value to add to `before` to get `after`."""
    nothing = Centroid.nothing()
    skills = before.keys() | after.keys()
    moves = {skill: after.get(skill, nothing) - before.get(skill, nothing) for skill in skills}
    return {skill: move for skill, move in moves.items() if not move.is_nothing}


@dataclass(frozen=True)
class SkillState:
    """A skill and the sum of its items at one version: the target state of its point."""

    skill: Skill
    total: Centroid
    version: int
    namespace: str = DEFAULT_NAMESPACE

    @property
    def point_id(self) -> int:
        return skill_point_id(self.skill.id, self.namespace)


@dataclass(frozen=True)
class Rebuilt:
    """The result of an exact recount: the wrong skills, the largest drift of a vector, the largest miscount.

    `skills` is the number of centroids: a skill has one in each namespace.
    """

    skills: int
    items: int
    mended: tuple[str, ...]
    largest_drift: float
    largest_miscount: int


def rebuilt(kept: Mapping[SkillKey, Centroid], exact: Mapping[SkillKey, Centroid], items: int) -> Rebuilt:
    """Compare the stored sums with the exact ones."""
    moves, nothing = differences(kept, exact), Centroid.nothing()
    drifts = [_drift(kept.get(skill, nothing), exact.get(skill, nothing)) for skill in moves]
    miscounts = [abs(move.members) for move in moves.values()]
    skills = len(kept.keys() | exact.keys())
    mended = tuple(sorted({key.skill_id for key in moves}))
    return Rebuilt(skills, items, mended, max(drifts, default=0.0), max(miscounts, default=0))


def _drift(kept: Centroid, exact: Centroid) -> float:
    """Return the largest difference of a component of the two means; 1 when only one of them exists."""
    kept_mean, exact_mean = kept.mean(), exact.mean()
    if kept_mean is None or exact_mean is None:
        return 0.0 if kept_mean is exact_mean else 1.0
    return float(np.abs(kept_mean - exact_mean).max())
