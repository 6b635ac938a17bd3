"""PUT of documents: bodies as JSON or as lines, compressed or not, and how they are answered."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import ClientDisconnect

from toolscript.core.audit import recording
from toolscript.core.auth.model import Principal
from toolscript.core.errors import InvalidRequest
from toolscript.core.web.errors import documented
from toolscript.core.web.request_context import has_kinds
from toolscript.documents.http.dependencies import JSON, LINES, DocumentRoutes, change_by
from toolscript.documents.http.put import (
    MAX_DOCUMENTS,
    Entry,
    ShowResult,
    UploadWriter,
    bounded,
    lines_of,
    response_lines,
    unpacked,
    write_lines,
)
from toolscript.documents.http.upload_limits import TimedBody
from toolscript.documents.model.document import MAX_ID, MAX_METADATA_BYTES, MAX_TEXT, parse_document

MAX_JSON_BYTES = 1024 * 1024
CLOSE_CONNECTION = {"Connection": "close"}

Json = dict[str, object]

_DOCUMENT_EXAMPLE: dict[str, Any] = {"id": "a.md", "text": "Whales are mammals.", "metadata": {"year": 2026}}


class DocumentToPut(BaseModel):
    """A document as a client sends it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_DOCUMENT_EXAMPLE]})

    id: str = Field(min_length=1, max_length=MAX_ID, description="Its id in the tenant, of printable characters.")
    text: str = Field(max_length=MAX_TEXT, description="Its text; may be empty where it has a title.")
    title: str | None = Field(None, description="Becomes `metadata.title`, and counts more than the text.")
    metadata: dict[str, Any] | None = Field(
        None, description=f"What searches may filter by, at most {MAX_METADATA_BYTES >> 10} KiB as JSON."
    )


# Describes a document but does not enforce it: an invalid document is refused alone.
_ENTRY = {
    "anyOf": [
        {"$ref": "#/components/schemas/DocumentToPut"},
        {"description": "Anything else may be refused, alone: its result says why."},
    ]
}
_DOCUMENTS: Json = {
    "title": "Documents to put",
    "description": "Documents to put.",
    "type": "object",
    "properties": {"documents": {"description": "The documents.", "type": "array", "items": _ENTRY}},
    "required": ["documents"],
    "additionalProperties": False,
    "examples": [{"documents": [_DOCUMENT_EXAMPLE]}],
}
_LINES_SENT = "A document in each line, as the schema `DocumentToPut` describes it, and its example shows."
_LINES_ANSWERED = (
    "A line for each document, as an entry of `results` with its `line`; then one line with `counts` as in the "
    "JSON answer, and with `error` as in the schema `ErrorBody` if it ended early."
)
PUT_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"$ref": "#/components/schemas/DocumentsToPut"}},
            LINES: {"schema": {"type": "string", "description": _LINES_SENT}},
        },
    }
}
PUT_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {LINES: {"schema": {"type": "string", "description": _LINES_ANSWERED}}}},
    **documented(401, 403, 415, 422, 429, 500, 503),
}


def document_schemas() -> dict[str, Any]:
    """Return the schemas of the bodies of a put, for the components of an OpenAPI document."""
    return {"DocumentsToPut": _DOCUMENTS, "DocumentToPut": DocumentToPut.model_json_schema()}


logger = logging.getLogger(__name__)


async def receive_upload(
    documents: DocumentRoutes, principal: Principal, request: Request, show: ShowResult
) -> Response:
    """Write the documents of a request, whose results `show` renders."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (JSON, LINES):
        raise HTTPException(415, f"the content type must be {JSON} or {LINES}")
    slots = documents.streams if kind == LINES else documents.short_puts
    async with slots.turn(principal.tenant):
        upload = _Upload(documents, principal, request, show)
        async with recording(documents.audit, change_by(principal, "documents.put")) as change:
            try:
                return await upload.answer(upload.lines if kind == LINES else upload.json)
            finally:
                change.count = upload.changes


class _Upload:
    def __init__(
        self, documents: DocumentRoutes, principal: Principal, request: Request, show: ShowResult
    ) -> None:
        self._request = request
        self._put_failed = documents.put_failed
        self._writing = UploadWriter(
            partial(documents.service.put, principal), partial(documents.written, principal), show
        )
        self._received = TimedBody(request.stream())

    @property
    def changes(self) -> int:
        counts = self._writing.counts
        return counts.created + counts.updated

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
        lines = response_lines(self._writing, stopped, by_kind=has_kinds(self._request.url.path))
        return StreamingResponse(lines, media_type=LINES, headers=headers)

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
