"""A search whose hits come one by one: lines of JSON, or server-sent events.

The headers are sent before the search begins, so that a caller knows it was heard. What goes wrong after them is
the last line or event, in the one shape of errors.
"""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from toolscript.errors import ToolscriptError
from toolscript.surfaces.error_table import envelope, envelope_of
from toolscript.surfaces.http.document_answers import Answered, end_of_answer, found

JSON, LINES, EVENTS = "application/json", "application/x-ndjson", "text/event-stream"

Render = Callable[[str, str], str]

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
            yield render("hit", _json(found(hit)))
        yield render("end", _json(end_of_answer(answered)))
    except ToolscriptError as error:
        yield render("error", json.dumps(envelope_of(error), default=str))
    except Exception:
        logger.exception("unexpected error")
        told = envelope("INTERNAL_ERROR", "something unexpected went wrong on our side")
        yield render("error", json.dumps(told))


def _json(model: BaseModel) -> str:
    return model.model_dump_json()
