"""What a client sends and how it understands the answer, without I/O: requests, retries and errors.

A client runs `Steps`: a generator that yields what to do next, and returns the result. So the senders, one for
threads and one for asyncio, know nothing but how to send a request and how to wait. Few of the classes are
dataclasses, because these are slow to define, and every command that asks a service waits for it.
"""

import json
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from toolscript.core import errors
from toolscript.core.errors import InvalidRequest, SetupError, ToolscriptError, TooManyRequests, Unavailable

T = TypeVar("T")

JSON, LINES = "application/json", "application/x-ndjson"
REQUEST_ID_HEADER = "x-request-id"
UNIX = "unix:"
FIRST_PAUSE, MAX_PAUSE = 0.5, 30.0
TLS_HINT = "is its certificate valid for this host, and issued by an authority that this machine trusts?"
TIMEOUT_HINT = "`timeout` gives it longer"

# Errors worth another try: the server is busy, restarting or out of reach.
TRANSIENT = (Unavailable, TooManyRequests)

_BY_CODE: Mapping[str, type[ToolscriptError]] = {
    "VALIDATION_ERROR": InvalidRequest,
    "METHOD_NOT_ALLOWED": InvalidRequest,
    "TOO_LARGE": InvalidRequest,
    "UNSUPPORTED": InvalidRequest,
    "CONFLICT": errors.Conflict,
    "NOT_FOUND": errors.NotFound,
    "UNAUTHORIZED": errors.Unauthorized,
    "FORBIDDEN": errors.Forbidden,
    "PLAN_EXCEEDED": errors.PlanExceeded,
    "RATE_LIMITED": TooManyRequests,
    "UNAVAILABLE": Unavailable,
    "INTERNAL_ERROR": errors.Rejected,
}
# For a code that this version does not know.
_BY_STATUS: Mapping[int, type[ToolscriptError]] = {
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    429: TooManyRequests,
    500: errors.Rejected,
}


@dataclass(frozen=True)
class Peer:
    """What a client asks: `name` is its word in messages, `address` an example, `hint` helps if it is silent.

    `unavailable` is the error that it means by 503.
    """

    name: str
    address: str
    hint: str
    unavailable: type[Unavailable] = Unavailable


SERVER = Peer(
    "server",
    "http://127.0.0.1:8080",
    "`toolscript serve` starts a service, `toolscript gateway start` a gateway",
)


@dataclass(frozen=True)
class Address:
    """A parsed address; of a Unix socket, `host` is the file. Messages show `place`: a URL may hold a password."""

    scheme: str
    host: str
    port: int | None
    path: str
    place: str

    @property
    def url(self) -> str:
        """The URL without credentials."""
        return f"{self.scheme}://{self.place}{self.path}"


