"""bench documents: tenants of very different sizes in one collection, made for it, against the bare engine."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np

from toolscript.adapters.query_lines import read_queries
from toolscript.evaluation.document_questions import MOST_SMALL, classes_of
from toolscript.evaluation.documents_at_scale import Row
from toolscript.evaluation.made_texts import made_texts
from toolscript.evaluation.many_documents import Originals, TenantSize, originals_of, sizes_of
from toolscript.model.document_cards import DocumentCard
from toolscript.model.passages import split_passages
from toolscript.model.progress import OnProgress, Progress
from toolscript.ports import Embedder
from toolscript.service.bench_documents_points import bench_documents_in
from toolscript.service.bench_documents_tables import DocumentBench
from toolscript.service.parts import connect_qdrant, open_embedder
from toolscript.settings.service import load_settings

# Texts that documents are made to look like: one for so many passages, but not more and not fewer than these.
PASSAGES_AN_ORIGINAL, FEWEST_ORIGINALS, MOST_ORIGINALS = 50, 50, 2_000
AT_ONCE = 64
# Tenants that are put into a collection of their own as well.
ALONE = 200
TIMEOUT_SECONDS = 600.0


def bench_documents(
    *,
    passages: int,
    tenants: int,
    count: int,
    texts: Path | None,
    seed: int,
    keep: bool,
    use: str,
    on_progress: OnProgress,
) -> dict[str, list[Row]]:
    """Tables by name. Documents look like `texts`, or else like texts that are made up."""

    async def run() -> dict[str, list[Row]]:
        settings = load_settings()
        sizes = sizes_of(tenants, passages, seed)
        few = _few(sizes)
        async with AsyncExitStack() as stack:
            embedder = await stack.enter_async_context(open_embedder(settings, parallel=1))
            connected = await stack.enter_async_context(connect_qdrant(settings, TIMEOUT_SECONDS))
            card = DocumentCard(embedder.model)
            originals = await originals_for(embedder, texts, passages, seed, on_progress)
            many = await stack.enter_async_context(bench_documents_in(connected, card, keep=keep, use=use))
            if not use:
                await many.fill(originals, sizes, seed, on_progress)
            alone = await stack.enter_async_context(bench_documents_in(connected, card, keep=False))
            await alone.fill(originals, few, seed, on_progress)
            bench = DocumentBench(connected, embedder, originals, many, count, seed, on_progress)
            measured = await bench.tables(sizes, alone, few)
        kept: list[Row] = [{"kept": many.alias, "use it with": f"--use {many.alias}"}] if keep or use else []
        return {"collection": [*_shape(sizes)], **measured, "kept": kept}

    return asyncio.run(run())


async def originals_for(
    embedder: Embedder, given: Path | None, passages: int, seed: int, on_progress: OnProgress
) -> Originals:
    """Texts that so many passages are made to look like, with their vectors."""
    texts = _texts(given, passages, seed)
    vectors = []
    for at in range(0, len(texts), AT_ONCE):
        vectors.append(await embedder.embed_passages(texts[at : at + AT_ONCE]))
        on_progress(Progress("embed", min(at + AT_ONCE, len(texts)), len(texts)))
    return originals_of(texts, np.concatenate(vectors))


def _texts(path: Path | None, passages: int, seed: int) -> list[str]:
    count = max(FEWEST_ORIGINALS, min(MOST_ORIGINALS, passages // PASSAGES_AN_ORIGINAL))
    given = made_texts(count, seed) if path is None else read_queries(path, count)
    return [split_passages(text)[0].text for text in given]


def _few(sizes: list[TenantSize]) -> list[TenantSize]:
    """Evenly of all that have few passages."""
    small = [size for size in sizes if size.passages <= MOST_SMALL]
    return small[:: max(1, len(small) // ALONE)][:ALONE]


def _shape(sizes: list[TenantSize]) -> list[Row]:
    return [
        {
            "tenants": name,
            "count": len(listed),
            "smallest": min(size.passages for size in listed),
            "median": int(np.median([size.passages for size in listed])),
            "largest": max(size.passages for size in listed),
            "passages": sum(size.passages for size in listed),
        }
        for name, listed in {**classes_of(sizes), "all": sizes}.items()
    ]
