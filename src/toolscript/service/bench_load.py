"""bench search under load: at rising rates beside the bare pipeline, or at one rate for a while."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from toolscript.errors import InvalidRequest, SetupError
from toolscript.evaluation.latency_plot import latency_plot
from toolscript.evaluation.load_figures import by_minute, figures_of, rise, usual_rates
from toolscript.evaluation.open_loop import OpenLoop, Run, Schedule
from toolscript.model.measurements import LoadComparison, LoadFigures, Sustained
from toolscript.model.progress import OnProgress, silent
from toolscript.model.queries import Strategy
from toolscript.service.bench_processes import Child, bare_worker, run_bench, search_server
from toolscript.service.queries import queries_or_names
from toolscript.service.search_over_http import HttpLine, search_request

CONNECTIONS = 64
DIFFERENT_QUERIES = 10_000
MOST_RATE = 1_000.0
WARM_UP = Schedule(rate=20.0, seconds=2.0)
OURS, BARE = "search", "bare"


@dataclass(frozen=True)
class Target:
    """What is measured, and the connections to it."""

    name: str
    child: Child
    lines: Sequence[HttpLine]

    async def run(
        self, requests: Sequence[bytes], schedule: Schedule, on_progress: OnProgress
    ) -> tuple[Run, LoadFigures]:
        mine, its = time.process_time(), self.child.cpu_seconds()
        loop = OpenLoop(self.lines, requests, on_progress=on_progress)
        run = await loop.run(schedule, f"{self.name} at {schedule.rate:g}/s")
        spent = {"generator": time.process_time() - mine, self.name: self.child.cpu_seconds() - its}
        return run, figures_of(run, {name: seconds * 1000 / len(run.asked) for name, seconds in spent.items()})


def bench_load(
    *,
    queries: Path | None,
    count: int | None,
    strategy: Strategy,
    rates: Sequence[float],
    step_seconds: float,
    cached: bool,
    plot: Path | None,
    on_progress: OnProgress,
) -> LoadComparison:
    """Without `rates`, the usual ones."""

    async def run() -> LoadComparison:
        texts = await queries_or_names(queries, count or DIFFERENT_QUERIES)
        requests = [search_request(text, strategy) for text in texts]
        async with AsyncExitStack() as stack:
            bare = await stack.enter_async_context(_target(BARE, bare_worker(strategy, texts, cached=cached)))
            ours = await stack.enter_async_context(_target(OURS, search_server(cached=cached)))
            targets = {target.name: target for target in (ours, bare)}
            for target in targets.values():
                await _warm_up(target, requests)

            async def step(name: str, rate: float, first: int) -> LoadFigures:
                schedule = Schedule(rate, step_seconds)
                return (await targets[name].run(_from(requests, first), schedule, on_progress))[1]

            curves = await rise(tuple(targets), rates or tuple(usual_rates(MOST_RATE)), step)
        return LoadComparison(strategy, len(texts), cached, curves[BARE], curves[OURS])

    _check_place(plot)
    compared = run_bench(run())
    if plot is not None:
        plot.write_text(latency_plot(compared), "utf-8")
    return compared


def bench_sustained(
    *,
    queries: Path | None,
    count: int | None,
    strategy: Strategy,
    rate: float,
    seconds: float,
    cached: bool,
    on_progress: OnProgress,
) -> Sustained:
    async def run() -> Sustained:
        texts = await queries_or_names(queries, count or DIFFERENT_QUERIES)
        requests = [search_request(text, strategy) for text in texts]
        async with _target(OURS, search_server(cached=cached)) as target:
            await _warm_up(target, requests)
            done, whole = await target.run(requests, Schedule(rate, seconds), on_progress)
        return Sustained(strategy, len(texts), cached, whole, by_minute(done))

    return run_bench(run())


@asynccontextmanager
async def _target(name: str, started: AbstractAsyncContextManager[Child]) -> AsyncIterator[Target]:
    async with started as child:
        lines = [HttpLine(child.port) for _ in range(CONNECTIONS)]
        try:
            yield Target(name, child, lines)
        finally:
            for line in lines:
                line.close()


async def _warm_up(target: Target, requests: Sequence[bytes]) -> None:
    """The last ones: what is measured begins with the first."""
    _, figures = await target.run(requests[::-1], WARM_UP, silent)
    if figures.errors:
        raise SetupError(
            f"{target.name} does not answer as it should: {', '.join(figures.errors)}",
            hint="run `toolscript doctor --index`, and `toolscript serve` to see its log",
        )


def _from(requests: Sequence[bytes], first: int) -> list[bytes]:
    """All of them, beginning with another one."""
    start = first % len(requests)
    return [*requests[start:], *requests[:start]]


def _check_place(plot: Path | None) -> None:
    """Before minutes of measuring, not after."""
    if plot is not None and not plot.absolute().parent.is_dir():
        raise InvalidRequest(f"there is no folder {plot.absolute().parent}", hint="make it, or give another file")
