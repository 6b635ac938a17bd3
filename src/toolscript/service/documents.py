"""Documents: what is wired to what."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from toolscript.adapters import qdrant
from toolscript.adapters.postgres import PostgresDocumentVersions
from toolscript.errors import CatalogUnavailable
from toolscript.model.queries import SearchType
from toolscript.ports import Embedder
from toolscript.search.documents.search import DocumentSearch
from toolscript.service.document_index import document_layout, open_index, recorded_live, require_same_texts
from toolscript.service.health import DocumentHealth, Remembered
from toolscript.service.index_models import embedder_of
from toolscript.service.live_documents import LiveDocuments, ServedVersion
from toolscript.service.parts import Stores
from toolscript.service.reranking import open_rerankers
from toolscript.service.seeing import Seeing
from toolscript.service.tenancy import Tenancy
from toolscript.settings.service import Settings
from toolscript.surfaces.http.callers import CallerOf, callers_of
from toolscript.surfaces.http.document_parts import KeepsDocuments, SearchesDocuments
from toolscript.surfaces.http.documents import DocumentRoutes
from toolscript.surfaces.http.health import CheckHealth
from toolscript.sync.documents import DocumentDesk


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
    embedder = seeing.embedder(embedder)
    versions = PostgresDocumentVersions(stores.pool)

    async def live_name() -> str | None:
        """Where the record cannot be read, whatever is served goes on being served."""
        with suppress(CatalogUnavailable):
            alias = settings.qdrant_documents_alias
            return await recorded_live(versions) or await qdrant.live_name(stores.qdrant, alias)
        return None

    async with open_rerankers(settings) as rerankers:

        @asynccontextmanager
        async def open_version() -> AsyncIterator[ServedVersion]:
            recorded = await recorded_live(versions)
            if recorded is None:
                version = await open_index(settings, stores.qdrant, embedder.model)
            else:
                version = await qdrant.open_version(stores.qdrant, recorded, document_layout(settings))
            require_same_texts(version)
            async with embedder_of(version.origin, settings, embedder, "documents") as own:
                index = seeing.index(version)
                search = DocumentSearch(
                    own,
                    index,
                    spans=seeing.spans_of("documents"),
                    cursor_secret=secret,
                    rerankers=rerankers,
                    deadline_seconds=settings.deadline_seconds,
                )
                desk = DocumentDesk(own, index, tenancy.tenants, versions)
                yield ServedVersion(version.name, search, desk, Remembered(DocumentHealth(own, index).check).check)

        live = LiveDocuments(open_version, live_name)
        async with live.following():
            yield document_routes(live, live, live.check_health, tenancy, seeing, settings.search_type)


def document_routes(
    search: SearchesDocuments,
    desk: KeepsDocuments,
    check_health: CheckHealth,
    tenancy: Tenancy,
    seeing: Seeing,
    usual: SearchType,
) -> DocumentRoutes:
    return DocumentRoutes(
        search,
        desk,
        _callers(tenancy, seeing),
        check_health,
        searched=seeing.searched,
        search_failed=seeing.search_failed,
        written=seeing.written,
        put_failed=seeing.put_failed,
        usual=usual,
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
