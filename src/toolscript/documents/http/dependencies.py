"""What the routes of documents depend on, and the forms that an answer can have."""

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
SET_UP_HINT = "TOOLSCRIPT_JWT_KEYS and TOOLSCRIPT_JWT_ISSUER say whose tokens are believed"

SearchFailed = Callable[[DocumentQuery, BaseException], None]
Written = Callable[[Principal, Sequence[PutResult]], None]
PutFailed = Callable[[BaseException], None]

MAX_STREAMS, MAX_STREAMS_OF_ONE = 8, 2
# As JSON they are short.
MAX_SHORT, MAX_SHORT_OF_ONE = 32, 8


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


def _nobody(*_: object, **__: object) -> None: ...


@dataclass(frozen=True)
class DocumentRoutes:
    """`searched`, `search_failed`, `written`, `put_failed` are told what was done; they neither wait nor fail.

    `usual` is what a search compares that does not say it.
    """

    search: SearchesDocuments
    service: DocumentStore
    principal: Authenticate
    check_health: CheckHealth
    searched: Searched = _nobody
    search_failed: SearchFailed = _nobody
    written: Written = _nobody
    put_failed: PutFailed = _nobody
    default: SearchType = SearchType.HYBRID
    streams: UploadSlots = field(default_factory=lambda: UploadSlots(MAX_STREAMS, MAX_STREAMS_OF_ONE))
    short_puts: UploadSlots = field(default_factory=lambda: UploadSlots(MAX_SHORT, MAX_SHORT_OF_ONE))


async def _refuse(*_: object, **__: object) -> NoReturn:
    raise SetupError(NOT_SET_UP, hint=SET_UP_HINT)


class _Nothing:
    search = put = remove = document = staticmethod(_refuse)


async def _no_health() -> Health:
    return Health({"documents": PartHealth(ok=False, needed=True, note=f"{NOT_SET_UP}: {SET_UP_HINT}")})


# For a service without documents: the routes are there, and say what is missing.
ABSENT = DocumentRoutes(_Nothing(), _Nothing(), _refuse, _no_health)
