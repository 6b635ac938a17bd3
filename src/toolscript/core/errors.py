"""The error tree, and the table of status, code and exit code for every class of it.

ToolscriptError
├── InvalidRequest          the request cannot be understood
│   └── BlankQuery          ... because the query is blank
├── NotFound                the named thing does not exist
├── Conflict                the requested change was decided or taken already
├── Unauthorized            the client did not send the required token
│   └── TokenRefused        ... but one that is not valid
├── Forbidden               the client may not do this, or not from its address
│   └── PlanExceeded        ... because its plan does not allow it
├── FileSkipped             a file is not ingested; the message gives the reason
├── TooManyRequests         the client has reached its rate limit
├── SetupError              this installation is not ready; the hint is the command that makes it so
│   ├── ConfigInvalid       a config file cannot be used as it is
│   ├── IndexMissing        the engine has no index of this name
│   ├── IndexLost           documents are on record, and the index has none of them
│   ├── ModelMismatch       the index was built by another model or layout than the one in use
│   └── ModelNotFound       the embedding model cannot be loaded
│       └── ModelUnknown    ... because no model has this name
├── Unavailable             a dependency did not answer in time, or at all
│   ├── EmbedderUnavailable
│   ├── IndexUnavailable
│   ├── IndexReplaced       another index version is live now; this one takes no writes
│   ├── CatalogUnavailable
│   ├── LibraryUnavailable
│   ├── ServerUnavailable   an MCP server is not connected, or did not answer
│   │   └── OutcomeUnknown  ... a call that was sent, which may have had its effect
│   ├── Overloaded          ... because this service is at its limit
│   └── NotReady            the gateway has no tools yet
└── Rejected                a dependency answered, and refused the request or sent nonsense
    ├── EmbedderRejected
    ├── IndexRejected
    ├── CatalogRejected
    ├── LibraryRejected
    └── ServerRejected      an MCP server refused a call, or its response is invalid
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self


class ToolscriptError(Exception):
    """Base of all errors: `message` describes the failure, `hint` the next step, `details` facts for programs.

    `code` is that of the API, such as `NOT_FOUND`. An error that a server answered has its code and `request_id`,
    with which the server's log names the request.
    """

    def __init__(self, message: str, *, hint: str = "", details: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = dict(details or {})
        self.request_id = ""
        self._answered_code = ""

    @property
    def code(self) -> str:
        row = ERROR_TABLE[type(self)]
        return self._answered_code or row.kind or row.code

    def answered(self, code: str, request_id: str) -> Self:
        """Note what the server that answered with this error said."""
        self._answered_code, self.request_id = code, request_id
        return self


class InvalidRequest(ToolscriptError): ...


class BlankQuery(InvalidRequest): ...


class NotFound(ToolscriptError): ...


class Conflict(ToolscriptError): ...


class Unauthorized(ToolscriptError): ...


class TokenRefused(Unauthorized):
    """`reason` is the kind of fault in one word, for metrics."""

    def __init__(self, reason: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class Forbidden(ToolscriptError): ...


class PlanExceeded(Forbidden): ...


class FileSkipped(ToolscriptError): ...


class TooManyRequests(ToolscriptError): ...


class SetupError(ToolscriptError): ...


class ConfigInvalid(SetupError): ...


class IndexMissing(SetupError): ...


class IndexLost(SetupError): ...


class ModelMismatch(SetupError): ...


class ModelNotFound(SetupError): ...


class ModelUnknown(ModelNotFound): ...


class Unavailable(ToolscriptError): ...


class EmbedderUnavailable(Unavailable): ...


class IndexReplaced(Unavailable):
    """Another index version has become live: this one takes no more writes."""


class IndexUnavailable(Unavailable): ...


class CatalogUnavailable(Unavailable): ...


class LibraryUnavailable(Unavailable): ...


class ServerUnavailable(Unavailable): ...


class OutcomeUnknown(ServerUnavailable):
    """A call was sent and no answer came: it may have had its effect. The others of its kind were never sent."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "it may have had its effect: check before you repeat it",
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, hint=hint, details={"outcome": "unknown", "retryable": False, **(details or {})})


class Overloaded(Unavailable): ...


class NotReady(Unavailable): ...


class Rejected(ToolscriptError): ...


