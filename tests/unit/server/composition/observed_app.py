"""The HTTP API with documents in memory, observed as the settings specify."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
from fastapi import FastAPI

from tests.doubles import MemoryTokenVerifier, WordReranker
from toolscript.core.auth.model import Plan, Principal, Tenant
from toolscript.core.health import Health, PartHealth
from toolscript.core.postgres.pool import Pool
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.settings.service import Settings
from toolscript.core.web.auth import AdminAccess, authenticator_of
from toolscript.documents.http.dependencies import DocumentRoutes
from toolscript.documents.model.points import DocumentCard
from toolscript.documents.model.query import Rerank
from toolscript.documents.ports import DocumentIndex
from toolscript.documents.search import DocumentSearch
from toolscript.documents.service import DocumentService
from toolscript.server.app import create_app
from toolscript.server.observability import Observability, open_observability
from toolscript.testing import HashEmbedder, MemoryDocuments
from toolscript.testing.auth import MemoryRequestBudget
from toolscript.testing.documents import MemoryTenants

TOKEN = "token-of-ann"
FEW = "token-of-few"
CALLERS = {TOKEN: Principal(Tenant("ann")), FEW: Principal(Tenant("few"), Plan("few", requests_per_minute=1))}
ADMIN = "admins-own-token"
HERE = AdminAccess(development=True)


def settings_of(values: Mapping[str, object]) -> Settings:
    return Settings.model_validate(dict(values))


def observed_app(
    observability: Observability,
    embedder: Embedder | None = None,
    index: DocumentIndex | None = None,
    admin: AdminAccess = HERE,
) -> FastAPI:
    """Wired as the service is."""
    embeds = observability.embedder(embedder or HashEmbedder())
    documents = observability.index(index or MemoryDocuments(DocumentCard(embeds.model)))
    rerankers = {Rerank.CROSS_ENCODER: WordReranker()}
    search = DocumentSearch(
        embeds, documents, spans=observability.spans_of("documents"), cursor_secret=b"secret", rerankers=rerankers
    )

    async def check() -> Health:
        return Health({"index": PartHealth(ok=True, needed=True)})

    nothing = cast("Any", None)
    app = create_app(
        nothing,
        nothing,
        nothing,
        nothing,
        check,
        documents=DocumentRoutes(
            search,
            DocumentService(embeds, documents, MemoryTenants()),
            authenticator_of(
                observability.verifier(MemoryTokenVerifier(CALLERS)), observability.budget(MemoryRequestBudget())
            ),
            check,
            observability.searched,
            observability.search_failed,
            observability.written,
            observability.put_failed,
        ),
        telemetry=observability.telemetry,
    )
    observability.install(app, admin)
    return app


def client_of(app: FastAPI, address: str = "127.0.0.1", host: str = "127.0.0.1") -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app, client=(address, 123))
    return httpx2.AsyncClient(
        transport=transport, base_url=f"http://{host}", headers={"authorization": f"Bearer {TOKEN}"}
    )


@asynccontextmanager
async def watched(
    values: Mapping[str, object],
    pool: Pool | None = None,
    embedder: Embedder | None = None,
    index: DocumentIndex | None = None,
) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client of the app, with two documents put."""
    async with (
        open_observability(settings_of(values), cast("Any", pool)) as observability,
        client_of(observed_app(observability, embedder, index)) as client,
    ):
        yield client


async def put_two(client: httpx2.AsyncClient) -> None:
    documents = [
        {"id": "doc-1", "text": "Keys lie under the mat."},
        {"id": "doc-2", "text": "Mail comes at noon."},
    ]
    answer = await client.put("/documents", json={"documents": documents})
    assert answer.status_code == 200, answer.text
