"""How a newer gateway takes the place of an older one, under calls.

The new process asks the old one for its listening socket and its lock, which both come over a Unix socket: no
connection is refused, and at no moment another process could start a gateway. The old one accepts nothing more,
answers what it has accepted, and ends.
"""

import asyncio
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolscript.core.errors import InvalidRequest, SetupError, ToolscriptError, Unauthorized, Unavailable
from toolscript.core.own_files import is_own
from toolscript.gateway.api import HAS_CREDENTIAL
from toolscript.gateway.client import HANDOVER_PATH, GatewayClient
from toolscript.gateway.discovery import Record
from toolscript.gateway.record import RunningGateway

if TYPE_CHECKING:
    from uvicorn import Server

# How long the other process may take.
ANSWER_SECONDS = 10.0
# A connection that was accepted brings its request within this time.
ARRIVAL_SECONDS = 1.0
# A call may take as long as its client waits.
DRAIN_SECONDS = 660.0
LOOK_SECONDS = 0.05


@contextmanager
def taken_over(running: RunningGateway, token: str, path: Path) -> Iterator[tuple[Record, socket.socket]]:
    """Take lock and listening socket of a running gateway; `path` is that of its record."""
    listener, lock = _take(GatewayClient(running.url, token=token, blocks=True))
    record = Record(path, os.fdopen(lock, "ab"))
    try:
        with socket.socket(fileno=listener) as sock:
            sock.setblocking(False)
            yield record, sock
    finally:
        record.release()


def _take(client: GatewayClient) -> tuple[int, int]:
    # A short path: those of Unix sockets are limited to about a hundred characters.
    with tempfile.TemporaryDirectory(prefix="toolscript-") as folder, socket.socket(socket.AF_UNIX) as waiting:
        address = f"{folder}/s"
        try:
            waiting.bind(address)
            waiting.listen(1)
            waiting.settimeout(ANSWER_SECONDS)
            client.hand_over(address)
            other, _ = waiting.accept()
            with other:
                _, descriptors, _, _ = socket.recv_fds(other, 1, 2)
            listener, lock = descriptors
        except (ToolscriptError, OSError, ValueError) as error:
            raise SetupError(
                f"the running gateway cannot be replaced: {error}", hint="`toolscript gateway stop` stops it"
            ) from error
    return listener, lock


class Handover:
    """The part of the gateway that runs. `server` is set when it serves."""

    def __init__(self, listener: socket.socket, record: Record, closing: asyncio.Event | None = None) -> None:
        self._closing = closing or asyncio.Event()
        self._listener = listener
        self._record = record
        self._is_given = False
        self._ending: asyncio.Task[None] | None = None
        self.server: Server | None = None

    def route(self) -> Route:
        async def give(request: Request) -> Response:
            if not request.scope.get(HAS_CREDENTIAL):
                raise Unauthorized("to replace a gateway requires its user's own token", hint="ask the user")
            try:
                address = str(json.loads(await request.body())["socket"])
            except (ValueError, KeyError, TypeError, RecursionError):
                raise InvalidRequest("the body must name a socket", hint='send {"socket": "/path"}') from None
            if self.server is None or self._is_given:
                raise Unavailable("this gateway cannot be replaced now", hint="try again in a moment")
            # Another one may ask while this one is sent the socket: only one may have it.
            self._is_given = True
            try:
                await asyncio.to_thread(self._send, address)
            except BaseException:
                self._is_given = False
                raise
            self._record.hand_over()
            self._ending = asyncio.create_task(self._end(self.server))
            return JSONResponse({"replaced": os.getpid()})

        return Route(HANDOVER_PATH, give, methods=["POST"])

    def _send(self, address: str) -> None:
        try:
            if not is_own(Path(address).stat()):
                raise PermissionError("it belongs to another user")
            with socket.socket(socket.AF_UNIX) as other:
                other.settimeout(ANSWER_SECONDS)
                other.connect(address)
                socket.send_fds(other, [b"."], [self._listener.fileno(), self._record.descriptor])
        except OSError as error:
            raise InvalidRequest(f"the socket cannot be used: {error}") from None

    async def _end(self, server: "Server") -> None:
        """Accept nothing more, answer what was accepted, and stop."""
        for listening in server.servers:
            listening.close()
        self._closing.set()
        await asyncio.sleep(ARRIVAL_SECONDS)
        deadline = asyncio.get_running_loop().time() + DRAIN_SECONDS
        while server.server_state.connections and asyncio.get_running_loop().time() < deadline:
            # It ends connections that are idle, and others after their answer.
            for connection in [*server.server_state.connections]:
                connection.shutdown()
            await asyncio.sleep(LOOK_SECONDS)
        server.should_exit = True
