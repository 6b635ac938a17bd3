"""The routes of documents: /api/v1/documents and the aliases, each with the scope it needs."""

from fastapi import APIRouter, Depends

from toolscript.core.auth.model import Scope
from toolscript.core.web.auth import BEARER, require_principal
from toolscript.core.web.request_context import UNBOUNDED
from toolscript.core.web.routers import api_router
from toolscript.documents.http.aliases import (
    DOCUMENTS_ALIAS,
    SEARCH_ALIAS,
    add_health,
    add_reading_alias,
    add_search_alias,
    add_writing_aliases,
)
from toolscript.documents.http.dependencies import ABSENT, DocumentRoutes
from toolscript.documents.http.resources import (
    DELETE_PATH,
    DOCUMENTS_PATH,
    MAX_REMOVAL_BYTES,
    SEARCH_PATH,
    add_reading,
    add_search,
    add_writing,
)
from toolscript.documents.http.search import MAX_SEARCH_BYTES

LARGER_REQUESTS = {
    **dict.fromkeys((f"POST {SEARCH_PATH}", f"POST {SEARCH_ALIAS}"), MAX_SEARCH_BYTES),
    # Streamed, with their own limits.
    **dict.fromkeys((f"PUT {DOCUMENTS_PATH}", f"PUT {DOCUMENTS_ALIAS}"), UNBOUNDED),
    **dict.fromkeys((f"POST {DELETE_PATH}", f"DELETE {DOCUMENTS_ALIAS}"), MAX_REMOVAL_BYTES),
}


def document_routes(documents: DocumentRoutes | None) -> tuple[APIRouter, APIRouter]:
    """Return the routes that read and those that write."""
    routes = documents or ABSENT
    reading, writing = (
        api_router(
            tag="documents",
            checks=[Depends(BEARER)],
            route_class=require_principal(routes.principal, scope),
        )
        for scope in (Scope.DOCUMENTS_READ, Scope.DOCUMENTS_WRITE)
    )
    for add in (add_search, add_reading, add_search_alias, add_reading_alias):
        add(reading, routes)
    for add in (add_writing, add_writing_aliases):
        add(writing, routes)
    return reading, writing


def search_health_routes(documents: DocumentRoutes | None) -> APIRouter:
    router = api_router(tag="documents")
    add_health(router, documents or ABSENT)
    return router
