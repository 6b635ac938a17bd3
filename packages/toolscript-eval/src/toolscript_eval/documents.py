"""`eval documents`: a dataset of documents, put into a collection of its own and searched over HTTP."""

import asyncio
import json
import secrets
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx2
from fastapi import FastAPI

from toolscript.core.auth.model import Anonymous, Budget, KnownTenant, Plan, Tenant
from toolscript.core.errors import SetupError
from toolscript.core.qdrant import wire
from toolscript.core.qdrant.connection import Qdrant, translated
from toolscript.core.retrieval.ports import Embedder
from toolscript.core.retrieval.timings import NoSpans
from toolscript.core.settings.service import Settings
from toolscript.core.values import OnProgress
from toolscript.core.web.auth import BYPASS, BYPASS_TENANT, authenticator_of
from toolscript.core.web.errors import install_error_handlers
from toolscript.core.web.request_context import RequestContext
from toolscript.core.web.routers import add_routers
from toolscript.documents.http.dependencies import DocumentRoutes
from toolscript.documents.http.resources import DOCUMENTS_PATH, SEARCH_PATH
from toolscript.documents.http.routes import LARGER_REQUESTS, document_routes
from toolscript.documents.ports import DocumentIndex
from toolscript.documents.search import DocumentSearch
from toolscript.documents.service import DocumentService
from toolscript.server.document_index import open_index
from toolscript.server.health import DocumentHealth
from toolscript.server.stores import connect_qdrant
from toolscript_eval.dataset import EvalRequest, EvalResult, read_dataset
from toolscript_eval.judging import differences_text, evenly_spread, judge_documents
from toolscript_eval.report import earlier_report, result_of
from toolscript_eval.service import open_disk_cached, settings_for

LINES = "application/x-ndjson"
ANSWER_SECONDS = 600.0
TENANT = Tenant("judged")


async def remove_documents(connected: Qdrant, alias: str) -> None:
    """Drop the collection behind an alias, and the alias with it."""
    with translated():
        listed = await connected.collections.ListAliases(
            wire.ListAliasesRequest(), timeout=connected.timeout_seconds
        )
        for alias_entry in listed.aliases:
            if alias_entry.alias_name == alias:
                gone = wire.DeleteCollection(collection_name=alias_entry.collection_name)
                await connected.collections.Delete(gone, timeout=connected.timeout_seconds)


class DocumentsOverHttp:
    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def put(self, documents: Sequence[Mapping[str, object]]) -> None:
        body = "".join(json.dumps(document) + "\n" for document in documents)
        answer = await self._client.put(DOCUMENTS_PATH, content=body.encode(), headers={"Content-Type": LINES})
        if answer.status_code != httpx2.codes.OK:
            raise _refused(answer)
        wrong = next((line for line in map(json.loads, answer.text.splitlines()) if "error" in line), None)
        if wrong:
            raise SetupError(f"not all documents were stored: {wrong['error']}")

    async def search(self, query: str, top_k: int, way: Mapping[str, str]) -> list[str]:
        request = {"query": query, "limit": top_k, "include_snippets": False, "metadata_fields": [], **way}
        answer = await self._client.post(SEARCH_PATH, json=request)
        if answer.status_code != httpx2.codes.OK:
            raise _refused(answer)
        data = answer.json()
        if degraded := data["metadata"]["degraded"]:
            raise SetupError(f"a part failed while it was measured: {', '.join(degraded)}", hint="try again")
        return [result["id"] for result in data["results"]]


@asynccontextmanager
async def documents_over_http(routes: DocumentRoutes, tenant: Tenant) -> AsyncIterator[DocumentsOverHttp]:
    """Open the API as this tenant. The debug bypass has to be allowed."""
    app = FastAPI()
    add_routers(app, *document_routes(routes))
    install_error_handlers(app)
    app.add_middleware(RequestContext, larger=LARGER_REQUESTS)
    transport = httpx2.ASGITransport(app=app)
    headers = {BYPASS: "1", BYPASS_TENANT: tenant.name}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://toolscript", headers=headers, timeout=ANSWER_SECONDS
    ) as client:
        yield DocumentsOverHttp(client)


def _refused(answer: httpx2.Response) -> SetupError:
    return SetupError(f"the API answered {answer.status_code}: {answer.text[:500]}")


def evaluate_documents(request: EvalRequest, *, on_progress: OnProgress) -> EvalResult:
    """Evaluate in a temporary collection. The catalog is not used: PostgreSQL may be down."""

    async def run() -> EvalResult:
        before = earlier_report(request)
        settings = _with_own_alias(settings_for(request))
        dataset = evenly_spread(read_dataset(request.dataset, distractors=request.distractors), request.count)
        async with open_disk_cached(settings, on_progress) as embedder, _api(settings, embedder) as api:
            report = await judge_documents(
                api, dataset, model=embedder.model.name, seed=request.seed, on_progress=on_progress
            )
        result = result_of(report, request, before)
        return replace(result, text=f"{result.text}\n\n{differences_text(report)}")

    return asyncio.run(run())


def _with_own_alias(settings: Settings) -> Settings:
    """Return settings with a unique alias: concurrent evaluations must not share a collection."""
    alias = f"eval_documents_{uuid.uuid4().hex[:12]}"
    return settings.model_copy(update={"qdrant_documents_alias": alias, "document_shards": 0})


@asynccontextmanager
async def _api(settings: Settings, embedder: Embedder) -> AsyncIterator[DocumentsOverHttp]:
    async with connect_qdrant(settings) as connected:
        try:
            index = await open_index(settings, connected, embedder.model)
            async with documents_over_http(_routes(embedder, index), TENANT) as api:
                yield api
        finally:
            await remove_documents(connected, settings.qdrant_documents_alias)


def _routes(embedder: Embedder, index: DocumentIndex) -> DocumentRoutes:
    """Return the routes as the service wires them, but without authentication and rate limits."""
    return DocumentRoutes(
        DocumentSearch(embedder, index, spans=NoSpans(), cursor_secret=secrets.token_bytes(32)),
        DocumentService(embedder, index, _Unlisted()),
        authenticator_of(None, _Unbounded(), debug_bypass=True),
        DocumentHealth(embedder, index).check,
    )


class _Unlisted:
    """A registry that stores nothing: the tenant is temporary."""

    async def seen(self, tenant: Tenant) -> bool:  # noqa: ARG002
        return False

    async def holds(self, tenant: Tenant) -> bool:  # noqa: ARG002
        return False

    async def note(self, tenant: Tenant, *, holds: bool) -> bool:  # noqa: ARG002
        return False

    async def holders(self, *, or_unknown: bool = False) -> int:  # noqa: ARG002
        return 0

    async def forget(self, tenant: Tenant) -> None: ...
    async def page(self, after: str, limit: int) -> Sequence[KnownTenant]:  # noqa: ARG002
        return ()


class _Unbounded:
    async def take(self, who: Tenant | Anonymous, plan: Plan) -> Budget:  # noqa: ARG002
        return Budget()
