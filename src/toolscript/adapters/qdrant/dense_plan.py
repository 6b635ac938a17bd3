"""Which conditions the dense arm sends along, and which it checks on what comes back.

A filter that nearly all points pass makes a graph search worse: it cuts links and gains nothing. So broad
conditions are checked afterwards, on a few more candidates. How broad they really are is learned on the way.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolscript.model.index import Candidate, Condition, Where

MARGIN = 1.15
NARROW = 0.5
FIRST_GUESS = 0.8
LEARNING = 0.1


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
        passing = self._passing.get(checked, FIRST_GUESS)
        if not checked or passing < NARROW:
            return DensePlan(where, (), limit)
        sent = tuple(condition for condition in where if condition not in self._broad)
        return DensePlan(sent, checked, math.ceil(limit / passing * MARGIN))

    def checked(self, plan: DensePlan, found: Sequence[Candidate], limit: int) -> list[Candidate] | None:
        """The candidates that pass, or None when the engine may have more of them than it was asked for."""
        if not plan.checked:
            return list(found)
        passed = [hit for hit in found if all(_holds(hit.fields, condition) for condition in plan.checked)]
        if found:
            before = self._passing.get(plan.checked, FIRST_GUESS)
            self._passing[plan.checked] = before + LEARNING * (len(passed) / len(found) - before)
        short = len(passed) < limit and len(found) >= plan.limit
        return None if short else passed[:limit]


def _holds(fields: Mapping[str, object], condition: Condition) -> bool:
    return fields.get(condition.field) in condition.any_of
