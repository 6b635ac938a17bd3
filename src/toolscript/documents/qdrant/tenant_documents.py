"""One tenant's documents: search, reads, writes, and the detection of conflicting writes."""

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import IndexUnavailable
from toolscript.core.items import JsonObject
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.values import Payload, to_value
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.results import ChunkId, DocumentKey, Exactness, FoundChunk, FoundChunks, Total
from toolscript.core.text import Passage
from toolscript.core.values import in_batches
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.filters import Filters
from toolscript.documents.model.points import (
    ChunkQuery,
    IndexedChunk,
    IndexedDocument,
    ShownChunks,
    TermStatistics,
)
from toolscript.documents.qdrant.filters import compiled, filter_payload
from toolscript.documents.qdrant.layout import DENSE, SEARCHED, SEARCHED_EXACTLY, WORDS
from toolscript.documents.qdrant.tenant_points import (
    COMPLETE,
    END,
    EVERYTHING,
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
    Query,
    Span,
    TenantPoints,
    among,
    head_ids,
    passage_id,
    point_id,
)

MAX_POINTS = 256
MAX_IDS = 1_000
UNSEEN_TRIES, UNSEEN_SECONDS = 10, 0.05

# Of a larger tenant so many passages tell which words are common.
SAMPLE = 2_000
# Of a larger tenant nobody counts how many documents pass filters.
COUNTED_BELOW = 50_000
WRITE_TRIES = 5
IS_HEAD = wire.Condition(field=wire.FieldCondition(key=HEAD, match=wire.Match(boolean=True)))


async def put_documents(points: TenantPoints, documents: Sequence[IndexedDocument]) -> None:
    version = documents[0].header.version
    await _put(
        points,
        (_point(document, document.passages[0], _header_payload(document)) for document in documents),
        version,
    )
    await _put(
        points, (_point(document, it, {}) for document in documents for it in document.passages[1:]), version
    )


def points_of(document: IndexedDocument) -> list[wire.PointStruct]:
    """As they are when all of them are written; whose they are is not in them yet."""
    finished = _finished(document)
    return [_point(document, chunk, {} if chunk.passage.number else finished) for chunk in document.passages]


async def restore_documents(points: TenantPoints, documents: Sequence[IndexedDocument]) -> None:
    structs = [(point, document.header.version) for document in documents for point in points_of(document)]
    for batch in in_batches(structs, MAX_POINTS):
        await points.restore(batch)


async def complete(points: TenantPoints, documents: Sequence[IndexedDocument], version: int) -> None:
    heads = [_point(document, document.passages[0], _finished(document)) for document in documents]
    for start in range(0, len(heads), MAX_POINTS):
        await points.replace(heads[start : start + MAX_POINTS], version, _of_these(documents))


def _of_these(documents: Sequence[IndexedDocument]) -> wire.Condition:
    """Two who have the same version by chance do not have the same content, too; or it does not matter."""
    hashes = wire.RepeatedStrings(strings=[document.header.content_hash for document in documents])
    return wire.Condition(field=wire.FieldCondition(key=HASH, match=wire.Match(keywords=hashes)))


async def _put(points: TenantPoints, structs: Iterable[wire.PointStruct], version: int) -> None:
    listed = list(structs)
    for start in range(0, len(listed), MAX_POINTS):
        await points.put(listed[start : start + MAX_POINTS], version)


def _header_payload(document: IndexedDocument) -> dict[str, object]:
    reach = max(len(document.passages), document.replaces)
    return {
        HEAD: True,
        ID: document.header.id,
        METADATA: json.dumps(document.header.metadata, ensure_ascii=False),
        HASH: document.header.content_hash,
        PASSAGES: reach,
        COMPLETE: reach == 1,
    }


def _finished(document: IndexedDocument) -> dict[str, object]:
    return {**_header_payload(document), PASSAGES: len(document.passages), COMPLETE: True}


def _point(document: IndexedDocument, indexed: IndexedChunk, more: dict[str, object]) -> wire.PointStruct:
    passage = indexed.passage
    fields: dict[str, object] = {
        TEXT: passage.text,
        START: passage.start,
        END: passage.end,
        **filter_payload(document.metadata),
        **more,
    }
    vectors = {
        DENSE: wire.Vector(dense=wire.DenseVector(data=indexed.vector.tolist())),
        WORDS: wire.Vector(sparse=wire.SparseVector(indices=indexed.terms.keys(), values=indexed.terms.values())),
    }
    return wire.PointStruct(
        id=point_id(ChunkId(document.header.key, passage.number)),
        vectors=wire.Vectors(vectors=wire.NamedVectors(vectors=vectors)),
        payload={name: to_value(value) for name, value in fields.items()},
    )


@dataclass(frozen=True)
class _Seen:
    """A point as it stands. A passage that is no header has neither hash nor count."""

    version: int
    hash: str
    passages: int


