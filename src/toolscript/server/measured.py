"""Ports of searches and documents, wrapped to measure time and count outcomes."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Protocol

from toolscript.core.auth.model import Anonymous, Budget, Plan, Principal, RequestBudget, Tenant, TokenVerifier
from toolscript.core.errors import Rejected, SetupError, ToolscriptError, Unauthorized, Unavailable
from toolscript.core.retrieval.model import (
    Candidates,
    Fields,
    IndexCard,
    IndexQuery,
    Matrix,
    ModelCard,
    Point,
    PointVersion,
    StoredPoint,
    Vector,
)
from toolscript.core.retrieval.ports import Embedder, Index, Spans
from toolscript.core.retrieval.results import ChunkId, DocumentKey, Total
from toolscript.core.retrieval.spelling import Vocabulary
from toolscript.core.text import TextChunk
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.filters import Filters
from toolscript.documents.model.points import (
    ChunkQuery,
    DocumentCard,
    FoundWithContent,
    HitContent,
    IndexedDocument,
    TermStatistics,
)
from toolscript.documents.ports import DocumentIndex, TenantDocuments
from toolscript.knowledge.model.library import Chunk, Extraction, Source
from toolscript.knowledge.model.query import (
    KnowledgeAnswer,
    KnowledgeQuery,
    PassageAnswer,
    PassageQuery,
    SourcesAnswer,
    SourcesQuery,
)
from toolscript.knowledge.ports import LibraryReader
from toolscript.server.metrics import (
    DEGRADED,
    DOCUMENTS,
    EMPTY,
    ERROR,
    KNOWLEDGE,
    OK,
    REFUSED,
    TOOLS,
    Metrics,
    Observe,
    WorkMetrics,
    reason_of,
    timed,
)
from toolscript.tools.model.answer import SkillAnswer, ToolAnswer
from toolscript.tools.model.catalog import Claim, IndexVersion, IndexVersionState, Pending
from toolscript.tools.model.query import SkillQuery, ToolQuery
from toolscript.tools.ports import DirtySet

OUR_FAULT = (Unavailable, Rejected, SetupError)

SEARCH = "search."


class CountsEmbedding(Protocol):
    def embedded(self, kind: str, seconds: float, /, *, failed: bool) -> None: ...


class MeasuredSpans:
    """Spans that also measure the stages of a product's searches."""

    def __init__(self, spans: Spans, metrics: Metrics, product: str) -> None:
        self._spans = spans
        self._metrics = metrics
        self._product = product

    def span(self, name: str, **facts: str | int | float | bool) -> AbstractContextManager[None]:
        inner = self._spans.span(name, **facts)
        if not name.startswith(SEARCH):
            return inner
        return _Measured(inner, partial(self._metrics.stage, self._product, name.removeprefix(SEARCH)))


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
    """Measures an embedder. Wrap it inside a cache: cache hits are not embedded."""

    def __init__(self, embedder: Embedder, metrics: CountsEmbedding) -> None:
        self._embedder = embedder
        self._metrics = metrics

    @property
    def model(self) -> ModelCard:
        return self._embedder.model

    async def embed_query(self, text: str) -> Vector:
        return await timed(self._metrics.embedded, "query", self._embedder.embed_query(text))

    async def embed_texts(self, texts: Sequence[str]) -> Matrix:
        return await timed(self._metrics.embedded, "passages", self._embedder.embed_texts(texts))


class CountedTokenVerifier:
    def __init__(self, verifier: TokenVerifier, metrics: Metrics) -> None:
        self._verifier = verifier
        self._metrics = metrics

    async def verify(self, token: str) -> Principal:
        try:
            return await self._verifier.verify(token)
        except Unauthorized as error:
            self._metrics.token_refused(reason_of(error))
            raise


class CountedBudget:
    def __init__(self, budget: RequestBudget, metrics: Metrics) -> None:
        self._budget = budget
        self._metrics = metrics

    async def take(self, who: Tenant | Anonymous, plan: Plan) -> Budget:
        taken = await self._budget.take(who, plan)
        if not taken.allowed:
            self._metrics.rate_limited()
        return taken


