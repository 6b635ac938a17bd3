"""eval documents: a judged set as one tenant's documents, put and asked for over the HTTP API."""

import asyncio
import secrets
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from toolscript.adapters.judged_sets import read_judged_set
from toolscript.adapters.telemetry.no_spans import NoSpans
from toolscript.evaluation.document_judging import differences_text, judge_documents
from toolscript.evaluation.judging import evenly_spread
from toolscript.evaluation.results import earlier_report, result_of
from toolscript.model.judged import EvalRequest, EvalResult
from toolscript.model.progress import OnProgress
from toolscript.model.tenancy import Budget, KnownTenant, Plan, Stranger, Tenant
from toolscript.ports import DocumentIndex, Embedder
from toolscript.search.documents.search import DocumentSearch
from toolscript.service.bench_documents_points import remove_documents
from toolscript.service.document_index import open_index
from toolscript.service.documents_over_http import DocumentsOverHttp, documents_over_http
from toolscript.service.evaluating import open_remembering, settings_for
from toolscript.service.health import DocumentHealth
from toolscript.service.parts import connect_qdrant
from toolscript.settings.service import Settings
from toolscript.surfaces.http.callers import callers_of
from toolscript.surfaces.http.documents import DocumentRoutes
from toolscript.sync.documents import DocumentDesk

TENANT = Tenant("judged")


def evaluate_documents(request: EvalRequest, *, on_progress: OnProgress) -> EvalResult:
    """In a collection of its own that is gone afterwards. The catalog is not asked: PostgreSQL may be down."""

    async def run() -> EvalResult:
        before = earlier_report(request)
        settings = _own(settings_for(request))
        judged = evenly_spread(read_judged_set(request.dataset, distractors=request.distractors), request.count)
        async with open_remembering(settings, on_progress) as embedder, _api(settings, embedder) as api:
            report = await judge_documents(
                api, judged, model=embedder.model.name, seed=request.seed, on_progress=on_progress
            )
        result = result_of(report, request, before)
        return replace(result, text=f"{result.text}\n\n{differences_text(report)}")

    return asyncio.run(run())


def _own(settings: Settings) -> Settings:
    """Under a name that nobody else uses: two measurements at once must not meet."""
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
    """As the service wires them, but for whoever may ask: everybody, as often as they like."""
    return DocumentRoutes(
        DocumentSearch(embedder, index, spans=NoSpans(), cursor_secret=secrets.token_bytes(32)),
        DocumentDesk(embedder, index, _Unlisted()),
        callers_of(None, _Unbounded(), debug_bypass=True),
        DocumentHealth(embedder, index).check,
    )


class _Unlisted:
    """Of a tenant that is gone in a moment nothing is kept."""

    async def seen(self, tenant: Tenant) -> None: ...
    async def forget(self, tenant: Tenant) -> None: ...
    async def page(self, after: str, limit: int) -> Sequence[KnownTenant]:  # noqa: ARG002
        return ()


class _Unbounded:
    async def take(self, who: Tenant | Stranger, plan: Plan) -> Budget:  # noqa: ARG002
        return Budget()
