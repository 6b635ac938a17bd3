"""The engine of documents, asked through somebody who takes the time."""

from collections.abc import Mapping, Sequence

from toolscript.core.auth.model import Tenant
from toolscript.core.retrieval.model import Vector
from toolscript.core.retrieval.results import DocumentKey, FoundPassages, PassageId, Total
from toolscript.core.text import Passage
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.filters import Filters
from toolscript.documents.model.points import (
    DocumentCard,
    IndexedDocument,
    PassageAsk,
    ShownPassages,
    WordStatistics,
)
from toolscript.documents.ports import DocumentIndex, TenantDocuments
from toolscript.server.metrics import DOCUMENTS, Figures, Observe, timed


class MeasuredDocumentIndex:
    def __init__(self, index: DocumentIndex, figures: Figures) -> None:
        self._index = index
        self._took = figures.engine(DOCUMENTS)

    @property
    def name(self) -> str:
        return self._index.name

    @property
    def card(self) -> DocumentCard:
        return self._index.card

    async def passages(self) -> int:
        return await self._index.passages()

    def of(self, tenant: Tenant) -> "MeasuredDocuments":
        return MeasuredDocuments(self._index.of(tenant), self._took)

    async def ready(self) -> None:
        await self._index.ready()


class MeasuredDocuments:
    """The tenant is whose documents these are, and no label of anything."""

    def __init__(self, documents: TenantDocuments, took: Observe) -> None:
        self._documents = documents
        self._took = took

    @property
    def tenant(self) -> Tenant:
        return self._documents.tenant

    async def search(self, ask: PassageAsk) -> FoundPassages:
        return await timed(self._took, "search", self._documents.search(ask))

    async def statistics(self) -> WordStatistics:
        return await timed(self._took, "statistics", self._documents.statistics())

    async def headers(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, DocumentHeader]:
        return await timed(self._took, "headers", self._documents.headers(keys))

    async def passages(self, ids: Sequence[PassageId]) -> Mapping[PassageId, Passage]:
        return await timed(self._took, "passages", self._documents.passages(ids))

    async def vectors(self, ids: Sequence[PassageId]) -> Mapping[PassageId, Vector]:
        return await timed(self._took, "vectors", self._documents.vectors(ids))

    async def shown(self, ids: Sequence[PassageId]) -> ShownPassages:
        return await timed(self._took, "shown", self._documents.shown(ids))

    async def page(self, after: DocumentKey, limit: int, filters: Filters) -> Sequence[DocumentHeader]:
        return await timed(self._took, "page", self._documents.page(after, limit, filters))

    async def count(self, filters: Filters) -> Total:
        return await timed(self._took, "count", self._documents.count(filters))

    async def put(self, documents: Sequence[IndexedDocument]) -> None:
        await timed(self._took, "put", self._documents.put(documents))

    async def restore(self, documents: Sequence[IndexedDocument]) -> None:
        await timed(self._took, "put", self._documents.restore(documents))

    async def remove(
        self, keys: Sequence[DocumentKey], *, up_to: Mapping[DocumentKey, int] | None = None
    ) -> Sequence[DocumentKey]:
        return await timed(self._took, "remove", self._documents.remove(keys, up_to=up_to))

    async def erase(self) -> None:
        await timed(self._took, "erase", self._documents.erase())
