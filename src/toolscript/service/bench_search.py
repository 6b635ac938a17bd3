"""bench search: the product against its own bare parts, one search at a time."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from toolscript.adapters.query_lines import read_queries
from toolscript.errors import SetupError
from toolscript.evaluation.open_loop import Answer
from toolscript.evaluation.side_by_side import WARM_UP, Run, compare
from toolscript.model.measurements import Comparison
from toolscript.model.models import IndexCard
from toolscript.model.progress import OnProgress
from toolscript.model.queries import Strategy
from toolscript.service.bare_pipeline import BarePipeline
from toolscript.service.bench_processes import run_bench, search_server
from toolscript.service.parts import open_embedder, open_stores
from toolscript.service.queries import names_from_catalog
from toolscript.service.search_over_http import HttpLine, search_request
from toolscript.settings import load_settings
from toolscript.sync.generations import open_for_reading

ANSWER_SECONDS = 30.0


def bench_search(
    *, queries: Path | None, count: int, strategy: Strategy, cached: bool, on_progress: OnProgress
) -> Comparison:
    async def run() -> Comparison:
        settings = load_settings()
        parallel = os.cpu_count() or 1
        async with open_stores(settings) as stores, open_embedder(settings, parallel=parallel) as embedder:
            opened = await open_for_reading(stores.indexes, IndexCard(embedder.model))
            wanted = count + WARM_UP
            texts = read_queries(queries, wanted) if queries else await names_from_catalog(stores.catalog, wanted)
            bare = BarePipeline(embedder, opened.items, opened.skills, stores.catalog, strategy)
            bare.prepare(texts)

            async def run_bare(text: str) -> Mapping[str, float]:
                return (await bare.run(text)).stages

            async with search_server(cached=cached) as server, _searching(server.port, strategy) as ours:
                return await compare(run_bare, ours, texts, on_progress)

    return run_bench(run())


@asynccontextmanager
async def _searching(port: int, strategy: Strategy) -> AsyncIterator[Run]:
    """Searches over one connection. What the server does not know of is the way to it and back."""
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
