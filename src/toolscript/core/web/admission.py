"""Admission control: limits concurrent requests, shares their places fairly by client, and rejects the rest."""

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

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscript.core.errors import ERROR_TABLE, ToolscriptError, TooManyRequests, envelope_of
from toolscript.core.fair_queue import Company, FairQueue
from toolscript.core.retrieval.deadline import RETRY_AFTER_SECONDS, overloaded
from toolscript.core.web.clients import NOBODY, PLACE, Client, Clients

MIN_CONCURRENT = 8
# Beside others, what a client has while the event loop has no time left: more of its requests at once would not be
# answered sooner, and those of others would wait for them.
SHARE = 2
COMPANY_SECONDS = 5.0
BUSY_SECONDS, SHARE_INCREASE = 0.002, 1.25
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

# Keys of the scope's state, where the server stores facts about a request before its task runs.
TICKET, PARSED_AT = "admission_ticket", "parsed_at"
BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})

logger = logging.getLogger(__name__)


class QueueTimeout(Exception):
    """A request was not admitted within its maximum wait."""


@dataclass(frozen=True)
class Limits:
    """`max_queue_seconds` 0: no queue, but for a `burst`: so many at once are taken however slow they are;
    none of them waits longer than `burst_seconds`. `shares`: beside others, a client has a share of the places."""

    concurrent: int
    max_queue_seconds: float = 0.0
    burst: int = 0
    burst_seconds: float = 0.0
    shares: bool = False

    @property
    def longest_wait_seconds(self) -> float:
        return max(self.burst_seconds, MAX_WAIT * self.max_queue_seconds)


class Gate:
    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._now = now
        self._minimum = min(MIN_CONCURRENT, limits.concurrent)
        self._limit = float(self._minimum)
        self._queue: FairQueue[Client, Ticket] = FairQueue(self._most)
        self._company: Company[Client] = Company(COMPANY_SECONDS, now)
        self._share = float(SHARE)
        # Moving average of the time between the ends of two requests, while all places are taken or others wait.
        self._seconds_each = FIRST_GUESS_SECONDS
        self._last_end: float | None = None

    @property
    def running(self) -> int:
        return self._queue.running

    @property
    def waiting(self) -> int:
        return self._queue.waiting

    @property
    def limit(self) -> int:
        """Current concurrency limit."""
        return int(self._limit)

    @property
    def expected_wait(self) -> float:
        """Expected wait of a request that arrives now, behind all others."""
        has_place = self.running < self.limit and not self.waiting
        return 0.0 if has_place else (self.waiting + 1) * self._seconds_each

    @property
    def is_full(self) -> bool:
        """Return whether a request that arrives now is rejected, unless another gives way to it."""
        taken = max(self.limits.concurrent, self.limits.burst)
        return self.running + self.waiting >= taken and self.expected_wait > self.limits.max_queue_seconds

    def refuses(self, client: Client) -> bool:
        return not self._may_begin(client) and self.is_full and self._queue.gives_way(client) is None

    def has_all_it_may(self, client: Client) -> bool:
        """Return whether as many requests of the client run as its plan allows."""
        return client.at_once is not None and self._queue.running_of(client) >= client.at_once

    def _most(self, client: Client) -> int | None:
        if not self.limits.shares or not self._company.has_others_than(client):
            return client.at_once
        share = int(self._share)
        return share if client.at_once is None else min(share, client.at_once)

    def adapt(self, late_seconds: float) -> None:
        """Adapt the limit and the share of a client to the event loop's lag; called periodically."""
        if late_seconds > BUSY_SECONDS:
            self._share = float(SHARE)
        elif self.waiting:
            self._share = min(self.limits.concurrent, self._share * SHARE_INCREASE)
        if late_seconds > LATE_SECONDS or (not self.waiting and self.running < self._limit / 2):
            self._limit = max(self._minimum, self._limit * DECREASE)
        elif self.waiting:
            self._limit = min(self.limits.concurrent, self._limit * INCREASE)
            self._admit_waiting()

    def enter(self, client: Client = NOBODY) -> "Ticket | None":
        """Return a ticket that runs or waits, or None if rejected. The ticket must be released."""
        self._company.came(client)
        if self._may_begin(client):
            self._queue.begin(client)
            return Ticket(self, client, waits=False)
        if self.is_full:
            last = self._queue.gives_way(client)
            if last is None:
                return None
            last.give_way()
        ticket = Ticket(self, client, waits=True)
        self._queue.wait(client, ticket)
        return ticket

    def _may_begin(self, client: Client) -> bool:
        """Within the hard limit a client's only request begins at once: what others sent is no reason to wait."""
        is_first = not self._queue.running_of(client) and self.running < self.limits.concurrent
        return (self.running < self.limit or is_first) and not self._queue.has_all_it_may(client)

    def admit_now(self, ticket: "Ticket") -> None:
        """Admit a ticket within the hard limit, although the adapted limit would let it wait."""
        client = ticket.client
        may = self.running < self.limits.concurrent and not self._queue.has_all_it_may(client)
        if may and self._queue.holds(client, ticket):
            self._queue.leave(client, ticket)
            self._queue.begin(client)
            ticket.begin()

    def move(self, ticket: "Ticket", client: Client) -> None:
        """Count a request that runs for another client."""
        self._company.is_known_as(ticket.client, client)
        self._queue.end(ticket.client)
        self._queue.begin(client)

    def leave(self, ticket: "Ticket", *, has_begun: bool) -> None:
        if not has_begun:
            self._queue.leave(ticket.client, ticket)
            return
        self._measure(self._now())
        self._queue.end(ticket.client)
        self._admit_waiting()

    def _measure(self, now: float) -> None:
        if self.running < self.limit and not self.waiting:
            self._last_end = None
            return
        if self._last_end is not None:
            self._seconds_each += SMOOTHING * (now - self._last_end - self._seconds_each)
        self._last_end = now

    def _admit_waiting(self) -> None:
        while self.running < self.limit and (ticket := self._queue.next()) is not None:
            ticket.begin()


