"""Dependencies of the document routes, the media types of a response, and errors in the terms of /api/v1."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from fastapi import Request, Response

from toolscript.core.audit import AuditLog, Change, NoAudit
from toolscript.core.auth.model import Principal
from toolscript.core.errors import NotFound, SetupError, ToolscriptError
from toolscript.core.health import CheckHealth, Health, PartHealth
from toolscript.core.retrieval.query import SearchType
from toolscript.core.retrieval.results import DocumentKey
from toolscript.core.taxonomy import Actor
from toolscript.core.text import visible
from toolscript.core.web.auth import Authenticate
from toolscript.core.web.request_context import has_kinds
from toolscript.documents.http.upload_limits import UploadSlots
from toolscript.documents.model.answer import DocumentAnswer
from toolscript.documents.model.document import Document, DocumentHeader, PutResult, StoredDocument
from toolscript.documents.model.filters import Filters
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.tenants import TenantUsage

JSON, LINES, EVENTS = "application/json", "application/x-ndjson", "text/event-stream"

NOT_SET_UP = "documents are not set up here"
SET_UP_HINT = "set TOOLSCRIPT_JWT_KEYS and TOOLSCRIPT_JWT_ISSUER to the issuer of tokens you trust"

SearchFailed = Callable[[DocumentQuery, BaseException], None]
Written = Callable[[Principal, Sequence[PutResult]], None]
PutFailed = Callable[[BaseException], None]

# In the audit.
MAX_ACTOR, MAX_IDS_SHOWN = 200, 20
MAX_STREAMS, MAX_STREAMS_PER_TENANT = 8, 2
# JSON uploads are short.
MAX_SHORT, MAX_SHORT_PER_TENANT = 32, 8


def change_by(principal: Principal, action: str) -> Change:
    """Return the change of documents of a tenant by one request."""
    name = visible(str(principal.subject)).strip()[:MAX_ACTOR] or principal.tenant.name
    return Change(Actor(name), action, principal.tenant.name)


class Searched(Protocol):
    def __call__(
        self,
        principal: Principal,
        query: DocumentQuery,
        answer: DocumentAnswer,
        /,
        *,
        query_id: str,
        took_ms: float,
    ) -> None: ...


class SearchesDocuments(Protocol):
    async def search(self, principal: Principal, query: DocumentQuery, /) -> DocumentAnswer: ...


class DocumentStore(Protocol):
    async def put(self, principal: Principal, documents: Sequence[Document], /) -> Sequence[PutResult]: ...
    async def remove(self, principal: Principal, ids: Sequence[str], /) -> Sequence[str]: ...
    async def document(self, principal: Principal, document_id: str, /) -> StoredDocument: ...
    async def page(
        self, principal: Principal, after: DocumentKey, limit: int, filters: Filters, /
    ) -> Sequence[DocumentHeader]: ...


class ListsTenants(Protocol):
    async def page(self, after: str, limit: int, /) -> Sequence[TenantUsage]: ...
    async def tenant(self, name: str, /) -> TenantUsage: ...


def _ignore(*_: object, **__: object) -> None: ...


async def _refuse(*_: object, **__: object) -> NoReturn:
    raise SetupError(NOT_SET_UP, hint=f"ask the operator to {SET_UP_HINT}")


async def _refuse_client(request: Request, _: Response) -> NoReturn:
    hint = f"ask the operator to {SET_UP_HINT}" if has_kinds(request.url.path) else SET_UP_HINT
    raise SetupError(NOT_SET_UP, hint=hint)


class _NotSetUp:
    search = put = remove = document = page = tenant = staticmethod(_refuse)


@dataclass(frozen=True)
class DocumentRoutes:
    """`searched`, `search_failed`, `written` and `put_failed` are callbacks that neither block nor fail.

    `default` is the search type of a request without one.
    """

    search: SearchesDocuments
    service: DocumentStore
    principal: Authenticate
    check_health: CheckHealth
    searched: Searched = _ignore
    search_failed: SearchFailed = _ignore
    written: Written = _ignore
    put_failed: PutFailed = _ignore
    default: SearchType = SearchType.HYBRID
    audit: AuditLog = field(default_factory=NoAudit)
    streams: UploadSlots = field(default_factory=lambda: UploadSlots(MAX_STREAMS, MAX_STREAMS_PER_TENANT))
    short_puts: UploadSlots = field(default_factory=lambda: UploadSlots(MAX_SHORT, MAX_SHORT_PER_TENANT))
    tenants: ListsTenants = field(default_factory=_NotSetUp)


async def _no_health() -> Health:
    return Health({"documents": PartHealth(ok=False, needed=True, note=f"{NOT_SET_UP}: {SET_UP_HINT}")})


# For a service without documents: the routes exist, and respond with what is missing.
ABSENT = DocumentRoutes(_NotSetUp(), _NotSetUp(), _refuse_client, _no_health)


# Fields of a query by their names under /api/v1; those that are not here have one name.
_FIELDS = {"top_k": "limit"}
_RERANK_HINT = "leave out `rerank`, or ask the operator to set"


@contextmanager
def resource_errors(is_resource: bool = True) -> Iterator[None]:
    """Word errors for clients of /api/v1 and MCP; those of the aliases stay as they are."""
    try:
        yield
    except ToolscriptError as error:
        if is_resource:
            _reword(error)
        raise


def _reword(error: ToolscriptError) -> None:
    name = error.details.get("field")
    if name in _FIELDS:
        error.details["field"] = _FIELDS[str(name)]
    if isinstance(error, NotFound):
        error.hint = "GET /api/v1/documents lists the documents, POST /api/v1/documents/search finds some"
    elif name == "rerank":
        error.hint = f"{_RERANK_HINT} {error.hint.removeprefix('set ')}"
