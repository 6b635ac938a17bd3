"""Times the product and the bare parts turn by turn, so that a noisy machine is noisy for both."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from toolscript.model.measurements import Comparison, Latency
from toolscript.model.progress import OnProgress, Progress, silent

WARM_UP = 10

# Answers the milliseconds of each of its stages, as far as it knows them.
Run = Callable[[str], Awaitable[Mapping[str, float] | None]]


async def compare(bare: Run, ours: Run, inputs: Sequence[str], on_progress: OnProgress = silent) -> Comparison:
    """Inputs are used once, so that no cache helps."""
    warm, measured = inputs[:WARM_UP], inputs[WARM_UP:]
    for text in warm:
        await bare(text)
        await ours(text)
    stages: dict[str, dict[str, list[float]]] = {"bare": {}, "search": {}}
    totals: dict[str, list[float]] = {"bare": [], "search": []}
    turns: list[tuple[str, Run]] = [("bare", bare), ("search", ours)]
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
