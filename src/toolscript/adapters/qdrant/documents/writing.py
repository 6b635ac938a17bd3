"""Puts documents in place of older ones.

The header goes first, marked as not complete where more than one passage is written or was there before; so
there is no passage without a header, whenever the writer is killed, and whoever writes or removes the document
next knows how far its passages reach. Of two who write one document at once: settling.py.
"""

import json
from collections.abc import Iterable, Sequence

from toolscript.adapters.qdrant import wire
from toolscript.adapters.qdrant.documents.filters import filter_payload
from toolscript.adapters.qdrant.documents.ids import point_id
from toolscript.adapters.qdrant.documents.layout import DENSE, WORDS
from toolscript.adapters.qdrant.documents.payload import (
    COMPLETE,
    END,
    HASH,
    HEAD,
    ID,
    METADATA,
    PASSAGES,
    START,
    TEXT,
)
from toolscript.adapters.qdrant.documents.tenant_points import TenantPoints
from toolscript.adapters.qdrant.values import to_value
from toolscript.model.batches import in_batches
from toolscript.model.document_points import IndexedDocument, IndexedPassage, PassageId

MOST_POINTS = 256


async def put_documents(points: TenantPoints, documents: Sequence[IndexedDocument]) -> None:
    version = documents[0].header.version
    await _put(points, (_point(one, one.passages[0], _header(one)) for one in documents), version)
    await _put(points, (_point(one, it, {}) for one in documents for it in one.passages[1:]), version)


def points_of(document: IndexedDocument) -> list[wire.PointStruct]:
    """As they are when all of them are written; whose they are is not in them yet."""
    finished = _finished(document)
    return [_point(document, one, {} if one.passage.number else finished) for one in document.passages]


async def restore_documents(points: TenantPoints, documents: Sequence[IndexedDocument]) -> None:
    structs = [(point, one.header.version) for one in documents for point in points_of(one)]
    for batch in in_batches(structs, MOST_POINTS):
        await points.restore(batch)


async def complete(points: TenantPoints, documents: Sequence[IndexedDocument], version: int) -> None:
    heads = [_point(one, one.passages[0], _finished(one)) for one in documents]
    for start in range(0, len(heads), MOST_POINTS):
        await points.replace(heads[start : start + MOST_POINTS], version, _of_these(documents))


def _of_these(documents: Sequence[IndexedDocument]) -> wire.Condition:
    """Two who have the same version by chance do not have the same content, too; or it does not matter."""
    hashes = wire.RepeatedStrings(strings=[one.header.content_hash for one in documents])
    return wire.Condition(field=wire.FieldCondition(key=HASH, match=wire.Match(keywords=hashes)))


async def _put(points: TenantPoints, structs: Iterable[wire.PointStruct], version: int) -> None:
    listed = list(structs)
    for start in range(0, len(listed), MOST_POINTS):
        await points.put(listed[start : start + MOST_POINTS], version)


def _header(document: IndexedDocument) -> dict[str, object]:
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
    return {**_header(document), PASSAGES: len(document.passages), COMPLETE: True}


def _point(document: IndexedDocument, indexed: IndexedPassage, more: dict[str, object]) -> wire.PointStruct:
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
        id=point_id(PassageId(document.header.key, passage.number)),
        vectors=wire.Vectors(vectors=wire.NamedVectors(vectors=vectors)),
        payload={name: to_value(value) for name, value in fields.items()},
    )
