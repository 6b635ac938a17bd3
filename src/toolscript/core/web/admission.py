"""Admission control: limits concurrent requests, queues some and rejects the rest."""

import asyncio
import json
import logging
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscript.core.errors import ERROR_TABLE, Overloaded, envelope_of
from toolscript.core.retrieval.deadline import RETRY_AFTER_SECONDS, overloaded

MIN_CONCURRENT = 8
LATE_SECONDS = 0.02
DECREASE, INCREASE = 0.8, 1.5
# Assumed time between the ends of two requests, before the first measurement.
FIRST_GUESS_SECONDS = 0.02
SMOOTHING = 0.1
# The expected wait may be wrong; no request waits longer than this multiple of the limit.
MAX_WAIT = 4.0
ALWAYS_ADMITTED = frozenset({"/livez", "/readyz", "/search/health", "/metrics"})
UPLOADS = frozenset({("PUT", "/api/v1/documents"), ("PUT", "/documents")})
READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MCP_PATH = "/mcp"
# What people administer: they must get through when searches do not.
MANAGED = re.compile(
    r"/api/v1/(?:audit|changes|curation|jobs|skills|sources|suggestions|tenants|tool_searches)(?:/|$)"
)
# Searches of every resource, and of the aliases.
SEARCH_SUFFIXES = ("/search", "/search_knowledge")

# A log line per rejection would cost more than the rejection, under overload.
LOG_EVERY_SECONDS = 1.0
ADAPT_EVERY_SECONDS = 0.05

STATUS = ERROR_TABLE[Overloaded].http_status

# Keys of the scope's state, where the server stores facts about a request before its task runs.
TICKET, PARSED_AT = "admission_ticket", "parsed_at"
BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})

logger = logging.getLogger(__name__)


class QueueTimeout(Exception):
    """A request was not admitted within its maximum wait."""


@dataclass(frozen=True)
class Limits:
    """`max_queue_seconds` 0: no queue."""

    concurrent: int
    max_queue_seconds: float = 0.0


class Gate:
    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._now = now
        self._minimum = min(MIN_CONCURRENT, limits.concurrent)
        self._limit = float(self._minimum)
        self._running = 0
        # A dict keeps the order, and removes a cancelled ticket in constant time.
        self._waiting: dict[Ticket, None] = {}
        # Moving average of the time between the ends of two requests at full concurrency.
        self._seconds_each = FIRST_GUESS_SECONDS
        self._last_end: float | None = None
        self._full_at = float("-inf")

    @property
    def running(self) -> int:
        return self._running

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def limit(self) -> int:
        """Current concurrency limit."""
        return int(self._limit)

    @property
    def expected_wait(self) -> float:
        """Expected wait of a request that arrives now."""
        return 0.0 if self._running < self.limit else (len(self._waiting) + 1) * self._seconds_each

    @property
    def is_full(self) -> bool:
        """Return whether a request that arrives now is rejected."""
        admitted = self._running + len(self._waiting)
        return admitted >= self.limits.concurrent and self.expected_wait > self.limits.max_queue_seconds

    def was_full_within(self, seconds: float) -> bool:
        """Return whether the gate was full for a request within the last `seconds`."""
        return self._now() - self._full_at <= seconds

    def adapt(self, late_seconds: float) -> None:
        """Adapt the limit to the event loop's lag; called periodically."""
        if late_seconds > LATE_SECONDS or (not self._waiting and self._running < self._limit / 2):
            self._limit = max(self._minimum, self._limit * DECREASE)
        elif self._waiting:
            self._limit = min(self.limits.concurrent, self._limit * INCREASE)
            self._admit_waiting()

    def enter(self) -> "Ticket | None":
        """Return a ticket that runs or waits, or None if rejected. The ticket must be released."""
        if self._running < self.limit:
            self._running += 1
            return Ticket(self, waits=False)
        if self.is_full:
            self._full_at = self._now()
            return None
        ticket = Ticket(self, waits=True)
        self._waiting[ticket] = None
        return ticket

    def admit_now(self, ticket: "Ticket") -> None:
        """Admit a ticket within the hard limit, although the adapted limit would let it wait."""
        if ticket in self._waiting and self._running < self.limits.concurrent:
            del self._waiting[ticket]
            self._running += 1
            ticket.begin()

    def leave(self, ticket: "Ticket", *, has_begun: bool) -> None:
        if not has_begun:
            self._waiting.pop(ticket, None)
            return
        self._measure(self._now())
        self._running -= 1
        self._admit_waiting()

    def _measure(self, now: float) -> None:
        if self._running < self.limit:
            self._last_end = None
            return
        if self._last_end is not None:
            self._seconds_each += SMOOTHING * (now - self._last_end - self._seconds_each)
        self._last_end = now

    def _admit_waiting(self) -> None:
        while self._waiting and self._running < self.limit:
            first = next(iter(self._waiting))
            del self._waiting[first]
            self._running += 1
            first.begin()


