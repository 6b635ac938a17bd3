"""The sum of a skill's items, in whole numbers: in whatever order items come and go, it is exactly the same.

Components of a unit vector are counted in 2^-24 and confidences in ten-thousandths, so that 64 bits hold the sum
of fifty million items, and what was added can be taken away without a rest."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolscript.core.retrieval.model import Vector
from toolscript.core.taxonomy import Skill

UNIT = 1 << 24

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Centroid:
    total: Whole
    weight: int = 0
    members: int = 0

    @staticmethod
    def nothing() -> "Centroid":
        """It adds up with a sum of any size."""
        return Centroid(np.zeros(1, dtype=np.int64))

    @staticmethod
    def of(vector: Vector, weight: int) -> "Centroid":
        """What one item adds."""
        return Centroid(np.rint(vector.astype(np.float64) * UNIT).astype(np.int64) * weight, weight, 1)

    def __add__(self, other: "Centroid") -> "Centroid":
        return Centroid(self.total + other.total, self.weight + other.weight, self.members + other.members)

    def __sub__(self, other: "Centroid") -> "Centroid":
        return Centroid(self.total - other.total, self.weight - other.weight, self.members - other.members)

    @property
    def is_nothing(self) -> bool:
        return not (self.weight or self.members or self.total.any())

    def mean(self) -> Vector | None:
        """The confidence-weighted mean at unit length; None when there is none."""
        length = float(np.linalg.norm(self.total.astype(np.float64)))
        if not self.members or length < UNIT:
            return None
        return np.asarray(self.total / length, dtype=np.float32)


@dataclass(frozen=True)
class Counted:
    """An item as it counts in the sums: its vector, of which text, and its weight in each of its skills."""

    item_id: int
    text_hash: str
    vector: Vector
    weights: Mapping[str, int]


def added_up(counted: Iterable[Counted], to: Mapping[str, Centroid] | None = None) -> dict[str, Centroid]:
    """The sum of each skill that any of these items is in, on top of what there is."""
    sums = dict(to or {})
    for one in counted:
        for skill, weight in one.weights.items():
            sums[skill] = sums.get(skill, Centroid.nothing()) + Centroid.of(one.vector, weight)
    return sums


def differences(before: Mapping[str, Centroid], after: Mapping[str, Centroid]) -> dict[str, Centroid]:
    """What has to be added to the sums before to make them those after, where they differ."""
    nothing = Centroid.nothing()
    moves = {one: after.get(one, nothing) - before.get(one, nothing) for one in before.keys() | after.keys()}
    return {skill: move for skill, move in moves.items() if not move.is_nothing}


@dataclass(frozen=True)
class SkillState:
    """A skill and the sum of its items at one version, as its point has to be."""

    skill: Skill
    total: Centroid
    version: int


@dataclass(frozen=True)
class Rebuilt:
    """What an exact recount found: which skills were off, and how far the worst vector and the worst count."""

    skills: int
    items: int
    mended: tuple[str, ...]
    largest_drift: float
    largest_miscount: int


def rebuilt(kept: Mapping[str, Centroid], exact: Mapping[str, Centroid], items: int) -> Rebuilt:
    """What was kept beside what it should have been."""
    moves, nothing = differences(kept, exact), Centroid.nothing()
    drifts = [_drift(kept.get(one, nothing), exact.get(one, nothing)) for one in moves]
    miscounts = [abs(move.members) for move in moves.values()]
    skills = len(kept.keys() | exact.keys())
    return Rebuilt(skills, items, tuple(sorted(moves)), max(drifts, default=0.0), max(miscounts, default=0))


def _drift(kept: Centroid, exact: Centroid) -> float:
    """How far apart the two means are, component by component; 1 when only one of them is."""
    one, other = kept.mean(), exact.mean()
    if one is None or other is None:
        return 0.0 if one is other else 1.0
    return float(np.abs(one - other).max())
