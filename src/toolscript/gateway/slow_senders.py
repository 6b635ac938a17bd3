"""Ends connections that wait for their client: a request that does not arrive in time, or the first of too many.

Every local program can connect, also one that may not ask anything.
"""

import asyncio
import json
import sys
from collections import OrderedDict
from typing import Any

from uvicorn import Config

from toolscript.core.errors import envelope

# How long a request may take to arrive, on this machine.
ARRIVAL_SECONDS = 10.0
# Files for anything but clients: servers, caches, logs.
OTHER_FILES = 256
MAX_CONNECTIONS = 4_096


class Senders:
    """The connections of a gateway that wait for their client, the longest first."""

    def __init__(self, seconds: float = ARRIVAL_SECONDS) -> None:
        self.seconds = seconds
        self.most = max(16, min(MAX_CONNECTIONS, _most_files() - OTHER_FILES))
        self.waiting: OrderedDict[Any, None] = OrderedDict()

    def watch(self, config: Config) -> None:
        """Have a server of this config end them, whichever of uvicorn's parsers it uses."""
        config.load()
        config.http_protocol_class = type("Watched", (_Watched, config.http_protocol_class), {"senders": self})


class _Watched:
    """What is added to uvicorn's protocol of a connection."""

    senders: Senders
    _late: asyncio.TimerHandle | None = None

    def connection_made(self: Any, transport: Any) -> None:
        super().connection_made(transport)  # type: ignore[misc]
        self._await_sender()
        if len(self.connections) > self.senders.most:
            next(iter(self.senders.waiting)).end_sender(refuses=False)

    def connection_lost(self: Any, exc: Exception | None) -> None:
        self._sender_is_done()
        super().connection_lost(exc)  # type: ignore[misc]

    def data_received(self: Any, data: bytes) -> None:
        super().data_received(data)  # type: ignore[misc]
        cycle = self.cycle
        if cycle is None or cycle.more_body or cycle.response_complete:
            self._await_sender()
        else:
            self._sender_is_done()

    def _await_sender(self: Any) -> None:
        if self._late is None:
            self._late = self.loop.call_later(self.senders.seconds, self.end_sender)
            self.senders.waiting[self] = None

    def _sender_is_done(self: Any) -> None:
        self.senders.waiting.pop(self, None)
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def end_sender(self: Any, *, refuses: bool = True) -> None:
        self._sender_is_done()
        cycle = self.cycle
        if not refuses:
            self.transport.abort()
            return
        if cycle is not None and not (cycle.response_started or self.transport.is_closing()):
            self.transport.write(_refusal(self.senders.seconds))
        self.transport.close()


def _most_files() -> int:
    try:
        import resource
    except ImportError:
        return sys.maxsize
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if files == resource.RLIM_INFINITY else files


def _refusal(seconds: float) -> bytes:
    message = f"the request did not arrive within {seconds:g} seconds"
    body = json.dumps(envelope("VALIDATION_ERROR", message, {"hint": "send the request again, without pauses"}))
    head = f"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}connection: close\r\n\r\n{body}".encode()
