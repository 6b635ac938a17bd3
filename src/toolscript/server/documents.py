"""Wiring of documents: index versions, rerankers and routes."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from toolscript.core.audit import AuditLog
from toolscript.core.auth.model import Principal
from toolscript.core.embedding.scale import ModelScales
from toolscript.core.errors import CatalogUnavailable, IndexMissing, IndexReplaced, ToolscriptError, Unavailable
from toolscript.core.health import CheckHealth, Health, PartHealth
from toolscript.core.postgres.audit import PostgresAudit
from toolscript.core.retrieval.ports import Embedder, Reranker
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.results import DocumentKey
from toolscript.core.settings.service import Settings
from toolscript.core.web.auth import Authenticate, authenticator_of
from toolscript.documents.http.dependencies import DocumentRoutes, DocumentStore, ListsTenants, SearchesDocuments
from toolscript.documents.lost import index_lost
from toolscript.documents.model.answer import DocumentAnswer
from toolscript.documents.model.document import Document, DocumentHeader, PutResult, StoredDocument
from toolscript.documents.model.filters import Filters
from toolscript.documents.model.query import DocumentQuery, Rerank
from toolscript.documents.search import DocumentSearch
from toolscript.documents.service import DocumentService
from toolscript.documents.tenants import TenantList, TenantUsage
from toolscript.server.document_index import LiveIndex, require_same_texts
from toolscript.server.health import CachedHealth, DocumentHealth, note_of
from toolscript.server.observability import Observability
from toolscript.server.stores import Stores, embedder_of, text_model
from toolscript.server.tenancy import Tenancy

LOOK_EVERY_SECONDS = 1.0
# Requests that started on the previous version finish on it.
CLOSE_AFTER_SECONDS = 60.0

T = TypeVar("T")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServedVersion:
    name: str
    search: SearchesDocuments
    service: DocumentStore
    tenants: ListsTenants
    check_health: CheckHealth


OpenVersion = Callable[[], AbstractAsyncContextManager[ServedVersion]]


class LiveDocuments:
    """Serves the live index version, and switches to the next one without failing a request."""

    def __init__(self, open_version: OpenVersion, live_name: Callable[[], Awaitable[str | None]]) -> None:
        self._open_version = open_version
        self._live_name = live_name
        self._served: ServedVersion | None = None
        self._is_missing = False
        self._resources = AsyncExitStack()
        self._problem: ToolscriptError = Unavailable("documents are not open yet", hint="try again in a moment")
        self._closing: set[asyncio.Task[None]] = set()
        self._opening = asyncio.Lock()

    async def search(self, principal: Principal, query: DocumentQuery) -> DocumentAnswer:
        return await self._ask(self._version().search.search(principal, query))

    async def put(self, principal: Principal, documents: Sequence[Document]) -> Sequence[PutResult]:
        return await self._write(lambda service: service.put(principal, documents))

    async def remove(self, principal: Principal, ids: Sequence[str]) -> Sequence[str]:
        return await self._write(lambda service: service.remove(principal, ids))

    async def _write(self, write: Callable[[DocumentStore], Awaitable[T]]) -> T:
        """Write to the live version. A replaced version refuses; then the write goes to the next one."""
        version = self._version()
        try:
            return await self._ask(write(version.service))
        except IndexReplaced:
            async with self._opening:
                if self._served is version:
                    await self._open()
        return await self._ask(write(self._version().service))

    async def _ask(self, request: Awaitable[T]) -> T:
        """Name the loss of the collection to the client, and look for it from now on."""
        try:
            return await request
        except IndexMissing as error:
            self._is_missing = True
            raise index_lost() from error

    async def document(self, principal: Principal, document_id: str) -> StoredDocument:
        return await self._ask(self._version().service.document(principal, document_id))

    async def page(
        self, principal: Principal, after: DocumentKey, limit: int, filters: Filters
    ) -> Sequence[DocumentHeader]:
        return await self._ask(self._version().service.page(principal, after, limit, filters))

    @property
    def tenants(self) -> ListsTenants:
        return _LiveTenants(self._version)

    async def check_health(self) -> Health:
        if self._served is None:
            return Health({"index": PartHealth(ok=False, needed=True, note=note_of(self._problem))})
        return await self._served.check_health()

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Open the live version and follow the alias. A failure to open it is logged, and retried every second."""
        await self._follow_once()
        task = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            for closing in self._closing:
                closing.cancel()
            await self._resources.aclose()

    def _version(self) -> ServedVersion:
        if self._served is None:
            raise self._problem
        return self._served

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_SECONDS)
            await self._follow_once()

    async def _follow_once(self) -> None:
        try:
            async with self._opening:
                if await self._is_behind():
                    await self._open()
        except ToolscriptError as error:
            self._warn(error)

    async def _is_behind(self) -> bool:
        if self._served is None or self._is_missing:
            return True
        return await self._live_name() not in (None, self._served.name)

    async def _open(self) -> None:
        async with AsyncExitStack() as opening:
            served = await opening.enter_async_context(self._open_version())
            before, self._resources = self._resources, opening.pop_all()
        if self._served is not None:
            logger.info("documents are served from another index, or from one again", extra={"index": served.name})
            self._close_later(before)
        self._served, self._is_missing = served, False

    def _close_later(self, resources: AsyncExitStack) -> None:
        async def close() -> None:
            try:
                await asyncio.sleep(CLOSE_AFTER_SECONDS)
            finally:
                await resources.aclose()

        task = asyncio.create_task(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _warn(self, error: ToolscriptError) -> None:
        """Log each problem once: opening is retried every second."""
        if str(error) != str(self._problem):
            reason = f"{error.message}; {error.hint}" if error.hint else error.message
            logger.warning("documents cannot be opened", extra={"part": "documents", "reason": reason})
        self._problem = error


@dataclass(frozen=True)
class _LiveTenants:
    """The tenants with the counts of the version that is live when they are asked for."""

    version: Callable[[], ServedVersion]

    async def page(self, after: str, limit: int) -> Sequence[TenantUsage]:
        return await self.version().tenants.page(after, limit)

    async def tenant(self, name: str) -> TenantUsage:
        return await self.version().tenants.tenant(name)


@asynccontextmanager
async def open_rerankers(settings: Settings) -> AsyncIterator[Mapping[Rerank, Reranker]]:
    """Open the configured rerankers. They are imported on demand: a model's runtime takes seconds to load."""
    async with AsyncExitStack() as opened:
        rerankers: dict[Rerank, Reranker] = {}
        if settings.rerank_model:
            rerankers[Rerank.CROSS_ENCODER] = await _cross_encoder(settings, opened)
        if settings.text_url:
            rerankers[Rerank.LLM] = _llm(settings, opened)
        yield rerankers


async def _cross_encoder(settings: Settings, opened: AsyncExitStack) -> Reranker:
    from toolscript.core.embedding.cross_encoder import CrossEncoder

    encoder = await asyncio.to_thread(CrossEncoder, settings.rerank_model)
    opened.callback(encoder.close)
    return encoder


def _llm(settings: Settings, opened: AsyncExitStack) -> Reranker:
    """Return the LLM reranker. It does not retry, because a search waits for it."""
    from toolscript.documents.rerank import LlmReranker

    text = text_model(settings, tries=1)
    opened.push_async_callback(text.close)
    return LlmReranker(text, settings.text_model or "llm")


@asynccontextmanager
async def open_routes(
    settings: Settings,
    stores: Stores,
    tenancy: Tenancy,
    embedder: Embedder,
    observability: Observability,
    secret: bytes,
    scales: ModelScales,
) -> AsyncIterator[DocumentRoutes | None]:
    """Open the document routes; None if no keys are configured, since then no request could be authenticated.

    The embedder has no cache: response times would reveal to a tenant what other tenants have searched for.
    """
    if not settings.jwt_keys and not settings.debug_bypass_auth:
        yield None
        return
    embedder = observability.embedder(embedder)
    live_index = LiveIndex.of(settings, stores)

    async def live_name() -> str | None:
        """Return None if the record cannot be read: the served version stays."""
        with suppress(CatalogUnavailable):
            return await live_index.name()
        return None

    async with open_rerankers(settings) as rerankers:

        @asynccontextmanager
        async def open_version() -> AsyncIterator[ServedVersion]:
            version = await live_index.open_or_create(embedder.model)
            require_same_texts(version)
            async with embedder_of(version.origin, settings, embedder, "documents") as own:
                index = observability.index(version)
                search = DocumentSearch(
                    own,
                    index,
                    spans=observability.spans_of("documents"),
                    cursor_secret=secret,
                    rerankers=rerankers,
                    deadline_seconds=settings.deadline_seconds,
                    scale=await scales.of(own),
                    tenants=tenancy.tenants,
                )
                service = DocumentService(own, index, tenancy.tenants, live_index.versions)
                tenants = TenantList(index, version.places(), tenancy.tenants)
                check_health = CachedHealth(DocumentHealth(own, index, tenancy.tenants).check).check
                yield ServedVersion(version.name, search, service, tenants, check_health)

        live = LiveDocuments(open_version, live_name)
        async with live.following():
            served = ServedVersion("live", live, live, live.tenants, live.check_health)
            yield document_routes(served, tenancy, observability, settings.search_type, PostgresAudit(stores.pool))


def document_routes(
    served: ServedVersion,
    tenancy: Tenancy,
    observability: Observability,
    default: SearchType,
    audit: AuditLog,
) -> DocumentRoutes:
    return DocumentRoutes(
        served.search,
        served.service,
        _verifier(tenancy, observability),
        served.check_health,
        searched=observability.searched,
        search_failed=observability.search_failed,
        written=observability.written,
        put_failed=observability.put_failed,
        default=default,
        tenants=served.tenants,
        audit=audit,
    )


def cursor_secret(settings: Settings) -> bytes:
    """Return the key that signs cursors. Call it before forking: processes read each other's cursors."""
    return settings.cursor_secret.get_secret_value().encode() or secrets.token_bytes(32)


def _verifier(tenancy: Tenancy, observability: Observability) -> Authenticate:
    return authenticator_of(
        observability.verifier(tenancy.verifier) if tenancy.verifier else None,
        observability.budget(tenancy.budget),
        default_plan=tenancy.default_plan,
        debug_bypass=tenancy.debug_bypass,
    )
