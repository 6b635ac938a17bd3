"""During the switch of a move, acknowledged writes are not visible yet: no code may rely on reading them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from toolscript.core.auth.model import Principal, Tenant
from toolscript.documents.model.document import Document
from toolscript.documents.model.filters import NO_FILTERS
from toolscript.documents.qdrant.collection import QdrantDocuments
from toolscript.documents.qdrant.layout import DocumentLayout
from toolscript.documents.qdrant.tenant_points import EVERYTHING, TenantPoints
from toolscript.documents.service import DocumentService
from toolscript.documents.tenants import TenantExport
from toolscript.testing import HashEmbedder, MemoryTenants

pytestmark = pytest.mark.requirement("DOC-006")

ANN = Tenant("ann")
LINES = [f"Line {number} of a log that goes on and on, as logs do." for number in range(100)]
WRITES = {"Upsert", "UpdateBatch", "Delete"}


@dataclass
class Late:
    """Applies writes only after a number of reads, in their order, as the engine does."""

    points: Any
    unseen_reads: int
    waiting: list[Callable[[], Awaitable[Any]]] = field(default_factory=list)

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        async def call(request: Any, **more: Any) -> Any:
            if method in WRITES and self.unseen_reads:
                self.waiting.append(lambda: getattr(self.points, method)(request, **more))
                return None
            answer = await getattr(self.points, method)(request, **more)
            if self.waiting:
                self.unseen_reads -= 1
                await self._catch_up()
            return answer

        return call

    async def _catch_up(self) -> None:
        while self.waiting and not self.unseen_reads:
            await self.waiting.pop(0)()


def text(lines: int) -> str:
    return "\n".join(LINES[:lines])


def service(index: QdrantDocuments) -> DocumentService:
    return DocumentService(HashEmbedder(), index, MemoryTenants())


@pytest.mark.parametrize("unseen_reads", [1, 2, 4])
@pytest.mark.parametrize("before", [0, 10, 100], ids=["new", "shorter before", "longer before"])
async def test_a_document_put_in_that_moment_is_there_whole_and_nothing_else_is(
    qdrant_documents: QdrantDocuments, unseen_reads: int, before: int
) -> None:
    if before:
        await service(qdrant_documents).put(Principal(ANN), [Document("d", text(before), {})])
    late = Late(qdrant_documents._qdrant.points, unseen_reads)
    engine = replace(qdrant_documents._qdrant, points=late)
    moving = QdrantDocuments(engine, qdrant_documents.collection, qdrant_documents.card, DocumentLayout())
    await service(moving).put(Principal(ANN), [Document("d", text(60), {"put": "late"})])
    assert not late.waiting
    export = TenantExport(qdrant_documents.of(ANN))
    assert [document async for document in export.documents()] == [Document("d", text(60), {"put": "late"})]
    assert export.left_out == []
    (header,) = await qdrant_documents.of(ANN).page("", 10, NO_FILTERS)
    assert header.complete
    points = TenantPoints(qdrant_documents._qdrant, qdrant_documents.collection, ANN)
    assert await points.count(EVERYTHING, exact=True) == header.passages
