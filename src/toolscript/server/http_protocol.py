"""HTTP connections of `serve`: refusals are cheap, and slow clients cannot hold a connection.

A refusal is sent from the parser, not from a task: while searches keep the event loop busy, a task would wait for
all of them.
"""

import asyncio
import json
import signal
import socket
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, cast

import uvicorn
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from toolscript.core.errors import envelope
from toolscript.core.health import CheckHealth, Health, PartHealth
from toolscript.core.web.admission import PARSED_AT, TICKET, UPLOADS, Admission, Kind, Ticket, kind_of, refusal
from toolscript.core.web.request_context import HEADER, request_id_of

# File descriptors for anything but clients: engines, logs, libraries.
OTHER_FILES = 128
# A body may take longer if at least this much of it arrives in each `receive_seconds`.
PROGRESS_BYTES = 64 * 1024
# Of the parser; it refuses longer ones.
MAX_URL_BYTES = 65_535

# Under `nohup` SIGHUP is ignored, and stays ignored.
ENDING_SIGNALS = tuple(getattr(signal, name) for name in ("SIGHUP", "SIGTERM", "SIGINT") if hasattr(signal, name))


@dataclass
class Connections:
    """Limits of one process. `waiting`: connections that wait for their client, oldest first."""

    admission: Admission
    max_connections: int
    receive_seconds: float
    waiting: "OrderedDict[GuardedProtocol, None]" = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self.max_connections = max(1, min(self.max_connections, _open_files_limit() - OTHER_FILES))

    def protocol(self, config: Config, server_state: ServerState, **options: Any) -> "GuardedProtocol":
        """Return a protocol; uvicorn calls this for each connection."""
        return GuardedProtocol(self, config, server_state, **options)

    def make_room(self, open_now: int) -> bool:
        """Return whether one more connection may be open, dropping the one that has waited longest if needed.

        A new client is about to send; one that has waited for long is not.
        """
        if open_now <= self.max_connections:
            return True
        if not self.waiting:
            return False
        next(iter(self.waiting)).drop()
        return True


