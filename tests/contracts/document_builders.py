"""Small documents of two tenants."""

from collections.abc import Mapping, Sequence

from tests.contracts.builders import DIMENSIONS, axis, terms
from toolscript.core.auth.model import Tenant
from toolscript.core.items import JsonObject
from toolscript.core.retrieval.model import ModelCard, Terms, Vector
from toolscript.core.retrieval.results import DocumentKey, FoundChunk
from toolscript.core.text import Passage
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
    *passages: str,
    tenant: Tenant = ANN,
    version: int = 1,
    vectors: Sequence[Vector] = (),
    metadata: JsonObject | None = None,
    replaces: int = 0,
) -> IndexedDocument:
    """Its passages follow one another; vectors that are not given are along the first axis."""
    texts = passages or (f"text of {id_}",)
    given = metadata or {}
    header = DocumentHeader(key(id_, tenant), id_, given, f"hash {version}", len(texts), version)
    starts = [sum(len(text) for text in texts[:number]) for number in range(len(texts))]
    indexed = [
        IndexedChunk(
            Passage(number, start, start + len(text), text),
            vectors[number] if vectors else axis(0),
            terms(text),
        )
        for number, (start, text) in enumerate(zip(starts, texts, strict=True))
    ]
    return IndexedDocument(header, filterable(given), indexed, replaces)


async def dense(
    shelf: TenantDocuments, vector: Vector, *, filters: Filters = NO_FILTERS, limit: int = 100
) -> list[FoundChunk]:
    return list((await shelf.search(ChunkQuery(vector=vector, filters=filters, limit=limit))).dense or ())


async def words(
    shelf: TenantDocuments, asked: Terms, *, filters: Filters = NO_FILTERS, limit: int = 100
) -> list[FoundChunk]:
    return list((await shelf.search(ChunkQuery(terms=asked, filters=filters, limit=limit))).words or ())


def must(field: str, op: str, value: object) -> Filters:
    return Filters(must=(FieldCondition.of(field, op, value),))


def plain(found: Sequence[FoundChunk], *ids: str, tenant: Tenant = ANN) -> list[tuple[str, int]]:
    """The documents' ids and the numbers of the passages, in the order found."""
    names: Mapping[DocumentKey, str] = {key(id_, tenant): id_ for id_ in ids}
    return [(names[one.id.key], one.id.number) for one in found]
