"""One request and its answer. What is no answer is an error of ours, that names whom it was sent to."""

import http.client
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from toolscript.core.errors import (
    Forbidden,
    InvalidRequest,
    NotFound,
    ToolscriptError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

# What a status says of a request, whoever refuses it.
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


@dataclass(frozen=True)
class Peer:
    """Whom a client talks to: `address` as an example of one, `hint` for when nobody answers there."""

    name: str
    address: str
    hint: str


@dataclass(frozen=True)
class Address:
    """`place` is what messages say of it: a password may stand in an address."""

    scheme: str
    host: str
    port: int | None
    path: str
    place: str


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """The one shape of errors, read; all of it empty where something else came."""

    code: str = ""
    message: str = ""
    hint: str = ""
    details: Mapping[str, object] = field(default_factory=dict)


class _SocketConnection(http.client.HTTPConnection):
    """To a Unix socket; its path stands for the host."""

    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def address_of(url: str, peer: Peer) -> Address:
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
    """`seconds` bounds every wait for the other side. A body of bytes is sent as it is, any other as JSON."""
    headers = {"Content-Type": content_type} if body is not None else {}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    sent = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    connection = _connection(to, seconds)
    try:
        connection.request(method, to.path + path, sent, headers)
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, response.read(), named)
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        raise Unavailable(f"the {peer.name} at {to.place} does not answer: {error}", hint=peer.hint) from error
    finally:
        connection.close()


def _connection(to: Address, seconds: float) -> http.client.HTTPConnection:
    if to.scheme == "unix":
        return _SocketConnection(to.host, timeout=seconds)
    kind = http.client.HTTPSConnection if to.scheme == "https" else http.client.HTTPConnection
    return kind(to.host, to.port, timeout=seconds)


def refusal_in(answer: Answer) -> Refusal:
    try:
        body = json.loads(answer.body)["error"]
        details = dict(body["details"])
        return Refusal(str(body["code"]), str(body["message"]), str(details.pop("hint", "")), details)
    except (ValueError, KeyError, TypeError, RecursionError):
        return Refusal()


def granted(peer: Peer, to: Address, method: str, path: str, body: object = None, **how: Any) -> Answer:
    """The same, where a refusal is an error."""
    try:
        answer = exchange(peer, to, method, path, body, **how)
    except Unavailable as error:
        if isinstance(error.__cause__, TimeoutError):
            error.hint = "--timeout gives it longer"
        raise
    if answer.status >= 400:
        raise _refused(peer, to, answer)
    return answer


def _refused(peer: Peer, to: Address, answer: Answer) -> ToolscriptError:
    refusal = refusal_in(answer)
    wait = answer.headers.get("retry-after", "")
    details = {**refusal.details, **({"retry_after_seconds": int(wait)} if _is_count(wait) else {})}
    if not refusal.code:
        return not_one(peer, to)
    kind = REFUSALS.get(answer.status, Unavailable)
    request = answer.headers.get(REQUEST_ID_HEADER, "")
    logged = f"the {peer.name}'s log has it as request {request}" if answer.status >= 500 and request else ""
    message = f"the {peer.name} answered {answer.status} {refusal.code}: {refusal.message}"
    return kind(message, hint=refusal.hint or logged, details=details)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6


def not_one(peer: Peer, to: Address) -> Unavailable:
    """Somebody answers, and not as this peer would."""
    return Unavailable(f"what answers at {to.place} is no {peer.name}, or one of another version", hint=peer.hint)
