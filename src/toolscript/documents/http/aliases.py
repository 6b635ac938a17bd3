"""/search and /documents: aliases with the field names of the source documents."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from toolscript.core.web.auth import CurrentPrincipal
from toolscript.core.web.errors import documented
from toolscript.documents.alias_schemas import (
    DocumentAliasShown,
    PutAliasResponse,
    PutAliasResult,
    SearchAliasRequest,
    SearchAliasResponse,
    SearchHealth,
)
from toolscript.documents.http.dependencies import DocumentRoutes
from toolscript.documents.http.resources import (
    ANSWERS_OF_ONE,
    ANSWERS_OF_REMOVAL,
    DOCUMENTS_PATH,
    SEARCH_PATH,
    IdInPath,
    remove,
)
from toolscript.documents.http.search import ALIAS, SEARCH_ANSWERS, respond
from toolscript.documents.http.upload import PUT_ANSWERS, PUT_BODY, receive_upload
from toolscript.documents.schemas import DocumentsDeleted, DocumentsToDelete

SEARCH_ALIAS = "/search"
DOCUMENTS_ALIAS = "/documents"
DOCUMENT_ALIAS = f"{DOCUMENTS_ALIAS}/{{document_id:path}}"


def _alias_of(operation: str) -> str:
    return f"Alias of `{operation}` with its own field names."


def add_search_alias(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.post(
        SEARCH_ALIAS,
        response_model=SearchAliasResponse,
        responses=SEARCH_ANSWERS,
        summary="Search documents (alias)",
        deprecated=True,
        description=f"{_alias_of(f'POST {SEARCH_PATH}')} Events of a stream are `hit` and `end`.",
    )
    async def search_documents_alias(
        search_request: SearchAliasRequest, request: Request, principal: CurrentPrincipal
    ) -> Response:
        query = search_request.as_query(documents.default, principal.plan)
        return await respond(documents, principal, query, request, ALIAS)


def add_writing_aliases(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.put(
        DOCUMENTS_ALIAS,
        response_model=PutAliasResponse,
        responses=PUT_ANSWERS,
        openapi_extra=PUT_BODY,
        summary="Put documents (alias)",
        deprecated=True,
        description=_alias_of(f"PUT {DOCUMENTS_PATH}"),
    )
    async def put_documents_alias(request: Request, principal: CurrentPrincipal) -> Response:
        return await receive_upload(documents, principal, request, PutAliasResult.of)

    @router.delete(
        DOCUMENTS_ALIAS,
        responses=documented(401, 403, 422, 429, 500, 503),
        summary="Delete documents (alias)",
        deprecated=True,
        description=_alias_of(f"POST {DOCUMENTS_PATH}/delete"),
    )
    async def delete_documents_alias(request: DocumentsToDelete, principal: CurrentPrincipal) -> DocumentsDeleted:
        return await remove(documents, principal, request.ids)

    @router.delete(
        DOCUMENT_ALIAS,
        responses=ANSWERS_OF_REMOVAL,
        summary="Delete one document (alias)",
        deprecated=True,
        description=_alias_of(f"DELETE {DOCUMENTS_PATH}/{{document_id}}"),
    )
    async def delete_document_alias(document_id: IdInPath, principal: CurrentPrincipal) -> DocumentsDeleted:
        return await remove(documents, principal, [document_id])


def add_reading_alias(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.get(DOCUMENT_ALIAS, responses=ANSWERS_OF_ONE, summary="One document (alias)", deprecated=True)
    async def get_document_alias(document_id: IdInPath, principal: CurrentPrincipal) -> DocumentAliasShown:
        """Alias of `GET /api/v1/documents/{document_id}` with its own field names.

        Returns a document as it was put, with the metadata fields that the tenant's plan allows.
        """
        return DocumentAliasShown.of(await documents.service.document(principal, document_id))


def add_health(router: APIRouter, documents: DocumentRoutes) -> None:
    @router.get(
        f"{SEARCH_ALIAS}/health",
        response_model=SearchHealth,
        responses={503: {"model": SearchHealth, "description": "Documents cannot be searched."}},
        summary="Can documents be searched?",
    )
    async def search_health() -> JSONResponse:
        """Needs no token, and reveals nothing about documents."""
        health = await documents.check_health()
        wrong = {name: part.note for name, part in health.parts.items() if not part.ok}
        if not wrong:
            return JSONResponse({"status": "ok"})
        status = "unready" if health.status == "unready" else "degraded"
        return JSONResponse({"status": status, "parts": wrong}, 503 if status == "unready" else 200)
