"""`python -m benchmarks index`: the same queries to a large and to a small synthetic collection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np

from benchmarks.at_scale import (
    WARM_UP,
    Question,
    ShapeStats,
    SmallAndLarge,
    StagesAtScale,
    measure,
    measure_stages,
)
from benchmarks.questions import names_from_catalog, read_queries
from benchmarks.synthetic import RealPoints, real_points, skill_points, synthetic_points
from toolscript.core.embedding.items import embed_items
from toolscript.core.errors import SetupError
from toolscript.core.item_text import item_terms
from toolscript.core.items import StoredItem
from toolscript.core.qdrant.collections import QdrantIndexes
from toolscript.core.qdrant.layout import Layout
from toolscript.core.retrieval.model import IndexCard
from toolscript.core.retrieval.namespaced import DefaultNamespace
from toolscript.core.retrieval.ports import Embedder, Index
from toolscript.core.retrieval.terms import query_terms
from toolscript.core.settings.service import Settings
from toolscript.core.values import OnProgress, Progress
from toolscript.server.settings import load_settings
from toolscript.server.stores import connect_qdrant, open_embedder, open_stores
from toolscript.tools.ports import Catalog
from toolscript.tools.search import ToolSearch
from toolscript_eval.service import IN_INDEX_ALONE

PAGE = 500
BATCH = 1_000


Rows = list[dict[str, object]]


def bench_index(
    *, items: int, few: int, questions: int, real: int, queries: Path | None, keep: bool, on_progress: OnProgress
) -> dict[str, Rows]:
    """Return tables by shape of filter, and by stage of a search with skill routing."""

    async def run() -> dict[str, Rows]:
        settings = load_settings()
        async with open_stores(settings) as stores, open_embedder(settings) as embedder:
            points = await _real_points(stores.catalog, embedder, real, on_progress)
            needed = questions + WARM_UP
            texts = read_queries(queries, needed) if queries else await names_from_catalog(stores.catalog, needed)
            card = IndexCard(embedder.model)
            async with (
                _collection(settings, card, points, few, on_progress, keep=keep) as small,
                _collection(settings, card, points, items, on_progress, keep=keep) as large,
                _skills(settings, card, points) as skills,
            ):
                of_skills = DefaultNamespace(skills)
                searches = [
                    ToolSearch(embedder, DefaultNamespace(index), of_skills, IN_INDEX_ALONE)
                    for index in (small, large)
                ]
                stages = await measure_stages(searches[0], searches[1], texts, on_progress)
                embedded_queries = [
                    Question(await embedder.embed_query(text), query_terms(text)) for text in texts[:questions]
                ]
                shapes = await measure(small, large, embedded_queries, points, on_progress)
        return {
            "stages": [_stage(*stats) for stats in stages.stages.items()],
            "routing": [_routing(stages)],
            "shapes": [_row(stats) for stats in shapes],
        }

    return asyncio.run(run())


async def _real_points(catalog: Catalog, embedder: Embedder, count: int, on_progress: OnProgress) -> RealPoints:
    stored: list[StoredItem] = []
    vectors = []
    after = 0
    while len(stored) < count and (page := await catalog.scan(after, min(PAGE, count - len(stored)))):
        page_items = await catalog.items([seen.id for seen in page])
        vectors.append(await embed_items(embedder, [stored_item.item for stored_item in page_items]))
        stored += page_items
        after = page[-1].id
        on_progress(Progress("embed", len(stored), count))
    if len(stored) < 100:
        raise SetupError("the catalog is too small to measure", hint="run `toolscript sync` first")
    return real_points(np.concatenate(vectors), [item_terms(stored_item.item) for stored_item in stored])


@asynccontextmanager
async def _collection(
    settings: Settings, card: IndexCard, real: RealPoints, count: int, on_progress: OnProgress, *, keep: bool
) -> AsyncIterator[Index]:
    """Open a filled collection, reusing a complete one that an earlier run kept."""
    async with _temporary_indexes(settings, f"bench_{count}", card, keep=keep) as indexes:
        if await (await indexes.open(card)).count() != count:
            async with indexes.loading(card):
                await _fill(await indexes.open(card), real, count, on_progress)
        yield await indexes.open(card)


@asynccontextmanager
async def _skills(settings: Settings, card: IndexCard, real: RealPoints) -> AsyncIterator[Index]:
    async with _temporary_indexes(settings, "bench_skills", card, keep=False) as indexes:
        await (await indexes.open(card)).put(skill_points(real))
        yield await indexes.open(card)


@asynccontextmanager
async def _temporary_indexes(
    settings: Settings, name: str, card: IndexCard, *, keep: bool
) -> AsyncIterator[QdrantIndexes]:
    async with connect_qdrant(settings, timeout_seconds=300) as connected:
        indexes = QdrantIndexes(connected, name, Layout())
        await indexes.create(card)
        try:
            yield indexes
        finally:
            if not keep:
                await indexes.drop(card.fingerprint)


async def _fill(index: Index, real: RealPoints, count: int, on_progress: OnProgress) -> None:
    """Write points, generating each batch while the previous one is written."""
    done = 0
    writing: asyncio.Task[None] | None = None
    for points in synthetic_points(real, count, BATCH):
        if writing is not None:
            await writing
        writing = asyncio.create_task(index.put(points))
        await asyncio.sleep(0)
        done += len(points)
        on_progress(Progress(f"fill {count:,}", done, count))
    if writing is not None:
        await writing


def _stage(name: str, spent: SmallAndLarge) -> dict[str, object]:
    return {
        "stage": name,
        "small p50": round(spent.small.p50_ms, 1),
        "small p95": round(spent.small.p95_ms, 1),
        "large p50": round(spent.large.p50_ms, 1),
        "large p95": round(spent.large.p95_ms, 1),
        "p95 ratio": spent.p95_ratio,
    }


def _routing(stages: StagesAtScale) -> dict[str, object]:
    return {"searches": "really hierarchical", **stages.routed, "of": stages.searches}


def _row(stats: ShapeStats) -> dict[str, object]:
    return {
        "shape": stats.shape,
        "small p50": round(stats.both.small.p50_ms, 1),
        "small p95": round(stats.both.small.p95_ms, 1),
        "large p50": round(stats.both.large.p50_ms, 1),
        "large p95": round(stats.both.large.p95_ms, 1),
        "p95 ratio": stats.both.p95_ratio,
        "dense p95": round(stats.dense.large.p95_ms, 1),
        "dense ratio": stats.dense.p95_ratio,
        "words p95": round(stats.words.large.p95_ms, 1),
        "words ratio": stats.words.p95_ratio,
        "recall@10": stats.recall_at_10,
        "recall@100": stats.recall_at_100,
        "recall of": stats.recall_questions,
    }
