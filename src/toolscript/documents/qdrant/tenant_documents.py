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
from toolscript.core.retrieval.results import ChunkId, DocumentKey, Exactness, FoundChunk, Total
from toolscript.core.text import TextChunk
from toolscript.core.values import in_batches
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.filters import Filters
from toolscript.documents.model.points import (
    ChunkQuery,
    FoundWithContent,
    HitContent,
    IndexedChunk,
    IndexedDocument,
    ReadContent,
    TermStatistics,
    no_content,
)
from toolscript.documents.qdrant.filters import compiled, filter_payload
from toolscript.documents.qdrant.layout import DENSE, SEARCHED, SEARCHED_EXACTLY, WORDS
from toolscript.documents.qdrant.tenant_points import (
    CHUNK_FIELDS,
    CHUNKS,
    COMPLETE,
    END,
    EVERYTHING,
    HASH,
    HEAD,
    HEADER_FIELDS,
    ID,
    METADATA,
    SHOWN_FIELDS,
    START,
    TEXT,
    VERSION,
    Query,
    Span,
    TenantPoints,
    among,
    chunk_id_of,
    head_ids,
    point_id,
)

MAX_POINTS = 256
MAX_IDS = 1_000
UNSEEN_TRIES, UNSEEN_SECONDS = 10, 0.05

# Chunks of a larger tenant that its term statistics are sampled from.
SAMPLE = 2_000
# Matches of filters are not counted for a tenant with more chunks.
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
        points, (_point(document, chunk, {}) for document in documents for chunk in document.passages[1:]), version
    )


def points_of(document: IndexedDocument) -> list[wire.PointStruct]:
    """Return the points of a completely written document, without the tenant."""
    finished = _complete_payload(document)
    return [_point(document, chunk, {} if chunk.passage.number else finished) for chunk in document.passages]


async def restore_documents(points: TenantPoints, documents: Sequence[IndexedDocument]) -> None:
    structs = [(point, document.header.version) for document in documents for point in points_of(document)]
    for batch in in_batches(structs, MAX_POINTS):
        await points.restore(batch)


async def complete(points: TenantPoints, documents: Sequence[IndexedDocument], version: int) -> None:
    heads = [_point(document, document.passages[0], _complete_payload(document)) for document in documents]
    for start in range(0, len(heads), MAX_POINTS):
        await points.replace(heads[start : start + MAX_POINTS], version, _same_content(documents))


def _same_content(documents: Sequence[IndexedDocument]) -> wire.Condition:
    """Match the content hashes: two writers may choose the same version by chance, with different content."""
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
        CHUNKS: reach,
        COMPLETE: reach == 1,
    }


def _complete_payload(document: IndexedDocument) -> dict[str, object]:
    return {**_header_payload(document), CHUNKS: len(document.passages), COMPLETE: True}


def _point(document: IndexedDocument, indexed: IndexedChunk, more: dict[str, object]) -> wire.PointStruct:
    chunk = indexed.passage
    payload: dict[str, object] = {
        TEXT: chunk.text,
        START: chunk.start,
        END: chunk.end,
        **filter_payload(document.metadata),
        **more,
    }
    vectors = {
        DENSE: wire.Vector(dense=wire.DenseVector(data=indexed.vector.tolist())),
        WORDS: wire.Vector(sparse=wire.SparseVector(indices=indexed.terms.keys(), values=indexed.terms.values())),
    }
    return wire.PointStruct(
        id=point_id(ChunkId(document.header.key, chunk.number)),
        vectors=wire.Vectors(vectors=wire.NamedVectors(vectors=vectors)),
        payload={name: to_value(value) for name, value in payload.items()},
    )


@dataclass(frozen=True)
class _State:
    """The stored state of a point. Only the header chunk has a hash and a count."""

    version: int
    hash: str
    passages: int


States = Mapping[ChunkId, _State]


async def settled(points: TenantPoints, documents: Sequence[IndexedDocument]) -> list[IndexedDocument]:
    """Resolve conflicts after a write; return the documents that must be written again, with a new version."""
    version = documents[0].header.version
    stored = await _read_back(points, documents)
    superseded = [document for document in documents if _is_superseded(document, stored)]
    await _remove(points, (id_ for document in superseded for id_ in _all_chunks(document)), version, version)
    ours = [document for document in documents if _is_stored(document, stored)]
    surplus = [id_ for document in ours for id_ in _surplus_chunks(document)]
    surplus += [
        id_
        for document in ours
        if _end(document) in stored
        for id_ in await _consecutive_chunks(points, _end(document))
    ]
    await _remove(points, surplus, 0, version)
    await complete(
        points, [document for document in ours if len(document.passages) > 1 or document.replaces > 1], version
    )
    resolved = {document.header.key for document in (*superseded, *ours)}
    return _with_newest_version(
        [document for document in documents if document.header.key not in resolved], stored
    )


def not_newer(header: DocumentHeader, version: int) -> Span:
    """Return all chunks of a document up to this version and that of its header: newer writes stay."""
    ids = [ChunkId(header.key, number) for number in range(header.passages)]
    return Span(ids, 0, min(version, header.version))


