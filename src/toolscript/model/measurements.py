"""Figures that a bench reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import quantiles

from toolscript.model.queries import Strategy


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
    """The product against the bare parts it is made of, measured turn by turn.

    `parts` are the stages of the bare pipeline, `stages` those of the product, where it tells them.
    """

    bare: Latency
    ours: Latency
    parts: tuple[Latency, ...] = ()
    stages: tuple[Latency, ...] = ()

    @property
    def p50_ratio(self) -> float:
        return round(self.ours.p50_ms / self.bare.p50_ms, 3)

    @property
    def p95_ratio(self) -> float:
        return round(self.ours.p95_ms / self.bare.p95_ms, 3)


@dataclass(frozen=True)
class LoadFigures:
    """What became of requests that were sent at one rate, whatever became of those before them.

    Latencies count from the moment a request was due; of the answers that were right, and of requests that nobody
    answered, as long as they were waited for. `late_p95_ms` is how late a request was sent although it could have
    been: the generator's own fault. `cpu_ms` is what one request cost each process. `strategies` counts what
    really ran, where that is told.
    """

    offered: float
    achieved: float
    requests: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    saturated: bool
    errors: Mapping[str, int] = field(default_factory=dict)
    strategies: Mapping[str, int] = field(default_factory=dict)
    stages: tuple[Latency, ...] = ()
    late_p95_ms: float = 0.0
    cpu_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadCurve:
    """One thing at rising rates, up to the one that it no longer carries."""

    steps: tuple[LoadFigures, ...]

    @property
    def throughput(self) -> float:
        """The most it answered in a second, whatever was asked of it."""
        return max((step.achieved for step in self.steps), default=0.0)

    @property
    def carried(self) -> float:
        """The highest rate that it carried."""
        return max((step.offered for step in self.steps if not step.saturated), default=0.0)

    @property
    def is_complete(self) -> bool:
        """Its end was found: a throughput without that is only the least it can do."""
        return any(step.saturated for step in self.steps)


@dataclass(frozen=True)
class LoadComparison:
    """The product and the bare pipeline at rising load, step by step in turn."""

    strategy: Strategy
    queries: int
    cached: bool
    bare: LoadCurve
    ours: LoadCurve

    @property
    def throughput_ratio(self) -> float:
        return round(self.ours.throughput / self.bare.throughput, 3) if self.bare.throughput else 0.0


@dataclass(frozen=True)
class Sustained:
    """One rate for a while, as a whole and by the minute in which requests were due."""

    strategy: Strategy
    queries: int
    cached: bool
    whole: LoadFigures
    minutes: tuple[LoadFigures, ...]
