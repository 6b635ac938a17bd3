"""Minimum speed of document search, as a ratio to the bare engine and to a separate collection, in one run."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import numpy as np
import pytest

from benchmarks.at_scale import Row
from benchmarks.documents import BenchDocuments, DocumentBench, bench_documents_in, originals_for
from benchmarks.questions import BY_SIZE, MAX_SMALL, PLAIN, draws
from benchmarks.synthetic import TenantSize, sizes_of
from toolscript.core.embedding.embedder import LocalEmbedder
from toolscript.core.qdrant.connection import open_qdrant
from toolscript.core.settings.service import Settings
from toolscript.core.values import silent
from toolscript.documents.model.points import DocumentCard

TRIES = 6
# In one process, with so few chunks that the overhead above the engine dominates: 1.6 to 1.7 was measured.
MAX_OF_BARE = 2.0
MAX_OF_ALONE = 1.4
SEED, PASSAGES, TENANTS, ALONE, COUNT = 1, 1_500, 30, 6, 40


@dataclass(frozen=True)
class Ready:
    bench: DocumentBench
    sizes: list[TenantSize]
    alone: BenchDocuments
    few: list[TenantSize]


@pytest.fixture
async def ready(engines: Settings, model_folder: str) -> AsyncIterator[Ready]:
    """Yield tenants of all sizes in one collection, and a few small ones in another."""
    sizes = sizes_of(TENANTS, PASSAGES, SEED)
    few = [size for size in sizes if size.passages <= MAX_SMALL][::-1][:ALONE]
    async with AsyncExitStack() as stack:
        connected = await stack.enter_async_context(open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port))
        embedder = LocalEmbedder(model_folder, threads=1)
        stack.callback(embedder.close)
        card = DocumentCard(embedder.model)
        originals = await originals_for(embedder, None, PASSAGES, SEED, silent)
        many = await stack.enter_async_context(bench_documents_in(connected, card, keep=False))
        alone = await stack.enter_async_context(bench_documents_in(connected, card, keep=False))
        await many.fill(originals, sizes, SEED, silent)
        await alone.fill(originals, few, SEED, silent)
        bench = DocumentBench(connected, embedder, originals, many, COUNT, SEED, silent)
        await bench.warm_up(sizes)
        yield Ready(bench, sizes, alone, few)


@pytest.mark.requirement("DOC-007", "SLA-001")
@pytest.mark.alone
async def test_a_search_costs_little_more_than_the_bare_engine_and_nothing_for_other_tenants(
    ready: Ready,
) -> None:
    """A busy machine can spoil a run, never improve one: the best of a few is what the code can do."""
    tried = []
    for number in range(TRIES):
        tried.append(await ratios(ready, number))
        if tried[-1][0] <= MAX_OF_BARE and tried[-1][1] <= MAX_OF_ALONE:
            return
    raise AssertionError(f"{tried}: at most {MAX_OF_BARE} of the bare engine, {MAX_OF_ALONE} of being alone")


async def ratios(ready: Ready, number: int) -> tuple[float, float]:
    drawn = draws(ready.sizes, COUNT, np.random.default_rng([SEED, number]))
    (by_size,) = await ready.bench.against_baseline({BY_SIZE: drawn[BY_SIZE]})
    (hybrid,) = await ready.bench.beside_others(ready.alone, ready.few, [PLAIN])
    return _median(by_size), _median(hybrid)


def _median(row: Row) -> float:
    ratio = row["p50 ratio"]
    assert isinstance(ratio, float)
    return ratio
