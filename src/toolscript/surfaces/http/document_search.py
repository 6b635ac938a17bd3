"""POST /search and GET /search/health."""

import time
import uuid
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from toolscript.model.document_queries import DocumentQuery
from toolscript.model.tenancy import Caller
from toolscript.surfaces.http.accepted_types import preferred
from toolscript.surfaces.http.checked_routes import CallerHere
from toolscript.surfaces.http.document_answers import Answered, whole_answer
from toolscript.surfaces.http.document_models import DocumentSearchRequest, DocumentSearchResponse, SearchHealth
from toolscript.surfaces.http.document_parts import DocumentRoutes
from toolscript.surfaces.http.document_stream import EVENTS, JSON, LINES, streamed
from toolscript.surfaces.http.errors import documented

SEARCH_PATH = "/search"
# A cursor holds the rest of a ranking.
MOST_SEARCH_BYTES = 128 * 1024

_TEXT = {"schema": {"type": "string"}}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {LINES: _TEXT, EVENTS: _TEXT},
        "headers": {"Vary": {"description": "The form depends on `Accept`.", **_TEXT}},
    },
    **documented(400, 401, 403, 422, 429, 500, 503),
}


def add_search(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.post(SEARCH_PATH, response_model=DocumentSearchResponse, responses=ANSWERS, summary="Search documents")
    async def search_documents(asked: DocumentSearchRequest, request: Request, caller: CallerHere) -> Response:
        """Finds documents of the caller's tenant by meaning, by words or by both, and by their metadata.

        With `Accept: application/x-ndjson` every hit is a line, and a last line has the rest of the answer; with
        `text/event-stream` they are events `hit` and `end`. Both begin before the search does: what goes wrong
        later is a last line or an event `error`, and the status stays 200.
        """
        kind = preferred(request.headers.getlist("accept"), (JSON, LINES, EVENTS))
        asking = partial(ask, documents, caller, asked.as_query(documents.usual))
        if kind != JSON:
            return streamed(kind, asking)
        return Response(
            whole_answer(await asking()).model_dump_json(),
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


async def ask(documents: DocumentRoutes, caller: Caller, query: DocumentQuery) -> Answered:
    query_id, began = str(uuid.uuid4()), time.perf_counter()
    try:
        answer = await documents.search.search(caller, query)
    except Exception as error:
        documents.search_failed(query, error)
        raise
    took_ms = round((time.perf_counter() - began) * 1000, 2)
    documents.searched(caller, query, answer, query_id=query_id, took_ms=took_ms)
    return Answered(query_id, query, answer, took_ms)
