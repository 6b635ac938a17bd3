"""eval documents: a judged set as one tenant's documents, put and asked for over the HTTP API."""

import asyncio
import secrets
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from toolscript.adapters.judged_sets import read_judged_set
from toolscript.adapters.postgres import PostgresTenants
from toolscript.adapters.telemetry.no_spans import NoSpans
from toolscript.errors import SetupError
from toolscript.evaluation.document_judging import differences_text, judge_documents
from toolscript.evaluation.judging import evenly_spread
from toolscript.evaluation.results import earlier_report, result_of
from toolscript.model.judged import EvalRequest, EvalResult
from toolscript.model.progress import OnProgress
from toolscript.model.tenancy import Tenant
from toolscript.ports import Embedder
from toolscript.service.bench_documents_points import remove_documents
from toolscript.service.documents import open_routes
from toolscript.service.documents_over_http import DocumentsOverHttp, documents_over_http
from toolscript.service.evaluating import open_remembering, settings_for
from toolscript.service.parts import Stores, open_stores
from toolscript.service.seeing import Seeing
from toolscript.settings import Settings


def evaluate_documents(request: EvalRequest, *, on_progress: OnProgress) -> EvalResult:
    """In a collection and for a tenant of its own, both gone afterwards."""

    async def run() -> EvalResult:
        before = earlier_report(request)
        name = f"eval-documents-{uuid.uuid4().hex[:12]}"
        settings = _own(settings_for(request), alias=name.replace("-", "_"))
        judged = evenly_spread(read_judged_set(request.dataset, distractors=request.distractors), request.count)
        async with (
            open_remembering(settings, on_progress) as embedder,
            open_stores(settings) as stores,
            _api(settings, stores, embedder, Tenant(name)) as api,
        ):
            report = await judge_documents(
                api, judged, model=embedder.model.name, seed=request.seed, on_progress=on_progress
            )
        result = result_of(report, request, before)
        return replace(result, text=f"{result.text}\n\n{differences_text(report)}")

    return asyncio.run(run())


def _own(settings: Settings, alias: str) -> Settings:
    """Nobody's tokens are needed, and nobody's documents are near."""
    return settings.model_copy(
        update={
            "environment": "development",
            "debug_bypass_auth": True,
            "jwt_keys": "",
            "plans": "",
            "default_plan": "default",
            "document_shards": 0,
            "qdrant_documents_alias": alias,
        }
    )


@asynccontextmanager
async def _api(
    settings: Settings, stores: Stores, embedder: Embedder, tenant: Tenant
) -> AsyncIterator[DocumentsOverHttp]:
    secret = secrets.token_bytes(32)
    async with open_routes(settings, stores, embedder, embedder, Seeing(NoSpans()), secret) as routes:
        if routes is None:
            raise SetupError("documents are not set up here")
        try:
            async with documents_over_http(routes, tenant.name) as api:
                yield api
        finally:
            await remove_documents(stores.qdrant, settings.qdrant_documents_alias)
            await PostgresTenants(stores.pool).forget(tenant)