Stands = Mapping[ChunkId, _Seen]


async def settled(points: TenantPoints, documents: Sequence[IndexedDocument]) -> list[IndexedDocument]:
    """Answers those that have to be written again, as they have to be."""
    version = documents[0].header.version
    there = await _written(points, documents)
    lost = [document for document in documents if _is_lost(document, there)]
    await _remove(points, (it for document in lost for it in _reach(document)), version, version)
    ours = [document for document in documents if _is_ours(document, there)]
    left = [it for document in ours for it in _beyond(document)]
    left += [it for document in ours if _end(document) in there for it in await _further(points, _end(document))]
    await _remove(points, left, 0, version)
    await complete(
        points, [document for document in ours if len(document.passages) > 1 or document.replaces > 1], version
    )
    done = {document.header.key for document in (*lost, *ours)}
    return _as_newest([document for document in documents if document.header.key not in done], there)


def not_newer(header: DocumentHeader, version: int) -> Span:
    """All of a document as far as it is no newer than this and its header: what is written meanwhile stays."""
    ids = [ChunkId(header.key, number) for number in range(header.passages)]
    return Span(ids, 0, min(version, header.version))


async def _written(points: TenantPoints, documents: Sequence[IndexedDocument]) -> Stands:
    """What is not there was removed by somebody else.

    Or its tenant is being moved: then there is a moment in which what was written last is not seen yet, and what
    is seen is older.
    """
    version = documents[0].header.version
    own = [it for document in documents for it in _own(document)]
    ids = [*own, *map(_end, documents)]
    there = await _seen(points, ids)
    for _ in range(UNSEEN_TRIES):
        if all(id_ in there and there[id_].version >= version for id_ in own):
            break
        await asyncio.sleep(UNSEEN_SECONDS)
        there = await _seen(points, ids)
    return there


async def _seen(points: TenantPoints, ids: Sequence[ChunkId]) -> dict[ChunkId, _Seen]:
    found: dict[ChunkId, _Seen] = {}
    for batch in in_batches(ids, MAX_IDS):
        page = await points.scroll(wire.Filter(must=[among(batch)]), len(batch), fields=(VERSION, HASH, PASSAGES))
        found |= {passage_id(point.id): _as_seen(point.payload) for point in page}
    return found


def _as_seen(payload: Any) -> _Seen:
    is_head = HASH in payload
    return _Seen(
        payload[VERSION].integer_value,
        payload[HASH].string_value if is_head else "",
        payload[PASSAGES].integer_value if is_head else 0,
    )


def _is_lost(document: IndexedDocument, there: Stands) -> bool:
    head = there.get(ChunkId(document.header.key, 0))
    return head is None or head.version > document.header.version


def _is_ours(document: IndexedDocument, there: Stands) -> bool:
    version = document.header.version
    seen = [there.get(id_) for id_ in _own(document)]
    is_own = all(one is not None and one.version == version for one in seen)
    return is_own and seen[0] is not None and seen[0].hash == document.header.content_hash


def _as_newest(documents: Sequence[IndexedDocument], there: Stands) -> list[IndexedDocument]:
    seen = [there[id_] for one in documents for id_ in _own(one) if id_ in there]
    newest = 1 + max((one.version for one in seen), default=0)
    return [
        replace(
            one,
            header=replace(one.header, version=newest),
            replaces=max(len(one.passages), one.replaces, there[ChunkId(one.header.key, 0)].passages),
        )
        for one in documents
    ]


def _own(document: IndexedDocument) -> list[ChunkId]:
    return [ChunkId(document.header.key, number) for number in range(len(document.passages))]


def _beyond(document: IndexedDocument) -> Iterator[ChunkId]:
    """What it had before and has no more."""
    numbers = range(len(document.passages), document.replaces)
    return (ChunkId(document.header.key, number) for number in numbers)


def _reach(document: IndexedDocument) -> Iterator[ChunkId]:
    return (ChunkId(document.header.key, number) for number in range(_end(document).number))


def _end(document: IndexedDocument) -> ChunkId:
    """The first that nobody is known to have written: whoever wrote a longer text meanwhile has."""
    return ChunkId(document.header.key, max(len(document.passages), document.replaces))


async def _further(points: TenantPoints, first: ChunkId) -> list[ChunkId]:
    """The passages from there on, as far as they follow one another."""
    chunk_ids: list[ChunkId] = []
    while True:
        start = first.number + len(chunk_ids)
        wanted = [ChunkId(first.key, number) for number in range(start, start + MAX_IDS)]
        page = await _seen(points, wanted)
        chunk_ids += page
        if len(page) < len(wanted):
            return chunk_ids


async def _remove(points: TenantPoints, ids: Iterable[ChunkId], minimum: int, maximum: int) -> None:
    for batch in in_batches(ids, MAX_IDS):
        await points.remove_versions([Span(batch, minimum, maximum)])