@dataclass(frozen=True)
class Answer:
    """A response, whatever its status; the names of `headers` are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """`idempotent`: sending it twice does no more than sending it once. `timeout` None: the client's.

    `more` are headers beside the usual ones.
    """

    method: str
    path: str
    body: bytes | None = None
    content_type: str = JSON
    idempotent: bool = True
    timeout: float | None = None
    more: Mapping[str, str] = field(default_factory=dict)

    def headers(self, token: str) -> dict[str, str]:
        content = {} if self.body is None else {"Content-Type": self.content_type}
        return {**content, **({"Authorization": f"Bearer {token}"} if token else {}), **self.more}


class Pause:
    """A wait before the next try, and its reason."""

    def __init__(self, seconds: float, error: ToolscriptError) -> None:
        self.seconds = seconds
        self.error = error


class Pull(Generic[T]):
    """Asks for the next entry of an iterator, None at its end."""

    def __init__(self, source: Iterator[T] | AsyncIterator[T]) -> None:
        self.source = source


Steps = Generator[Request | Pause | Pull[Any], Any, T]


class Retries:
    """How often a request is sent again, and how long a client waits at most because a server requests it."""

    def __init__(self, limit: int = 2, max_wait: float = 60.0) -> None:
        self._limit = limit
        self._max_wait = max_wait

    def pause(self, error: ToolscriptError, tries: int) -> Pause:
        """Return the pause after so many tries; raise the error if there is nothing to wait for."""
        requested = error.details.get("retry_after_seconds")
        seconds = float(requested) if isinstance(requested, int | float) else _backoff(tries)
        is_final = not isinstance(error, TRANSIENT) or error.details.get("retryable") is False
        if is_final or tries > self._limit or seconds > self._max_wait:
            raise error
        return Pause(seconds, error)


def _backoff(tries: int) -> float:
    """Return the seconds of an exponential backoff with jitter."""
    import random

    return float(min(MAX_PAUSE, FIRST_PAUSE * 2 ** (tries - 1)) * random.uniform(0.5, 1.0))  # noqa: S311


class Conversation:
    """Requests to one server: how they are repeated, and what its answers mean."""

    def __init__(self, peer: Peer, address: Address, retries: Retries) -> None:
        self.peer = peer
        self.address = address
        self.retries = retries

    def ask(self, request: Request, read: Callable[[bytes], T]) -> Steps[T]:
        """Send a request, again where that is safe and may help, and read its answer."""
        tries = 1
        while True:
            try:
                return self.understand((yield request), read)
            except TRANSIENT as error:
                if not request.idempotent:
                    raise
                pause = self.retries.pause(error, tries)
            yield pause
            tries += 1

    def understand(self, answer: Answer, read: Callable[[bytes], T]) -> T:
        """Read an answer; raise the error in it, or Unavailable if it does not look like this peer's."""
        if answer.status >= 400:
            raise self._error_in(answer)
        try:
            return read(answer.body)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InvalidRequest) as error:
            raise self.unexpected() from error

    def unexpected(self, details: Mapping[str, object] | None = None) -> Unavailable:
        return Unavailable(
            f"the server at {self.address.place} is not a {self.peer.name}, or it runs another version",
            hint=self.peer.hint,
            details={"retryable": False} if details is None else details,
        )

    def silent(self, reason: str, *, timed_out: bool = False) -> Unavailable:
        """Return the error for a request without an answer."""
        return Unavailable(
            f"the {self.peer.name} at {self.address.place} does not answer: {reason}",
            hint=TIMEOUT_HINT if timed_out else self.peer.hint,
        )

    def unverified(self, reason: str) -> SetupError:
        return SetupError(
            f"the {self.peer.name} at {self.address.place} cannot be verified: {reason}", hint=TLS_HINT
        )

    def _error_in(self, answer: Answer) -> ToolscriptError:
        retry_after = answer.headers.get("retry-after", "")
        wait = {"retry_after_seconds": int(retry_after)} if _is_seconds(retry_after) else {}
        try:
            error = json.loads(answer.body)["error"]
            code, message, details = str(error["code"]), str(error["message"]), {**error["details"], **wait}
        except (ValueError, KeyError, TypeError, RecursionError):
            # A proxy answers like this while the server behind it starts.
            return self.unexpected(wait if answer.status >= 500 else None)
        hint = str(details.pop("hint", ""))
        request_id = answer.headers.get(REQUEST_ID_HEADER, "")
        if answer.status >= 500 and request_id and not hint:
            hint = f"see request {request_id} in the log of the {self.peer.name}"
        kind = _error_class(code, answer.status, details)
        if kind is Unavailable and answer.status == 503:
            kind = self.peer.unavailable
        return kind(message, hint=hint, details=details).answered(code, request_id)


def _error_class(code: str, status: int, details: Mapping[str, object]) -> type[ToolscriptError]:
    if status == 400 and code == "VALIDATION_ERROR":
        return errors.BlankQuery
    usual = Unavailable if status >= 500 else InvalidRequest
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status, usual)
    if kind is Unavailable and details.get("retryable") is False:
        return SetupError
    if kind is Unavailable and status == 502:
        return errors.ServerRejected
    return errors.ServerUnavailable if kind is Unavailable and "server" in details else kind


def _is_seconds(text: str) -> bool:
    """Return whether a Retry-After is a number of seconds, and a sensible one; a date is not followed."""
    return text.isascii() and text.isdigit() and len(text) < 6


def address_of(url: str, peer: Peer) -> Address:
    """Parse an http://, https:// or unix: URL; raise InvalidRequest for anything else."""
    if url.startswith(UNIX) and url != UNIX:
        from pathlib import Path

        path = str(Path(url.removeprefix(UNIX)).expanduser())
        return Address("unix", path, None, "", path)
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError:
        split, host, port = urlsplit(""), None, None
    if not host or split.scheme not in ("http", "https"):
        raise InvalidRequest(f"this is not the address of a {peer.name}", hint=f"write {peer.address}")
    return Address(split.scheme, host, port, split.path.rstrip("/"), split.netloc.rpartition("@")[2])
