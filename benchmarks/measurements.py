"""Measurements: latency, load curves, two sides in turn, and recall of nearest neighbours."""

import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Protocol

from benchmarks.open_loop import UNANSWERED, UNSENT, Due, Run
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.tools.model.query import Strategy

MIN_ACHIEVED = 0.95
MAX_P95_MS = 1_000.0
# At the edges of a step, two answers more or less are chance.
CHANCE_ANSWERS = 2
MINUTE = 60.0

WARM_UP_QUERIES = 10

# Answers the milliseconds of each of its stages, as far as it knows them.
TimedSearch = Callable[[str], Awaitable[Mapping[str, float] | None]]


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
class LoadStats:
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

    steps: tuple[LoadStats, ...]

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
    whole: LoadStats
    minutes: tuple[LoadStats, ...]


Step = Callable[[str, float, int], Awaitable[LoadStats]]


def stats_of(run: Run, cpu_ms: Mapping[str, float] | None = None) -> LoadStats:
    return _figures(run.asked, run.began, run.schedule.seconds, run.schedule.rate, cpu_ms or {})


def by_minute(run: Run) -> tuple[LoadStats, ...]:
    """Of the requests due in each minute, so that a drift is seen."""
    seconds, rate = run.schedule.seconds, run.schedule.rate
    minutes = []
    for number in range(math.ceil(seconds / MINUTE)):
        first = run.began + number * MINUTE
        due = [one for one in run.asked if first <= one.due < first + MINUTE]
        if due:
            minutes.append(_figures(due, first, min(MINUTE, seconds - number * MINUTE), rate, {}))
    return tuple(minutes)


def is_saturated(achieved: float, offered: float, seconds: float, p95_ms: float) -> bool:
    return achieved + CHANCE_ANSWERS / seconds < MIN_ACHIEVED * offered or p95_ms > MAX_P95_MS


async def rise(names: Sequence[str], rates: Sequence[float], step: Step) -> dict[str, LoadCurve]:
    """Each rate for each of them in turn, until all have had more than they carry.

    `step` is told the name, the rate, and which request to begin with: both are asked the same at the same rate,
    and nobody what was asked before. A rate that was too much is tried once more, and the second time counts: a
    machine that was busy for a moment ends no curve.
    """
    steps: dict[str, list[LoadStats]] = {name: [] for name in names}
    asked = 0
    for number, rate in enumerate(rates):
        left = [name for name in names if not steps[name] or not steps[name][-1].saturated]
        if not left:
            break
        begins = asked
        for name in left if number % 2 == 0 else left[::-1]:
            figures = await step(name, rate, begins)
            asked = max(asked, begins + figures.requests)
            if figures.saturated:
                figures = await step(name, rate, begins + figures.requests)
                asked = max(asked, begins + 2 * figures.requests)
            steps[name].append(figures)
    return {name: LoadCurve(tuple(done)) for name, done in steps.items()}


def usual_rates(maximum: float) -> Iterator[float]:
    """10, 20, 40, and from there in steps of 20."""
    rates = (10.0, *(20.0 * number for number in (1, *range(2, math.ceil(maximum / 20) + 1))))
    return (rate for rate in rates if rate <= maximum)


def _figures(
    asked: Sequence[Due], began: float, seconds: float, rate: float, cpu_ms: Mapping[str, float]
) -> LoadStats:
    waited = sorted((one.done - one.due) * 1000 for one in asked if one.fault in ("", UNSENT, UNANSWERED))
    achieved = min(rate, _achieved(asked, began, began + seconds))
    p50, p95, p99 = _percentiles(waited)
    on_time = [(one.sent - one.due) * 1000 for one in asked if one.sent is not None and not one.had_to_wait]
    return LoadStats(
        offered=rate,
        achieved=round(achieved, 2),
        requests=len(asked),
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        max_ms=round(waited[-1], 3) if waited else 0.0,
        saturated=is_saturated(achieved, rate, seconds, p95),
        errors=dict(sorted(Counter(one.fault for one in asked if one.fault).items())),
        strategies=dict(sorted(Counter(one.answer.strategy for one in asked if one.answer.strategy).items())),
        stages=_stages(asked),
        late_p95_ms=_percentiles(on_time)[1],
        cpu_ms={name: round(spent, 3) for name, spent in cpu_ms.items()},
    )


def _achieved(asked: Sequence[Due], began: float, ends: float) -> float:
    """Right answers a second, of those that came in time."""
    return sum(not one.fault and one.done <= ends for one in asked) / (ends - began)


def _percentiles(values: Sequence[float]) -> tuple[float, float, float]:
    if len(values) < 2:
        only = round(values[0], 3) if values else 0.0
        return only, only, only
    cuts = quantiles(values, n=100, method="inclusive")
    return round(cuts[49], 3), round(cuts[94], 3), round(cuts[98], 3)


def _stages(asked: Sequence[Due]) -> tuple[Latency, ...]:
    spent: dict[str, list[float]] = {}
    for one in asked:
        if not one.fault:
            for stage, took in one.answer.stages.items():
                spent.setdefault(stage, []).append(took)
    return tuple(Latency.of(stage, values) for stage, values in spent.items() if len(values) > 1)


async def compare(
    bare: TimedSearch, ours: TimedSearch, inputs: Sequence[str], on_progress: OnProgress = silent
) -> Comparison:
    """Inputs are used once, so that no cache helps."""
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
            told = await run(text)
            totals[name].append((time.perf_counter() - started) * 1000)
            for stage, spent in (told or {}).items():
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


def recall_at(found: Sequence[Scored], exact: Sequence[Scored], depth: int) -> float:
    """Of `exact`, which is not empty. By score: of those equally near, any will do."""
    wanted = exact[:depth]
    minimum = wanted[-1].score - 1e-6
    return min(1.0, sum(one.score >= minimum for one in found[:depth]) / len(wanted))