class MeasuredDocumentIndex:
    def __init__(self, index: DocumentIndex, metrics: Metrics) -> None:
        self._index = index
        self._took = metrics.engine(DOCUMENTS)

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
    """Measures documents of a tenant. The tenant is never a label."""

    def __init__(self, documents: TenantDocuments, took: Observe) -> None:
        self._documents = documents
        self._took = took

    @property
    def tenant(self) -> Tenant:
        return self._documents.tenant

    async def search(self, query: ChunkQuery) -> FoundWithContent:
        return await timed(self._took, "search", self._documents.search(query))

    async def statistics(self) -> TermStatistics:
        return await timed(self._took, "statistics", self._documents.statistics())

    async def headers(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, DocumentHeader]:
        return await timed(self._took, "headers", self._documents.headers(keys))

    async def passages(self, ids: Sequence[ChunkId]) -> Mapping[ChunkId, TextChunk]:
        return await timed(self._took, "passages", self._documents.passages(ids))

    async def vectors(self, ids: Sequence[ChunkId]) -> Mapping[ChunkId, Vector]:
        return await timed(self._took, "vectors", self._documents.vectors(ids))

    async def shown(self, ids: Sequence[ChunkId]) -> HitContent:
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


def outcome_of(hits: Sized, degraded: Iterable[str]) -> str:
    if degraded:
        return DEGRADED
    return OK if hits else EMPTY


def is_refusal(error: BaseException) -> bool:
    return isinstance(error, ToolscriptError) and not isinstance(error, OUR_FAULT)


def outcome_of_error(error: BaseException) -> str:
    return REFUSED if is_refusal(error) else ERROR


class SearchesTools(Protocol):
    async def search(self, query: ToolQuery) -> ToolAnswer: ...
    async def skills(self, query: SkillQuery) -> SkillAnswer: ...


class SearchesLibrary(Protocol):
    async def search(self, query: KnowledgeQuery, /) -> KnowledgeAnswer: ...
    async def source(self, source_id: str, /) -> Source: ...
    async def sources(self, query: SourcesQuery, /) -> SourcesAnswer: ...
    async def passage(self, query: PassageQuery, /) -> PassageAnswer: ...


class CountedToolSearch:
    def __init__(self, search: SearchesTools, metrics: Metrics) -> None:
        self._search = search
        self._metrics = metrics

    async def search(self, query: ToolQuery) -> ToolAnswer:
        kind = query.search_type.value
        try:
            answer = await self._search.search(query)
        except Exception as error:
            self._metrics.searched(TOOLS, kind, outcome_of_error(error))
            raise
        self._metrics.searched(TOOLS, kind, outcome_of(answer.hits, answer.degraded), answer.degraded)
        return answer

    async def skills(self, query: SkillQuery) -> SkillAnswer:
        return await self._search.skills(query)


class CountedKnowledgeSearch:
    def __init__(self, search: SearchesLibrary, metrics: Metrics) -> None:
        self._search = search
        self._metrics = metrics

    async def search(self, query: KnowledgeQuery) -> KnowledgeAnswer:
        kind = query.search_type.value
        try:
            answer = await self._search.search(query)
        except Exception as error:
            self._metrics.searched(KNOWLEDGE, kind, outcome_of_error(error))
            raise
        self._metrics.searched(KNOWLEDGE, kind, outcome_of(answer.hits, answer.degraded), answer.degraded)
        return answer

    async def source(self, source_id: str) -> Source:
        return await self._search.source(source_id)

    async def sources(self, query: SourcesQuery) -> SourcesAnswer:
        return await self._search.sources(query)

    async def passage(self, query: PassageQuery) -> PassageAnswer:
        return await self._search.passage(query)


class MeasuredIndex:
    """Measures searches of an index, but not writes and counts."""

    def __init__(self, index: Index, took: Observe) -> None:
        self._index = index
        self._took = took

    @property
    def card(self) -> IndexCard:
        return self._index.card

    async def search(self, query: IndexQuery) -> Candidates:
        return await timed(self._took, "search", self._index.search(query))

    async def search_all(self, queries: Sequence[IndexQuery]) -> Sequence[Candidates]:
        return await timed(self._took, "search", self._index.search_all(queries))

    async def idfs(self, terms: Collection[int]) -> Mapping[int, float]:
        return await timed(self._took, "rarities", self._index.idfs(terms))

    async def fields(self, ids: Sequence[int], only: Sequence[str] = ()) -> Mapping[int, Fields]:
        return await timed(self._took, "fields", self._index.fields(ids, only))

    async def vocabulary(self) -> Vocabulary:
        return await self._index.vocabulary()

    async def put(self, points: Sequence[Point]) -> None:
        await self._index.put(points)

    async def remove(self, points: Sequence[PointVersion]) -> None:
        await self._index.remove(points)

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        return await self._index.scan(after, limit)

    async def count(self) -> int:
        return await self._index.count()

    async def whole(self, maximum: int) -> Sequence[StoredPoint] | None:
        return await self._index.whole(maximum)


