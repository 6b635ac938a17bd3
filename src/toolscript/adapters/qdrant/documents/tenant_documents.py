"""What one tenant has, as the core asks for it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.documents import writing
from toolscript.adapters.qdrant.documents.filters import compiled
from toolscript.adapters.qdrant.documents.ids import head_ids, passage_id
from toolscript.adapters.qdrant.documents.layout import DENSE, SEARCHED, SEARCHED_EXACTLY, WORDS
from toolscript.adapters.qdrant.documents.payload import (
    COMPLETE,
    END,
    HASH,
    HEAD,
    HEADER_FIELDS,
    ID,
    METADATA,
    PASSAGE_FIELDS,
    PASSAGES,
    SHOWN_FIELDS,
    START,
    TEXT,
    VERSION,
)
from toolscript.adapters.qdrant.documents.settling import not_newer, settled
from toolscript.adapters.qdrant.documents.tenant_points import EVERYTHING, Query, TenantPoints, among
from toolscript.adapters.qdrant.values import Payload
from toolscript.errors import IndexUnavailable
from toolscript.model.batches import in_batches
from toolscript.model.document_points import (
    FoundPassage,
    FoundPassages,
    IndexedDocument,
    PassageAsk,
    PassageId,
    ShownPassages,
    WordStatistics,
)
from toolscript.model.document_results import Exactness, Total
from toolscript.model.documents import DocumentHeader, DocumentKey, Passage
from toolscript.model.filters import Filters
from toolscript.model.items import JsonObject
from toolscript.model.models import Vector
from toolscript.model.tenancy import Tenant

# Of a larger tenant so many passages tell which words are common.
SAMPLE = 2_000
# Of a larger tenant nobody counts how many documents pass filters.
COUNTED_BELOW = 50_000
MOST_IDS = 1_000
WRITE_TRIES = 5
IS_HEAD = wire.Condition(field=wire.FieldCondition(key=HEAD, match=wire.Match(boolean=True)))


class QdrantTenantDocuments:
    def __init__(self, points: TenantPoints) -> None:
        self._points = points

    @property
    def tenant(self) -> Tenant:
        return self._points.tenant

    async def search(self, ask: PassageAsk) -> FoundPassages:
        answers = iter(await self._points.query(list(_queries(ask))) if _is_asked(ask) else [])
        return FoundPassages(
            dense=None if ask.vector is None else _found(next(answers)),
            # A query of punctuation has no words: the arm was asked and knows nothing.
            words=None if ask.terms is None else _found(next(answers)) if ask.terms else [],
        )

    async def statistics(self) -> WordStatistics:
        points = await self._points.scroll(EVERYTHING, SAMPLE, vector=WORDS)
        return WordStatistics.of_passages([_terms(point) for point in points])

    async def headers(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, DocumentHeader]:
        points = await self._with_ids(head_ids(keys), HEADER_FIELDS)
        return {header.key: header for header in map(_header, points)}

    async def passages(self, ids: Sequence[PassageId]) -> Mapping[PassageId, Passage]:
        points = await self._with_ids(ids, PASSAGE_FIELDS)
        return {passage_id(point.id): _passage(point) for point in points}

    async def vectors(self, ids: Sequence[PassageId]) -> Mapping[PassageId, Vector]:
        return {passage_id(point.id): _dense(point) for point in await self._with_ids(ids, (), vector=DENSE)}

    async def shown(self, ids: Sequence[PassageId]) -> ShownPassages:
        wanted = frozenset(ids)
        points = await self._with_ids(sorted(wanted.union(head_ids(id_.key for id_ in ids))), SHOWN_FIELDS)
        headers = (_header(point) for point in points if passage_id(point.id).number == 0)
        passages = {id_: _passage(point) for point in points if (id_ := passage_id(point.id)) in wanted}
        return ShownPassages({header.key: header for header in headers}, passages)

    async def page(self, after: DocumentKey, limit: int, filters: Filters) -> Sequence[DocumentHeader]:
        where = compiled(filters)
        where.must.append(IS_HEAD)
        since = PassageId(after, 1) if after else None
        return [
            _header(point) for point in await self._points.scroll(where, limit, fields=HEADER_FIELDS, since=since)
        ]

    async def count(self, filters: Filters) -> Total:
        where = compiled(filters)
        where.must.append(IS_HEAD)
        # An estimate of several conditions at once would be made from what everybody has.
        if filters and await self._points.count(EVERYTHING, exact=False) >= COUNTED_BELOW:
            return Total(0, Exactness.AT_LEAST)
        return Total(await self._points.count(where, exact=True))

    async def put(self, documents: Sequence[IndexedDocument]) -> None:
        for _ in range(WRITE_TRIES):
            if not documents:
                return
            await writing.put_documents(self._points, documents)
            documents = await settled(self._points, documents)
        if documents:
            raise IndexUnavailable("others write the same documents at the same moment", hint="try again")

    async def restore(self, documents: Sequence[IndexedDocument]) -> None:
        await writing.restore_documents(self._points, documents)

    async def remove(
        self, keys: Sequence[DocumentKey], *, up_to: Mapping[DocumentKey, int] | None = None
    ) -> Sequence[DocumentKey]:
        found = await self.headers(keys)
        bounds = up_to or {}
        for batch in _whole_documents(list(found.values())):
            spans = [not_newer(header, bounds.get(header.key, header.version)) for header in batch]
            await self._points.remove_versions(spans)
        return [key for key in keys if key in found]

    async def erase(self) -> None:
        await self._points.remove(EVERYTHING)

    async def _with_ids(self, ids: Sequence[PassageId], fields: Sequence[str], vector: str = "") -> list[Any]:
        found: list[Any] = []
        for batch in in_batches(ids, MOST_IDS):
            where = wire.Filter(must=[among(batch)])
            found += await self._points.scroll(where, len(batch), fields=fields, vector=vector)
        return found


def _is_asked(ask: PassageAsk) -> bool:
    return ask.vector is not None or bool(ask.terms)


def _queries(ask: PassageAsk) -> Iterator[Query]:
    where = compiled(ask.filters)
    # A graph is entered at a single passage: where that does not pass the filters, the engine finds nothing.
    params = SEARCHED_EXACTLY if ask.exact or ask.filters else SEARCHED
    if ask.vector is not None:
        dense = wire.VectorInput(dense=wire.DenseVector(data=ask.vector.tolist()))
        yield Query(DENSE, dense, where, ask.limit, params)
    if ask.terms:
        sparse = wire.SparseVector(indices=ask.terms.keys(), values=ask.terms.values())
        yield Query(WORDS, wire.VectorInput(sparse=sparse), where, ask.limit)


def _found(points: Iterable[Any]) -> list[FoundPassage]:
    """The engine leaves open which of two with the same score comes first."""
    found = [FoundPassage(passage_id(point.id), point.score) for point in points]
    return sorted(found, key=lambda one: (-one.score, one.id))


def _terms(point: Any) -> Sequence[int]:
    terms: Sequence[int] = point.vectors.vectors.vectors[WORDS].sparse.indices
    return terms


def _dense(point: Any) -> Vector:
    return np.array(point.vectors.vectors.vectors[DENSE].dense.data, dtype=np.float32)


def _whole_documents(headers: Sequence[DocumentHeader]) -> Iterator[Sequence[DocumentHeader]]:
    """In batches that no document is spread over: whoever is killed between two leaves none in parts."""
    batch: list[DocumentHeader] = []
    for header in headers:
        if batch and sum(one.passages for one in batch) + header.passages > MOST_IDS:
            yield batch
            batch = []
        batch.append(header)
    if batch:
        yield batch


def _header(point: Any) -> DocumentHeader:
    fields = cast("Mapping[str, Any]", Payload(point.payload))
    metadata: JsonObject = json.loads(fields[METADATA])
    return DocumentHeader(
        key=passage_id(point.id).key,
        id=fields[ID],
        metadata=metadata,
        content_hash=fields[HASH],
        passages=fields[PASSAGES],
        version=fields[VERSION],
        complete=fields[COMPLETE],
    )


def _passage(point: Any) -> Passage:
    fields = cast("Mapping[str, Any]", Payload(point.payload))
    return Passage(passage_id(point.id).number, fields[START], fields[END], fields[TEXT])
