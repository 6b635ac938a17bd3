"""Sends requests on an event loop, over httpx2; cancelling a request closes its connection."""

import inspect
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import httpx2

from toolscript.client.exchange import Answer, Conversation, Pause, Pull, Request, Steps
from toolscript.core.errors import ToolscriptError

T = TypeVar("T")

_FAILURES = (httpx2.TransportError, httpx2.InvalidURL, UnicodeError)


class AsyncSender:
    """Runs the steps of requests. `connect_timeout` and `timeout` are those of `Sender`."""

    is_async = True

    def __init__(
        self,
        conversation: Conversation,
        *,
        token: str,
        timeout: float,
        connect_timeout: float,
        on_pause: Callable[[Pause], None] | None = None,
    ) -> None:
        self._conversation = conversation
        self.url = conversation.address.url
        self._token = token
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._on_pause = on_pause
        address = conversation.address
        is_socket = address.scheme == "unix"
        self._base = "http://localhost" if is_socket else address.url
        transport = httpx2.AsyncHTTPTransport(uds=address.host) if is_socket else None
        # No proxies of the environment: like the sender of threads, it asks the address that it was given.
        self._client = httpx2.AsyncClient(transport=transport, trust_env=False)

    async def run(self, steps: Steps[T]) -> T:
        reply: Callable[[], Any] = steps.__next__
        while True:
            try:
                step = reply()
            except StopIteration as done:
                result: T = done.value
                return result
            reply = await self._do(steps, step)

    async def _do(self, steps: Steps[T], step: Request | Pause | Pull[Any]) -> Callable[[], Any]:
        """Do a step; return the call that hands its outcome on."""
        if isinstance(step, Pull):
            entry = await _next(step.source)
            return lambda: steps.send(entry)
        if isinstance(step, Pause):
            if self._on_pause is not None:
                self._on_pause(step)
            await anyio.sleep(step.seconds)
            return steps.__next__
        try:
            answer = await self._send(step)
        except ToolscriptError as error:
            raised = error
            return lambda: steps.throw(raised)
        return lambda: steps.send(answer)

    async def close(self) -> None:
        await self._client.aclose()

    async def _send(self, request: Request) -> Answer:
        timeout = httpx2.Timeout(request.timeout or self._timeout, connect=self._connect_timeout)
        try:
            response = await self._client.request(
                request.method,
                self._base + request.path,
                content=request.body,
                headers=request.headers(self._token),
                timeout=timeout,
            )
        except httpx2.TimeoutException as error:
            raise self._conversation.silent("timed out", timed_out=True) from error
        except _FAILURES as error:
            if isinstance(_origin(error), ssl.SSLError):
                raise self._conversation.unverified(str(error)) from error
            raise self._conversation.silent(str(error) or type(error).__name__) from error
        return Answer(response.status_code, response.content, dict(response.headers))


def _origin(error: BaseException) -> BaseException:
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error


async def _next(source: Any) -> Any:
    entry = anext(source, None) if hasattr(source, "__anext__") else next(source, None)
    return await entry if inspect.isawaitable(entry) else entry
