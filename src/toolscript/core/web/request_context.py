"""Middleware: a request id and log line per request, a limit of the body, and security headers."""

import json
import logging
import re
import sys
import time
import uuid
from collections.abc import Mapping
from contextvars import ContextVar

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscript.core.errors import ERROR_TABLE, envelope

HEADER = b"x-request-id"
# For log records written while handling a request.
current_request_id: ContextVar[str] = ContextVar("request_id", default="")
MAX_BYTES = 64 * 1024
# For bodies that are streamed and never held as a whole.
UNBOUNDED = sys.maxsize
ELIDED = "..."
_SAFE_SEGMENT = re.compile(r"[a-z0-9_-]{0,32}")
_ACCEPTABLE = re.compile(rb"[A-Za-z0-9._-]{1,64}")

NOTHING_LOADED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": NOTHING_LOADED,
    "Cache-Control": "no-store",
}

# Of errors that FastAPI, Starlette and the middleware raise themselves: on resource paths, and on the others.
_KINDS_BY_STATUS = {
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    408: "TIMEOUT",
    413: "TOO_LARGE",
    415: "UNSUPPORTED",
}
_CODES_BY_STATUS = {404: "NOT_FOUND", **dict.fromkeys((405, 408, 413, 415), "VALIDATION_ERROR")}

# Every code of an error, in both forms.
ERROR_CODES = tuple(
    sorted(
        {*_KINDS_BY_STATUS.values(), *(row.code for row in ERROR_TABLE.values())}
        | {row.kind for row in ERROR_TABLE.values() if row.kind}
    )
)
CODE = (
    "The kind of error, for programs. The list has those of this version; others may be added: go by the status "
    "then. The aliases have `VALIDATION_ERROR` for 405, 409, 413 and 415, and `FORBIDDEN` for an exceeded plan."
)

# Facts that handlers put into the state of a request, for its log line.
FACTS_OF_HANDLERS = ("tenant", "query_id")

API_PREFIX = "/api/v1"
# Paths of the source documents below the prefix.
_ALIASES = f"{API_PREFIX}/search"

logger = logging.getLogger("toolscript.http")


def has_kinds(path: str) -> bool:
    """Return whether errors of a path have a code per kind; the aliases keep the codes of API-003."""
    return path.startswith(f"{API_PREFIX}/") and not (path == _ALIASES or path.startswith(f"{_ALIASES}/"))


def code_of_status(path: str, status: int) -> str:
    codes = _KINDS_BY_STATUS if has_kinds(path) else _CODES_BY_STATUS
    return codes.get(status, "INTERNAL_ERROR")


def new_query_id(request: Request) -> str:
    """Return the id of a search; it is in its answer, and in the log line of its request."""
    query_id = request.state.query_id = str(uuid.uuid4())
    return query_id


class RequestContext:
    """Middleware: gives a request its id and its log line, limits its body, and responds to unexpected errors.

    `larger` maps operations, such as `PUT /documents`, to a larger limit of the body.
    """

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BYTES, larger: Mapping[str, int] | None = None) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._larger = dict(larger or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = request_id_of(scope)
        # Created here, so that copies of the scope share it: handlers return facts about a request in it.
        scope.setdefault("state", {})
        token = current_request_id.set(request_id)
        try:
            max_bytes = self._larger.get(f"{scope['method']} {scope['path']}", self._max_bytes)
            await self._respond(scope, _Body(receive, max_bytes), _Response(send, request_id))
        finally:
            current_request_id.reset(token)

    async def _respond(self, scope: Scope, body: "_Body", response: "_Response") -> None:
        started = time.perf_counter()
        try:
            await self._app(scope, body.receive, response.send)
        except _TooLarge:
            headers = scope["state"].get("rate_headers", {})
            message = f"a request is at most {body.max_bytes >> 10} KiB"
            await response.fail(413, code_of_status(scope["path"], 413), message, headers)
        except Exception:
            logger.exception("unexpected error")
            await response.fail(500, "INTERNAL_ERROR", "something unexpected went wrong on our side")
        took_ms = round((time.perf_counter() - started) * 1000, 2)
        facts = {
            "method": scope["method"],
            "path": _logged_path(scope),
            "status": response.status,
            "took_ms": took_ms,
            "client": _client(scope),
            "response_bytes": response.sent,
        }
        facts |= {name: scope["state"][name] for name in FACTS_OF_HANDLERS if scope["state"].get(name)}
        logger.info("request", extra=facts)


class _TooLarge(BaseException):
    """BaseException, so that exception handlers do not turn it into their own response."""


class _Body:
    """Forwards the body up to a limit; a longer one is a mistake or an attack."""

    def __init__(self, receive: Receive, max_bytes: int) -> None:
        self._receive = receive
        self.max_bytes = max_bytes
        self._received = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body", b""))
        if self._received > self.max_bytes:
            raise _TooLarge
        return message


class _Response:
    """Adds the request id to the response, and records its status and size."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id = request_id
        self.status: int | None = None
        self.sent = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", []), (HEADER, self._request_id.encode())]
        await self._send(message)
        self.sent += len(message.get("body", b""))

    async def fail(self, status: int, code: str, message: str, extra: Mapping[str, str] | None = None) -> None:
        """Send an error response, unless one has started. `extra` are further headers, such as rate limits."""
        if self.status is not None:
            return
        body = json.dumps(envelope(code, message)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in (extra or {}).items()]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def _logged_path(scope: Scope) -> str:
    """Return the route's template: a path may contain a document's id, which may reveal its tenant.

    Without a route, anything but a harmless first segment is elided.
    """
    route = scope.get("route")
    template = getattr(route, "path_format", None) or getattr(route, "path", None)
    if template:
        return str(template)
    first, *more = str(scope["path"]).lstrip("/").split("/", 1)
    return f"/{first if _SAFE_SEGMENT.fullmatch(first) else ELIDED}{f'/{ELIDED}' if more else ''}"


def _client(scope: Scope) -> str:
    """Return the client's address; behind a proxy, as the server trusts its headers."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def request_id_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == HEADER and _ACCEPTABLE.fullmatch(value):
            return str(value.decode())
    return uuid.uuid4().hex


class SecurityHeaders:
    """Middleware that adds security headers, unless a route has set them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers if scope["type"] == "http" else send)
