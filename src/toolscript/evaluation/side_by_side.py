"""Times the product and the bare parts turn by turn, so that a noisy machine is noisy for both."""

import time
from collections.abc import Awaitable, Callable, Sequence

from toolscript.model.measurements import Comparison, Latency
from toolscript.model.progress import OnProgress, Progress, silent

WARM_UP = 10

Run = Callable[[str], Awaitable[None]]
Stages = Callable[[str], Awaitable[dict[str, float]]]


async def compare(bare: Stages, ours: Run, inputs: Sequence[str], on_progress: OnProgress = silent) -> Comparison:
    """`bare` answers the milliseconds of each of its stages; inputs are used once, so that no cache helps."""
    warm, measured = inputs[:WARM_UP], inputs[WARM_UP:]
    for text in warm:
        await bare(text)
        await ours(text)
    stages: dict[str, list[float]] = {}
    totals: dict[str, list[float]] = {"bare": [], "search": []}

    async def run_bare(text: str) -> None:
        for name, spent in (await bare(text)).items():
            stages.setdefault(name, []).append(spent)

    turns: list[tuple[str, Run]] = [("bare", run_bare), ("search", ours)]
    for done, text in enumerate(measured, 1):
        for name, run in turns if done % 2 else reversed(turns):
            started = time.perf_counter()
            await run(text)
            totals[name].append((time.perf_counter() - started) * 1000)
        on_progress(Progress("bench", done, len(measured)))
    return Comparison(
        Latency.of("bare", totals["bare"]),
        Latency.of("search", totals["search"]),
        tuple(Latency.of(name, spent) for name, spent in stages.items()),
    )