class GuardedProtocol(HttpToolsProtocol):
    def __init__(
        self, connections: Connections, config: Config, server_state: ServerState, **options: Any
    ) -> None:
        super().__init__(config, server_state, **options)
        self._guarded = connections
        self._timer: asyncio.TimerHandle | None = None
        self._progress = 0
        self._begun: deque[tuple[RequestResponseCycle, ASGI3Application]] = deque()
        self._is_busy = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self._guarded.make_room(len(self.connections)):
            self._await_sender()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._sender_is_done()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Start parsed requests only after parsing: then it is known whether their bodies have arrived."""
        self._is_busy = True
        try:
            super().data_received(data)
        finally:
            self._is_busy = False
        self._begin_all()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_sender()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if (self.scope["method"], self.scope.get("path")) in UPLOADS:
            self._sender_is_done()
        else:
            self._await_sender()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._progress += len(body)
        if self._progress >= PROGRESS_BYTES and self._timer is not None:
            self._await_sender()

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._sender_is_done()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline and not self.transport.is_closing():
            # Idle until the next request: first to be dropped when connections run out.
            self._guarded.waiting.setdefault(self)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002, of uvicorn
        """Refuse what the parser cannot read: the body is an error as of any route."""
        self._sender_is_done()
        hint = f"send valid HTTP/1.1, with a URL of at most {MAX_URL_BYTES:,} bytes"
        self.transport.write(_raw_response("400 Bad Request", "this is no HTTP request that can be read", hint))
        self.transport.close()

    def drop(self) -> None:
        self._sender_is_done()
        self.connections.discard(self)
        self.transport.abort()

    def _await_sender(self) -> None:
        """Start the timeout: once for the headers, then again for the body."""
        self._sender_is_done()
        self._progress = 0
        self._guarded.waiting[self] = None
        self._timer = self.loop.call_later(self._guarded.receive_seconds, self._sender_is_late)

    def _sender_is_done(self) -> None:
        self._guarded.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sender_is_late(self) -> None:
        is_answered = self.cycle is None or self.cycle.response_complete
        if not is_answered and self.cycle.response_started:
            # The next request arrives slowly while the response to the last one is still being sent.
            self._await_sender()
            return
        self._sender_is_done()
        # No response where the client sent nothing, or where the request already has its response.
        has_begun = self.scope is not None and (not is_answered or "method" not in self.scope)
        if has_begun and not self.transport.is_closing():
            self.transport.write(_timeout_response(self._guarded.receive_seconds))
        self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        cycle.scope["state"][PARSED_AT] = time.perf_counter()
        self._begun.append((cycle, app))
        self._begin_all()

    def _begin_all(self) -> None:
        """Start requests in a loop, not recursively: each refusal starts the next request of a long pipeline."""
        if self._is_busy:
            return
        self._is_busy = True
        try:
            while self._begun:
                self._begin(*self._begun.popleft())
        finally:
            self._is_busy = False

    def _begin(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        kind = kind_of(cycle.scope["method"], cycle.scope["path"])
        if kind is None:
            super()._start_asgi_task(cycle, app)
            return
        admission = self._guarded.admission
        gate, client = admission.gates[kind], admission.clients.of(cast("dict[str, Any]", cycle.scope))
        # A request whose body is still arriving takes a ticket later, see core/web/admission.py.
        ticket = None if cycle.more_body else gate.enter(client)
        is_refused = gate.refuses(client) if cycle.more_body else ticket is None
        if is_refused and not self.flow.write_paused:
            self._refuse(cycle, kind, client.at_once if gate.has_all_it_may(client) else None)
        elif ticket is None:
            super()._start_asgi_task(cycle, app)
        else:
            cycle.scope["state"][TICKET] = ticket
            super()._start_asgi_task(cycle, _releasing(app, ticket))

    def _refuse(self, cycle: RequestResponseCycle, kind: Kind, at_once: int | None) -> None:
        scope = cast("dict[str, Any]", cycle.scope)
        answer = refusal(
            scope["path"],
            at_once,
            (HEADER, request_id_of(scope).encode()),
            (b"x-content-type-options", b"nosniff"),
        )

        async def refuse(_scope: Any, _receive: Any, send: Any) -> None:
            for message in answer:
                await send(message)

        refusing = cycle.run_asgi(refuse)
        try:
            # It never suspends: the transport buffers what is sent.
            refusing.send(None)
        except StopIteration:
            pass
        finally:
            refusing.close()
        self._guarded.admission.refused(kind, scope["path"], time.perf_counter() - scope["state"][PARSED_AT])


def _releasing(app: ASGI3Application, ticket: Ticket) -> ASGI3Application:
    """Release the ticket whatever happens: a ticket that is not released is lost for good."""

    async def run(scope: Any, receive: Any, send: Any) -> None:
        try:
            await app(scope, receive, send)
        finally:
            ticket.release()

    return run


def _open_files_limit() -> int:
    """Return the limit of open files."""
    try:
        import resource
    except ImportError:
        return sys.maxsize
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if files == resource.RLIM_INFINITY else files


def _timeout_response(seconds: float) -> bytes:
    message = f"the request did not arrive within {seconds:g} seconds"
    return _raw_response("408 Request Timeout", message, "send the request again, without pauses")


def _raw_response(status: str, message: str, hint: str) -> bytes:
    body = json.dumps(envelope("VALIDATION_ERROR", message, {"hint": hint})).encode()
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}connection: close\r\n\r\n".encode() + body


@dataclass
class Draining:
    """Whether this process is shutting down."""

    begun: bool = False

    def seen_by(self, check_health: CheckHealth) -> CheckHealth:
        async def check() -> Health:
            if self.begun:
                return Health({"serving": PartHealth(ok=False, needed=True, note="shutting down")}, serves=False)
            return await check_health()

        return check


class Server(uvicorn.Server):
    """Keeps serving for `drain_seconds` after the first signal; stops at once after a second one or Ctrl+C."""

    def __init__(
        self, config: uvicorn.Config, draining: Draining, drain_seconds: float, on_started: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._draining = draining
        self._drain_seconds = drain_seconds
        self._on_started = on_started
        self._stops_at: float | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._draining.begun = True
        if self._stops_at is not None or sig == signal.SIGINT or not self._drain_seconds:
            super().handle_exit(sig, frame)
        else:
            self._stops_at = time.monotonic() + self._drain_seconds

    async def on_tick(self, counter: int) -> bool:
        if self._stops_at is not None and time.monotonic() >= self._stops_at:
            self.should_exit = True
        return await super().on_tick(counter)

    def listen_to_signals(self) -> None:
        """Handle signals from now on. uvicorn does so later, ignores SIGHUP, and re-raises the signal."""
        for sign in ENDING_SIGNALS:
            if signal.getsignal(sign) is not signal.SIG_IGN:
                signal.signal(sign, self.handle_exit)