class Ticket:
    """Place of one request. `release` is idempotent."""

    __slots__ = ("_gate", "_released", "_turn", "client", "waits")

    def __init__(self, gate: Gate, client: Client, *, waits: bool) -> None:
        self._gate = gate
        self.client = client
        self.waits = waits
        self._turn = asyncio.get_running_loop().create_future() if waits else None
        self._released = False

    def begin(self) -> None:
        self.waits = False
        self._end_turn()

    def give_way(self) -> None:
        """End the wait of a request that has the last place of the longest line."""
        self.release()
        self._end_turn()

    def _end_turn(self) -> None:
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)

    async def turn(self) -> None:
        """Wait until the request may run. Raise QueueTimeout when it gave way, or the wait was far too long."""
        if self._turn is None or (self._turn.done() and not self.waits):
            return
        limits = self._gate.limits
        seconds = limits.max_queue_seconds
        for part in (seconds, limits.longest_wait_seconds - seconds):
            try:
                async with asyncio.timeout(part):
                    await asyncio.shield(self._turn)
            except TimeoutError:
                self._gate.admit_now(self)
            if not self.waits:
                return
            if self._turn.done():
                break
        self.release()
        raise QueueTimeout

    def counts_as(self, client: Client) -> None:
        if self.waits or self._released or client == self.client:
            return
        self._gate.move(self, client)
        self.client = client

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
        self,
        reads: Limits,
        writes: Limits,
        managing: Limits,
        on_refused: OnRefused | None = None,
        clients: Clients | None = None,
    ) -> None:
        self.clients = clients or Clients()
        self.gates = {Kind.READ: Gate(reads), Kind.WRITE: Gate(writes), Kind.MANAGE: Gate(managing)}
        self._on_refused = on_refused
        self._unlogged = 0
        self._logged_at = float("-inf")

    def is_searching(self) -> bool:
        """Return whether a search or another read runs."""
        return self.gates[Kind.READ].running > 0

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


def refusal(path: str, at_once: int | None, *headers: tuple[bytes, bytes]) -> tuple[Message, Message]:
    """Return the two ASGI messages of the response. `at_once`: the limit that the client itself has reached."""
    error = overloaded() if at_once is None else too_many_at_once(at_once)
    body = _body(error, is_mcp=path == MCP_PATH)
    response_headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"retry-after", b"%d" % RETRY_AFTER_SECONDS),
        *headers,
    ]
    return (
        {"type": "http.response.start", "status": _status_of(error), "headers": response_headers},
        {"type": "http.response.body", "body": body},
    )


def too_many_at_once(at_once: int) -> TooManyRequests:
    return TooManyRequests(
        f"the plan allows {at_once} requests at once, and as many are under way",
        hint="send the next one when one of them is answered",
        details={"retry_after_seconds": RETRY_AFTER_SECONDS},
    )


def _status_of(error: ToolscriptError) -> int:
    return ERROR_TABLE[type(error)].http_status


def _body(error: ToolscriptError, *, is_mcp: bool) -> bytes:
    """Return the body; MCP clients get it inside a JSON-RPC error, see server/mcp.py."""
    body = envelope_of(error)
    if is_mcp:
        message = f"{error.message}. {error.hint}"
        body = {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": _status_of(error), "message": message, "data": body},
        }
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
        state = scope.setdefault("state", {})
        parsed_at = state.pop(PARSED_AT, None) or time.perf_counter()
        arriving = _Arriving(self._admission, kind, scope, state.pop(TICKET, None), receive)
        state[PLACE] = arriving
        try:
            if not has_body(scope):
                await arriving.admit()
            await self._app(scope, arriving.receive, send)
        except _Refused:
            for message in refusal(scope["path"], arriving.limit_reached):
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

    def __init__(
        self, admission: Admission, kind: Kind, scope: Scope, ticket: Ticket | None, receive: Receive
    ) -> None:
        self._gate = admission.gates[kind]
        self._clients = admission.clients
        self._scope = scope
        self._client = admission.clients.of(scope)
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
        self._ticket = self._ticket or self._gate.enter(self._client)
        if self._ticket is None:
            raise _Refused
        if self._ticket.waits:
            await self._wait(self._ticket)

    @property
    def limit_reached(self) -> int | None:
        return self._client.at_once if self._gate.has_all_it_may(self._client) else None

    def counts_as(self, client: Client, *, has_token: bool) -> None:
        """Raise TooManyRequests where a client that only now is known has reached its limit."""
        self._client = client
        if has_token:
            self._clients.learn(self._scope, client)
        if self._ticket is None or self._ticket.client == client:
            return
        if client.at_once is not None and self._gate.has_all_it_may(client):
            raise too_many_at_once(client.at_once)
        self._ticket.counts_as(client)

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
