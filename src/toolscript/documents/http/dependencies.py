"""Dependencies of the document routes, and the media types of a response."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from toolscript.core.auth.model import Principal
from toolscript.core.errors import SetupError
from toolscript.core.health import CheckHealth, Health, PartHealth
from toolscript.core.retrieval.query import SearchType
from toolscript.core.web.auth import Authenticate
from toolscript.documents.http.upload_limits import UploadSlots
from toolscript.documents.model.answer import DocumentAnswer
from toolscript.documents.model.document import Document, PutResult, StoredDocument
from toolscript.documents.model.query import DocumentQuery

JSON, LINES, EVENTS = "application/json", "application/x-ndjson", "text/event-stream"

NOT_SET_UP = "documents are not set up here"
SET_UP_HINT = "set TOOLSCRIPT_JWT_KEYS and TOOLSCRIPT_JWT_ISSUER to the issuer of tokens you trust"

SearchFailed = Callable[[DocumentQuery, BaseException], None]
Written = Callable[[Principal, Sequence[PutResult]], None]
PutFailed = Callable[[BaseException], None]

MAX_STREAMS, MAX_STREAMS_PER_TENANT = 8, 2
# JSON uploads are short.
MAX_SHORT, MAX_SHORT_PER_TENANT = 32, 8


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


def _ignore(*_: object, **__: object) -> None: ...


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
    streams: UploadSlots = field(default_factory=lambda: UploadSlots(MAX_STREAMS, MAX_STREAMS_PER_TENANT))
    short_puts: UploadSlots = field(default_factory=lambda: UploadSlots(MAX_SHORT, MAX_SHORT_PER_TENANT))


async def _refuse(*_: object, **__: object) -> NoReturn:
    raise SetupError(NOT_SET_UP, hint=SET_UP_HINT)


class _NotSetUp:
    search = put = remove = document = staticmethod(_refuse)


async def _no_health() -> Health:
    return Health({"documents": PartHealth(ok=False, needed=True, note=f"{NOT_SET_UP}: {SET_UP_HINT}")})


# For a service without documents: the routes exist, and respond with what is missing.
ABSENT = DocumentRoutes(_NotSetUp(), _NotSetUp(), _refuse, _no_health)
