"""A request of a client at a gateway in another process: its events, and what is done about them here."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from http.client import HTTPConnection
from typing import Any

from toolscript.core.errors import ServerRejected, ToolscriptError
from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.relay import Relay
from toolscript.gateway.model import Change
from toolscript.gateway.relay_paths import (
    ANSWERS,
    ASK,
    CHANGE,
    ERROR,
    ID,
    LOG,
    MAX_EVENTS,
    PROGRESS,
    REQUESTS_PATH,
    Events,
)

PostAnswer = Callable[[str, JsonObject], Awaitable[None]]


class ClosableEvents(Events):
    """Events of a connection that is closed to cancel the request."""

    def __init__(self) -> None:
        self._connection: HTTPConnection | None = None
        self._is_closed = False

    def opened(self, connection: HTTPConnection) -> None:
        """Note the connection; called on the thread."""
        self._connection = connection
        if self._is_closed:
            self.close()

    def close(self) -> None:
        """Close the connection, by which the gateway cancels the request."""
        self._is_closed = True
        if self._connection is not None and self._connection.sock is not None:
            with suppress(OSError):
                self._connection.sock.shutdown(socket.SHUT_RDWR)


class WatchEvents(ClosableEvents):
    """Tells of changes, on the event loop."""

    def __init__(self, tell: Callable[[Change], None]) -> None:
        super().__init__()
        self._tell = tell
        self._loop = asyncio.get_running_loop()

    def take(self, event: dict[str, Any]) -> None:
        if CHANGE in event:
            self._loop.call_soon_threadsafe(self._tell, Change(*event[CHANGE]))


class RelayedEvents(ClosableEvents):
    """Reads the events of one request on a thread; on the event loop the relay gets them, in their order."""

    def __init__(self, relay: Relay, post: PostAnswer) -> None:
        super().__init__()
        self._relay = relay
        self._post = post
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[JsonObject] = asyncio.Queue()
        self._asking: set[asyncio.Task[None]] = set()
        self._handling = asyncio.create_task(self._handle_events())

    def take(self, event: dict[str, Any]) -> None:
        self._loop.call_soon_threadsafe(self._put, event)

    def _put(self, event: JsonObject) -> None:
        """Note an event. Where many wait, progress and log messages are dropped."""
        if self._events.qsize() < MAX_EVENTS or not {PROGRESS, LOG} & event.keys():
            self._events.put_nowait(event)

    async def end(self) -> None:
        """Stop, after all that came before the end was handed on."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._events.join(), 1)
        tasks = [self._handling, *self._asking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _handle_events(self) -> None:
        stream_id = ""
        while True:
            event: Mapping[str, Any] = await self._events.get()
            stream_id = event.get(ID, stream_id)
            with suppress(ToolscriptError):
                await self._handle(event, stream_id)
            self._events.task_done()

    async def _handle(self, event: Mapping[str, Any], stream_id: str) -> None:
        if PROGRESS in event:
            await self._relay.on_progress(*event[PROGRESS])
        elif LOG in event:
            await self._relay.on_log(event[LOG])
        elif ASK in event:
            # Beside the others: a person takes a while.
            task = asyncio.create_task(self._answer(stream_id, event[ASK]["number"], event[ASK]["questions"]))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def _answer(self, stream_id: str, number: int, questions: Mapping[str, JsonObject]) -> None:
        body: JsonObject
        try:
            body = {ANSWERS: await self._relay.ask(questions)}
        except ServerRejected as error:
            body = {ERROR: {"code": error.details.get("code"), "message": error.message}}
        with suppress(ToolscriptError):
            await self._post(f"{REQUESTS_PATH}/{stream_id}/{number}", body)
