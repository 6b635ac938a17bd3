"""Ports of searches and documents, wrapped to measure time and count outcomes."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Protocol

from toolscript.core.auth.model import Budget, Caller, Callers, Plan, RequestBudget, Stranger, Tenant
from toolscript.core.errors import Unauthorized
from toolscript.core.retrieval.model import Matrix, ModelCard, Vector
from toolscript.core.retrieval.ports import Embedder, Spans
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
from toolscript.server.metrics import DOCUMENTS, Figures, Observe, reason_of, timed

SEARCH = "search."


class CountsEmbedding(Protocol):
    def embedded(self, kind: str, seconds: float, /, *, failed: bool) -> None: ...


class MeasuredSpans:
    """Spans of a product's searches are its stages."""

    def __init__(self, spans: Spans, figures: Figures, product: str) -> None:
        self._spans = spans
        self._figures = figures
        self._product = product

    def span(self, name: str, **facts: str | int | float | bool) -> AbstractContextManager[None]:
        inner = self._spans.span(name, **facts)
        if not name.startswith(SEARCH):
            return inner
        return _Measured(inner, partial(self._figures.stage, self._product, name.removeprefix(SEARCH)))


class _Measured(AbstractContextManager[None]):
    __slots__ = ("_began", "_inner", "_took")

    def __init__(
        self, inner: AbstractContextManager[None], took: Callable[[float, type[BaseException] | None], None]
    ) -> None:
        self._inner, self._took = inner, took
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter()
        self._inner.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_back: TracebackType | None
    ) -> None:
        self._inner.__exit__(kind, error, trace_back)
        self._took(time.perf_counter() - self._began, kind)


class MeasuredEmbedder:
    """To be put behind a cache: what is remembered was not embedded."""

    def __init__(self, embedder: Embedder, figures: CountsEmbedding) -> None:
        self._embedder = embedder
        self._figures = figures

    @property
    def model(self) -> ModelCard:
        return self._embedder.model

    async def embed_query(self, text: str) -> Vector:
        return await timed(self._figures.embedded, "query", self._embedder.embed_query(text))

    async def embed_passages(self, texts: Sequence[str]) -> Matrix:
        return await timed(self._figures.embedded, "passages", self._embedder.embed_passages(texts))


class CountedCallers:
    def __init__(self, callers: Callers, figures: Figures) -> None:
        self._callers = callers
        self._figures = figures

    async def verify(self, token: str) -> Caller:
        try:
            return await self._callers.verify(token)
        except Unauthorized as error:
            self._figures.token_refused(reason_of(error))
            raise


class CountedBudget:
    def __init__(self, budget: RequestBudget, figures: Figures) -> None:
        self._budget = budget
        self._figures = figures

    async def take(self, who: Tenant | Stranger, plan: Plan) -> Budget:
        taken = await self._budget.take(who, plan)
        if not taken.allowed:
            self._figures.rate_limited()
        return taken


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
