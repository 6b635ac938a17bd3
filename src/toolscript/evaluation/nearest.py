"""How much of the truly nearest a faster way finds."""

from collections.abc import Sequence
from typing import Protocol


class Scored(Protocol):
    @property
    def score(self) -> float: ...


def recall_at(found: Sequence[Scored], exact: Sequence[Scored], depth: int) -> float:
    """Of `exact`, which is not empty. By score: of those equally near, any will do."""
    wanted = exact[:depth]
    least = wanted[-1].score - 1e-6
    return min(1.0, sum(one.score >= least for one in found[:depth]) / len(wanted))
