"""PUT, GET and DELETE /documents."""

import json
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect

from toolscript.errors import InvalidRequest
from toolscript.model.document_json import entry_read, stored_to_json
from toolscript.model.documents import MOST_ID
from toolscript.model.tenancy import Caller
from toolscript.surfaces.http.document_callers import CallerHere
from toolscript.surfaces.http.document_lines import lines_of, not_idle, unpacked
from toolscript.surfaces.http.document_models import (
    DocumentShown,
    DocumentsPut,
    DocumentsRemoved,
    DocumentsToRemove,
)
from toolscript.surfaces.http.document_parts import DocumentRoutes
from toolscript.surfaces.http.document_put import Entry, Writing, answer_in_lines, write_lines
from toolscript.surfaces.http.document_stream import JSON, LINES
from toolscript.surfaces.http.errors import documented

DOCUMENTS_PATH = "/documents"
MOST_JSON_BYTES = 1024 * 1024
MOST_REMOVAL_BYTES = 4 * 1024 * 1024
MOST_REMOVED_AT_ONCE = 250

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
    **documented(401, 403, 415, 422, 429, 503),
}
IdInPath = Annotated[
    str, Path(min_length=1, max_length=MOST_ID, description="What it is known by; slashes and all else encoded.")
]


def add_writing(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.put(
        DOCUMENTS_PATH,
        response_model=DocumentsPut,
        responses=ANSWERS,
        openapi_extra=_BODY,
        summary="Put documents",
    )
    async def put_documents(request: Request, caller: CallerHere) -> Response:
        """Adds documents, or replaces those of the same ids. What has not changed costs nothing.

        As `application/json` up to 1 MiB. As `application/x-ndjson` a document in each line of up to 4 MiB, at
        most 50,000 of them; the answer, once all have been read, has a line for each, and a last one with
        `counts`, and with `error` where it ended too early. A document that is refused refuses no other.
        `Content-Encoding: gzip` is understood.
        """
        writing = _writing(documents, caller)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == LINES:
            return await _put_lines(request, writing)
        if kind == JSON:
            return await _put_json(request, writing)
        raise HTTPException(415, f"the content type must be {JSON} or {LINES}")

    @router.delete(
        DOCUMENTS_PATH,
        response_model=DocumentsRemoved,
        responses=documented(401, 403, 422, 429, 503),
        summary="Remove documents",
    )
    async def remove_documents(asked: DocumentsToRemove, caller: CallerHere) -> Json:
        return await _remove(documents, caller, asked.ids)


def add_one(router: APIRouter, documents: DocumentRoutes) -> None:
    one = f"{DOCUMENTS_PATH}/{{document_id:path}}"

    @router.get(
        one,
        response_model=DocumentShown,
        responses=documented(401, 403, 404, 422, 429, 503),
        summary="One document",
    )
    async def get_document(document_id: IdInPath, caller: CallerHere) -> Json:
        return stored_to_json(await documents.desk.document(caller, document_id))

    @router.delete(
        one,
        response_model=DocumentsRemoved,
        responses=documented(401, 403, 404, 422, 429, 503),
        summary="Remove one document",
    )
    async def remove_document(document_id: IdInPath, caller: CallerHere) -> Json:
        return await _remove(documents, caller, [document_id])


def _writing(documents: DocumentRoutes, caller: Caller) -> Writing:
    return Writing(partial(documents.desk.put, caller), partial(documents.written, caller))


async def _remove(documents: DocumentRoutes, caller: Caller, ids: Sequence[str]) -> Json:
    wanted = list(dict.fromkeys(ids))
    removed: set[str] = set()
    for at in range(0, len(wanted), MOST_REMOVED_AT_ONCE):
        removed |= set(await documents.desk.remove(caller, wanted[at : at + MOST_REMOVED_AT_ONCE]))
    return {
        "deleted": [one for one in wanted if one in removed],
        "missing": [one for one in wanted if one not in removed],
    }


async def _put_json(request: Request, writing: Writing) -> Response:
    for data in _listed(await _whole(_body(request, request.stream()))):
        await writing.add(Entry(entry_read(data), len(str(data))))
    await writing.flush()
    body = f'{{"results":[{",".join(writing.results)}],"counts":{writing.counts.model_dump_json()}}}'
    return Response(body, media_type=JSON)


async def _put_lines(request: Request, writing: Writing) -> Response:
    """Answers when all is read: a sender that does not read while it sends would wait for us, and we for it."""
    try:
        stopped = await write_lines(writing, lines_of(_body(request, request.stream())))
    except ClientDisconnect:
        return Response(status_code=400)
    if stopped is not None and not writing.results:
        raise stopped
    # Where it stopped too early, the rest is read and thrown away while this is sent.
    return StreamingResponse(answer_in_lines(writing, stopped), media_type=LINES)


def _body(request: Request, received: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packing = request.headers.get("content-encoding", "identity").strip().lower()
    if packing == "identity":
        return not_idle(received)
    if packing == "gzip":
        return unpacked(not_idle(received))
    raise HTTPException(415, "the content encoding must be gzip, or none")


async def _whole(chunks: AsyncIterator[bytes]) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > MOST_JSON_BYTES:
            raise HTTPException(413, f"{JSON} is at most {MOST_JSON_BYTES >> 20} MiB; {LINES} may be longer")
    return bytes(body)


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
