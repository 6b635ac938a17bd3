"""PUT, GET and DELETE /documents: bodies that are read piece by piece, one document, or many."""

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
from toolscript.core.web.auth import PrincipalHere
from toolscript.core.web.errors import ErrorEnvelope, documented
from toolscript.documents.http.dependencies import JSON, LINES, DocumentRoutes
from toolscript.documents.http.put import (
    MAX_DOCUMENTS,
    Entry,
    Writing,
    answer_in_lines,
    bounded,
    lines_of,
    unpacked,
    write_lines,
)
from toolscript.documents.http.upload_limits import TimedBody
from toolscript.documents.model.document import MAX_ID, entry_read
from toolscript.documents.schemas import DocumentShown, DocumentsPut, DocumentsRemoved, DocumentsToRemove

MAX_JSON_BYTES = 1024 * 1024
HANG_UP = {"Connection": "close"}
DOCUMENTS_PATH = "/documents"
ONE_PATH = f"{DOCUMENTS_PATH}/{{document_id:path}}"
MAX_REMOVAL_BYTES = 4 * 1024 * 1024
MAX_REMOVED_AT_ONCE = 250

Json = dict[str, object]

# What one of them must be is said and not demanded: one that is none is refused alone.
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
        "description": "A part does not answer, or the document is being written or was not written to its end.",
    },
}
_ANSWERS_OF_REMOVAL: dict[int | str, dict[str, Any]] = {
    **documented(401, 403, 404, 422, 429, 500, 503),
    404: {"model": ErrorEnvelope, "description": "It has a line break, which no id has."},
}

logger = logging.getLogger(__name__)


async def put_received(documents: DocumentRoutes, principal: Principal, request: Request) -> Response:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (JSON, LINES):
        raise HTTPException(415, f"the content type must be {JSON} or {LINES}")
    turns = documents.streams if kind == LINES else documents.short_puts
    async with turns.turn(principal.tenant):
        putting = _Putting(documents, principal, request)
        return await putting.answer(putting.lines if kind == LINES else putting.json)


class _Putting:
    def __init__(self, documents: DocumentRoutes, principal: Principal, request: Request) -> None:
        self._request = request
        self._put_failed = documents.put_failed
        self._writing = Writing(partial(documents.service.put, principal), partial(documents.written, principal))
        self._received = TimedBody(request.stream())

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
        if len(body) > MAX_JSON_BYTES:
            raise HTTPException(413, f"{JSON} is at most {MAX_JSON_BYTES >> 20} MiB; {LINES} may be longer")
    return bytes(body)


def _entries(body: bytes) -> list[Entry]:
    listed = _listed(body)
    if len(listed) > MAX_DOCUMENTS:
        raise InvalidRequest(f"at most {MAX_DOCUMENTS:,} documents a request", details={"field": "documents"})
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


IdInPath = Annotated[
    str, Path(min_length=1, max_length=MAX_ID, description="What it is known by; slashes and all else encoded.")
]


def add_writing(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.put(
        DOCUMENTS_PATH,
        response_model=DocumentsPut,
        responses=ANSWERS,
        openapi_extra=_BODY,
        summary="Put documents",
    )
    async def put_documents(request: Request, principal: PrincipalHere) -> Response:
        """Adds documents, or replaces those of the same ids. What has not changed costs nothing.

        As `application/json` up to 1 MiB. As `application/x-ndjson` a document in each line of up to 4 MiB, at
        most 50,000 of them in 200,000 lines and 1 GiB; the answer, once all have been read, has a line for each,
        and a last one with `counts`, and with `error` where it ended too early. A document that is refused
        refuses no other. `Content-Encoding: gzip` is understood, an hour is the longest a request may take, and
        no request may be silent for a minute. Few may put at once, and others wait: 429 and 503 have a
        `Retry-After` where that took too long.
        """
        return await put_received(documents, principal, request)

    @router.delete(
        DOCUMENTS_PATH,
        responses=documented(401, 403, 422, 429, 500, 503),
        summary="Remove documents",
    )
    async def remove_documents(asked: DocumentsToRemove, principal: PrincipalHere) -> DocumentsRemoved:
        return await _remove(documents, principal, asked.ids)

    @router.delete(
        ONE_PATH,
        responses=_ANSWERS_OF_REMOVAL,
        summary="Remove one document",
    )
    async def remove_document(document_id: IdInPath, principal: PrincipalHere) -> DocumentsRemoved:
        """One that is not there is `missing`, and no error."""
        return await _remove(documents, principal, [document_id])


def add_reading(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.get(
        ONE_PATH,
        responses=_ANSWERS_OF_ONE,
        summary="One document",
    )
    async def get_document(document_id: IdInPath, principal: PrincipalHere) -> DocumentShown:
        """As it was put. Of its metadata only the fields are shown that the tenant's plan allows."""
        return DocumentShown.of(await documents.service.document(principal, document_id))


async def _remove(documents: DocumentRoutes, principal: Principal, ids: Sequence[str]) -> DocumentsRemoved:
    wanted = list(dict.fromkeys(ids))
    removed: set[str] = set()
    for index in range(0, len(wanted), MAX_REMOVED_AT_ONCE):
        removed |= set(await documents.service.remove(principal, wanted[index : index + MAX_REMOVED_AT_ONCE]))
    return DocumentsRemoved.model_construct(
        deleted=[one for one in wanted if one in removed], missing=[one for one in wanted if one not in removed]
    )
