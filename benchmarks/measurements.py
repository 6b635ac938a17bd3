"""Measurements: latency, load curves, paired comparison, and recall of nearest neighbours."""

import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Protocol

from benchmarks.open_loop import UNANSWERED, UNSENT, Run, ScheduledRequest
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.tools.model.query import Strategy

MIN_ACHIEVED = 0.95
MAX_P95_MS = 1_000.0
# Random variation at the edges of a step.
TOLERATED_ANSWERS = 2
MINUTE = 60.0

WARM_UP_QUERIES = 10

# Returns the milliseconds of each stage, if known.
TimedSearch = Callable[[str], Awaitable[Mapping[str, float] | None]]


@dataclass(frozen=True)
class Latency:
    """Percentiles over all runs, in milliseconds."""

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
    """The product against the baseline, measured in turn.

    `parts` are the stages of the baseline, `stages` those of the product, if it reports them.
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
class LoadStats:
    """Results of an open loop at one rate.

    Latency counts from the time a request was due. It covers valid responses, and requests without a response up
    to the time they were abandoned. `late_p95_ms` is the delay of the generator itself: requests that it sent late
    although a connection was free. `cpu_ms` is the CPU time per request and process. `strategies` counts the
    strategies that actually ran, if reported.
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
    """Results at rising rates, up to saturation."""

    steps: tuple[LoadStats, ...]

    @property
    def throughput(self) -> float:
        """Maximum of responses per second at any rate."""
        return max((step.achieved for step in self.steps), default=0.0)

    @property
    def carried(self) -> float:
        """Highest rate without saturation."""
        return max((step.offered for step in self.steps if not step.saturated), default=0.0)

    @property
    def is_complete(self) -> bool:
        """Whether a rate saturated it; otherwise `throughput` is only a lower bound."""
        return any(step.saturated for step in self.steps)


@dataclass(frozen=True)
class LoadComparison:
    """The product and the baseline at rising load, in turn at each step."""

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
    """Results at one rate, in total and by the minute in which requests were due."""

    strategy: Strategy
    queries: int
    cached: bool
    whole: LoadStats
    minutes: tuple[LoadStats, ...]


Step = Callable[[str, float, int], Awaitable[LoadStats]]


def stats_of(run: Run, cpu_ms: Mapping[str, float] | None = None) -> LoadStats:
    return _stats(run.requests, run.began, run.schedule.seconds, run.schedule.rate, cpu_ms or {})


def by_minute(run: Run) -> tuple[LoadStats, ...]:
    """Return the results by the minute in which requests were due, to show a drift."""
    seconds, rate = run.schedule.seconds, run.schedule.rate
    minutes = []
    for number in range(math.ceil(seconds / MINUTE)):
        first = run.began + number * MINUTE
        due = [request for request in run.requests if first <= request.due < first + MINUTE]
        if due:
            minutes.append(_stats(due, first, min(MINUTE, seconds - number * MINUTE), rate, {}))
    return tuple(minutes)


def is_saturated(achieved: float, offered: float, seconds: float, p95_ms: float) -> bool:
    return achieved + TOLERATED_ANSWERS / seconds < MIN_ACHIEVED * offered or p95_ms > MAX_P95_MS


async def rise(names: Sequence[str], rates: Sequence[float], step: Step) -> dict[str, LoadCurve]:
    """Measure all targets in turn at each rate, until all are saturated.

    `step` gets the name, the rate and the index of the first request: all targets get the same requests at a rate,
    and none twice. A saturated step is repeated and the second result counts, so that a short disturbance
    does not end a curve.
    """
    steps: dict[str, list[LoadStats]] = {name: [] for name in names}
    sent = 0
    for number, rate in enumerate(rates):
        running = [name for name in names if not steps[name] or not steps[name][-1].saturated]
        if not running:
            break
        first = sent
        for name in running if number % 2 == 0 else running[::-1]:
            stats = await step(name, rate, first)
            sent = max(sent, first + stats.requests)
            if stats.saturated:
                stats = await step(name, rate, first + stats.requests)
                sent = max(sent, first + 2 * stats.requests)
            steps[name].append(stats)
    return {name: LoadCurve(tuple(results)) for name, results in steps.items()}


