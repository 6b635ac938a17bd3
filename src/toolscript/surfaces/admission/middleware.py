"""Admission of a request in the application: it takes its place when all of it has arrived, and waits there.

Not before: a client that sends slowly would hold a place meanwhile.
"""

import asyncio
import time
from collections import deque

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolscript.surfaces.admission.admission import Admission
from toolscript.surfaces.admission.gate import Gate, QueueTimeout, Ticket
from toolscript.surfaces.admission.refusals import refusal
from toolscript.surfaces.admission.table import kind_of

# Where the server puts, in a scope's state, what it knows of a request before its task runs.
TICKET, PARSED_AT = "admission_ticket", "parsed_at"
BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})


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
            # Nobody is there to be answered.
            await send({"type": "http.response.start", "status": 499, "headers": []})
            await send({"type": "http.response.body"})
        finally:
            arriving.release()


def has_body(scope: Scope) -> bool:
    return any(name in BODY_HEADERS for name, _ in scope["headers"])


class _Refused(BaseException):
    """Passes through handlers that would turn an exception into an answer of their own."""


class _Gone(BaseException):
    """The client left while it waited."""


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
        leaving = asyncio.ensure_future(self._until_gone())
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

    async def _until_gone(self) -> None:
        """Keeps what else is received: a request without a body still has a message that says so."""
        while (message := await self._receive())["type"] != "http.disconnect":
            self._ahead.append(message)
