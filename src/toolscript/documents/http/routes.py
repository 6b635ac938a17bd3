"""The routes of documents: /search and /api/v1/documents, each with the scope it needs."""

from fastapi import APIRouter, Depends

from toolscript.core.auth.model import Scope
from toolscript.core.web.auth import BEARER, require_principal
from toolscript.core.web.request_context import UNBOUNDED
from toolscript.core.web.routers import api_router
from toolscript.documents.http.dependencies import ABSENT, DocumentRoutes
from toolscript.documents.http.resources import (
    DELETE_PATH,
    DOCUMENTS_PATH,
    MAX_REMOVAL_BYTES,
    SEARCH_PATH,
    add_health,
    add_reading,
    add_search,
    add_writing,
)
from toolscript.documents.http.search import MAX_SEARCH_BYTES

LARGER_REQUESTS = {
    f"POST {SEARCH_PATH}": MAX_SEARCH_BYTES,
    # Streamed, with its own limits.
    f"PUT {DOCUMENTS_PATH}": UNBOUNDED,
    f"POST {DELETE_PATH}": MAX_REMOVAL_BYTES,
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
    add_search(reading, routes)
    add_reading(reading, routes)
    add_writing(writing, routes)
    return reading, writing


def search_health_routes(documents: DocumentRoutes | None) -> APIRouter:
    router = api_router(tag="documents")
    add_health(router, documents or ABSENT)
    return router