async def _read_back(points: TenantPoints, documents: Sequence[IndexedDocument]) -> States:
    """Read back the written chunks. A missing chunk was removed by another writer.

    While the tenant is being moved, reads can be stale for a moment, so missing or older chunks are read again.
    """
    version = documents[0].header.version
    own = [id_ for document in documents for id_ in _own_chunks(document)]
    ids = [*own, *map(_end, documents)]
    stored = await _read_states(points, ids)
    for _ in range(UNSEEN_TRIES):
        if all(id_ in stored and stored[id_].version >= version for id_ in own):
            break
        await asyncio.sleep(UNSEEN_SECONDS)
        stored = await _read_states(points, ids)
    return stored


async def _read_states(points: TenantPoints, ids: Sequence[ChunkId]) -> dict[ChunkId, _State]:
    states: dict[ChunkId, _State] = {}
    for batch in in_batches(ids, MAX_IDS):
        page = await points.scroll(wire.Filter(must=[among(batch)]), len(batch), fields=(VERSION, HASH, CHUNKS))
        states |= {chunk_id_of(point.id): _state_of(point.payload) for point in page}
    return states


def _state_of(payload: Any) -> _State:
    is_head = HASH in payload
    return _State(
        payload[VERSION].integer_value,
        payload[HASH].string_value if is_head else "",
        payload[CHUNKS].integer_value if is_head else 0,
    )


def _is_superseded(document: IndexedDocument, stored: States) -> bool:
    head = stored.get(ChunkId(document.header.key, 0))
    return head is None or head.version > document.header.version


def _is_stored(document: IndexedDocument, stored: States) -> bool:
    version = document.header.version
    states = [stored.get(id_) for id_ in _own_chunks(document)]
    is_own = all(state is not None and state.version == version for state in states)
    return is_own and states[0] is not None and states[0].hash == document.header.content_hash


def _with_newest_version(documents: Sequence[IndexedDocument], stored: States) -> list[IndexedDocument]:
    states = [stored[id_] for document in documents for id_ in _own_chunks(document) if id_ in stored]
    newest = 1 + max((state.version for state in states), default=0)
    return [
        replace(
            document,
            header=replace(document.header, version=newest),
            replaces=max(
                len(document.passages), document.replaces, stored[ChunkId(document.header.key, 0)].passages
            ),
        )
        for document in documents
    ]


def _own_chunks(document: IndexedDocument) -> list[ChunkId]:
    return [ChunkId(document.header.key, number) for number in range(len(document.passages))]


def _surplus_chunks(document: IndexedDocument) -> Iterator[ChunkId]:
    """Return the chunks that the previous state had beyond this one."""
    numbers = range(len(document.passages), document.replaces)
    return (ChunkId(document.header.key, number) for number in numbers)


def _all_chunks(document: IndexedDocument) -> Iterator[ChunkId]:
    return (ChunkId(document.header.key, number) for number in range(_end(document).number))


def _end(document: IndexedDocument) -> ChunkId:
    """Return the first chunk beyond both states: it exists only if another writer wrote a longer text."""
    return ChunkId(document.header.key, max(len(document.passages), document.replaces))