def usual_rates(maximum: float) -> Iterator[float]:
    """10, 20, 40, and from there in steps of 20."""
    rates = (10.0, *(20.0 * number for number in (1, *range(2, math.ceil(maximum / 20) + 1))))
    return (rate for rate in rates if rate <= maximum)


def _stats(
    requests: Sequence[ScheduledRequest], began: float, seconds: float, rate: float, cpu_ms: Mapping[str, float]
) -> LoadStats:
    latencies = sorted(
        (request.done - request.due) * 1000 for request in requests if request.fault in ("", UNSENT, UNANSWERED)
    )
    achieved = min(rate, _achieved(requests, began, began + seconds))
    p50, p95, p99 = _percentiles(latencies)
    on_time = [
        (request.sent - request.due) * 1000
        for request in requests
        if request.sent is not None and not request.had_to_wait
    ]
    return LoadStats(
        offered=rate,
        achieved=round(achieved, 2),
        requests=len(requests),
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        max_ms=round(latencies[-1], 3) if latencies else 0.0,
        saturated=is_saturated(achieved, rate, seconds, p95),
        errors=dict(sorted(Counter(request.fault for request in requests if request.fault).items())),
        strategies=dict(
            sorted(Counter(request.answer.strategy for request in requests if request.answer.strategy).items())
        ),
        stages=_stages(requests),
        late_p95_ms=_percentiles(on_time)[1],
        cpu_ms={name: round(spent, 3) for name, spent in cpu_ms.items()},
    )


def _achieved(requests: Sequence[ScheduledRequest], began: float, ends: float) -> float:
    """Return valid responses per second that arrived in time."""
    return sum(not request.fault and request.done <= ends for request in requests) / (ends - began)


def _percentiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        only = round(values[0], 3) if values else 0.0
        return only, only, only
    cuts = quantiles(values, n=100, method="inclusive")
    return round(cuts[49], 3), round(cuts[94], 3), round(cuts[98], 3)


def _stages(requests: Sequence[ScheduledRequest]) -> tuple[Latency, ...]:
    spent: dict[str, list[float]] = {}
    for request in requests:
        if not request.fault:
            for stage, took in request.answer.stages.items():
                spent.setdefault(stage, []).append(took)
    return tuple(Latency.of(stage, values) for stage, values in spent.items() if len(values) > 1)


async def compare(
    bare: TimedSearch, ours: TimedSearch, inputs: Sequence[str], on_progress: OnProgress = silent
) -> Comparison:
    """Run both in turn. Each input is used once, so that no cache helps."""
    warm, measured = inputs[:WARM_UP_QUERIES], inputs[WARM_UP_QUERIES:]
    for text in warm:
        await bare(text)
        await ours(text)
    stages: dict[str, dict[str, list[float]]] = {"bare": {}, "search": {}}
    totals: dict[str, list[float]] = {"bare": [], "search": []}
    turns: list[tuple[str, TimedSearch]] = [("bare", bare), ("search", ours)]
    for done, text in enumerate(measured, 1):
        for name, run in turns if done % 2 else reversed(turns):
            started = time.perf_counter()
            stage_times = await run(text)
            totals[name].append((time.perf_counter() - started) * 1000)
            for stage, spent in (stage_times or {}).items():
                stages[name].setdefault(stage, []).append(spent)
        on_progress(Progress("bench", done, len(measured)))
    return Comparison(
        Latency.of("bare", totals["bare"]),
        Latency.of("search", totals["search"]),
        _latencies(stages["bare"]),
        _latencies(stages["search"]),
    )


def _latencies(stages: Mapping[str, Sequence[float]]) -> tuple[Latency, ...]:
    return tuple(Latency.of(name, spent) for name, spent in stages.items())


class Scored(Protocol):
    @property
    def score(self) -> float: ...


def recall_at(hits: Sequence[Scored], exact: Sequence[Scored], depth: int) -> float:
    """Return the recall against `exact`, which is not empty. Compares scores, so that ties count as hits."""
    nearest = exact[:depth]
    minimum = nearest[-1].score - 1e-6
    return min(1.0, sum(hit.score >= minimum for hit in hits[:depth]) / len(nearest))
