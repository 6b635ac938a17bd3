"""What goes wrong between us and a server, in words: the one place that reads the libraries' errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from toolscript.core.errors import ServerRejected, ServerUnavailable, ToolscriptError
from toolscript.core.mcp_client.model import SAID, WROTE
from toolscript.core.mcp_client.stdio import Child

MAX_MESSAGE = 2_000
# What the SDK says in place of an error that came without a message of the protocol.
STAND_INS = ("Server returned an error response", "Not Found", "Session terminated")

# First match wins. What the SDK raises as RuntimeError is an answer it could not use.
_PHRASES: tuple[tuple[type[BaseException], str], ...] = (
    (httpx2.ConnectTimeout, "the server cannot be reached: no answer"),
    (httpx2.ConnectError, "the server cannot be reached"),
    (httpx2.HTTPStatusError, "the server refused"),
    (httpx2.UnsupportedProtocol, "the address is no http or https address"),
    (httpx2.InvalidURL, "the address is no address"),
    (httpx2.HTTPError, "the connection broke"),
    (MCPError, "the server answered with an error"),
    (ValidationError, "the server's answer is not what the protocol asks for"),
    (SubscriptionLost, "the connection broke"),
    (TimeoutError, "the server did not answer in time"),
    (OSError, "the connection broke"),
    (RuntimeError, "the server's answer cannot be used"),
)


@dataclass(frozen=True)
class Failure:
    """Why, and what the server itself had to say."""

    reason: str
    details: str = ""


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Around one request: what the SDK raises becomes one of our errors."""
    try:
        yield
    except MCPError as error:
        if error.code == CONNECTION_CLOSED:
            raise ServerUnavailable(f"{what}: the connection was closed") from error
        details = {"code": error.code}
        raise ServerRejected(f"{what}: {error.message[:MAX_MESSAGE]}", details=details) from error


def innermost(fault: BaseException) -> BaseException:
    """The SDK's tasks hand up groups of errors; the first of them is what went wrong."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault


def in_words(fault: BaseException, child: Child | None = None, refusal: str = "") -> Failure:
    """Why a connection failed, for a person who can mend it."""
    cause = innermost(fault)
    reason = cause.message if isinstance(cause, ToolscriptError) else refusal or _phrase(cause)
    if child is None:
        return Failure(reason)
    # An exit code tells more than that the connection was closed.
    return Failure(reason if child.fell is None else _exit(child.fell), _last_words(child))


def _phrase(cause: BaseException) -> str:
    for kind, phrase in _PHRASES:
        if isinstance(cause, kind):
            return f"{phrase}: {_detail(cause)}"[:MAX_MESSAGE]
    return f"unexpected {type(cause).__name__}: {_detail(cause)}"[:MAX_MESSAGE]


def _detail(cause: BaseException) -> str:
    if isinstance(cause, httpx2.HTTPStatusError):
        # Its own text has the whole address in it, and with it what may be secret.
        return f"HTTP {cause.response.status_code} {cause.response.reason_phrase}".strip()
    if isinstance(cause, ValidationError):
        return "; ".join(f"{'.'.join(map(str, one['loc']))} {one['msg']}" for one in cause.errors()[:3])
    return str(cause) or type(cause).__name__


def _last_words(child: Child) -> str:
    noise = f"{WROTE}{child.noise!r}" if child.noise else ""
    return noise + (SAID + "\n".join(child.tail) if child.tail else "")


def _exit(code: int) -> str:
    return f"the process was ended by signal {-code}" if code < 0 else f"the process ended with exit code {code}"
