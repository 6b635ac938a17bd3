"""`python -m benchmarks documents`: tenants of very different sizes in one collection, against the bare engine."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.at_scale import PairedTimes, Recalls, Row, StageTimes
from benchmarks.baseline import BaselineDocuments, BaselineQuestion
from benchmarks.questions import (
    BY_SIZE,
    FILTERS,
    MAX_SMALL,
    PLAIN,
    SHAPES,
    UNIFORMLY,
    Question,
    Shape,
    classes_of,
    draws,
    question_for,
    read_queries,
)
from benchmarks.synthetic import (
    Originals,
    TenantSize,
    documents_of,
    originals_of,
    portions_of,
    run_bounded,
    sizes_of,
    synthetic_texts,
)
from toolscript.core.auth.model import Principal
from toolscript.core.chunking import split_into_chunks, terms_of_chunk_query
from toolscript.core.errors import IndexUnavailable, NotFound, SetupError
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import Qdrant, translated
from toolscript.core.qdrant.values import to_value
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.query import SearchType
from toolscript.core.values import OnProgress, Progress
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.qdrant.collection import QdrantDocuments, open_documents
from toolscript.documents.qdrant.layout import INDEX_FROM_KB, MAX_SEGMENT_KB, DocumentLayout
from toolscript.documents.qdrant.tenant_documents import points_of
from toolscript.documents.qdrant.tenant_points import TENANT, VERSION
from toolscript.documents.search import DocumentSearch
from toolscript.server.settings import load_settings
from toolscript.server.stores import connect_qdrant, open_embedder
from toolscript_eval.documents import remove_documents

ALIAS = "bench_documents"
POINTS_PER_UPLOAD = 500
SETTLE_SECONDS = 3600.0
# Inserts slow down as a segment grows: use small segments, and build no graphs while loading.
LOADING = wire.OptimizersConfigDiff(max_segment_size=60_000, indexing_threshold=0)
SEARCHING = wire.OptimizersConfigDiff(max_segment_size=MAX_SEGMENT_KB, indexing_threshold=INDEX_FROM_KB)

RETURNED = 10
WARM_UP = 20
# Classes whose tenants are large enough for an HNSW graph.
WITH_GRAPHS = ("big", "biggest")
KEYWORD = Shape(SearchType.KEYWORD)

# Number of texts that documents are derived from: one for so many chunks, within these bounds.
CHUNKS_AN_ORIGINAL, MIN_ORIGINALS, MAX_ORIGINALS = 50, 50, 2_000
EMBED_BATCH = 64
# Number of tenants that are also put into a second collection.
ALONE = 200
TIMEOUT_SECONDS = 600.0


class BenchDocuments:
    """The index, with bulk writes across tenants that only a benchmark may do."""

    def __init__(self, connected: Qdrant, alias: str, index: QdrantDocuments) -> None:
        self._qdrant = connected
        self.alias = alias
        self.index = index

    async def fill(
        self, originals: Originals, sizes: Sequence[TenantSize], seed: int, on_progress: OnProgress
    ) -> None:
        """Fill the collection, and build the graphs afterwards."""
        await self._optimize(LOADING)
        total = sum(size.passages for size in sizes)

        def upserts() -> Iterator[Coroutine[Any, Any, None]]:
            done = 0
            for points in _batches(originals, sizes, seed):
                yield self._upsert(points)
                done += len(points)
                on_progress(Progress(f"fill {total:,}", done, total))

        await run_bounded(upserts())
        await self._optimize(SEARCHING)
        await self.settle(on_progress)

    async def settle(self, on_progress: OnProgress) -> None:
        """Wait until the collection is green twice in a row: the engine is briefly idle between two merges."""
        green, ends_at = 0, time.monotonic() + SETTLE_SECONDS
        while green < 2:
            info = (await self._collections("Get", self._named(wire.GetCollectionInfoRequest))).result
            green = green + 1 if info.status == wire.CollectionStatus.Green else 0
            on_progress(Progress("index, in vectors", info.indexed_vectors_count))
            if time.monotonic() > ends_at:
                raise IndexUnavailable(f"Qdrant is still building {self.index.collection}", hint="wait and retry")
            await asyncio.sleep(0.5)

    async def count(self) -> int:
        request = wire.CountPoints(collection_name=self.index.collection, exact=True)
        with translated():
            answer = await self._qdrant.points.Count(request, timeout=self._qdrant.timeout_seconds)
        return int(answer.result.count)

    async def _upsert(self, points: Sequence[wire.PointStruct]) -> None:
        request = wire.UpsertPoints(collection_name=self.index.collection, wait=True, points=points)
        with translated():
            await self._qdrant.points.Upsert(request, timeout=self._qdrant.timeout_seconds)

    async def _optimize(self, config: wire.OptimizersConfigDiff) -> None:
        changed = wire.UpdateCollection(collection_name=self.index.collection, optimizers_config=config)
        await self._collections("Update", changed)

    def _named(self, request: Any) -> object:
        return request(collection_name=self.index.collection)

    async def _collections(self, method: str, request: object) -> Any:
        with translated():
            return await getattr(self._qdrant.collections, method)(request, timeout=self._qdrant.timeout_seconds)


@asynccontextmanager
async def bench_documents_in(
    connected: Qdrant, card: DocumentCard, *, keep: bool, use: str = ""
) -> AsyncIterator[BenchDocuments]:
    """Create a collection with a unique name and drop it at the end; or use a kept one, which stays."""
    alias = use or f"{ALIAS}_{uuid.uuid4().hex[:8]}"
    layout = DocumentLayout(fields={"lang": "keyword", "year": "number"})
    collection = BenchDocuments(connected, alias, await open_documents(connected, alias, card, layout))
    try:
        if use and not await collection.count():
            keep = False
            raise NotFound(f"there is no kept collection {use}", hint="a run with --keep prints its name")
        yield collection
    finally:
        if not keep and not (use and await collection.count()):
            await remove_documents(connected, alias)


def _batches(originals: Originals, sizes: Sequence[TenantSize], seed: int) -> Iterator[list[wire.PointStruct]]:
    batch: list[wire.PointStruct] = []
    for size, portion in portions_of(sizes, seed):
        tenant = to_value(size.tenant.name)
        for document in documents_of(originals, size, portion, seed):
            for point in points_of(document):
                point.payload[TENANT].CopyFrom(tenant)
                point.payload[VERSION].CopyFrom(to_value(document.header.version))
                batch.append(point)
        if len(batch) >= POINTS_PER_UPLOAD:
            yield batch
            batch = []
    if batch:
        yield batch


class DocumentBench:
    def __init__(
        self,
        connected: Qdrant,
        embedder: Embedder,
        originals: Originals,
        many: BenchDocuments,
        count: int,
        seed: int,
        on_progress: OnProgress,
    ) -> None:
        self._embedder, self._originals, self._many = embedder, originals, many
        self._bare = BaselineDocuments(connected, many.index.collection, embedder)
        self._count, self._seed = count, seed
        self._rng = np.random.default_rng([seed, 9])
        self._on_progress = on_progress

    async def tables(
        self, sizes: Sequence[TenantSize], alone: BenchDocuments, few: Sequence[TenantSize]
    ) -> dict[str, list[Row]]:
        await self.warm_up(sizes)
        return {
            "against the bare engine": await self.against_baseline(draws(sizes, self._count, self._rng)),
            "stages of a hybrid search, p50 ms": await self._stages(sizes),
            "first search of a tenant against a later one": await self._first_searches(sizes),
            "the same tenants beside all others against alone": await self.beside_others(alone, few),
            "recall of dense retrieval": await self._recalls(sizes),
        }

    async def warm_up(self, sizes: Sequence[TenantSize]) -> None:
        search = self._search()
        for size in draws(sizes, WARM_UP, self._rng)[BY_SIZE]:
            question = self._question(size)
            await _run_search(search, question, PLAIN)
            await self._bare.run(await self._bare_question(question, PLAIN))

    async def against_baseline(self, drawn: Mapping[str, Sequence[TenantSize]]) -> list[Row]:
        """Measure each class with warm IDF caches, as tenants that search have them; random tenants are cold."""
        times = PairedTimes(("tenants", "search"), ("ours", "bare"))
        search = self._search()
        shapes = {name: (PLAIN,) if name in (UNIFORMLY, BY_SIZE) else SHAPES for name in drawn}
        for name, listed in drawn.items():
            for shape in shapes[name]:
                for size in listed:
                    question = self._question(size)
                    bare = partial(self._bare.run, await self._bare_question(question, shape))
                    if name != UNIFORMLY:
                        await _run_search(search, question, KEYWORD)
                    await times.measure((name, str(shape)), partial(_run_search, search, question, shape), bare)
                self._progress("compare", len(times.spent), sum(map(len, shapes.values())))
        return times.rows()

    async def _stages(self, sizes: Sequence[TenantSize]) -> list[Row]:
        rows: list[Row] = []
        for name, listed in classes_of(sizes).items():
            stages = StageTimes()
            search = self._search(stages)
            for size in self._sample(listed):
                await _run_search(search, self._question(size), PLAIN)
            rows.append({"tenants": name, **stages.row()})
        return rows

    async def _first_searches(self, sizes: Sequence[TenantSize]) -> list[Row]:
        """Measure the first search of a tenant in a process, which loads its term statistics."""
        times = PairedTimes(("tenants",), ("first", "later"))
        later = self._search()
        for name, listed in classes_of(sizes).items():
            for size in self._sample(listed):
                question = self._question(size)
                await _run_search(later, question, KEYWORD)
                first = partial(_run_search, self._search(), question, PLAIN)
                await times.measure((name,), first, partial(_run_search, later, question, PLAIN))
            self._progress("first searches", len(times.spent), len(classes_of(sizes)))
        return times.rows()

    async def beside_others(
        self, alone: BenchDocuments, few: Sequence[TenantSize], shapes: Sequence[Shape] = SHAPES
    ) -> list[Row]:
        times = PairedTimes(("search",), ("beside", "alone"))
        beside_others, by_themselves = self._search(), self._search(of=alone)
        for shape in shapes:
            for size in self._sample(few):
                question = self._question(size)
                for search in (beside_others, by_themselves):
                    await _run_search(search, question, KEYWORD)
                await times.measure(
                    (str(shape),),
                    partial(_run_search, beside_others, question, shape),
                    partial(_run_search, by_themselves, question, shape),
                )
            self._progress("beside others", len(times.spent), len(shapes))
        return times.rows()

    async def _recalls(self, sizes: Sequence[TenantSize]) -> list[Row]:
        recalls = Recalls(("tenants", "filter"))
        classes = [(name, listed) for name, listed in classes_of(sizes).items() if name in WITH_GRAPHS]
        for name, listed in classes:
            for filtered, filters in FILTERS.items():
                for size in self._sample(listed):
                    vector = await self._embedder.embed_query(self._question(size).text)
                    documents = self._many.index.of(size.tenant)
                    await recalls.measure((name, filtered or "none"), documents, vector, filters)
                self._progress("recall", len(recalls.shares), len(classes) * len(FILTERS))
        return recalls.rows()

    def _search(self, stages: StageTimes | None = None, of: BenchDocuments | None = None) -> DocumentSearch:
        index = (of or self._many).index
        return DocumentSearch(self._embedder, index, spans=stages or StageTimes(), cursor_secret=b"bench")

    def _sample(self, listed: Sequence[TenantSize]) -> list[TenantSize]:
        return [listed[position] for position in self._rng.integers(len(listed), size=self._count)]

    def _question(self, size: TenantSize) -> Question:
        return question_for(self._originals, size, self._seed, self._rng)

    async def _bare_question(self, question: Question, shape: Shape) -> BaselineQuestion:
        statistics = await self._many.index.of(question.size.tenant).statistics()
        terms = {term: statistics.idf(term) for term in terms_of_chunk_query(question.text)}
        return BaselineQuestion.of(question.size.tenant, question.text, terms, shape.search_type, shape.filters)

    def _progress(self, task: str, done: int, total: int) -> None:
        self._on_progress(Progress(task, done, total))


async def _run_search(search: DocumentSearch, question: Question, shape: Shape) -> None:
    query = DocumentQuery(
        question.text, top_k=RETURNED, search_type=shape.search_type, filters=shape.filters, include_snippets=True
    )
    answer = await search.search(Principal(question.size.tenant), query)
    if answer.degraded:
        raise SetupError(
            f"a search was degraded, without {', '.join(answer.degraded)}: its latency is meaningless",
            hint="measure on an idle machine",
        )


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
    """Return tables by name. Documents are derived from `texts`, or from synthetic texts."""

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
    embedder: Embedder, path: Path | None, passages: int, seed: int, on_progress: OnProgress
) -> Originals:
    """Return the texts to derive so many chunks from, with their vectors."""
    texts = _texts(path, passages, seed)
    vectors = []
    for start in range(0, len(texts), EMBED_BATCH):
        vectors.append(await embedder.embed_texts(texts[start : start + EMBED_BATCH]))
        on_progress(Progress("embed", min(start + EMBED_BATCH, len(texts)), len(texts)))
    return originals_of(texts, np.concatenate(vectors))


def _texts(path: Path | None, passages: int, seed: int) -> list[str]:
    count = max(MIN_ORIGINALS, min(MAX_ORIGINALS, passages // CHUNKS_AN_ORIGINAL))
    texts = synthetic_texts(count, seed) if path is None else read_queries(path, count)
    return [split_into_chunks(text)[0].text for text in texts]


def _few(sizes: list[TenantSize]) -> list[TenantSize]:
    """Return an even sample of the tenants with few chunks."""
    small = [size for size in sizes if size.passages <= MAX_SMALL]
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