class Ticket:
    """Place of one request. `release` is idempotent."""

    __slots__ = ("_gate", "_released", "_turn", "waits")

    def __init__(self, gate: Gate, *, waits: bool) -> None:
        self._gate = gate
        self.waits = waits
        self._turn = asyncio.get_running_loop().create_future() if waits else None
        self._released = False

    def begin(self) -> None:
        self.waits = False
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)

    async def turn(self) -> None:
        """Wait until the request may run. Raise QueueTimeout when the expected wait was far too short."""
        if self._turn is None or self._turn.done():
            return
        seconds = self._gate.limits.max_queue_seconds
        for part in (seconds, seconds * (MAX_WAIT - 1)):
            try:
                async with asyncio.timeout(part):
                    await asyncio.shield(self._turn)
            except TimeoutError:
                self._gate.admit_now(self)
            if not self.waits:
                return
        self.release()
        raise QueueTimeout

    def release(self) -> None:
        if self._released:
            return
        self._released = True
        self._gate.leave(self, has_begun=not self.waits)


class Kind(StrEnum):
    READ = "read"
    WRITE = "write"
    MANAGE = "manage"


def kind_of(method: str, path: str) -> Kind | None:
    """Return the gate of a request; None if it needs none. A document's id may end like a search, so POST only."""
    if path in ALWAYS_ADMITTED or (method, path) in UPLOADS:
        return None
    is_search = method == "POST" and path.endswith(SEARCH_SUFFIXES)
    # Agents list skills as well.
    if not is_search and MANAGED.match(path) and not (method == "GET" and path == "/api/v1/skills"):
        return Kind.MANAGE
    return Kind.READ if is_search or method in READING_METHODS or path == MCP_PATH else Kind.WRITE


# Arguments: kind, path, and the seconds from the parsed request to the response.
OnRefused = Callable[[Kind, str, float], None]


class Admission:
    def __init__(
        self, reads: Limits, writes: Limits, managing: Limits, on_refused: OnRefused | None = None
    ) -> None:
        self.gates = {Kind.READ: Gate(reads), Kind.WRITE: Gate(writes), Kind.MANAGE: Gate(managing)}
        self._on_refused = on_refused
        self._unlogged = 0
        self._logged_at = float("-inf")

    @asynccontextmanager
    async def adapting(self) -> "AsyncIterator[Admission]":
        """Adapt the limits to the event loop's lag while the context is open."""
        task = asyncio.create_task(self._adapt())
        try:
            yield self
        finally:
            task.cancel()

    async def _adapt(self) -> None:
        while True:
            due = time.monotonic() + ADAPT_EVERY_SECONDS
            await asyncio.sleep(ADAPT_EVERY_SECONDS)
            late = time.monotonic() - due
            for gate in self.gates.values():
                gate.adapt(late)

    def is_overloaded(self, seconds: float) -> bool:
        """Return whether the gate of searches was full within the last `seconds`."""
        return self.gates[Kind.READ].was_full_within(seconds)

    def refused(self, kind: Kind, path: str, seconds: float) -> None:
        if self._on_refused is not None:
            self._on_refused(kind, path, seconds)
        self._unlogged += 1
        now = time.monotonic()
        if now - self._logged_at >= LOG_EVERY_SECONDS:
            gate = self.gates[kind]
            facts = {
                "kind": kind.value,
                "refused": self._unlogged,
                "running": gate.running,
                "waiting": gate.waiting,
                "limit": gate.limit,
            }
            logger.warning("overloaded: requests are refused", extra=facts)
            self._unlogged, self._logged_at = 0, now