class EmbedderRejected(Rejected): ...


class IndexRejected(Rejected): ...


class CatalogRejected(Rejected): ...


class LibraryRejected(Rejected): ...


class ServerRejected(Rejected): ...


@dataclass(frozen=True)
class Row:
    """`kind` is the code on the resource paths of the API; empty: the same as `code`."""

    code: str
    http_status: int
    exit_code: int = 2
    kind: str = ""


_INTERNAL = Row("INTERNAL_ERROR", 500)
_UNAVAILABLE = Row("UNAVAILABLE", 503)


class _Rows(dict[type[ToolscriptError], Row]):
    """A class without a row of its own has that of the class that it is a kind of."""

    def __missing__(self, kind: type[ToolscriptError]) -> Row:
        return next(self[base] for base in kind.__mro__ if base in self)


_ROWS: Mapping[type[ToolscriptError], Row] = {
    ToolscriptError: _INTERNAL,
    InvalidRequest: Row("VALIDATION_ERROR", 422),
    BlankQuery: Row("VALIDATION_ERROR", 400),
    NotFound: Row("NOT_FOUND", 404),
    Conflict: Row("VALIDATION_ERROR", 409, kind="CONFLICT"),
    Unauthorized: Row("UNAUTHORIZED", 401),
    TokenRefused: Row("UNAUTHORIZED", 401),
    Forbidden: Row("FORBIDDEN", 403),
    PlanExceeded: Row("FORBIDDEN", 403, kind="PLAN_EXCEEDED"),
    FileSkipped: Row("VALIDATION_ERROR", 422),
    TooManyRequests: Row("RATE_LIMITED", 429),
    SetupError: _UNAVAILABLE,
    ConfigInvalid: _UNAVAILABLE,
    IndexMissing: _UNAVAILABLE,
    IndexLost: _UNAVAILABLE,
    ModelMismatch: _UNAVAILABLE,
    ModelNotFound: _UNAVAILABLE,
    ModelUnknown: _UNAVAILABLE,
    Unavailable: _UNAVAILABLE,
    EmbedderUnavailable: _UNAVAILABLE,
    IndexUnavailable: _UNAVAILABLE,
    IndexReplaced: _UNAVAILABLE,
    CatalogUnavailable: _UNAVAILABLE,
    LibraryUnavailable: _UNAVAILABLE,
    ServerUnavailable: _UNAVAILABLE,
    OutcomeUnknown: _UNAVAILABLE,
    Overloaded: _UNAVAILABLE,
    NotReady: _UNAVAILABLE,
    Rejected: _INTERNAL,
    EmbedderRejected: _INTERNAL,
    IndexRejected: _INTERNAL,
    CatalogRejected: _INTERNAL,
    LibraryRejected: _INTERNAL,
    ServerRejected: Row("UNAVAILABLE", 502),
}
ERROR_TABLE: Mapping[type[ToolscriptError], Row] = _Rows(_ROWS)


def envelope(code: str, message: str, details: Mapping[str, object] | None = None) -> dict[str, object]:
    """The one shape of an error, on every surface."""
    return {"error": {"code": code, "message": message, "details": dict(details or {})}}


# How the errors of engines begin: what follows are their drivers' words.
ENGINES = ("Qdrant: ", "PostgreSQL: ", "MongoDB: ", "embedding endpoint: ", "text model: ")


def told_to_clients(error: ToolscriptError) -> ToolscriptError:
    """Return the error as clients see it: without the words of an engine's driver, which have its address.

    The log has these, and commands show them.
    """
    if not error.message.startswith(ENGINES):
        return error
    is_away = isinstance(error, Unavailable)
    message = "an engine does not answer" if is_away else "an engine cannot be used as it is set up"
    hint = "try again in a moment" if is_away else "tell the operator: the log of the service has the reason"
    return type(error)(message, hint=hint, details=error.details)


def envelope_of(error: ToolscriptError, *, by_kind: bool = False) -> dict[str, object]:
    """Return the envelope of an error; `by_kind` tells conflicts and exceeded plans apart by code."""
    details = {**error.details, "hint": error.hint} if error.hint else error.details
    return envelope(error.code if by_kind else ERROR_TABLE[type(error)].code, error.message, details)
