"""Search of documents: one search, and its response as JSON, as lines or as server-sent events.

The headers of a stream are sent before the search starts, so that the client knows that its request arrived. A
later error is the last line or event, in the common error format.
"""

import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from toolscript.core.auth.model import Principal
from toolscript.core.errors import ToolscriptError, envelope, envelope_of, told_to_clients
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import preferred
from toolscript.core.web.request_context import has_kinds, new_query_id
from toolscript.documents.alias_schemas import SearchAliasEnd, SearchAliasHit, SearchAliasResponse
from toolscript.documents.http.dependencies import EVENTS, JSON, LINES, DocumentRoutes, resource_errors
from toolscript.documents.model.answer import DocumentHit
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.schemas import Answered, DocumentResult, DocumentSearchEnd, DocumentSearchResponse

Render = Callable[[str, str], str]

# A cursor holds the rest of a ranking.
MAX_SEARCH_BYTES = 128 * 1024

_TEXT = {"schema": {"type": "string"}}
_LINES_ANSWERED = (
    "JSON in each line: for each result an entry of `results` of the JSON answer, best first; then one line with "
    "all of that answer but `results`. A line with `error`, as the schema `ErrorEnvelope` describes it, ends a "
    "search that failed."
)
_EVENTS_ANSWERED = (
    "Server-sent events whose `data` are the lines of `application/x-ndjson`: for each result an event `result`, "
    "of the alias `hit`; then `end`, or `error`."
)
SEARCH_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            LINES: {"schema": {"type": "string", "description": _LINES_ANSWERED}},
            EVENTS: {"schema": {"type": "string", "description": _EVENTS_ANSWERED}},
        },
        "headers": {"Vary": {"description": "The form depends on `Accept`.", **_TEXT}},
    },
    **documented(400, 401, 403, 422, 429, 500, 503),
}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SearchShape:
    """The models of a response, and the name of the event of one result."""

    whole: Callable[[Answered], BaseModel]
    result: Callable[[DocumentHit], BaseModel]
    end: Callable[[Answered], BaseModel]
    event: str


RESOURCE = SearchShape(DocumentSearchResponse.whole, DocumentResult.of, DocumentSearchEnd.of, "result")
ALIAS = SearchShape(SearchAliasResponse.whole, SearchAliasHit.of, SearchAliasEnd.of, "hit")


async def ask(documents: DocumentRoutes, principal: Principal, query: DocumentQuery, query_id: str) -> Answered:
    began = time.perf_counter()
    try:
        answer = await documents.search.search(principal, query)
    except Exception as error:
        documents.search_failed(query, error)
        raise
    took_ms = round((time.perf_counter() - began) * 1000, 2)
    documents.searched(principal, query, answer, query_id=query_id, took_ms=took_ms)
    return Answered(query_id, query, answer, took_ms)


async def respond(
    documents: DocumentRoutes, principal: Principal, query: DocumentQuery, request: Request, shape: SearchShape
) -> Response:
    """Search, and respond in the media type that the client prefers."""
    kind = preferred(request.headers.getlist("accept"), (JSON, LINES, EVENTS))
    run_search = partial(ask, documents, principal, query, new_query_id(request))
    by_kind = has_kinds(request.url.path)
    if kind != JSON:
        # Keep proxies from buffering the stream. When the client disconnects, the search is cancelled.
        headers = {"Vary": "Accept", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        lines = _stream(_RENDERS[kind], run_search, shape, by_kind=by_kind)
        return StreamingResponse(lines, media_type=kind, headers=headers)
    with resource_errors(by_kind):
        whole = shape.whole(await run_search())
    return Response(whole.model_dump_json(), media_type=JSON, headers={"Vary": "Accept"})


async def _stream(
    render: Render, ask: Callable[[], Awaitable[Answered]], shape: SearchShape, *, by_kind: bool
) -> AsyncIterator[str]:
    try:
        with resource_errors(by_kind):
            answered = await ask()
        for hit in answered.answer.hits:
            yield render(shape.event, shape.result(hit).model_dump_json())
        yield render("end", shape.end(answered).model_dump_json())
    except ToolscriptError as error:
        yield render("error", json.dumps(envelope_of(told_to_clients(error), by_kind=by_kind), default=str))
    except Exception:
        logger.exception("unexpected error")
        body = envelope("INTERNAL_ERROR", "something unexpected went wrong on our side")
        yield render("error", json.dumps(body))


def _line(_: str, data: str) -> str:
    return f"{data}\n"


def _event(kind: str, data: str) -> str:
    """Return a server-sent event. JSON has no line breaks of its own, so it is one data line."""
    return f"event: {kind}\ndata: {data}\n\n"


_RENDERS: dict[str, Render] = {LINES: _line, EVENTS: _event}
