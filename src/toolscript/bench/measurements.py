"""What an open loop's run says: throughput, latencies, errors, and whether the rate was too much."""

import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from statistics import quantiles

from toolscript.evaluation.open_loop import UNANSWERED, UNSENT, Due, Run
from toolscript.model.measurements import Latency, LoadCurve, LoadFigures

LEAST_ACHIEVED = 0.95
MOST_P95_MS = 1_000.0
# At the edges of a step, two answers more or less are chance.
CHANCE_ANSWERS = 2
MINUTE = 60.0

Step = Callable[[str, float, int], Awaitable[LoadFigures]]


def figures_of(run: Run, cpu_ms: Mapping[str, float] | None = None) -> LoadFigures:
    return _figures(run.asked, run.began, run.schedule.seconds, run.schedule.rate, cpu_ms or {})


def by_minute(run: Run) -> tuple[LoadFigures, ...]:
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
    return achieved + CHANCE_ANSWERS / seconds < LEAST_ACHIEVED * offered or p95_ms > MOST_P95_MS


async def rise(names: Sequence[str], rates: Sequence[float], step: Step) -> dict[str, LoadCurve]:
    """Each rate for each of them in turn, until all have had more than they carry.

    `step` is told the name, the rate, and which request to begin with: both are asked the same at the same rate,
    and nobody what was asked before. A rate that was too much is tried once more, and the second time counts: a
    machine that was busy for a moment ends no curve.
    """
    steps: dict[str, list[LoadFigures]] = {name: [] for name in names}
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


def usual_rates(most: float) -> Iterator[float]:
    """10, 20, 40, and from there in steps of 20."""
    rates = (10.0, *(20.0 * number for number in (1, *range(2, math.ceil(most / 20) + 1))))
    return (rate for rate in rates if rate <= most)


def _figures(
    asked: Sequence[Due], began: float, seconds: float, rate: float, cpu_ms: Mapping[str, float]
) -> LoadFigures:
    waited = sorted((one.done - one.due) * 1000 for one in asked if one.fault in ("", UNSENT, UNANSWERED))
    achieved = min(rate, _achieved(asked, began, began + seconds))
    p50, p95, p99 = _percentiles(waited)
    on_time = [(one.sent - one.due) * 1000 for one in asked if one.sent is not None and not one.had_to_wait]
    return LoadFigures(
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
