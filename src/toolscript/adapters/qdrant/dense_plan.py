"""Which conditions the dense arm sends along, and which it checks on what comes back.

A filter that nearly all points pass makes a graph search worse: it cuts links and gains nothing. So broad
conditions are checked afterwards, on a few more candidates. How broad they really are is learned on the way.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from toolscript.model.index import Candidate, Condition, Fields, Where

MARGIN = 1.15
NARROW = 0.5
FIRST_GUESS = 0.8
LEARNING = 0.02


Found = tuple[Candidate, Fields]


@dataclass(frozen=True)
class DensePlan:
    sent: Where
    checked: Where
    limit: int


class DensePlanner:
    def __init__(self, broad: frozenset[Condition]) -> None:
        self._broad = broad
        self._passing: dict[Where, float] = {}

    def plan(self, where: Where, limit: int) -> DensePlan:
        checked = tuple(condition for condition in where if condition in self._broad)
        if not checked:
            return DensePlan(where, (), limit)
        passing = self._passing.get(checked, FIRST_GUESS)
        if passing < NARROW:
            # What is not tried is not learned: it comes back little by little, and is tried again.
            self._learn(checked, FIRST_GUESS)
            return DensePlan(where, (), limit)
        sent = tuple(condition for condition in where if condition not in self._broad)
        return DensePlan(sent, checked, math.ceil(limit / passing * MARGIN))

    def checked(self, plan: DensePlan, found: Sequence[Found], limit: int) -> list[Candidate] | None:
        """The candidates that pass, or None when the engine may have more of them than it was asked for."""
        if not plan.checked:
            return [candidate for candidate, _ in found]
        passed = [hit for hit, fields in found if all(_holds(fields, condition) for condition in plan.checked)]
        if found:
            self._learn(plan.checked, len(passed) / len(found))
        short = len(passed) < limit and len(found) >= plan.limit
        return None if short else passed[:limit]

    def _learn(self, checked: Where, share: float) -> None:
        before = self._passing.get(checked, FIRST_GUESS)
        self._passing[checked] = before + LEARNING * (share - before)


def _holds(fields: Fields, condition: Condition) -> bool:
    return fields.get(condition.field) in condition.any_of
