"""Errors of connections as messages; the only module that interprets errors of the SDK and of httpx2."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from pydantic import ValidationError

from toolscript.core.errors import (
    InvalidRequest,
    OutcomeUnknown,
    ServerRejected,
    ServerUnavailable,
    ToolscriptError,
)
from toolscript.core.item_json import storable
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.model import SAID_PREFIX, STDERR_PREFIX, STDOUT_PREFIX
from toolscript.core.mcp_client.stdio import Child

# A message is shortened when it is shown, after its secrets were masked: half of one is still one.
MAX_UNMASKED = 64 << 10
MAX_DATA = 10_000
CALL = "tools/call"
# Placeholder messages of the SDK for HTTP errors without a JSON-RPC error.
SDK_PLACEHOLDERS = ("Server returned an error response", "Not Found", "Session terminated")

# First match wins. The SDK raises RuntimeError for a response that it cannot use.
_PHRASES: tuple[tuple[type[BaseException], str], ...] = (
    (httpx2.ConnectTimeout, "the server cannot be reached: no answer"),
    (httpx2.ConnectError, "the server cannot be reached"),
    (httpx2.HTTPStatusError, "the server refused"),
    (httpx2.UnsupportedProtocol, "the address is not an http or https URL"),
    (httpx2.InvalidURL, "the address is not a valid URL"),
    (httpx2.HTTPError, "the connection broke"),
    (MCPError, "the server answered with an error"),
    (ValidationError, "the server's answer does not follow the protocol"),
    (SubscriptionLost, "the connection broke"),
    (TimeoutError, "the server did not answer in time"),
    (OSError, "the connection broke"),
    (RuntimeError, "the server's answer cannot be used"),
)
# Of the others, the details are those of the server, or may quote it.
_OF_THE_SYSTEM = (httpx2.ConnectTimeout, httpx2.ConnectError, httpx2.HTTPStatusError, TimeoutError, OSError)


@dataclass(frozen=True)
class Failure:
    """Reason of a failure, and the server's own output."""

    reason: str
    details: str = ""


@contextmanager
def translate_errors(method: str) -> Iterator[None]:
    """Translate errors of the SDK during one request into Toolscript's errors."""
    try:
        yield
    except MCPError as error:
        if error.code == CONNECTION_CLOSED:
            raise unanswered(method)(f"{method}: the connection was closed") from error
        details = {"code": error.code, **_data_of(error)}
        raise ServerRejected(f"{method}: {error.message[:MAX_UNMASKED]}", details=details) from error


def _data_of(error: MCPError) -> JsonObject:
    """Return what a server says beside its message, such as what a client has to declare; nothing too long."""
    try:
        data = storable(error.error.data)
        return {} if data is None or len(json.dumps(data)) > MAX_DATA else {"data": data}
    except (InvalidRequest, ValueError, TypeError):
        return {}


def unanswered(method: str) -> type[ServerUnavailable]:
    """Return the error for a request that was sent and has no answer: only a call may have had an effect."""
    return OutcomeUnknown if method == CALL else ServerUnavailable


def root_cause(fault: BaseException) -> BaseException:
    """Return the first error of nested exception groups, which the SDK's tasks raise; it is the cause."""
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault


def describe_failure(fault: BaseException, child: Child | None = None, refusal: str = "") -> Failure:
    """Return why a connection failed, for the person who runs the server."""
    cause = root_cause(fault)
    reason = _own_words(cause) if isinstance(cause, ToolscriptError) else refusal or _phrase(cause)
    if child is None:
        return Failure(reason)
    # An exit code is more specific than a closed connection.
    return Failure(reason if child.exit_code is None else _describe_exit(child.exit_code), _child_output(child))


def _own_words(cause: ToolscriptError) -> str:
    """Return the message of an error of ours, with what a server may have said of it introduced as that."""
    if isinstance(cause, ServerUnavailable):
        return cause.message
    return f"the server answered with an error{SAID_PREFIX}{cause.message}"


def _phrase(cause: BaseException) -> str:
    for kind, phrase in _PHRASES:
        if isinstance(cause, kind):
            between = ": " if kind in _OF_THE_SYSTEM else SAID_PREFIX
            return f"{phrase}{between}{_detail(cause)}"[:MAX_UNMASKED]
    return f"unexpected {type(cause).__name__}{SAID_PREFIX}{_detail(cause)}"[:MAX_UNMASKED]


def _detail(cause: BaseException) -> str:
    if isinstance(cause, httpx2.HTTPStatusError):
        # The text of the error contains the whole URL, which may contain secrets.
        return f"HTTP {cause.response.status_code}"
    if isinstance(cause, ValidationError):
        return "; ".join(f"{'.'.join(map(str, error['loc']))} {error['msg']}" for error in cause.errors()[:3])
    return str(cause) or type(cause).__name__


def _child_output(child: Child) -> str:
    noise = f"{STDOUT_PREFIX}{child.noise!r}" if child.noise else ""
    return noise + (STDERR_PREFIX + "\n".join(child.tail) if child.tail else "")


def _describe_exit(code: int) -> str:
    return f"the process was ended by signal {-code}" if code < 0 else f"the process ended with exit code {code}"
