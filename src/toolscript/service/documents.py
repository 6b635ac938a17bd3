"""Documents: what is wired to what."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolscript.adapters import qdrant
from toolscript.adapters.postgres import PostgresDocumentVersions
from toolscript.model.document_cards import DocumentCard
from toolscript.model.models import ModelCard
from toolscript.ports import Embedder
from toolscript.search.documents.search import DocumentSearch
from toolscript.service.document_models import embedder_of, model_source
from toolscript.service.health import DocumentHealth, Remembered
from toolscript.service.live_documents import LiveDocuments, ServedVersion
from toolscript.service.parts import Stores
from toolscript.service.reranking import open_rerankers
from toolscript.service.seeing import Seeing
from toolscript.service.tenancy import Tenancy
from toolscript.settings import Settings
from toolscript.surfaces.http.callers import CallerOf, callers_of
from toolscript.surfaces.http.documents import DocumentRoutes
from toolscript.sync.documents import DocumentDesk


async def open_index(settings: Settings, engine: qdrant.Qdrant, model: ModelCard) -> qdrant.QdrantDocuments:
    """The live version; where there is none, one for this model."""
    alias, layout = settings.qdrant_documents_alias, document_layout(settings)
    return await qdrant.open_documents(engine, alias, DocumentCard(model), layout, model_source(settings))


def document_layout(settings: Settings) -> qdrant.DocumentLayout:
    return qdrant.DocumentLayout(
        settings.document_shards, settings.qdrant_replicas, qdrant.declared_fields(settings.document_fields)
    )


@asynccontextmanager
async def open_routes(
    settings: Settings, stores: Stores, tenancy: Tenancy, embedder: Embedder, seeing: Seeing, secret: bytes
) -> AsyncIterator[DocumentRoutes | None]:
    """None where nobody could ask: no keys are known.

    The embedder remembers nothing: by how fast an answer comes, a tenant could tell what another has asked.
    """
    if not settings.jwt_keys and not settings.debug_bypass_auth:
        yield None
        return
    async with open_rerankers(settings) as rerankers:

        @asynccontextmanager
        async def open_version() -> AsyncIterator[ServedVersion]:
            version = await open_index(settings, stores.qdrant, embedder.model)
            async with embedder_of(version, settings, embedder) as own:
                index = seeing.index(version)
                search = DocumentSearch(
                    own,
                    index,
                    spans=seeing.spans_of("documents"),
                    cursor_secret=secret,
                    rerankers=rerankers,
                    deadline_seconds=settings.deadline_seconds,
                )
                desk = DocumentDesk(own, index, tenancy.tenants, PostgresDocumentVersions(stores.pool))
                yield ServedVersion(version.name, search, desk, Remembered(DocumentHealth(own, index).check).check)

        live = LiveDocuments(
            open_version, lambda: qdrant.live_name(stores.qdrant, settings.qdrant_documents_alias)
        )
        async with live.following():
            yield DocumentRoutes(
                live,
                live,
                _callers(tenancy, seeing),
                live.check_health,
                searched=seeing.searched,
                search_failed=seeing.search_failed,
                written=seeing.written,
                put_failed=seeing.put_failed,
            )


def cursor_secret(settings: Settings) -> bytes:
    """To be asked for before processes are forked: all of them read each other's cursors."""
    return settings.cursor_secret.get_secret_value().encode() or secrets.token_bytes(32)


def _callers(tenancy: Tenancy, seeing: Seeing) -> CallerOf:
    return callers_of(
        seeing.callers(tenancy.callers) if tenancy.callers else None,
        seeing.budget(tenancy.budget),
        default_plan=tenancy.default_plan,
        debug_bypass=tenancy.debug_bypass,
    )