class QdrantTenantDocuments:
    def __init__(self, points: TenantPoints) -> None:
        self._points = points

    @property
    def tenant(self) -> Tenant:
        return self._points.tenant

    async def search(self, ask: ChunkQuery) -> FoundChunks:
        answers = iter(await self._points.query(list(_queries(ask))) if _is_asked(ask) else [])
        return FoundChunks(
            dense=None if ask.vector is None else _found(next(answers)),
            # A query of punctuation has no words: the arm was asked and knows nothing.
            words=None if ask.terms is None else _found(next(answers)) if ask.terms else [],
        )

    async def statistics(self) -> TermStatistics:
        points = await self._points.scroll(EVERYTHING, SAMPLE, vector=WORDS)
        return TermStatistics.of_passages([_terms(point) for point in points])

    async def headers(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, DocumentHeader]:
        points = await self._with_ids(head_ids(keys), HEADER_FIELDS)
        return {header.key: header for header in map(_read_header, points)}

    async def passages(self, ids: Sequence[ChunkId]) -> Mapping[ChunkId, Passage]:
        points = await self._with_ids(ids, PASSAGE_FIELDS)
        return {passage_id(point.id): _passage(point) for point in points}

    async def vectors(self, ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        return {passage_id(point.id): _dense(point) for point in await self._with_ids(ids, (), vector=DENSE)}

    async def shown(self, ids: Sequence[ChunkId]) -> ShownChunks:
        wanted = frozenset(ids)
        points = await self._with_ids(sorted(wanted.union(head_ids(id_.key for id_ in ids))), SHOWN_FIELDS)
        headers = (_read_header(point) for point in points if passage_id(point.id).number == 0)
        passages = {id_: _passage(point) for point in points if (id_ := passage_id(point.id)) in wanted}
        return ShownChunks({header.key: header for header in headers}, passages)

    async def page(self, after: DocumentKey, limit: int, filters: Filters) -> Sequence[DocumentHeader]:
        where = compiled(filters)
        where.must.append(IS_HEAD)
        since = ChunkId(after, 1) if after else None
        return [
            _read_header(point)
            for point in await self._points.scroll(where, limit, fields=HEADER_FIELDS, since=since)
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
            await put_documents(self._points, documents)
            documents = await settled(self._points, documents)
        if documents:
            raise IndexUnavailable("others write the same documents at the same moment", hint="try again")

    async def restore(self, documents: Sequence[IndexedDocument]) -> None:
        await restore_documents(self._points, documents)

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

    async def _with_ids(self, ids: Sequence[ChunkId], fields: Sequence[str], vector: str = "") -> list[Any]:
        found: list[Any] = []
        for batch in in_batches(ids, MAX_IDS):
            where = wire.Filter(must=[among(batch)])
            found += await self._points.scroll(where, len(batch), fields=fields, vector=vector)
        return found


def _is_asked(ask: ChunkQuery) -> bool:
    return ask.vector is not None or bool(ask.terms)


def _queries(ask: ChunkQuery) -> Iterator[Query]:
    where = compiled(ask.filters)
    # A graph is entered at a single passage: where that does not pass the filters, the engine finds nothing.
    params = SEARCHED_EXACTLY if ask.exact or ask.filters else SEARCHED
    if ask.vector is not None:
        dense = wire.VectorInput(dense=wire.DenseVector(data=ask.vector.tolist()))
        yield Query(DENSE, dense, where, ask.limit, params)
    if ask.terms:
        sparse = wire.SparseVector(indices=ask.terms.keys(), values=ask.terms.values())
        yield Query(WORDS, wire.VectorInput(sparse=sparse), where, ask.limit)


def _found(points: Iterable[Any]) -> list[FoundChunk]:
    """The engine leaves open which of two with the same score comes first."""
    chunks = [FoundChunk(passage_id(point.id), point.score) for point in points]
    return sorted(chunks, key=lambda chunk: (-chunk.score, chunk.id))


def _terms(point: Any) -> Sequence[int]:
    terms: Sequence[int] = point.vectors.vectors.vectors[WORDS].sparse.indices
    return terms


def _dense(point: Any) -> Vector:
    return np.array(point.vectors.vectors.vectors[DENSE].dense.data, dtype=np.float32)


def _whole_documents(headers: Sequence[DocumentHeader]) -> Iterator[Sequence[DocumentHeader]]:
    """In batches that no document is spread over: whoever is killed between two leaves none in parts."""
    batch: list[DocumentHeader] = []
    for header in headers:
        if batch and sum(document_header.passages for document_header in batch) + header.passages > MAX_IDS:
            yield batch
            batch = []
        batch.append(header)
    if batch:
        yield batch


def _read_header(point: Any) -> DocumentHeader:
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
