"""/api/v1/documents: the documents of the client's tenant."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import ValidationError

from toolscript.core.audit import recording
from toolscript.core.auth.model import Principal
from toolscript.core.errors import InvalidRequest
from toolscript.core.web.auth import CurrentPrincipal
from toolscript.core.web.cursors import decode_key
from toolscript.core.web.errors import ErrorEnvelope, documented
from toolscript.core.web.paging import USUAL, Cursor, Limit
from toolscript.core.web.request_context import API_PREFIX
from toolscript.documents.http.dependencies import MAX_IDS_SHOWN, DocumentRoutes, change_by, resource_errors
from toolscript.documents.http.search import RESOURCE, SEARCH_ANSWERS, respond
from toolscript.documents.http.upload import PUT_ANSWERS, PUT_BODY, receive_upload
from toolscript.documents.model.document import MAX_ID
from toolscript.documents.model.filters import NO_FILTERS, Filters
from toolscript.documents.schemas import (
    DocumentFilters,
    DocumentListed,
    DocumentPage,
    DocumentPut,
    DocumentsDeleted,
    DocumentSearchRequest,
    DocumentSearchResponse,
    DocumentShown,
    DocumentsPut,
    DocumentsToDelete,
)

DOCUMENTS_PATH = f"{API_PREFIX}/documents"
DOCUMENT_PATH = f"{DOCUMENTS_PATH}/{{document_id:path}}"
SEARCH_PATH = f"{DOCUMENTS_PATH}/search"
DELETE_PATH = f"{DOCUMENTS_PATH}/delete"
MAX_REMOVAL_BYTES = 4 * 1024 * 1024
MAX_REMOVED_AT_ONCE = 250
# Of a JSON text in a URL, which has at most 65,535 bytes: percent-encoded, a character takes up to 12 of them.
MAX_FILTER_CHARS = 4_000
_KEY = re.compile(r"[0-9a-f]{24}")

ANSWERS_OF_ONE: dict[int | str, dict[str, Any]] = {
    **documented(401, 403, 404, 422, 429, 500, 503),
    503: {
        "model": ErrorEnvelope,
        "description": "A part does not respond, or the document is being written, or its write was interrupted.",
    },
}
ANSWERS_OF_REMOVAL: dict[int | str, dict[str, Any]] = {
    **documented(401, 403, 404, 422, 429, 500, 503),
    404: {"model": ErrorEnvelope, "description": "The id contains a line break, which is never valid."},
}

IdInPath = Annotated[
    str,
    Path(
        min_length=1,
        max_length=MAX_ID,
        pattern=r"^[^\n]+$",
        description="Id of the document, percent-encoded, slashes included; never with a line break.",
    ),
]
FiltersInQuery = Annotated[
    str,
    Query(
        description="`filters` of a search as JSON; only documents that pass are listed. If they are longer than "
        f"{MAX_FILTER_CHARS:,} characters, a search without a query returns the same documents.",
        # Checked below, with a hint.
        json_schema_extra={"maxLength": MAX_FILTER_CHARS},
        examples=['{"must": [{"field": "year", "op": "gte", "value": 2020}]}'],
    ),
]


def add_search(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.post(
        SEARCH_PATH, response_model=DocumentSearchResponse, responses=SEARCH_ANSWERS, summary="Search documents"
    )
    async def search_documents(
        search_request: DocumentSearchRequest, request: Request, principal: CurrentPrincipal
    ) -> Response:
        """Searches the documents of the client's tenant by meaning, by keywords or by both, and by metadata.

        With `Accept: application/x-ndjson` every result is a line, and a last line has `query_id` and `metadata`;
        with `text/event-stream` they are events `result` and `end`. Both start before the search does: a later
        error is a last line or an event `error`, and the status stays 200.
        """
        query = search_request.as_query(documents.default, principal.plan)
        return await respond(documents, principal, query, request, RESOURCE)


def add_writing(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.put(
        DOCUMENTS_PATH,
        response_model=DocumentsPut,
        responses=PUT_ANSWERS,
        openapi_extra=PUT_BODY,
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
        return await receive_upload(documents, principal, request, DocumentPut.of)

    @router.post(DELETE_PATH, responses=documented(401, 403, 422, 429, 500, 503), summary="Delete documents")
    async def delete_documents(request: DocumentsToDelete, principal: CurrentPrincipal) -> DocumentsDeleted:
        """Deletes documents by their ids. An unknown id is `missing`, and not an error."""
        return await remove(documents, principal, request.ids)

    @router.delete(DOCUMENT_PATH, responses=ANSWERS_OF_REMOVAL, summary="Delete one document")
    async def delete_document(document_id: IdInPath, principal: CurrentPrincipal) -> DocumentsDeleted:
        """An unknown id is `missing`, and not an error."""
        return await remove(documents, principal, [document_id])


def add_reading(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.get(DOCUMENTS_PATH, responses=documented(401, 403, 422, 429, 500, 503), summary="List documents")
    async def list_documents(
        principal: CurrentPrincipal, cursor: Cursor = "", limit: Limit = USUAL, filters: FiltersInQuery = ""
    ) -> DocumentPage:
        """Lists the documents of the client's tenant, without their texts.

        A page has at most as many documents as the tenant's plan allows for a search. A document that exists all
        the time is on exactly one page, also when it changes meanwhile.
        """
        after, accepted = decode_key(cursor, _KEY.fullmatch), _filters(filters)
        most = limit if principal.plan.max_top_k is None else min(limit, principal.plan.max_top_k)
        headers = await documents.service.page(principal, after, most + 1, accepted)
        return DocumentPage.of(headers, most, DocumentListed.of, key=lambda header: header.key)

    @router.get(DOCUMENT_PATH, responses=ANSWERS_OF_ONE, summary="One document")
    async def get_document(document_id: IdInPath, principal: CurrentPrincipal) -> DocumentShown:
        """Returns a document as it was put, with the metadata fields that the tenant's plan allows."""
        with resource_errors():
            return DocumentShown.of(await documents.service.document(principal, document_id))


def _filters(text: str) -> Filters:
    if not text:
        return NO_FILTERS
    if len(text) > MAX_FILTER_CHARS:
        raise InvalidRequest(
            f"filters: {len(text):,} characters, at most {MAX_FILTER_CHARS:,} are allowed in a URL",
            hint=f"send them to `POST {SEARCH_PATH}`: without a query it returns every document that passes",
            details={"field": "filters"},
        )
    try:
        return DocumentFilters.model_validate_json(text).as_filters()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, ("filters", *first["loc"])))
        raise InvalidRequest(
            f"{where}: {first['msg']}",
            hint='send JSON such as {"must": [{"field": "year", "op": "gte", "value": 2020}]}, percent-encoded',
            details={"field": "filters"},
        ) from None


async def remove(documents: DocumentRoutes, principal: Principal, ids: Sequence[str]) -> DocumentsDeleted:
    distinct = list(dict.fromkeys(ids))
    removed: set[str] = set()
    async with recording(documents.audit, change_by(principal, "documents.delete")) as change:
        for index in range(0, len(distinct), MAX_REMOVED_AT_ONCE):
            removed |= set(
                await documents.service.remove(principal, distinct[index : index + MAX_REMOVED_AT_ONCE])
            )
            change.count, change.details["ids"] = len(removed), sorted(removed)[:MAX_IDS_SHOWN]
    return DocumentsDeleted.model_construct(
        deleted=[id_ for id_ in distinct if id_ in removed],
        missing=[id_ for id_ in distinct if id_ not in removed],
    )
