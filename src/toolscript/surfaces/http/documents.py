"""/search and /documents: what a tenant has, for its callers alone."""

from fastapi import APIRouter, Depends

from toolscript.model.tenancy import Scope
from toolscript.surfaces.http.checked_routes import BEARER, for_callers
from toolscript.surfaces.http.document_parts import ABSENT, DocumentRoutes
from toolscript.surfaces.http.document_search import MOST_SEARCH_BYTES, SEARCH_PATH, add_health, add_search
from toolscript.surfaces.http.document_writing import DOCUMENTS_PATH, MOST_REMOVAL_BYTES, add_reading, add_writing
from toolscript.surfaces.request_context import UNBOUNDED

__all__ = ["LARGER_REQUESTS", "DocumentRoutes", "document_routes", "search_health_routes"]

LARGER_REQUESTS = {
    f"POST {SEARCH_PATH}": MOST_SEARCH_BYTES,
    # Read piece by piece, and bounded there.
    f"PUT {DOCUMENTS_PATH}": UNBOUNDED,
    f"DELETE {DOCUMENTS_PATH}": MOST_REMOVAL_BYTES,
}


def document_routes(documents: DocumentRoutes | None) -> APIRouter:
    given = documents or ABSENT
    reading, writing = (
        APIRouter(tags=["documents"], route_class=for_callers(given.caller, scope), dependencies=[Depends(BEARER)])
        for scope in (Scope.DOCUMENTS_READ, Scope.DOCUMENTS_WRITE)
    )
    add_search(reading, given)
    add_writing(writing, given)
    add_reading(reading, given)
    both = APIRouter()
    both.include_router(reading)
    both.include_router(writing)
    return both


def search_health_routes(documents: DocumentRoutes | None) -> APIRouter:
    router = APIRouter(tags=["documents"])
    add_health(router, documents or ABSENT)
    return router
