"""bench search: the product against its own bare parts, one search at a time."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from toolscript.errors import SetupError
from toolscript.evaluation.open_loop import Answer
from toolscript.evaluation.side_by_side import WARM_UP, Run, compare
from toolscript.model.measurements import Comparison
from toolscript.model.progress import OnProgress
from toolscript.model.queries import Strategy
from toolscript.service.bench_processes import bare_worker, run_bench, search_server
from toolscript.service.queries import queries_or_names
from toolscript.service.search_over_http import HttpLine, search_request

ANSWER_SECONDS = 30.0


def bench_search(
    *, queries: Path | None, count: int, strategy: Strategy, cached: bool, on_progress: OnProgress
) -> Comparison:
    """Both are processes of their own that are asked over a connection: whoever asks takes no time of either."""

    async def run() -> Comparison:
        texts = await queries_or_names(queries, count + WARM_UP)
        async with (
            bare_worker(strategy, texts, cached=cached) as bare,
            search_server(cached=cached) as server,
            _searching(bare.port, strategy) as run_bare,
            _searching(server.port, strategy) as run_ours,
        ):
            return await compare(run_bare, run_ours, texts, on_progress)

    return run_bench(run())


@asynccontextmanager
async def _searching(port: int, strategy: Strategy) -> AsyncIterator[Run]:
    """Searches over one connection. What is not told by whoever answers is the way there and back."""
    line = HttpLine(port)

    async def search(text: str) -> Mapping[str, float]:
        started = time.perf_counter()
        answer = await asyncio.wait_for(_answer(line, search_request(text, strategy)), ANSWER_SECONDS)
        spent = (time.perf_counter() - started) * 1000
        if answer.fault:
            raise SetupError(f"the server's answer: {answer.fault}", hint="run `toolscript serve` to see its log")
        stages = dict(answer.stages)
        stages["http"] = spent - stages.pop("total")
        return stages

    try:
        yield search
    finally:
        line.close()


async def _answer(line: HttpLine, request: bytes) -> Answer:
    answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    line.ask(request, answered.set_result)
    return await answered
