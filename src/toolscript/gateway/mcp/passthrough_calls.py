"""Calls of tools that pass through `/mcp/{server}`, for the activity log: it reads them, and changes nothing."""

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from mcp_types import CLIENT_INFO_META_KEY
from starlette.datastructures import Headers

from toolscript.core.mcp_client.failures import CALL
from toolscript.core.mcp_client.model import ServerSpec
from toolscript.core.tokens import size_of
from toolscript.gateway.activity import Action, ActivityLog, Ending, Entry, Outcome, Ticket
from toolscript.gateway.callers import current_client
from toolscript.gateway.mcp.passthrough_events import EVENTS, EventReader, media_type
from toolscript.gateway.mcp.passthrough_messages import Requested, requested_in
from toolscript.gateway.recording import TOOL_ERROR, arguments_shown

SESSION_HEADER = "mcp-session-id"
RPC_ERROR, CANCELLED = "RPC_ERROR", "CANCELLED"
# Of an answer or event that is read; a larger one is a result, and its size is counted.
MAX_READ = 8 * 1024 * 1024
MAX_SESSIONS = 1_000


class PassthroughLog:
    """Notes the calls in requests. Servers with sessions learn the client's name from the first request alone."""

    def __init__(self, log: ActivityLog, *, arguments: bool = False) -> None:
        self._log = log
        self._arguments = arguments
        self._names: OrderedDict[str, str] = OrderedDict()

    def begin(self, spec: ServerSpec, headers: Headers, requested: Requested) -> "PassingCalls":
        """Begin an entry for each call in a request."""
        messages = [message for message in requested.messages if isinstance(message.get("params"), Mapping)]
        client = self._client(headers, messages)
        tickets = {}
        for message in messages:
            if message.get("method") == CALL and "id" in message:
                entry = self._entry(client, spec, message["params"])
                tickets[str(message["id"])] = self._log.begin(entry)
        is_first = any(message.get("method") == "initialize" for message in messages)
        calls = PassingCalls(
            self._log, tickets, (lambda session: self._remember(session, client)) if is_first else None
        )
        calls.client = client
        return calls

    def _entry(self, client: str, spec: ServerSpec, params: Mapping[str, object]) -> Entry:
        given = params.get("arguments")
        arguments = given if isinstance(given, Mapping) else {}
        shown = arguments_shown(arguments, spec) if self._arguments else None
        return Entry(
            Action.CALL, time.time(), client, spec.name, str(params.get("name", "")), size_of(arguments), shown
        )

    def _client(self, headers: Headers, messages: Sequence[Mapping[str, Any]]) -> str:
        for message in messages:
            params = message["params"]
            meta = params.get("_meta")
            info = params.get("clientInfo") or (
                meta.get(CLIENT_INFO_META_KEY) if isinstance(meta, Mapping) else None
            )
            if isinstance(info, Mapping) and info.get("name"):
                return str(info["name"])
        known = self._names.get(headers.get(SESSION_HEADER, ""))
        return known or headers.get("user-agent", "").partition(" ")[0].partition("/")[0] or current_client()

    def _remember(self, session: str, client: str) -> None:
        self._names[session] = client
        while len(self._names) > MAX_SESSIONS:
            self._names.popitem(last=False)


class PassingCalls:
    """The calls of one request, by their ids; completed by the messages of its answer."""

    def __init__(
        self, log: ActivityLog, tickets: dict[str, Ticket], on_session: Callable[[str], None] | None
    ) -> None:
        self._log = log
        self._tickets = tickets
        self._on_session = on_session
        self._clock = time.perf_counter()
        self.client = ""

    async def sent(self) -> None:
        """Wait until the entries are written: before the request is sent."""
        if self._tickets:
            await self._log.written()

    async def watched(
        self, headers: Mapping[str, str], status: int, chunks: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        """Yield the chunks of an answer, each after the calls that it answers are completed in the log."""
        if self._on_session is not None and SESSION_HEADER in headers:
            self._on_session(headers[SESSION_HEADER])
        if not self._tickets:
            async for chunk in chunks:
                yield chunk
        elif media_type(headers) == EVENTS:
            async for chunk in self._events(chunks):
                yield chunk
        else:
            async for chunk in self._body(status, chunks):
                yield chunk

    def end(self, outcome: Outcome = Outcome.UNKNOWN, error: str = CANCELLED, size: int = 0) -> None:
        """Complete what is left."""
        for ticket in self._tickets.values():
            self._log.finish(ticket, Ending(outcome, self._took_ms(), error, lambda: size))
        self._tickets.clear()

    async def _events(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        reader = EventReader(MAX_READ)
        async for chunk in chunks:
            if self._tickets:
                for event in reader.read(chunk):
                    if event.size > MAX_READ:
                        self.end(Outcome.OK, "", event.size)
                    for message in requested_in(event.data, strictly=False).messages:
                        self._complete(message, event.size)
                await self._log.written()
            yield chunk

    async def _body(self, status: int, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Hold the last chunk back until the log has the answer: without it the client has none."""
        held, read, size = b"", bytearray(), 0
        async for chunk in chunks:
            if held:
                yield held
            held, size = chunk, size + len(chunk)
            if len(read) <= MAX_READ:
                read += chunk
        for message in requested_in(bytes(read), strictly=False).messages if size <= MAX_READ else ():
            self._complete(message, size)
        if status >= HTTPStatus.BAD_REQUEST:
            # From 500 on, what stands before a server may answer while the server runs the call.
            was_refused = status < HTTPStatus.INTERNAL_SERVER_ERROR
            self.end(Outcome.REFUSED if was_refused else Outcome.UNKNOWN, f"HTTP_{status}", size)
        elif size > MAX_READ:
            self.end(Outcome.OK, "", size)
        await self._log.written()
        if held:
            yield held

    def _complete(self, message: Mapping[str, Any], size: int) -> None:
        ticket = self._tickets.pop(str(message.get("id")), None) if "method" not in message else None
        if ticket is None:
            return
        result = message.get("result")
        is_error = isinstance(result, Mapping) and result.get("isError") is True
        error = RPC_ERROR if "error" in message else TOOL_ERROR if is_error else ""
        outcome = Outcome.ERROR if error else Outcome.OK
        self._log.finish(ticket, Ending(outcome, self._took_ms(), error, lambda: size))

    def _took_ms(self) -> float:
        return round((time.perf_counter() - self._clock) * 1000, 3)
