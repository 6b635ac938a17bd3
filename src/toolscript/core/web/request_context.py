"""Middleware: an id and a log line for every request, limits of its body, and security headers."""

import json
import logging
import re
import sys
import time
import uuid
from collections.abc import Mapping
from contextvars import ContextVar

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscript.core.errors import envelope

HEADER = b"x-request-id"
# For the logs of whatever runs on behalf of a request.
current_request_id: ContextVar[str] = ContextVar("request_id", default="")
MAX_BYTES = 64 * 1024
# For what is read piece by piece, and never held as a whole.
UNBOUNDED = sys.maxsize
UNSAID = "..."
_HARMLESS = re.compile(r"[a-z0-9_-]{0,32}")
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

logger = logging.getLogger("toolscript.http")


class RequestContext:
    """`larger` are operations, such as `PUT /documents`, whose requests may be longer than others."""

    def __init__(self, app: ASGIApp, max_bytes: int = MAX_BYTES, larger: Mapping[str, int] | None = None) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._larger = dict(larger or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = request_id_of(scope)
        # Made here, so that whoever copies the scope has the same: what is told of a request comes back by it.
        scope.setdefault("state", {})
        before = current_request_id.set(request_id)
        try:
            max_bytes = self._larger.get(f"{scope['method']} {scope['path']}", self._max_bytes)
            await self._answer(scope, _Body(receive, max_bytes), _Response(send, request_id))
        finally:
            current_request_id.reset(before)

    async def _answer(self, scope: Scope, body: "_Body", response: "_Response") -> None:
        started = time.perf_counter()
        try:
            await self._app(scope, body.receive, response.send)
        except _TooLarge:
            told = scope["state"].get("rate_headers", {})
            said = f"a request is at most {body.max_bytes >> 10} KiB"
            await response.fail(413, "VALIDATION_ERROR", said, told)
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
        if tenant := scope["state"].get("tenant"):
            facts["tenant"] = tenant
        logger.info("request", extra=facts)


class _TooLarge(BaseException):
    """Passes through handlers that would turn an exception into an answer of their own."""


class _Body:
    """Hands on what arrives, up to a limit: whatever is longer is a mistake or an attack."""

    def __init__(self, receive: Receive, max_bytes: int) -> None:
        self._receive = receive
        self.max_bytes = max_bytes
        self._seen = 0

    async def receive(self) -> Message:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self._seen > self.max_bytes:
            raise _TooLarge
        return message


class _Response:
    """What has been sent so far, and the id on it."""

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

    async def fail(self, status: int, code: str, message: str, told: Mapping[str, str] | None = None) -> None:
        """`told` are headers that every answer to this caller has."""
        if self.status is not None:
            return
        body = json.dumps(envelope(code, message)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(name.lower().encode(), value.encode()) for name, value in (told or {}).items()]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})


def _logged_path(scope: Scope) -> str:
    """A path may hold a document's id, and that whose document it is: the log has the route's template instead.

    Where there is no route, anything may be in it.
    """
    route = scope.get("route")
    template = getattr(route, "path_format", None) or getattr(route, "path", None)
    if template:
        return str(template)
    first, *more = str(scope["path"]).lstrip("/").split("/", 1)
    return f"/{first if _HARMLESS.fullmatch(first) else UNSAID}{f'/{UNSAID}' if more else ''}"


def _client(scope: Scope) -> str:
    """The address it came from; behind a proxy, what the server believes of its headers."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def request_id_of(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == HEADER and _ACCEPTABLE.fullmatch(value):
            return str(value.decode())
    return uuid.uuid4().hex


class SecurityHeaders:
    """A route that says otherwise is left alone."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, told if scope["type"] == "http" else send)