def refusal(path: str, *headers: tuple[bytes, bytes]) -> tuple[Message, Message]:
    """Return the two ASGI messages of the response."""
    body = _body(is_mcp=path == MCP_PATH)
    response_headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"retry-after", b"%d" % RETRY_AFTER_SECONDS),
        *headers,
    ]
    return (
        {"type": "http.response.start", "status": STATUS, "headers": response_headers},
        {"type": "http.response.body", "body": body},
    )


@cache
def _body(*, is_mcp: bool) -> bytes:
    """Return the body; MCP clients get it inside a JSON-RPC error, see server/mcp.py."""
    error = overloaded()
    body = envelope_of(error)
    if is_mcp:
        message = f"{error.message}. {error.hint}"
        body = {"jsonrpc": "2.0", "id": None, "error": {"code": STATUS, "message": message, "data": body}}
    return json.dumps(body).encode()


class Admitted:
    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = kind_of(scope["method"], scope["path"]) if scope["type"] == "http" else None
        if kind is None:
            await self._app(scope, receive, send)
            return
        state = scope.get("state", {})
        parsed_at = state.pop(PARSED_AT, None) or time.perf_counter()
        arriving = _Arriving(self._admission.gates[kind], state.pop(TICKET, None), receive)
        try:
            if not has_body(scope):
                await arriving.admit()
            await self._app(scope, arriving.receive, send)
        except _Refused:
            for message in refusal(scope["path"]):
                await send(message)
            self._admission.refused(kind, scope["path"], time.perf_counter() - parsed_at)
        except _Gone:
            # The client has disconnected: no response reaches it.
            await send({"type": "http.response.start", "status": 499, "headers": []})
            await send({"type": "http.response.body"})
        finally:
            arriving.release()


def has_body(scope: Scope) -> bool:
    return any(name in BODY_HEADERS for name, _ in scope["headers"])


class _Refused(BaseException):
    """BaseException, so that exception handlers do not turn it into their own response."""


class _Gone(BaseException):
    """The client disconnected while it waited."""


class _Arriving:
    """A request whose body may still arrive."""

    def __init__(self, gate: Gate, ticket: Ticket | None, receive: Receive) -> None:
        self._gate = gate
        self._ticket = ticket
        self._receive = receive
        self._ahead: deque[Message] = deque()
        self._is_admitted = False

    async def receive(self) -> Message:
        if self._ahead:
            return self._ahead.popleft()
        message = await self._receive()
        if not self._is_admitted and message["type"] == "http.request" and not message.get("more_body"):
            await self.admit()
        return message

    async def admit(self) -> None:
        self._is_admitted = True
        self._ticket = self._ticket or self._gate.enter()
        if self._ticket is None:
            raise _Refused
        if self._ticket.waits:
            await self._wait(self._ticket)

    def release(self) -> None:
        if self._ticket is not None:
            self._ticket.release()

    async def _wait(self, ticket: Ticket) -> None:
        leaving = asyncio.ensure_future(self._wait_for_disconnect())
        turn = asyncio.ensure_future(ticket.turn())
        try:
            await asyncio.wait({leaving, turn}, return_when=asyncio.FIRST_COMPLETED)
            if not turn.done():
                leaving.result()
                raise _Gone
            turn.result()
        except QueueTimeout:
            raise _Refused from None
        finally:
            leaving.cancel()
            turn.cancel()

    async def _wait_for_disconnect(self) -> None:
        """Wait for the disconnect; buffer other messages, such as the empty one of a request without a body."""
        while (message := await self._receive())["type"] != "http.disconnect":
            self._ahead.append(message)
