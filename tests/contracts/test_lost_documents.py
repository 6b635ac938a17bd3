"""A loss of documents is seen, and none is made up, whoever writes at once and wherever a writer is killed."""

import asyncio
import random

import pytest

from toolscript.core.auth.model import Principal, Tenant
from toolscript.core.errors import IndexLost, NotFound
from toolscript.core.retrieval.results import DocumentKey
from toolscript.documents.lost import require_any, require_kept
from toolscript.documents.model.document import Document
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.ports import DocumentIndex
from toolscript.documents.service import DocumentService
from toolscript.testing import HashEmbedder, MemoryDocuments, MemoryTenants

pytestmark = pytest.mark.requirement("OP-004", "DOC-003")

ACME = Principal(Tenant("acme"))
TEXT = Document("one", "Rotation of keys.", {})


@pytest.fixture(params=["memory", "qdrant"])
def index(request: pytest.FixtureRequest) -> DocumentIndex:
    if request.param == "memory":
        return MemoryDocuments(DocumentCard(HashEmbedder().model))
    qdrant: DocumentIndex = request.getfixturevalue("qdrant_documents")
    return qdrant


@pytest.fixture
def tenants() -> MemoryTenants:
    return MemoryTenants()


@pytest.fixture
def service(index: DocumentIndex, tenants: MemoryTenants) -> DocumentService:
    embedder = HashEmbedder()
    return DocumentService(embedder, index, tenants)


async def test_what_is_gone_without_a_removal_is_lost_for_every_operation(
    index: DocumentIndex, service: DocumentService, tenants: MemoryTenants
) -> None:
    await service.put(ACME, [TEXT])
    await require_kept(index.of(ACME.tenant), tenants)
    await index.of(ACME.tenant).erase()
    for request in (
        service.put(ACME, [TEXT]),
        service.remove(ACME, ["one"]),
        service.document(ACME, "one"),
        service.page(ACME, DocumentKey(""), 10, NO_FILTERS),
        require_any(index, tenants),
    ):
        with pytest.raises(IndexLost):
            await request
    await tenants.forget(ACME.tenant)
    await service.put(ACME, [TEXT])


async def test_a_tenant_without_documents_has_lost_none(
    index: DocumentIndex, service: DocumentService, tenants: MemoryTenants
) -> None:
    for _ in range(2):
        assert await service.page(ACME, DocumentKey(""), 10, NO_FILTERS) == []
        with pytest.raises(NotFound):
            await service.document(ACME, "one")
        await require_any(index, tenants)
        await service.put(ACME, [TEXT, Document("two", "Locks.", {})])
        assert await service.remove(ACME, ["one"]) == ["one"]
        assert await service.remove(ACME, ["two", "three"]) == ["two"]


async def test_writers_at_once_make_up_no_loss(
    index: DocumentIndex, service: DocumentService, tenants: MemoryTenants
) -> None:
    chance = random.Random(7)
    documents = index.of(ACME.tenant)
    for _ in range(40):
        ids = chance.choices(["one", "two"], k=4)
        await asyncio.gather(
            *(
                service.remove(ACME, [id_])
                if chance.random() < 0.6
                else service.put(ACME, [Document(id_, id_, {})])
                for id_ in ids
            ),
            return_exceptions=True,
        )
        await require_kept(documents, tenants)


class Killed(BaseException):
    """Ends a writer where it is."""


class DyingTenants(MemoryTenants):
    """Dies at the next note, before or after it is taken."""

    dies = ""

    async def note(self, tenant: Tenant, *, holds: bool) -> bool:
        if self.dies == "before":
            raise Killed
        is_news = await super().note(tenant, holds=holds)
        if self.dies == "after":
            raise Killed
        return is_news


@pytest.mark.parametrize("dies", ["before", "after"])
async def test_a_killed_writer_makes_up_no_loss(index: DocumentIndex, dies: str) -> None:
    tenants = DyingTenants()
    service = DocumentService(HashEmbedder(), index, tenants)
    for act in (lambda: service.put(ACME, [TEXT]), lambda: service.remove(ACME, ["one"])):
        tenants.dies = dies
        with pytest.raises(Killed):
            await act()
        tenants.dies = ""
        await require_kept(index.of(ACME.tenant), tenants)
        await service.put(ACME, [TEXT])
