"""/search and /documents: the routes, and answers as JSON, as lines or as server-sent events.

The headers of a stream are sent before the search begins, so that a caller knows it was heard. What goes wrong
after them is the last line or event, in the one shape of errors.
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
from toolscript.core.web.auth import BEARER, PrincipalHere, require_principal
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
    # Read piece by piece, and bounded there.
    f"PUT {DOCUMENTS_PATH}": UNBOUNDED,
    f"DELETE {DOCUMENTS_PATH}": MAX_REMOVAL_BYTES,
}

logger = logging.getLogger(__name__)


def _line(_: str, data: str) -> str:
    return f"{data}\n"


def _event(kind: str, data: str) -> str:
    """JSON has no line breaks of its own, so it is one line of the event."""
    return f"event: {kind}\ndata: {data}\n\n"


_RENDERS: dict[str, Render] = {LINES: _line, EVENTS: _event}


def streamed(kind: str, ask: Callable[[], Awaitable[Answered]]) -> StreamingResponse:
    """Ends the search when the caller hangs up: whoever serves the stream cancels it then."""
    # A proxy that gathers an answer before it hands it on would undo all of this.
    headers = {"Vary": "Accept", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_pieces(_RENDERS[kind], ask), media_type=kind, headers=headers)


async def _pieces(render: Render, ask: Callable[[], Awaitable[Answered]]) -> AsyncIterator[str]:
    try:
        answered = await ask()
        for hit in answered.answer.hits:
            yield render("hit", _json(DocumentFound.of(hit)))
        yield render("end", _json(SearchEnd.of(answered)))
    except ToolscriptError as error:
        yield render("error", json.dumps(envelope_of(error), default=str))
    except Exception:
        logger.exception("unexpected error")
        told = envelope("INTERNAL_ERROR", "something unexpected went wrong on our side")
        yield render("error", json.dumps(told))


def _json(model: BaseModel) -> str:
    return model.model_dump_json()


def add_search(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.post(SEARCH_PATH, response_model=DocumentSearchResponse, responses=ANSWERS, summary="Search documents")
    async def search_documents(
        asked: DocumentSearchRequest, request: Request, principal: PrincipalHere
    ) -> Response:
        """Finds documents of the caller's tenant by meaning, by words or by both, and by their metadata.

        With `Accept: application/x-ndjson` every hit is a line, and a last line has the rest of the answer; with
        `text/event-stream` they are events `hit` and `end`. Both begin before the search does: what goes wrong
        later is a last line or an event `error`, and the status stays 200.
        """
        kind = preferred(request.headers.getlist("accept"), (JSON, LINES, EVENTS))
        asking = partial(ask, documents, principal, asked.as_query(documents.default))
        if kind != JSON:
            return streamed(kind, asking)
        return Response(
            DocumentSearchResponse.whole(await asking()).model_dump_json(),
            media_type="application/json",
            headers={"Vary": "Accept"},
        )


def add_health(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.get(
        f"{SEARCH_PATH}/health",
        response_model=SearchHealth,
        responses={503: {"model": SearchHealth, "description": "They cannot."}},
        summary="Can documents be searched?",
    )
    async def search_health() -> JSONResponse:
        """Needs no token, and says nothing of anybody's documents."""
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
