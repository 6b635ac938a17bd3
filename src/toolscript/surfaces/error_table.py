"""How each error looks on each surface. The only place that decides it."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolscript import errors
from toolscript.errors import ToolscriptError


@dataclass(frozen=True)
class Row:
    code: str
    http_status: int
    exit_code: int = 2


_INTERNAL = Row("INTERNAL_ERROR", 500)
_UNAVAILABLE = Row("UNAVAILABLE", 503)

ERROR_TABLE: Mapping[type[ToolscriptError], Row] = {
    errors.ToolscriptError: _INTERNAL,
    errors.InvalidRequest: Row("VALIDATION_ERROR", 422),
    errors.BlankQuery: Row("VALIDATION_ERROR", 400),
    errors.NotFound: Row("NOT_FOUND", 404),
    errors.Conflict: Row("VALIDATION_ERROR", 409),
    errors.Unauthorized: Row("UNAUTHORIZED", 401),
    errors.Forbidden: Row("FORBIDDEN", 403),
    errors.PlanExceeded: Row("FORBIDDEN", 403),
    errors.FileSkipped: Row("VALIDATION_ERROR", 422),
    errors.TooManyRequests: Row("RATE_LIMITED", 429),
    errors.SetupError: _UNAVAILABLE,
    errors.ConfigInvalid: _UNAVAILABLE,
    errors.ModelMismatch: _UNAVAILABLE,
    errors.ModelNotFound: _UNAVAILABLE,
    errors.ModelUnknown: _UNAVAILABLE,
    errors.Unavailable: _UNAVAILABLE,
    errors.EmbedderUnavailable: _UNAVAILABLE,
    errors.IndexUnavailable: _UNAVAILABLE,
    errors.IndexReplaced: _UNAVAILABLE,
    errors.CatalogUnavailable: _UNAVAILABLE,
    errors.LibraryUnavailable: _UNAVAILABLE,
    errors.ServerUnavailable: _UNAVAILABLE,
    errors.Overloaded: _UNAVAILABLE,
    errors.NotReady: _UNAVAILABLE,
    errors.Rejected: _INTERNAL,
    errors.EmbedderRejected: _INTERNAL,
    errors.IndexRejected: _INTERNAL,
    errors.CatalogRejected: _INTERNAL,
    errors.LibraryRejected: _INTERNAL,
    errors.ServerRejected: Row("UNAVAILABLE", 502),
}


def envelope(code: str, message: str, details: Mapping[str, object] | None = None) -> dict[str, object]:
    """The one shape of an error, on every surface."""
    return {"error": {"code": code, "message": message, "details": dict(details or {})}}


def envelope_of(error: ToolscriptError) -> dict[str, object]:
    details = {**error.details, "hint": error.hint} if error.hint else error.details
    return envelope(ERROR_TABLE[type(error)].code, error.message, details)
