"""PUT /documents, from the body of a request to its answer."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from fastapi import HTTPException, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from toolscript.errors import InvalidRequest
from toolscript.model.document_json import entry_read
from toolscript.model.tenancy import Caller
from toolscript.surfaces.http.document_lines import bounded, lines_of, unpacked
from toolscript.surfaces.http.document_pace import PacedBody
from toolscript.surfaces.http.document_parts import DocumentRoutes
from toolscript.surfaces.http.document_put import MOST_DOCUMENTS, Entry, Writing, answer_in_lines, write_lines
from toolscript.surfaces.http.document_stream import JSON, LINES

MOST_JSON_BYTES = 1024 * 1024
HANG_UP = {"Connection": "close"}

logger = logging.getLogger(__name__)


async def put_received(documents: DocumentRoutes, caller: Caller, request: Request) -> Response:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (JSON, LINES):
        raise HTTPException(415, f"the content type must be {JSON} or {LINES}")
    turns = documents.streams if kind == LINES else documents.short_puts
    async with turns.turn(caller.tenant):
        putting = _Putting(documents, caller, request)
        return await putting.answer(putting.lines if kind == LINES else putting.json)


class _Putting:
    def __init__(self, documents: DocumentRoutes, caller: Caller, request: Request) -> None:
        self._request = request
        self._put_failed = documents.put_failed
        self._writing = Writing(partial(documents.desk.put, caller), partial(documents.written, caller))
        self._received = PacedBody(request.stream())

    async def answer(self, put: Callable[[], Awaitable[Response]]) -> Response:
        try:
            return await put()
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            self._tell(error)
            raise
        finally:
            if self._received.gave_up:
                # For the answer that an error becomes: it is made elsewhere.
                self._request.state.hang_up_headers = HANG_UP

    async def json(self) -> Response:
        body = await _whole(self._body())
        # On a thread: as many entries as fit into it take a while.
        for entry in await asyncio.to_thread(_entries, body):
            await self._writing.add(entry)
        await self._writing.flush()
        counts = self._writing.counts.model_dump_json()
        return Response(f'{{"results":[{",".join(self._writing.results)}],"counts":{counts}}}', media_type=JSON)

    async def lines(self) -> Response:
        """Answers when all is read: one that does not read while it sends would wait for us, and we for it."""
        stopped = await write_lines(self._writing, lines_of(self._body()))
        if stopped is not None and not self._writing.results:
            raise stopped
        if stopped is not None:
            self._tell(stopped)
        headers = HANG_UP if self._received.gave_up else None
        # Where it stopped too early, the rest is read and thrown away while this is sent.
        return StreamingResponse(answer_in_lines(self._writing, stopped), media_type=LINES, headers=headers)

    def _body(self) -> AsyncIterator[bytes]:
        packing = self._request.headers.get("content-encoding", "identity").strip().lower()
        if packing not in ("identity", "gzip"):
            raise HTTPException(415, "the content encoding must be gzip, or none")
        plain = bounded(self._received.pieces())
        return plain if packing == "identity" else bounded(unpacked(plain))

    def _tell(self, error: Exception) -> None:
        """Its status is 200 where something was written before: whoever runs the service would not see it."""
        if isinstance(error, InvalidRequest | HTTPException):
            return
        self._put_failed(error)
        facts = {"part": "documents", "reason": type(error).__name__, "done": len(self._writing.results)}
        logger.warning("a put of documents was stopped", extra=facts)


async def _whole(chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MOST_JSON_BYTES:
            raise HTTPException(413, f"{JSON} is at most {MOST_JSON_BYTES >> 20} MiB; {LINES} may be longer")
    return bytes(body)


def _entries(body: bytes) -> list[Entry]:
    listed = _listed(body)
    if len(listed) > MOST_DOCUMENTS:
        raise InvalidRequest(f"at most {MOST_DOCUMENTS:,} documents a request", details={"field": "documents"})
    return [Entry(entry_read(data), len(str(data))) for data in listed]


def _listed(body: bytes) -> list[object]:
    try:
        data = json.loads(str(body, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the body is not JSON: {str(error)[:80]}") from None
    if not isinstance(data, dict) or data.keys() != {"documents"} or not isinstance(data["documents"], list):
        raise InvalidRequest(
            "the body must be an object with a list of documents",
            hint='{"documents": [{"id": ..., "text": ...}]}',
            details={"field": "documents"},
        )
    return data["documents"]
