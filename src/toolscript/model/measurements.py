"""Figures that a bench reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles


@dataclass(frozen=True)
class Latency:
    """Milliseconds over all runs of one thing."""

    name: str
    count: int
    p50_ms: float
    p95_ms: float

    @classmethod
    def of(cls, name: str, milliseconds: Sequence[float]) -> "Latency":
        cuts = quantiles(milliseconds, n=100, method="inclusive")
        return cls(name, len(milliseconds), round(cuts[49], 3), round(cuts[94], 3))


@dataclass(frozen=True)
class Comparison:
    """The product against the bare parts it is made of, measured turn by turn."""

    bare: Latency
    ours: Latency
    parts: tuple[Latency, ...] = ()

    @property
    def p50_ratio(self) -> float:
        return round(self.ours.p50_ms / self.bare.p50_ms, 3)

    @property
    def p95_ratio(self) -> float:
        return round(self.ours.p95_ms / self.bare.p95_ms, 3)
