"""PUT, GET and DELETE /documents."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from toolscript.model.document_json import stored_to_json
from toolscript.model.documents import MOST_ID
from toolscript.model.tenancy import Caller
from toolscript.surfaces.http.checked_routes import CallerHere
from toolscript.surfaces.http.document_models import (
    DocumentShown,
    DocumentsPut,
    DocumentsRemoved,
    DocumentsToRemove,
)
from toolscript.surfaces.http.document_parts import DocumentRoutes
from toolscript.surfaces.http.document_receiving import put_received
from toolscript.surfaces.http.document_stream import JSON, LINES
from toolscript.surfaces.http.errors import ErrorEnvelope, documented

DOCUMENTS_PATH = "/documents"
ONE_PATH = f"{DOCUMENTS_PATH}/{{document_id:path}}"
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
        most 50,000 of them in 200,000 lines and 1 GiB; the answer, once all have been read, has a line for each,
        and a last one with `counts`, and with `error` where it ended too early. A document that is refused
        refuses no other. `Content-Encoding: gzip` is understood, an hour is the longest a request may take, and
        no request may be silent for a minute. Few may put at once, and others wait: 429 and 503 have a
        `Retry-After` where that took too long.
        """
        return await put_received(documents, caller, request)

    @router.delete(
        DOCUMENTS_PATH,
        response_model=DocumentsRemoved,
        responses=documented(401, 403, 422, 429, 500, 503),
        summary="Remove documents",
    )
    async def remove_documents(asked: DocumentsToRemove, caller: CallerHere) -> Json:
        return await _remove(documents, caller, asked.ids)

    @router.delete(
        ONE_PATH,
        response_model=DocumentsRemoved,
        responses=_ANSWERS_OF_REMOVAL,
        summary="Remove one document",
    )
    async def remove_document(document_id: IdInPath, caller: CallerHere) -> Json:
        """One that is not there is `missing`, and no error."""
        return await _remove(documents, caller, [document_id])


def add_reading(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.get(
        ONE_PATH,
        response_model=DocumentShown,
        responses=_ANSWERS_OF_ONE,
        summary="One document",
    )
    async def get_document(document_id: IdInPath, caller: CallerHere) -> Json:
        """As it was put. Of its metadata only the fields are shown that the tenant's plan allows."""
        return stored_to_json(await documents.desk.document(caller, document_id))


async def _remove(documents: DocumentRoutes, caller: Caller, ids: Sequence[str]) -> Json:
    wanted = list(dict.fromkeys(ids))
    removed: set[str] = set()
    for at in range(0, len(wanted), MOST_REMOVED_AT_ONCE):
        removed |= set(await documents.desk.remove(caller, wanted[at : at + MOST_REMOVED_AT_ONCE]))
    return {
        "deleted": [one for one in wanted if one in removed],
        "missing": [one for one in wanted if one not in removed],
    }
