"""PUT, GET and DELETE /documents: streamed bodies, one document, or many."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from toolscript.core.auth.model import Principal
from toolscript.core.errors import InvalidRequest
from toolscript.core.web.auth import CurrentPrincipal
from toolscript.core.web.errors import ErrorEnvelope, documented
from toolscript.documents.http.dependencies import JSON, LINES, DocumentRoutes
from toolscript.documents.http.put import (
    MAX_DOCUMENTS,
    Entry,
    UploadWriter,
    bounded,
    lines_of,
    response_lines,
    unpacked,
    write_lines,
)
from toolscript.documents.http.upload_limits import TimedBody
from toolscript.documents.model.document import MAX_ID, parse_document
from toolscript.documents.schemas import DocumentShown, DocumentsPut, DocumentsRemoved, DocumentsToRemove

MAX_JSON_BYTES = 1024 * 1024
CLOSE_CONNECTION = {"Connection": "close"}
DOCUMENTS_PATH = "/documents"
DOCUMENT_PATH = f"{DOCUMENTS_PATH}/{{document_id:path}}"
MAX_REMOVAL_BYTES = 4 * 1024 * 1024
MAX_REMOVED_AT_ONCE = 250

Json = dict[str, object]

# The schema describes a document but does not enforce it: an invalid document is refused alone.
_DOCUMENTS = {
    "title": "Documents to put",
    "type": "object",
    "properties": {
        "documents": {
            "type": "array",
            "items": {
                "description": "{id, text, title?, metadata?}: an id is printable, of at most 512 characters, a "
                "text of 1,000,000; a title becomes `metadata.title` and counts more than the text; metadata "
                "is an object of at most 16 KiB.",
                "examples": [{"id": "a.md", "text": "Whales are mammals.", "metadata": {"year": 2026}}],
            },
        }
    },
    "required": ["documents"],
    "additionalProperties": False,
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": _DOCUMENTS},
            LINES: {"schema": {"type": "string", "description": "A document in each line."}},
        },
    }
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {LINES: {"schema": {"type": "string"}}}},
    **documented(401, 403, 415, 422, 429, 500, 503),
}
_ANSWERS_OF_ONE: dict[int | str, dict[str, Any]] = {
    **documented(401, 403, 404, 422, 429, 500, 503),
    503: {
        "model": ErrorEnvelope,
        "description": "A part does not respond, or the document is being written, or its write was interrupted.",
    },
}
_ANSWERS_OF_REMOVAL: dict[int | str, dict[str, Any]] = {
    **documented(401, 403, 404, 422, 429, 500, 503),
    404: {"model": ErrorEnvelope, "description": "The id contains a line break, which is never valid."},
}

logger = logging.getLogger(__name__)


async def receive_upload(documents: DocumentRoutes, principal: Principal, request: Request) -> Response:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (JSON, LINES):
        raise HTTPException(415, f"the content type must be {JSON} or {LINES}")
    slots = documents.streams if kind == LINES else documents.short_puts
    async with slots.turn(principal.tenant):
        upload = _Upload(documents, principal, request)
        return await upload.answer(upload.lines if kind == LINES else upload.json)


class _Upload:
    def __init__(self, documents: DocumentRoutes, principal: Principal, request: Request) -> None:
        self._request = request
        self._put_failed = documents.put_failed
        self._writing = UploadWriter(
            partial(documents.service.put, principal), partial(documents.written, principal)
        )
        self._received = TimedBody(request.stream())

    async def answer(self, put: Callable[[], Awaitable[Response]]) -> Response:
        try:
            return await put()
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:
            self._report(error)
            raise
        finally:
            if self._received.gave_up:
                # For an error response, which is built elsewhere.
                self._request.state.hang_up_headers = CLOSE_CONNECTION

    async def json(self) -> Response:
        body = await _read_all(self._body())
        # On a thread: a full body has many entries.
        for entry in await asyncio.to_thread(_entries, body):
            await self._writing.add(entry)
        await self._writing.flush()
        counts = self._writing.counts.model_dump_json()
        return Response(f'{{"results":[{",".join(self._writing.results)}],"counts":{counts}}}', media_type=JSON)

    async def lines(self) -> Response:
        """Respond after reading everything: a client that does not read while it sends would deadlock."""
        stopped = await write_lines(self._writing, lines_of(self._body()))
        if stopped is not None and not self._writing.results:
            raise stopped
        if stopped is not None:
            self._report(stopped)
        headers = CLOSE_CONNECTION if self._received.gave_up else None
        # After an early stop, the rest of the body is read and discarded while this is sent.
        return StreamingResponse(response_lines(self._writing, stopped), media_type=LINES, headers=headers)

    def _body(self) -> AsyncIterator[bytes]:
        packing = self._request.headers.get("content-encoding", "identity").strip().lower()
        if packing not in ("identity", "gzip"):
            raise HTTPException(415, "the content encoding must be gzip, or none")
        plain = bounded(self._received.pieces())
        return plain if packing == "identity" else bounded(unpacked(plain))

    def _report(self, error: Exception) -> None:
        """Log the error: the status is 200 if documents were written before, so operators would miss it."""
        if isinstance(error, InvalidRequest | HTTPException):
            return
        self._put_failed(error)
        facts = {"part": "documents", "reason": type(error).__name__, "done": len(self._writing.results)}
        logger.warning("a put of documents was stopped", extra=facts)


async def _read_all(blocks: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    async for block in blocks:
        body += block
        if len(body) > MAX_JSON_BYTES:
            raise HTTPException(413, f"{JSON} is at most {MAX_JSON_BYTES >> 20} MiB; {LINES} may be longer")
    return bytes(body)


def _entries(body: bytes) -> list[Entry]:
    listed = _parse_list(body)
    if len(listed) > MAX_DOCUMENTS:
        raise InvalidRequest(f"at most {MAX_DOCUMENTS:,} documents a request", details={"field": "documents"})
    return [Entry(parse_document(data), len(str(data))) for data in listed]


def _parse_list(body: bytes) -> list[object]:
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


IdInPath = Annotated[
    str,
    Path(min_length=1, max_length=MAX_ID, description="Id of the document, percent-encoded, slashes included."),
]


def add_writing(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.put(
        DOCUMENTS_PATH,
        response_model=DocumentsPut,
        responses=ANSWERS,
        openapi_extra=_BODY,
        summary="Put documents",
    )
    async def put_documents(request: Request, principal: CurrentPrincipal) -> Response:
        """Adds documents, or replaces those with the same ids. Unchanged documents cost nothing.

        `application/json` is limited to 1 MiB. `application/x-ndjson` has one document per line of up to 4 MiB, at
        most 50,000 documents in 200,000 lines and 1 GiB; the response, sent after the whole body was read, has a
        line for each document, and a last one with `counts`, and with `error` if it ended early. A refused
        document does not affect the others. `Content-Encoding: gzip` is supported. A request may take an hour, and
        may pause for at most a minute. Few uploads run at once, others wait: 429 and 503 have a `Retry-After` if
        the wait was too long.
        """
        return await receive_upload(documents, principal, request)

    @router.delete(
        DOCUMENTS_PATH,
        responses=documented(401, 403, 422, 429, 500, 503),
        summary="Remove documents",
    )
    async def remove_documents(request: DocumentsToRemove, principal: CurrentPrincipal) -> DocumentsRemoved:
        return await _remove(documents, principal, request.ids)

    @router.delete(
        DOCUMENT_PATH,
        responses=_ANSWERS_OF_REMOVAL,
        summary="Remove one document",
    )
    async def remove_document(document_id: IdInPath, principal: CurrentPrincipal) -> DocumentsRemoved:
        """An unknown id is `missing`, and not an error."""
        return await _remove(documents, principal, [document_id])


def add_reading(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.get(
        DOCUMENT_PATH,
        responses=_ANSWERS_OF_ONE,
        summary="One document",
    )
    async def get_document(document_id: IdInPath, principal: CurrentPrincipal) -> DocumentShown:
        """Returns a document as it was put, with the metadata fields that the tenant's plan allows."""
        return DocumentShown.of(await documents.service.document(principal, document_id))


async def _remove(documents: DocumentRoutes, principal: Principal, ids: Sequence[str]) -> DocumentsRemoved:
    distinct = list(dict.fromkeys(ids))
    removed: set[str] = set()
    for index in range(0, len(distinct), MAX_REMOVED_AT_ONCE):
        removed |= set(await documents.service.remove(principal, distinct[index : index + MAX_REMOVED_AT_ONCE]))
    return DocumentsRemoved.model_construct(
        deleted=[id_ for id_ in distinct if id_ in removed],
        missing=[id_ for id_ in distinct if id_ not in removed],
    )