class MeasuredLibrary:
    def __init__(self, library: LibraryReader, took: Observe) -> None:
        self._library = library
        self._took = took

    async def sources(self, ids: Sequence[str]) -> Mapping[str, Source]:
        return await timed(self._took, "sources", self._library.sources(ids))

    async def chunks(self, ids: Sequence[str]) -> Mapping[str, Chunk]:
        return await timed(self._took, "chunks", self._library.chunks(ids))

    async def extractions(self, ids: Sequence[str]) -> Mapping[str, Extraction]:
        return await timed(self._took, "extractions", self._library.extractions(ids))

    async def source_page(
        self, after: str, limit: int, types: Sequence[str] = (), topics: Sequence[str] = ()
    ) -> Sequence[Source]:
        return await timed(self._took, "source_page", self._library.source_page(after, limit, types, topics))

    async def passage(self, source_id: str, first: int, last: int) -> Sequence[Chunk]:
        return await timed(self._took, "passage", self._library.passage(source_id, first, last))

    async def ready(self) -> None:
        await timed(self._took, "ready", self._library.ready())


class CountedDirtySet:
    def __init__(self, dirty: DirtySet, metrics: WorkMetrics) -> None:
        self._dirty = dirty
        self._metrics = metrics

    async def claim(
        self, index_version: int, limit: int, lease_seconds: float, *, abandoned_first: bool = False
    ) -> Claim:
        try:
            return await self._dirty.claim(index_version, limit, lease_seconds, abandoned_first=abandoned_first)
        except ToolscriptError:
            self._metrics.failed(0)
            raise

    async def clear(
        self, index_version: int, claim: Claim, release_later: Collection[int] = (), after_seconds: float = 0.0
    ) -> None:
        await self._dirty.clear(index_version, claim, release_later, after_seconds)
        self._metrics.indexed(len(claim.versions))

    async def postpone(self, index_version: int, claim: Claim, reason: str) -> None:
        self._metrics.failed(len(claim.versions))
        await self._dirty.postpone(index_version, claim, reason)

    async def index_versions(self) -> Sequence[IndexVersion]:
        return await self._dirty.index_versions()

    async def adopt(self, fingerprint: str) -> IndexVersion:
        return await self._dirty.adopt(fingerprint)

    async def begin(self, fingerprint: str, *, afresh: bool = False) -> IndexVersion:
        return await self._dirty.begin(fingerprint, afresh=afresh)

    async def fill(self, index_version: int, limit: int) -> int:
        return await self._dirty.fill(index_version, limit)

    async def set_state(self, index_version: int, state: IndexVersionState) -> None:
        await self._dirty.set_state(index_version, state)

    async def forget(self, index_version: int) -> None:
        await self._dirty.forget(index_version)

    def keep_lease(
        self, index_version: int, claim: Claim, lease_seconds: float
    ) -> AbstractAsyncContextManager[None]:
        return self._dirty.keep_lease(index_version, claim, lease_seconds)

    async def renew(self, index_version: int, claim: Claim, lease_seconds: float) -> Claim:
        return await self._dirty.renew(index_version, claim, lease_seconds)

    async def mark(self, index_version: int, ids: Sequence[int]) -> None:
        await self._dirty.mark(index_version, ids)

    async def pending(self, index_version: int) -> Pending:
        return await self._dirty.pending(index_version)

    async def are_dirty(self, index_version: int, ids: Sequence[int]) -> set[int]:
        return await self._dirty.are_dirty(index_version, ids)

    async def failing(self, index_version: int, limit: int) -> Sequence[tuple[int, str]]:
        return await self._dirty.failing(index_version, limit)
