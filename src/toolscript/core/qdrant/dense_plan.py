"""Plan of dense retrieval: the conditions it sends, in how many queries, and those it checks on the results.

A filter that nearly all points pass makes a graph search worse: it cuts links and gains nothing. So broad
conditions are checked afterwards, on a few more candidates. The planner learns their real share from results.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolscript.core.retrieval.model import Candidate, Condition, Fields, Scalar, Where

# Safety factor: sizes are up to a minute old, and segments differ in size.
SAFE = 0.5
# From this share on a filter cuts more links of the graph than it saves.
BROAD = 0.6
MARGIN = 1.15
NARROW = 0.5
FIRST_GUESS = 0.8
LEARNING = 0.02


@dataclass(frozen=True)
class Sizes:
    """Points per value of a field, and segments; up to `scanned` points in a segment are scanned exactly."""

    points: int = 0
    segments: int = 1
    scanned: int = 1
    values: Mapping[str, Mapping[Scalar, int]] = field(default_factory=dict)
    max_values: int = 10_000

    def is_broad(self, condition: Condition) -> bool:
        """Return whether the engine searches its graph, and this filter would cut more links than it saves."""
        return self.points / self.segments > self.scanned and self.share(condition) >= BROAD

    def share(self, condition: Condition) -> float:
        """Return about which share of the points passes; points may have several values, so of all values."""
        counts = self.values.get(condition.field, {})
        everything = max(self.points, sum(counts.values()))
        return sum(counts.get(value, 0) for value in condition.any_of) / everything if everything else 0.0

    def groups(self, condition: Condition) -> list[Condition]:
        counts = self.values.get(condition.field)
        if counts is None or len(condition.any_of) < 2:
            return [condition]
        # If not all values are listed, an unlisted one may be as large as the smallest listed one.
        unlisted = min(counts.values(), default=0) if len(counts) >= self.max_values else 0
        size = {value: counts.get(value, unlisted) / self.segments for value in condition.any_of}
        linked = tuple(value for value in size if size[value] > self.scanned)
        small = sorted((value for value in size if value not in linked), key=lambda value: size[value])
        groups = [*_packed(small, size, self.scanned * SAFE), *([linked] if linked else [])]
        return [replace(condition, any_of=tuple(group)) for group in groups]


def split(where: Where, sizes: Sizes) -> list[Where]:
    """Split a filter into filters whose union is equivalent to it."""
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
    """One query per filter in `sent`; hits that pass the conditions in `checked` are candidates."""

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
            # An unused condition is not measured: its estimate recovers slowly until it is tried again.
            self._learn(checked, FIRST_GUESS)
            checked, passing = (), 1.0
        for condition in where:
            if condition not in checked and sizes.is_broad(condition):
                checked, passing = (*checked, condition), passing * sizes.share(condition)
        sent = tuple(condition for condition in where if condition not in checked)
        maximum = math.ceil(limit / passing * MARGIN) if checked else limit
        return DensePlan(tuple(split(sent, sizes)), checked, maximum)

    def checked(
        self, plan: DensePlan, results: Sequence[Sequence[Candidate]], limit: int
    ) -> list[Candidate] | None:
        """Return the best hits that pass, or None if the engine may have more than it returned."""
        if not plan.checked:
            return list(results[0]) if len(results) == 1 else best_of(results, limit)
        passed = [
            [hit for hit in candidates if all(_holds(hit.fields, each) for each in plan.checked)]
            for candidates in results
        ]
        returned = sum(map(len, results))
        if returned and self._broad.issuperset(plan.checked):
            self._learn(plan.checked, sum(map(len, passed)) / returned)
        pairs = zip(passed, results, strict=True)
        if any(len(kept) < limit and len(candidates) >= plan.limit for kept, candidates in pairs):
            return None
        return best_of(passed, limit)

    def _learn(self, checked: Where, share: float) -> None:
        estimate = self._passing.get(checked, FIRST_GUESS)
        self._passing[checked] = estimate + LEARNING * (share - estimate)


def best_of(results: Sequence[Sequence[Candidate]], limit: int) -> list[Candidate]:
    """Merge results; a point with values of two groups is in both."""
    unique = {hit.id: hit for hits in results for hit in hits}
    return sorted(unique.values(), key=lambda hit: (-hit.score, hit.id))[:limit]


def _holds(fields: Fields, condition: Condition) -> bool:
    value = fields.get(condition.field)
    values: Collection[object] = value if isinstance(value, list) else (value,)
    return any(item in condition.any_of for item in values)
