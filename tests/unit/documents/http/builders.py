"""The HTTP API over in-memory documents, and clients of several tenants."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import httpx2
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from tests.doubles import MemorySpans, MemoryTokenVerifier
from toolscript.core.auth.model import Plan, Principal, Tenant
from toolscript.core.health import Health, PartHealth
from toolscript.core.web.auth import authenticator_of
from toolscript.documents.http.dependencies import ABSENT, DocumentRoutes
from toolscript.documents.model.answer import DocumentAnswer
from toolscript.documents.model.document import Document, PutOutcome, PutResult
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.ports import DocumentIndex
from toolscript.documents.search import DocumentSearch
from toolscript.documents.service import DocumentService
from toolscript.server.app import create_app
from toolscript.testing import HashEmbedder
from toolscript.testing.auth import MemoryRequestBudget
from toolscript.testing.documents import MemoryTenants

ACME = Principal(Tenant("acme"))
OTHER = Principal(Tenant("other"))
LIMITED = Principal(Tenant("limited"), Plan("small", max_top_k=5, requests_per_minute=3))
CURIOUS = Principal(Tenant("acme"), Plan("titles", metadata_fields=frozenset({"title"})))
TOKENS = {
    "token-of-acme": ACME,
    "token-of-other": OTHER,
    "token-of-limited": LIMITED,
    "token-of-curious": CURIOUS,
}
LINES = "application/x-ndjson"

Json = dict[str, Any]


@dataclass
class Searching:
    """Searches after an optional hook."""

    run_search: Callable[[Principal, DocumentQuery], Awaitable[DocumentAnswer]]
    before: Callable[[], Awaitable[None]] | None = None

    async def search(self, principal: Principal, query: DocumentQuery) -> DocumentAnswer:
        if self.before is not None:
            await self.before()
        return await self.run_search(principal, query)


class RecordingService(DocumentService):
    """Puts after an optional hook, and records batch sizes. With `forgets` it stores nothing."""

    def __init__(self, index: DocumentIndex, embedder: HashEmbedder) -> None:
        super().__init__(embedder, index, MemoryTenants())
        self.before: Callable[[Sequence[Document]], Awaitable[None]] | None = None
        self.batches: list[int] = []
        self.forgets = False

    async def put(self, principal: Principal, documents: Sequence[Document]) -> list[PutResult]:
        self.batches.append(len(documents))
        if self.before is not None:
            await self.before(documents)
        if self.forgets:
            return [PutResult(document.id, PutOutcome.CREATED, 1) for document in documents]
        return await super().put(principal, documents)


@dataclass
class Parts:
    """The dependencies of the routes, and what the routes reported."""

    index: DocumentIndex
    searched: list[Json] = field(default_factory=list)
    failed: list[BaseException] = field(default_factory=list)
    written: list[tuple[Principal, Sequence[PutResult]]] = field(default_factory=list)
    stopped: list[BaseException] = field(default_factory=list)
    now: Callable[[], float] = time.time
    health: Health = field(default_factory=lambda: Health({"index": PartHealth(ok=True, needed=True)}))

    def __post_init__(self) -> None:
        embedder = HashEmbedder()
        self.service = RecordingService(self.index, embedder)
        search = DocumentSearch(embedder, self.index, spans=MemorySpans(), cursor_secret=b"secret")
        self.search = Searching(search.search)

    def routes(self) -> DocumentRoutes:
        async def check() -> Health:
            return self.health

        return DocumentRoutes(
            self.search,
            self.service,
            authenticator_of(MemoryTokenVerifier(TOKENS), MemoryRequestBudget(self.now)),
            check,
            self._note_search,
            lambda _, error: self.failed.append(error),
            lambda principal, results: self.written.append((principal, results)),
            self.stopped.append,
        )

    def _note_search(
        self,
        principal: Principal,
        query: DocumentQuery,
        answer: DocumentAnswer,
        /,
        *,
        query_id: str,
        took_ms: float,
    ) -> None:
        entry = {"caller": principal, "query": query, "answer": answer, "query_id": query_id, "took_ms": took_ms}
        self.searched.append(entry)


CURRENT_ROUTES: ContextVar[DocumentRoutes] = ContextVar("CURRENT_ROUTES")


class CurrentRoutes:
    """Delegates to the routes of the current request: building the app takes 0.2 s, so it is built once."""

    def __getattr__(self, name: str) -> Any:
        return getattr(CURRENT_ROUTES.get(), name)

    async def principal(self, request: Request, response: Response) -> Principal:
        return await CURRENT_ROUTES.get().principal(request, response)


@dataclass(frozen=True)
class App:
    """The whole API with documents as its only dependency."""

    api: FastAPI
    documents: DocumentRoutes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        before = CURRENT_ROUTES.set(self.documents)
        try:
            await self.api(scope, receive, send)
        finally:
            CURRENT_ROUTES.reset(before)

    def openapi(self) -> Json:
        return self.api.openapi()


@cache
def _api(*, with_documents: bool) -> FastAPI:
    nothing, documents = cast("Any", None), cast("DocumentRoutes", CurrentRoutes())
    documents_or_none = documents if with_documents else None
    return create_app(nothing, nothing, nothing, nothing, nothing, documents=documents_or_none)


def app_of(documents: DocumentRoutes | None) -> App:
    return App(_api(with_documents=documents is not None), documents or ABSENT)


@dataclass(frozen=True)
class Client:
    http: httpx2.AsyncClient

    async def ask(
        self, method: str, path: str, expected: int = 200, json: object = None, **headers: str
    ) -> httpx2.Response:
        answer = await self.http.request(method, path, json=json, headers=headers)
        assert answer.status_code == expected, answer.text
        return answer

    async def search(self, query: str | None = None, expected: int = 200, **more: object) -> Json:
        body = more if query is None else {"query": query, **more}
        return dict((await self.ask("POST", "/search", expected, body)).json())

    async def put(self, *documents: object, expected: int = 200) -> Json:
        return dict((await self.ask("PUT", "/documents", expected, {"documents": documents})).json())

    async def put_lines(self, content: Any, expected: int = 200, packing: str = "") -> httpx2.Response:
        sent = {"content-type": LINES, **({"content-encoding": packing} if packing else {})}
        answer = await self.http.put("/documents", content=content, headers=sent)
        assert answer.status_code == expected, answer.text
        return answer


@asynccontextmanager
async def client_of(app: Any, token: str = "token-of-acme") -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://testserver", headers=headers) as client:
        yield Client(client)


def document(number: int, text: str = "", **metadata: object) -> Json:
    return {"id": f"doc-{number}", "text": text or f"About the number {number}.", "metadata": metadata}
