"""A minimal HTTP client. Every failure is a Toolscript error that names the peer."""

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolscript.core.errors import (
    Forbidden,
    InvalidRequest,
    NotFound,
    SetupError,
    ToolscriptError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

# The error class for each status of a refused request.
REFUSALS: Mapping[int, type[ToolscriptError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    413: InvalidRequest,
    415: InvalidRequest,
    422: InvalidRequest,
    429: TooManyRequests,
}
REQUEST_ID_HEADER = "x-request-id"
JSON = "application/json"
UNIX = "unix:"
TLS_HINT = "is its certificate valid for this host, and issued by an authority that this machine trusts?"


@dataclass(frozen=True)
class Peer:
    """The kind of service a client talks to: `address` is an example, `hint` helps when it does not respond."""

    name: str
    address: str
    hint: str


@dataclass(frozen=True)
class Address:
    """A parsed address; of a Unix socket, `host` is the file. Messages show `place`: a URL may hold a password."""

    scheme: str
    host: str
    port: int | None
    path: str
    place: str


@dataclass(frozen=True)
class Answer:
    """A response, whatever its status; the names of `headers` are in lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """A parsed error envelope; all fields are empty when the body is something else."""

    code: str = ""
    message: str = ""
    hint: str = ""
    details: Mapping[str, object] = field(default_factory=dict)


class _SocketConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def address_of(url: str, peer: Peer) -> Address:
    """Parse an http://, https:// or unix: URL; raise InvalidRequest for anything else."""
    if url.startswith(UNIX) and url != UNIX:
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


def exchange(
    peer: Peer,
    to: Address,
    method: str,
    path: str,
    body: object = None,
    *,
    token: str = "",
    seconds: float,
    content_type: str = JSON,
) -> Answer:
    """Send one request on a new connection, and return the response; raise Unavailable if there is none.

    `seconds` bounds each wait, not the whole exchange. A body of bytes is sent unchanged, any other as JSON.
    """
    headers = {"Content-Type": content_type} if body is not None else {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection = _connection(to, seconds)
    try:
        connection.request(method, to.path + path, content, headers)
        response = connection.getresponse()
        response_headers = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, response.read(), response_headers)
    except ssl.SSLError as error:
        raise Unavailable(f"the {peer.name} at {to.place} cannot be verified: {error}", hint=TLS_HINT) from error
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        raise Unavailable(f"the {peer.name} at {to.place} does not answer: {error}", hint=peer.hint) from error
    finally:
        connection.close()


def _connection(to: Address, seconds: float) -> http.client.HTTPConnection:
    if to.scheme == "unix":
        return _SocketConnection(to.host, timeout=seconds)
    connection_class = http.client.HTTPSConnection if to.scheme == "https" else http.client.HTTPConnection
    return connection_class(to.host, to.port, timeout=seconds)


def refusal_in(answer: Answer) -> Refusal:
    """Parse the error envelope in the body of a response."""
    try:
        body = json.loads(answer.body)["error"]
        details = dict(body["details"])
        return Refusal(str(body["code"]), str(body["message"]), str(details.pop("hint", "")), details)
    except (ValueError, KeyError, TypeError, RecursionError):
        return Refusal()


def request_or_raise(
    peer: Peer, to: Address, method: str, path: str, body: object = None, **options: Any
) -> Answer:
    """Like `exchange`, whose keyword arguments are `options`, but raise an error for status 400 or higher."""
    try:
        answer = exchange(peer, to, method, path, body, **options)
    except Unavailable as error:
        if isinstance(error.__cause__, TimeoutError):
            error.hint = "--timeout gives it longer"
        raise
    if answer.status >= 400:
        raise _refusal_error(peer, to, answer)
    return answer


def _refusal_error(peer: Peer, to: Address, answer: Answer) -> ToolscriptError:
    refusal = refusal_in(answer)
    retry_after = answer.headers.get("retry-after", "")
    wait = {"retry_after_seconds": int(retry_after)} if _is_seconds(retry_after) else {}
    details = {**refusal.details, **wait}
    if not refusal.code:
        return unexpected_peer(peer, to)
    error_class = REFUSALS.get(answer.status, Unavailable)
    if details.get("retryable") is False:
        error_class = SetupError
    request_id = answer.headers.get(REQUEST_ID_HEADER, "")
    log_hint = f"see request {request_id} in the {peer.name}'s log" if answer.status >= 500 and request_id else ""
    message = f"the {peer.name} answered {answer.status} {refusal.code}: {refusal.message}"
    return error_class(message, hint=refusal.hint or log_hint, details=details)


def _is_seconds(text: str) -> bool:
    """Return whether a Retry-After is a number of seconds, and a sensible one; it may also be a date."""
    return text.isascii() and text.isdigit() and len(text) < 6


def unexpected_peer(peer: Peer, to: Address) -> Unavailable:
    """Return the error for a response that does not look like this peer's."""
    return Unavailable(
        f"the server at {to.place} is not a {peer.name}, or it runs another version", hint=peer.hint
    )
