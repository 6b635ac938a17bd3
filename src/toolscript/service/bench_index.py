"""bench index: the same questions to a large and to a small collection, made for it and dropped after it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np

from toolscript.adapters import qdrant
from toolscript.adapters.query_lines import read_queries
from toolscript.errors import SetupError
from toolscript.evaluation.index_at_scale import Question, ShapeFigures, measure
from toolscript.evaluation.lookalikes import RealPoints, lookalikes, real_points
from toolscript.model.item_text import item_terms
from toolscript.model.items import StoredItem
from toolscript.model.models import IndexCard
from toolscript.model.progress import OnProgress, Progress
from toolscript.model.words import query_terms
from toolscript.ports import Catalog, Embedder, Index
from toolscript.service.parts import open_embedder, open_stores
from toolscript.service.queries import names_from_catalog
from toolscript.settings import Settings, load_settings
from toolscript.sync.item_vectors import embed_items

PAGE = 500
BATCH = 1_000


def bench_index(
    *, items: int, few: int, questions: int, real: int, queries: Path | None, on_progress: OnProgress
) -> list[dict[str, object]]:
    async def run() -> list[dict[str, object]]:
        settings = load_settings()
        async with open_stores(settings) as stores, open_embedder(settings) as embedder:
            points = await _real_points(stores.catalog, embedder, real, on_progress)
            texts = (
                read_queries(queries, questions)
                if queries
                else await names_from_catalog(stores.catalog, questions)
            )
            asked = [Question(await embedder.embed_query(text), query_terms(text)) for text in texts]
            card = IndexCard(embedder.model)
            async with (
                _collection(settings, card, points, few, on_progress) as small,
                _collection(settings, card, points, items, on_progress) as large,
            ):
                return [_row(figures) for figures in await measure(small, large, asked, points, on_progress)]

    return asyncio.run(run())


async def _real_points(catalog: Catalog, embedder: Embedder, count: int, on_progress: OnProgress) -> RealPoints:
    stored: list[StoredItem] = []
    vectors = []
    after = 0
    while len(stored) < count and (page := await catalog.scan(after, min(PAGE, count - len(stored)))):
        found = await catalog.items([seen.id for seen in page])
        vectors.append(await embed_items(embedder, [one.item for one in found]))
        stored += found
        after = page[-1].id
        on_progress(Progress("embed", len(stored), count))
    if len(stored) < 100:
        raise SetupError("the catalog is too small to measure", hint="run `toolscript sync` first")
    return real_points(np.concatenate(vectors), [item_terms(one.item) for one in stored])


@asynccontextmanager
async def _collection(
    settings: Settings, card: IndexCard, real: RealPoints, count: int, on_progress: OnProgress
) -> AsyncIterator[Index]:
    async with qdrant.connect(
        settings.qdrant_url,
        settings.qdrant_grpc_port,
        api_key=settings.qdrant_api_key.get_secret_value(),
        timeout_seconds=300,
    ) as connected:
        indexes = qdrant.QdrantIndexes(connected, f"bench_{count}", qdrant.Layout())
        await indexes.create(card)
        try:
            async with indexes.loading(card):
                await _fill(await indexes.open(card), real, count, on_progress)
            yield await indexes.open(card)
        finally:
            await indexes.drop(card.fingerprint)


async def _fill(index: Index, real: RealPoints, count: int, on_progress: OnProgress) -> None:
    """One batch is made while another is written."""
    done = 0
    writing: asyncio.Task[None] | None = None
    for points in lookalikes(real, count, BATCH):
        if writing is not None:
            await writing
        writing = asyncio.create_task(index.put(points))
        await asyncio.sleep(0)
        done += len(points)
        on_progress(Progress(f"fill {count:,}", done, count))
    if writing is not None:
        await writing


def _row(figures: ShapeFigures) -> dict[str, object]:
    return {
        "shape": figures.shape,
        "small p50": round(figures.both.small.p50_ms, 1),
        "small p95": round(figures.both.small.p95_ms, 1),
        "large p50": round(figures.both.large.p50_ms, 1),
        "large p95": round(figures.both.large.p95_ms, 1),
        "p95 ratio": figures.both.p95_ratio,
        "dense p95": round(figures.dense.large.p95_ms, 1),
        "dense ratio": figures.dense.p95_ratio,
        "words p95": round(figures.words.large.p95_ms, 1),
        "words ratio": figures.words.p95_ratio,
        "recall@10": figures.recall_at_10,
        "recall@100": figures.recall_at_100,
    }
