"""A collection of documents that is there for a measurement alone, and is filled in the fastest way."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from toolscript.adapters import qdrant
from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.connection import translated
from toolscript.adapters.qdrant.documents.layout import INDEX_FROM_KB, LARGEST_SEGMENT_KB
from toolscript.adapters.qdrant.documents.payload import TENANT, VERSION
from toolscript.adapters.qdrant.documents.writing import points_of
from toolscript.adapters.qdrant.values import to_value
from toolscript.errors import IndexUnavailable, NotFound
from toolscript.evaluation.many_documents import Originals, TenantSize, documents_of, portions_of
from toolscript.model.document_cards import DocumentCard
from toolscript.model.progress import OnProgress, Progress
from toolscript.service.under_way import few_at_once

ALIAS = "bench_documents"
AT_ONCE = 500
SETTLE_SECONDS = 3600.0
# Inserts into a segment become ever slower as it grows: small ones, and no graphs.
LOADING = wire.OptimizersConfigDiff(max_segment_size=60_000, indexing_threshold=0)
SEARCHING = wire.OptimizersConfigDiff(max_segment_size=LARGEST_SEGMENT_KB, indexing_threshold=INDEX_FROM_KB)


class BenchDocuments:
    """The index, and what only a bench may do with it: write for all tenants at once."""

    def __init__(self, connected: qdrant.Qdrant, alias: str, index: qdrant.QdrantDocuments) -> None:
        self._qdrant = connected
        self.alias = alias
        self.index = index

    async def fill(
        self, originals: Originals, sizes: Sequence[TenantSize], seed: int, on_progress: OnProgress
    ) -> None:
        """Graphs are built when everything is there."""
        await self._optimize(LOADING)
        total = sum(size.passages for size in sizes)

        def upserts() -> Iterator[Coroutine[Any, Any, None]]:
            done = 0
            for points in _batches(originals, sizes, seed):
                yield self._upsert(points)
                done += len(points)
                on_progress(Progress(f"fill {total:,}", done, total))

        await few_at_once(upserts())
        await self._optimize(SEARCHING)
        await self.settle(on_progress)

    async def settle(self, on_progress: OnProgress) -> None:
        """Green twice in a row: between two merges the engine is idle for a moment."""
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
    connected: qdrant.Qdrant, card: DocumentCard, *, keep: bool, use: str = ""
) -> AsyncIterator[BenchDocuments]:
    """Under a name that nobody else uses, and gone afterwards; or one that an earlier run has kept: that stays."""
    alias = use or f"{ALIAS}_{uuid.uuid4().hex[:8]}"
    layout = qdrant.DocumentLayout(fields={"lang": "keyword", "year": "number"})
    made = BenchDocuments(connected, alias, await qdrant.open_documents(connected, alias, card, layout))
    try:
        if use and not await made.count():
            keep = False
            raise NotFound(f"no earlier run has kept {use}", hint="--keep tells the name under which it keeps")
        yield made
    finally:
        if not keep and not (use and await made.count()):
            await remove_documents(connected, alias)


async def remove_documents(connected: qdrant.Qdrant, alias: str) -> None:
    """The collection that was made under this name, and the name with it."""
    with translated():
        known = await connected.collections.ListAliases(
            wire.ListAliasesRequest(), timeout=connected.timeout_seconds
        )
        for one in known.aliases:
            if one.alias_name == alias:
                gone = wire.DeleteCollection(collection_name=one.collection_name)
                await connected.collections.Delete(gone, timeout=connected.timeout_seconds)


def _batches(originals: Originals, sizes: Sequence[TenantSize], seed: int) -> Iterator[list[wire.PointStruct]]:
    batch: list[wire.PointStruct] = []
    for size, portion in portions_of(sizes, seed):
        tenant = to_value(size.tenant.name)
        for document in documents_of(originals, size, portion, seed):
            for point in points_of(document):
                point.payload[TENANT].CopyFrom(tenant)
                point.payload[VERSION].CopyFrom(to_value(document.header.version))
                batch.append(point)
        if len(batch) >= AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch
