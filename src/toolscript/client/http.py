"""Sends requests on the calling thread, over the standard library: a command must start at once."""

import http
import http.client
import socket
import ssl
from collections.abc import Callable
from time import sleep
from typing import Any, TypeVar

from toolscript.client.exchange import Address, Answer, Conversation, Pause, Pull, Request, Steps
from toolscript.core.errors import ToolscriptError

T = TypeVar("T")

# Idle connections that a client keeps open.
MAX_IDLE = 8


class _SocketConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Sender:
    """Runs the steps of requests. Threads may share it: each request has a connection of its own.

    `connect_timeout` bounds the wait for a connection, `timeout` every later wait for the server. At most
    `max_idle` connections stay open after their request.
    """

    is_async = False

    def __init__(
        self,
        conversation: Conversation,
        *,
        token: str,
        timeout: float,
        connect_timeout: float,
        on_pause: Callable[[Pause], None] | None = None,
        max_idle: int = MAX_IDLE,
    ) -> None:
        self._conversation = conversation
        self.url = conversation.address.url
        self._token = token
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._on_pause = on_pause
        self._max_idle = max_idle
        self._idle: list[http.client.HTTPConnection] = []

    def run(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                step = self._do(steps, step)
        except StopIteration as done:
            result: T = done.value
            return result

    def _do(self, steps: Steps[T], step: Request | Pause | Pull[Any]) -> Request | Pause | Pull[Any]:
        if isinstance(step, Pull):
            assert not hasattr(step.source, "__anext__")  # noqa: S101
            return steps.send(next(step.source, None))
        if isinstance(step, Pause):
            if self._on_pause is not None:
                self._on_pause(step)
            sleep(step.seconds)
            return next(steps)
        try:
            answer = self.send(step)
        except ToolscriptError as error:
            return steps.throw(error)
        return steps.send(answer)

    def send(self, request: Request) -> Answer:
        """Send one request and return the response; raise Unavailable if there is none."""
        try:
            return self._exchange(request)
        except ssl.SSLError as error:
            raise self._conversation.unverified(str(error)) from error
        except TimeoutError as error:
            raise self._conversation.silent(str(error), timed_out=True) from error
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            raise self._conversation.silent(str(error) or type(error).__name__) from error

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _exchange(self, request: Request) -> Answer:
        # An idle connection may be closed already. That is only seen after sending, so a request that must not be
        # sent twice gets a new one.
        while request.idempotent and self._idle:
            connection = self._idle.pop()
            try:
                return self._exchange_on(connection, request)
            except (ConnectionError, http.client.HTTPException):
                continue
        connection = _connection(self._conversation.address, self._connect_timeout)
        return self._exchange_on(connection, request)

    def _exchange_on(self, connection: http.client.HTTPConnection, request: Request) -> Answer:
        is_kept = False
        try:
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(request.timeout or self._timeout)
            path = self._conversation.address.path + request.path
            connection.request(request.method, path, request.body, request.headers(self._token))
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            answer = Answer(response.status, response.read(), headers)
            is_kept = not response.will_close and len(self._idle) < self._max_idle
            return answer
        finally:
            if is_kept:
                self._idle.append(connection)
            else:
                connection.close()


def _connection(to: Address, seconds: float) -> http.client.HTTPConnection:
    if to.scheme == "unix":
        return _SocketConnection(to.host, timeout=seconds)
    connection_class = http.client.HTTPSConnection if to.scheme == "https" else http.client.HTTPConnection
    return connection_class(to.host, to.port, timeout=seconds)
