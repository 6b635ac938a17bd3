"""Search of documents: one search, and its response as JSON or as lines of JSON.

The headers of a stream are sent before the search starts, so that the client knows that its request arrived. A
later error is the last line, in the common error format.
"""

import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from toolscript.core.auth.model import Principal
from toolscript.core.errors import ToolscriptError, envelope, envelope_of, told_to_clients
from toolscript.core.web.errors import documented
from toolscript.core.web.paging import preferred
from toolscript.core.web.request_context import new_query_id
from toolscript.documents.http.dependencies import JSON, LINES, DocumentRoutes, resource_errors
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.schemas import Answered, DocumentResult, DocumentSearchEnd, DocumentSearchResponse

# A cursor holds the rest of a ranking.
MAX_SEARCH_BYTES = 128 * 1024

_TEXT = {"schema": {"type": "string"}}
_LINES_ANSWERED = (
    "JSON in each line: for each result an entry of `hits` of the JSON answer, best first; then one line with "
    "all of that answer but `hits`. A line with `error`, as the schema `ErrorEnvelope` describes it, ends a "
    "search that failed."
)
SEARCH_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {LINES: {"schema": {"type": "string", "description": _LINES_ANSWERED}}},
        "headers": {"Vary": {"description": "The form depends on `Accept`.", **_TEXT}},
    },
    **documented(400, 401, 403, 422, 429, 500, 503),
}

logger = logging.getLogger(__name__)


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
    documents: DocumentRoutes, principal: Principal, query: DocumentQuery, request: Request
) -> Response:
    """Search, and respond in the media type that the client prefers."""
    kind = preferred(request.headers.getlist("accept"), (JSON, LINES))
    run_search = partial(ask, documents, principal, query, new_query_id(request))
    if kind == LINES:
        # Keep proxies from buffering the stream. When the client disconnects, the search is cancelled.
        headers = {"Vary": "Accept", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(_stream(run_search), media_type=LINES, headers=headers)
    with resource_errors():
        whole = DocumentSearchResponse.whole(await run_search())
    return Response(whole.model_dump_json(), media_type=JSON, headers={"Vary": "Accept"})


async def _stream(ask: Callable[[], Awaitable[Answered]]) -> AsyncIterator[str]:
    try:
        with resource_errors():
            answered = await ask()
        for hit in answered.answer.hits:
            yield f"{DocumentResult.of(hit).model_dump_json()}\n"
        yield f"{DocumentSearchEnd.of(answered).model_dump_json()}\n"
    except ToolscriptError as error:
        yield f"{json.dumps(envelope_of(told_to_clients(error)), default=str)}\n"
    except Exception:
        logger.exception("unexpected error")
        body = envelope("INTERNAL_ERROR", "something unexpected went wrong on our side")
        yield f"{json.dumps(body)}\n"