async def _consecutive_chunks(points: TenantPoints, first: ChunkId) -> list[ChunkId]:
    """Return the consecutive chunks from `first` on."""
    chunk_ids: list[ChunkId] = []
    while True:
        start = first.number + len(chunk_ids)
        expected = [ChunkId(first.key, number) for number in range(start, start + MAX_IDS)]
        page = await _read_states(points, expected)
        chunk_ids += page
        if len(page) < len(expected):
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

    async def search(self, ask: ChunkQuery) -> FoundWithContent:
        fields = SHOWN_FIELDS if ask.with_content and ask.vector is not None else ()
        found = await self._points.query(list(_queries(ask)), fields) if _has_retrievers(ask) else []
        answers = iter(found)
        return FoundWithContent(
            dense=None if ask.vector is None else _found(next(answers)),
            # A query of punctuation has no terms: sparse retrieval ran and found nothing.
            words=None if ask.terms is None else _found(next(answers)) if ask.terms else [],
            content=_content_of(found[0]) if fields else no_content,
        )

    async def statistics(self) -> TermStatistics:
        points = await self._points.scroll(EVERYTHING, SAMPLE, vector=WORDS)
        return TermStatistics.of_chunks([_terms(point) for point in points])

    async def headers(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, DocumentHeader]:
        points = await self._with_ids(head_ids(keys), HEADER_FIELDS)
        return {header.key: header for header in map(_read_header, points)}

    async def passages(self, ids: Sequence[ChunkId]) -> Mapping[ChunkId, TextChunk]:
        points = await self._with_ids(ids, CHUNK_FIELDS)
        return {chunk_id_of(point.id): _read_chunk(point) for point in points}

    async def vectors(self, ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        return {chunk_id_of(point.id): _dense(point) for point in await self._with_ids(ids, (), vector=DENSE)}

    async def shown(self, ids: Sequence[ChunkId]) -> HitContent:
        points = await self._with_ids(_with_heads(ids), SHOWN_FIELDS)
        return _hit_content(ids, {chunk_id_of(point.id): point for point in points})

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
        # An estimate over several conditions would be based on the points of all tenants.
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
            raise IndexUnavailable("other clients write the same documents at the same time", hint="try again")

    async def restore(self, documents: Sequence[IndexedDocument]) -> None:
        await restore_documents(self._points, documents)

    async def remove(
        self, keys: Sequence[DocumentKey], *, up_to: Mapping[DocumentKey, int] | None = None
    ) -> Sequence[DocumentKey]:
        headers = await self.headers(keys)
        bounds = up_to or {}
        for batch in _whole_documents(list(headers.values())):
            spans = [not_newer(header, bounds.get(header.key, header.version)) for header in batch]
            await self._points.remove_versions(spans)
        return [key for key in keys if key in headers]

    async def erase(self) -> None:
        await self._points.remove(EVERYTHING)

    async def _with_ids(self, ids: Sequence[ChunkId], fields: Sequence[str], vector: str = "") -> list[Any]:
        points: list[Any] = []
        for batch in in_batches(ids, MAX_IDS):
            where = wire.Filter(must=[among(batch)])
            points += await self._points.scroll(where, len(batch), fields=fields, vector=vector)
        return points


def _has_retrievers(chunk_query: ChunkQuery) -> bool:
    return chunk_query.vector is not None or bool(chunk_query.terms)


def _queries(chunk_query: ChunkQuery) -> Iterator[Query]:
    where = compiled(chunk_query.filters)
    # A graph has a single entry point: if that does not pass the filters, the engine finds nothing.
    params = SEARCHED_EXACTLY if chunk_query.exact or chunk_query.filters else SEARCHED
    if chunk_query.vector is not None:
        dense = wire.VectorInput(dense=wire.DenseVector(data=chunk_query.vector.tolist()))
        yield Query(DENSE, dense, where, chunk_query.limit, params)
    if chunk_query.terms:
        sparse = wire.SparseVector(indices=chunk_query.terms.keys(), values=chunk_query.terms.values())
        yield Query(WORDS, wire.VectorInput(sparse=sparse), where, chunk_query.limit)


def _found(points: Iterable[Any]) -> list[FoundChunk]:
    """Sort by score, then by id: the engine leaves the order of equal scores open."""
    chunks = [FoundChunk(chunk_id_of(point.id), point.score) for point in points]
    return sorted(chunks, key=lambda chunk: (-chunk.score, chunk.id))


def _with_heads(ids: Sequence[ChunkId]) -> list[ChunkId]:
    return sorted({*ids, *head_ids(id_.key for id_ in ids)})


def _hit_content(ids: Sequence[ChunkId], points: Mapping[ChunkId, Any]) -> HitContent:
    headers = (
        _read_header(points[head]) for head in head_ids(dict.fromkeys(id_.key for id_ in ids)) if head in points
    )
    chunks = {id_: _read_chunk(points[id_]) for id_ in ids if id_ in points}
    return HitContent({header.key: header for header in headers}, chunks)


def _content_of(found: Sequence[Any]) -> ReadContent:
    """Read only what is asked for: of a hundred chunks that were found, ten are shown.

    The engine reads payloads after it has searched: a point that was marked in between has no text any more.
    """

    def read(ids: Sequence[ChunkId]) -> HitContent | None:
        points = {chunk_id_of(point.id): point for point in found if TEXT in point.payload}
        return _hit_content(ids, points) if points.keys() >= set(_with_heads(ids)) else None

    return read


def _terms(point: Any) -> Sequence[int]:
    terms: Sequence[int] = point.vectors.vectors.vectors[WORDS].sparse.indices
    return terms


def _dense(point: Any) -> Vector:
    return np.array(point.vectors.vectors.vectors[DENSE].dense.data, dtype=np.float32)


def _whole_documents(headers: Sequence[DocumentHeader]) -> Iterator[Sequence[DocumentHeader]]:
    """Yield batches of whole documents: an interruption between two never leaves a part of a document."""
    batch: list[DocumentHeader] = []
    for header in headers:
        if batch and sum(batched.passages for batched in batch) + header.passages > MAX_IDS:
            yield batch
            batch = []
        batch.append(header)
    if batch:
        yield batch


def _read_header(point: Any) -> DocumentHeader:
    fields = cast("Mapping[str, Any]", Payload(point.payload))
    metadata: JsonObject = json.loads(fields[METADATA])
    return DocumentHeader(
        key=chunk_id_of(point.id).key,
        id=fields[ID],
        metadata=metadata,
        content_hash=fields[HASH],
        passages=fields[CHUNKS],
        version=fields[VERSION],
        complete=fields[COMPLETE],
    )


def _read_chunk(point: Any) -> TextChunk:
    fields = cast("Mapping[str, Any]", Payload(point.payload))
    return TextChunk(chunk_id_of(point.id).number, fields[START], fields[END], fields[TEXT])
