"""Small documents of two tenants."""

from collections.abc import Mapping, Sequence

from tests.contracts.builders import DIMENSIONS, axis, terms
from toolscript.core.auth.model import Tenant
from toolscript.core.items import JsonObject
from toolscript.core.retrieval.model import ModelCard, Terms, Vector
from toolscript.core.retrieval.results import DocumentKey, FoundChunk
from toolscript.core.text import TextChunk
from toolscript.documents.model.document import DocumentHeader, document_key
from toolscript.documents.model.filters import NO_FILTERS, FieldCondition, Filters, filterable
from toolscript.documents.model.points import ChunkQuery, DocumentCard, IndexedChunk, IndexedDocument
from toolscript.documents.ports import TenantDocuments

CARD = DocumentCard(ModelCard("small", "1", DIMENSIONS))
ANN, BOB = Tenant("ann"), Tenant("bob")


def key(id_: str, tenant: Tenant = ANN) -> DocumentKey:
    return document_key(tenant, id_)


def document(
    id_: str,
    *chunks: str,
    tenant: Tenant = ANN,
    version: int = 1,
    vectors: Sequence[Vector] = (),
    metadata: JsonObject | None = None,
    replaces: int = 0,
) -> IndexedDocument:
    """Return a document with consecutive chunks; missing vectors are along the first axis."""
    texts = chunks or (f"text of {id_}",)
    document_metadata = metadata or {}
    header = DocumentHeader(key(id_, tenant), id_, document_metadata, f"hash {version}", len(texts), version)
    starts = [sum(len(text) for text in texts[:number]) for number in range(len(texts))]
    indexed = [
        IndexedChunk(
            TextChunk(number, start, start + len(text), text),
            vectors[number] if vectors else axis(0),
            terms(text),
        )
        for number, (start, text) in enumerate(zip(starts, texts, strict=True))
    ]
    return IndexedDocument(header, filterable(document_metadata), indexed, replaces)


async def dense(
    store: TenantDocuments, vector: Vector, *, filters: Filters = NO_FILTERS, limit: int = 100
) -> list[FoundChunk]:
    return list((await store.search(ChunkQuery(vector=vector, filters=filters, limit=limit))).dense or ())


async def words(
    store: TenantDocuments, query_terms: Terms, *, filters: Filters = NO_FILTERS, limit: int = 100
) -> list[FoundChunk]:
    return list((await store.search(ChunkQuery(terms=query_terms, filters=filters, limit=limit))).words or ())


def must(field: str, op: str, value: object) -> Filters:
    return Filters(must=(FieldCondition.of(field, op, value),))


def plain(chunks: Sequence[FoundChunk], *ids: str, tenant: Tenant = ANN) -> list[tuple[str, int]]:
    """Return document ids and chunk numbers, in the order of the hits."""
    names: Mapping[DocumentKey, str] = {key(id_, tenant): id_ for id_ in ids}
    return [(names[chunk.id.key], chunk.id.number) for chunk in chunks]
