"""Which conditions dense retrieval sends along, in how many queries, and which it checks on the results.

A filter that nearly all points pass makes a graph search worse: it cuts links and gains nothing. So broad
conditions are checked afterwards, on a few more candidates. How broad they really are is learned on the way.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolscript.core.retrieval.model import Candidate, Condition, Fields, Scalar, Where

# Sizes are a minute old, and segments of unequal size.
SAFE = 0.5
# From this share on a filter cuts more links of the graph than it saves.
BROAD = 0.6
MARGIN = 1.15
NARROW = 0.5
FIRST_GUESS = 0.8
LEARNING = 0.02


@dataclass(frozen=True)
class Sizes:
    """How many points have each value of a field, over how many segments; `scanned` in a segment are scanned."""

    points: int = 0
    segments: int = 1
    scanned: int = 1
    values: Mapping[str, Mapping[Scalar, int]] = field(default_factory=dict)
    max_values: int = 10_000

    def is_broad(self, condition: Condition) -> bool:
        """Whether a graph is walked at all, and this filter would cut more of its links than it saves."""
        return self.points / self.segments > self.scanned and self.share(condition) >= BROAD

    def share(self, condition: Condition) -> float:
        """About which share of the points passes: points have several values, so of what is given out."""
        known = self.values.get(condition.field, {})
        everything = max(self.points, sum(known.values()))
        return sum(known.get(value, 0) for value in condition.any_of) / everything if everything else 0.0

    def groups(self, condition: Condition) -> list[Condition]:
        known = self.values.get(condition.field)
        if known is None or len(condition.any_of) < 2:
            return [condition]
        # Where not all values are listed, one that is not may be as large as the smallest that is.
        unlisted = min(known.values(), default=0) if len(known) >= self.max_values else 0
        size = {value: known.get(value, unlisted) / self.segments for value in condition.any_of}
        linked = tuple(value for value in size if size[value] > self.scanned)
        small = sorted((value for value in size if value not in linked), key=lambda value: size[value])
        groups = [*_packed(small, size, self.scanned * SAFE), *([linked] if linked else [])]
        return [replace(condition, any_of=tuple(group)) for group in groups]


def split(where: Where, sizes: Sizes) -> list[Where]:
    """What passes any of these passes the whole, and the other way round."""
    for index, condition in enumerate(where):
        groups = sizes.groups(condition)
        if len(groups) > 1:
            return [(*where[:index], group, *where[index + 1 :]) for group in groups]
    return [where]


def _packed(values: Sequence[Scalar], size: Mapping[Scalar, float], maximum: float) -> list[list[Scalar]]:
    groups: list[list[Scalar]] = []
    room = 0.0
    for value in values:
        if not groups or size[value] > room:
            groups.append([])
            room = maximum
        groups[-1].append(value)
        room -= size[value]
    return groups


@dataclass(frozen=True)
class DensePlan:
    """A question for each of `sent`; what any of them finds is a candidate, if it passes what is `checked`."""

    sent: tuple[Where, ...]
    checked: Where
    limit: int


class DensePlanner:
    def __init__(self, broad: frozenset[Condition]) -> None:
        self._broad = broad
        self._passing: dict[Where, float] = {}

    def plan(self, where: Where, limit: int, sizes: Sizes) -> DensePlan:
        checked = tuple(condition for condition in where if condition in self._broad)
        passing = self._passing.get(checked, FIRST_GUESS) if checked else 1.0
        if passing < NARROW:
            # What is not tried is not learned: it comes back little by little, and is tried again.
            self._learn(checked, FIRST_GUESS)
            checked, passing = (), 1.0
        for condition in where:
            if condition not in checked and sizes.is_broad(condition):
                checked, passing = (*checked, condition), passing * sizes.share(condition)
        sent = tuple(condition for condition in where if condition not in checked)
        maximum = math.ceil(limit / passing * MARGIN) if checked else limit
        return DensePlan(tuple(split(sent, sizes)), checked, maximum)

    def checked(self, plan: DensePlan, found: Sequence[Sequence[Candidate]], limit: int) -> list[Candidate] | None:
        """The best that pass, or None when the engine may have more of them than it was asked for."""
        if not plan.checked:
            return list(found[0]) if len(found) == 1 else best_of(found, limit)
        passed = [
            [hit for hit in candidates if all(_holds(hit.fields, each) for each in plan.checked)]
            for candidates in found
        ]
        asked = sum(map(len, found))
        if asked and self._broad.issuperset(plan.checked):
            self._learn(plan.checked, sum(map(len, passed)) / asked)
        pairs = zip(passed, found, strict=True)
        if any(len(kept) < limit and len(candidates) >= plan.limit for kept, candidates in pairs):
            return None
        return best_of(passed, limit)

    def _learn(self, checked: Where, share: float) -> None:
        before = self._passing.get(checked, FIRST_GUESS)
        self._passing[checked] = before + LEARNING * (share - before)


def best_of(found: Sequence[Sequence[Candidate]], limit: int) -> list[Candidate]:
    """A point that has values of two groups was found by both."""
    once = {hit.id: hit for hits in found for hit in hits}
    return sorted(once.values(), key=lambda hit: (-hit.score, hit.id))[:limit]


def _holds(fields: Fields, condition: Condition) -> bool:
    value = fields.get(condition.field)
    values: Collection[object] = value if isinstance(value, list) else (value,)
    return any(one in condition.any_of for one in values)
