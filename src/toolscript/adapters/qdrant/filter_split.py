"""A condition on several values, taken apart where the engine would answer it badly as a whole.

The engine scans what passes a filter when that is little, and walks its graph when it is much. Values with many
points have links of their own in the graph; small ones have none, and are scanned. Small ones that are many
together are neither: too much for a scan, and without links the walk loses its way (recall .73 was seen). So they
are asked for in groups that are small enough to be scanned, and those that have links together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolscript.model.index import Condition, Scalar, Where

# Sizes are a minute old, and segments of unequal size.
SAFE = 0.5
# From this share on a filter cuts more links of the graph than it saves.
BROAD = 0.6


@dataclass(frozen=True)
class Sizes:
    """How many points have each value of a field, over how many segments; `scanned` in a segment are scanned."""

    points: int = 0
    segments: int = 1
    scanned: int = 1
    values: Mapping[str, Mapping[Scalar, int]] = field(default_factory=dict)
    most_values: int = 10_000

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
        unlisted = min(known.values(), default=0) if len(known) >= self.most_values else 0
        size = {value: known.get(value, unlisted) / self.segments for value in condition.any_of}
        linked = tuple(value for value in size if size[value] > self.scanned)
        small = sorted((value for value in size if value not in linked), key=lambda value: size[value])
        groups = [*_packed(small, size, self.scanned * SAFE), *([linked] if linked else [])]
        return [replace(condition, any_of=tuple(group)) for group in groups]


def split(where: Where, sizes: Sizes) -> list[Where]:
    """What passes any of these passes the whole, and the other way round."""
    for at, condition in enumerate(where):
        groups = sizes.groups(condition)
        if len(groups) > 1:
            return [(*where[:at], group, *where[at + 1 :]) for group in groups]
    return [where]


def _packed(values: Sequence[Scalar], size: Mapping[Scalar, float], most: float) -> list[list[Scalar]]:
    groups: list[list[Scalar]] = []
    room = 0.0
    for value in values:
        if not groups or size[value] > room:
            groups.append([])
            room = most
        groups[-1].append(value)
        room -= size[value]
    return groups
