"""Random filters over random documents on the real engine, compared with the evaluator.

By hand, in collections of its own (removed at the end) of the engine that the environment names:

    python -m tests.engines.filters_at_scale --filters 10000 --seed 1
"""

import argparse
import asyncio
import random
import sys
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.unit.documents.random_filters import NAMES, RandomFilters
from toolscript.core.items import JsonObject
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import Qdrant, open_qdrant
from toolscript.core.qdrant.values import to_value
from toolscript.core.retrieval.model import ModelCard
from toolscript.core.settings.service import Settings
from toolscript.documents.model.filters import Filters, Metadata, filterable, passes
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.qdrant.filters import compiled, filter_payload
from toolscript.documents.qdrant.layout import DENSE, DocumentLayout, create_request, field_requests
from toolscript.documents.qdrant.tenant_points import TENANT

CARD = DocumentCard(ModelCard("small", "1", 8))
DOCUMENTS = 400
BATCH = 100
MAX_FOUND = 10_000
OURS, THEIRS = "ours", "theirs"
NO_INDEXES = DocumentLayout()
PATIENCE_SECONDS = 60.0


def with_indexes(seed: int) -> DocumentLayout:
    """Return an index on most fields, of any type: values of other types are in them, too."""
    chance = random.Random(seed)
    fields = {name: chance.choice(("keyword", "number", "bool")) for name in NAMES if chance.random() < 0.8}
    return DocumentLayout(fields=fields)


@dataclass(frozen=True)
class Difference:
    where: str
    filters: Filters
    found_wrongly: list[int]
    missed: list[int]


@asynccontextmanager
async def collection(qdrant: Qdrant, layout: DocumentLayout, *, merged: bool = False) -> AsyncIterator[str]:
    """Create a collection. `merged`: points are moved at once into an immutable segment with its indexes."""
    name = f"filters_{uuid.uuid4().hex[:12]}"
    request = create_request(name, CARD, {}, layout)
    if merged:
        request.optimizers_config.indexing_threshold = 1
        request.optimizers_config.default_segment_number = 1
    await qdrant.collections.Create(request)
    try:
        for field in field_requests(name, layout):
            await qdrant.points.CreateFieldIndex(field)
        yield name
    finally:
        await qdrant.collections.Delete(wire.DeleteCollection(collection_name=name))


async def put(qdrant: Qdrant, name: str, documents: Sequence[Metadata]) -> None:
    """Put each document twice: OURS has its position as id, THEIRS follows after all of OURS."""
    for number, tenant in enumerate((OURS, THEIRS)):
        points = [
            _point(position + number * len(documents), tenant, document)
            for position, document in enumerate(documents)
        ]
        for start in range(0, len(points), BATCH):
            batch = points[start : start + BATCH]
            await qdrant.points.Upsert(wire.UpsertPoints(collection_name=name, wait=True, points=batch))


def _point(number: int, tenant: str, metadata: Metadata) -> wire.PointStruct:
    vector = wire.Vector(dense=wire.DenseVector(data=[1.0, *([0.5] * (CARD.model.dimensions - 1))]))
    fields = {TENANT: tenant, **filter_payload(metadata)}
    return wire.PointStruct(
        id=wire.PointId(num=number),
        vectors=wire.Vectors(vectors=wire.NamedVectors(vectors={DENSE: vector})),
        payload={name: to_value(value) for name, value in fields.items()},
    )


async def is_merged(qdrant: Qdrant, name: str) -> None:
    ends_at = time.monotonic() + PATIENCE_SECONDS
    request = wire.GetCollectionInfoRequest(collection_name=name)
    while not (info := (await qdrant.collections.Get(request)).result).indexed_vectors_count:
        if time.monotonic() > ends_at:
            raise TimeoutError(f"{name} is not merged: {info.status}")


async def find_matching(qdrant: Qdrant, name: str, filter_sets: Sequence[Filters]) -> list[list[int]]:
    """Return the matching ids: every other filter as a scroll, the others as an exact search."""
    nearest = wire.VectorInput(dense=wire.DenseVector(data=[1.0] * CARD.model.dimensions))
    queries = []
    for position, filters in enumerate(filter_sets):
        where = compiled(filters)
        where.must.append(wire.Condition(field=wire.FieldCondition(key=TENANT, match=wire.Match(keyword=OURS))))
        query = wire.QueryPoints(collection_name=name, filter=where, limit=MAX_FOUND)
        if position % 2:
            query.query.nearest.CopyFrom(nearest)
            query.using = DENSE
            query.params.exact = True
        queries.append(query)
    answer = await qdrant.points.QueryBatch(wire.QueryBatchPoints(collection_name=name, query_points=queries))
    return [sorted(point.id.num for point in result.result) for result in answer.result]


async def differences(
    qdrant: Qdrant, names: dict[str, str], documents: Sequence[Metadata], filter_sets: Sequence[Filters]
) -> tuple[list[Difference], int]:
    """Return differences between engine and evaluator, and how many filters match some documents but not all."""
    different, selective = [], 0
    for start in range(0, len(filter_sets), BATCH):
        batch = filter_sets[start : start + BATCH]
        expected = [[n for n, document in enumerate(documents) if passes(filters, document)] for filters in batch]
        selective += sum(0 < len(ids) < len(documents) for ids in expected)
        for where, name in names.items():
            for filters, right, returned in zip(
                batch, expected, await find_matching(qdrant, name, batch), strict=True
            ):
                if right != returned:
                    wrong, missed = sorted({*returned} - {*right}), sorted({*right} - {*returned})
                    different.append(Difference(where, filters, wrong, missed))
    return different, selective


async def compare(
    qdrant: Qdrant, raw: Sequence[JsonObject], filter_sets: Sequence[Filters], seed: int
) -> tuple[list[Difference], int]:
    documents = [filterable(document) for document in raw]
    indexed = with_indexes(seed)
    async with (
        collection(qdrant, NO_INDEXES) as plain,
        collection(qdrant, indexed) as declared,
        collection(qdrant, indexed, merged=True) as merged,
    ):
        names = {"without indexes": plain, "with indexes": declared, "with indexes, merged": merged}
        for name in names.values():
            await put(qdrant, name, documents)
        await is_merged(qdrant, merged)
        return await differences(qdrant, names, documents, filter_sets)


async def run(count: int, seed: int) -> int:
    engines = Settings()
    worlds = RandomFilters(seed)
    documents = worlds.documents(DOCUMENTS)
    filter_sets = worlds.filters(documents, count)
    async with open_qdrant(engines.qdrant_url, engines.qdrant_grpc_port) as qdrant:
        different, selective = await compare(qdrant, documents, filter_sets, seed)
    for difference in different[:10]:
        sys.stdout.write(f"{difference}\n")
        for number in (difference.found_wrongly + difference.missed)[:3]:
            sys.stdout.write(f"    {number % DOCUMENTS}: {documents[number % DOCUMENTS]}\n")
    sys.stdout.write(
        f"{count} filters over {DOCUMENTS} documents, each in three collections, seed {seed}: "
        f"{len(different)} differences; {selective} of the filters let some through and some not\n"
    )
    return 1 if different else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filters", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    return asyncio.run(run(options.filters, options.seed))


if __name__ == "__main__":
    sys.exit(main())
