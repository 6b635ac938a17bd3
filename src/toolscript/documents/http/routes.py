"""/search and /documents: the routes, and responses as JSON, as lines or as server-sent events.

The headers of a stream are sent before the search starts, so that the client knows that its request arrived. A
later error is the last line or event, in the common error format.
"""

import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from toolscript.core.auth.model import Principal, Scope
from toolscript.core.errors import ToolscriptError, envelope, envelope_of
from toolscript.core.web.auth import BEARER, CurrentPrincipal, require_principal
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import preferred
from toolscript.core.web.request_context import UNBOUNDED
from toolscript.documents.http.dependencies import ABSENT, EVENTS, JSON, LINES, DocumentRoutes
from toolscript.documents.http.upload import DOCUMENTS_PATH, MAX_REMOVAL_BYTES, add_reading, add_writing
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.schemas import (
    Answered,
    DocumentFound,
    DocumentSearchRequest,
    DocumentSearchResponse,
    SearchEnd,
    SearchHealth,
)

Render = Callable[[str, str], str]

SEARCH_PATH = "/search"
# A cursor holds the rest of a ranking.
MAX_SEARCH_BYTES = 128 * 1024

_TEXT = {"schema": {"type": "string"}}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {LINES: _TEXT, EVENTS: _TEXT},
        "headers": {"Vary": {"description": "The form depends on `Accept`.", **_TEXT}},
    },
    **documented(400, 401, 403, 422, 429, 500, 503),
}

LARGER_REQUESTS = {
    f"POST {SEARCH_PATH}": MAX_SEARCH_BYTES,
    # Streamed, with its own limits.
    f"PUT {DOCUMENTS_PATH}": UNBOUNDED,
    f"DELETE {DOCUMENTS_PATH}": MAX_REMOVAL_BYTES,
}

logger = logging.getLogger(__name__)


def _line(_: str, data: str) -> str:
    return f"{data}\n"


def _event(kind: str, data: str) -> str:
    """Return a server-sent event. JSON has no line breaks of its own, so it is one data line."""
    return f"event: {kind}\ndata: {data}\n\n"


_RENDERS: dict[str, Render] = {LINES: _line, EVENTS: _event}


def streamed(kind: str, ask: Callable[[], Awaitable[Answered]]) -> StreamingResponse:
    """Return the response as a stream. When the client disconnects, the server cancels it and the search."""
    # Keep proxies from buffering the stream.
    headers = {"Vary": "Accept", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(_RENDERS[kind], ask), media_type=kind, headers=headers)


async def _stream(render: Render, ask: Callable[[], Awaitable[Answered]]) -> AsyncIterator[str]:
    try:
        answered = await ask()
        for hit in answered.answer.hits:
            yield render("hit", _json(DocumentFound.of(hit)))
        yield render("end", _json(SearchEnd.of(answered)))
    except ToolscriptError as error:
        yield render("error", json.dumps(envelope_of(error), default=str))
    except Exception:
        logger.exception("unexpected error")
        body = envelope("INTERNAL_ERROR", "something unexpected went wrong on our side")
        yield render("error", json.dumps(body))


def _json(model: BaseModel) -> str:
    return model.model_dump_json()


def add_search(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.post(SEARCH_PATH, response_model=DocumentSearchResponse, responses=ANSWERS, summary="Search documents")
    async def search_documents(
        search_request: DocumentSearchRequest, request: Request, principal: CurrentPrincipal
    ) -> Response:
        """Searches the documents of the client's tenant by meaning, by keywords or by both, and by metadata.

        With `Accept: application/x-ndjson` every hit is a line, and a last line has the rest of the response; with
        `text/event-stream` they are events `hit` and `end`. Both start before the search does: a later error is a
        last line or an event `error`, and the status stays 200.
        """
        kind = preferred(request.headers.getlist("accept"), (JSON, LINES, EVENTS))
        run_search = partial(ask, documents, principal, search_request.as_query(documents.default))
        if kind != JSON:
            return streamed(kind, run_search)
        return Response(
            DocumentSearchResponse.whole(await run_search()).model_dump_json(),
            media_type="application/json",
            headers={"Vary": "Accept"},
        )


def add_health(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.get(
        f"{SEARCH_PATH}/health",
        response_model=SearchHealth,
        responses={503: {"model": SearchHealth, "description": "Documents cannot be searched."}},
        summary="Can documents be searched?",
    )
    async def search_health() -> JSONResponse:
        """Needs no token, and reveals nothing about documents."""
        health = await documents.check_health()
        wrong = {name: part.note for name, part in health.parts.items() if not part.ok}
        if not wrong:
            return JSONResponse({"status": "ok"})
        status = "unready" if health.status == "unready" else "degraded"
        return JSONResponse({"status": status, "parts": wrong}, 503 if status == "unready" else 200)


async def ask(documents: DocumentRoutes, principal: Principal, query: DocumentQuery) -> Answered:
    query_id, began = str(uuid.uuid4()), time.perf_counter()
    try:
        answer = await documents.search.search(principal, query)
    except Exception as error:
        documents.search_failed(query, error)
        raise
    took_ms = round((time.perf_counter() - began) * 1000, 2)
    documents.searched(principal, query, answer, query_id=query_id, took_ms=took_ms)
    return Answered(query_id, query, answer, took_ms)


def document_routes(documents: DocumentRoutes | None) -> APIRouter:
    routes = documents or ABSENT
    reading, writing = (
        APIRouter(
            tags=["documents"],
            route_class=require_principal(routes.principal, scope),
            dependencies=[Depends(BEARER)],
        )
        for scope in (Scope.DOCUMENTS_READ, Scope.DOCUMENTS_WRITE)
    )
    add_search(reading, routes)
    add_writing(writing, routes)
    add_reading(reading, routes)
    both = APIRouter()
    both.include_router(reading)
    both.include_router(writing)
    return both


def search_health_routes(documents: DocumentRoutes | None) -> APIRouter:
    router = APIRouter(tags=["documents"])
    add_health(router, documents or ABSENT)
    return router
