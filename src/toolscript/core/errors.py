"""The error tree. Every surface maps every class of it (surfaces/error_table.py).

ToolscriptError
├── InvalidRequest          what the caller sent cannot be understood
│   └── BlankQuery          ... because there is nothing in it
├── NotFound                what the caller named does not exist
├── Conflict                what the caller wants was decided or taken already
├── Unauthorized            the caller did not show the token that is asked for
├── Forbidden               the caller may not ask this, or not from where it asks
│   └── PlanExceeded        ... because its plan does not go so far
├── FileSkipped             nothing is taken from a file, and why
├── TooManyRequests         the caller has asked as often as it may, for now
├── SetupError              this installation is not ready; the hint is the command that makes it so
│   ├── ConfigInvalid       a config file cannot be used as it is
│   ├── ModelMismatch       the index was built by another model or layout than the one in use
│   └── ModelNotFound       the embedding model cannot be loaded
│       └── ModelUnknown    ... because nobody knows one of this name
├── Unavailable             a part we depend on did not answer in time, or at all
│   ├── EmbedderUnavailable
│   ├── IndexUnavailable
│   ├── IndexReplaced       another version of an index is live now, and this one is not written to
│   ├── CatalogUnavailable
│   ├── LibraryUnavailable
│   ├── ServerUnavailable   an MCP server is not connected, or did not answer
│   ├── Overloaded          ... because this service has more to do than it can
│   └── NotReady            the gateway has no tools yet
└── Rejected                a part answered, and refused what we sent or sent nonsense
    ├── EmbedderRejected
    ├── IndexRejected
    ├── CatalogRejected
    ├── LibraryRejected
    └── ServerRejected      an MCP server refused a call, or its answer is no answer
"""

from collections.abc import Mapping


class ToolscriptError(Exception):
    """Carries what happened (`message`), what to do next (`hint`) and facts for a machine (`details`)."""

    def __init__(self, message: str, *, hint: str = "", details: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = dict(details or {})


class InvalidRequest(ToolscriptError): ...


class BlankQuery(InvalidRequest): ...


class NotFound(ToolscriptError): ...


class Conflict(ToolscriptError): ...


class Unauthorized(ToolscriptError): ...


class Forbidden(ToolscriptError): ...


class PlanExceeded(Forbidden): ...


class FileSkipped(ToolscriptError): ...


class TooManyRequests(ToolscriptError): ...


class SetupError(ToolscriptError): ...


class ConfigInvalid(SetupError): ...


class ModelMismatch(SetupError): ...


class ModelNotFound(SetupError): ...


class ModelUnknown(ModelNotFound): ...


class Unavailable(ToolscriptError): ...


class EmbedderUnavailable(Unavailable): ...


class IndexReplaced(Unavailable):
    """Another version of an index has become live: nothing may be written to this one any more."""


class IndexUnavailable(Unavailable): ...


class CatalogUnavailable(Unavailable): ...


class LibraryUnavailable(Unavailable): ...


class ServerUnavailable(Unavailable): ...


class Overloaded(Unavailable): ...


class NotReady(Unavailable): ...


class Rejected(ToolscriptError): ...


class EmbedderRejected(Rejected): ...


class IndexRejected(Rejected): ...


class CatalogRejected(Rejected): ...


class LibraryRejected(Rejected): ...


class ServerRejected(Rejected): ...
