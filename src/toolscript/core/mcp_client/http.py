"""The HTTP transports: Streamable HTTP and the older SSE, watched for error statuses, size and closed streams."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from toolscript.core.errors import ServerRejected
from toolscript.core.mcp_client.model import ServerSpec

if TYPE_CHECKING:
    from toolscript.core.mcp_client.oauth.tokens import Credentials

MAX_ANSWER = 64 * 1024 * 1024
_CONNECT_SECONDS = 15.0
# Statuses with which a server of the older transport rejects messages of the newer one.
_OLD_SERVER = frozenset({400, 404, 405})


class HttpWatch:
    """Response hook: keeps the last error status, limits response sizes, and reports closed event streams.

    `auth` adds the token of a sign-in to the requests.
    """

    def __init__(self, on_stream_end: Callable[[], None], credentials: "Credentials | None" = None) -> None:
        self.status = 0
        self.auth = credentials.auth(self.forget_status) if credentials is not None else None
        self._on_stream_end = on_stream_end

    def forget_status(self) -> None:
        """A request that was refused is sent again."""
        self.status = 0

    @property
    def means_old_server(self) -> bool:
        return self.status in _OLD_SERVER

    @property
    def refusal(self) -> str:
        return f"HTTP {self.status} {_phrase(self.status)}".strip() if self.status else ""

    async def on_response(self, response: httpx2.Response) -> None:
        if response.status_code >= HTTPStatus.BAD_REQUEST and response.request.method == "POST":
            self.status = response.status_code
        if isinstance(response.stream, httpx2.AsyncByteStream):
            is_long_lived = response.request.method == "GET" and response.is_success
            limit = None if _is_event_stream(response) else MAX_ANSWER
            response.stream = _WatchedStream(
                response.stream, limit, self._on_stream_end if is_long_lived else _nothing
            )


class _WatchedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream, limit: int | None, on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._limit = limit
        self._on_end = on_end

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for part in self._inner:
                size += len(part)
                if self._limit is not None and size > self._limit:
                    raise ServerRejected(f"an answer is larger than {self._limit} bytes")
                yield part
        finally:
            self._on_end()

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def http_streams(spec: ServerSpec, watch: HttpWatch) -> AsyncIterator[tuple[Any, Any]]:
    async with (
        _client(spec, watch) as client,
        streamable_http_client(spec.url, http_client=client, max_sse_event_size=MAX_ANSWER) as streams,
    ):
        yield streams


@asynccontextmanager
async def sse_streams(spec: ServerSpec, watch: HttpWatch) -> AsyncIterator[tuple[Any, Any]]:
    def make_client(headers: object = None, timeout: object = None, auth: object = None) -> httpx2.AsyncClient:  # noqa: ARG001
        return _client(spec, watch)

    async with sse_client(spec.url, httpx_client_factory=make_client) as streams:
        yield streams


def _client(spec: ServerSpec, watch: HttpWatch) -> httpx2.AsyncClient:
    # No limit on reading: an event stream may be silent for hours. Calls and pings have their own limits.
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=4)
    hooks = {"response": [watch.on_response]}
    return httpx2.AsyncClient(
        headers=dict(spec.headers), auth=watch.auth, timeout=timeout, limits=limits, event_hooks=hooks
    )


def _is_event_stream(response: httpx2.Response) -> bool:
    return str(response.headers.get("content-type", "")).lower().startswith("text/event-stream")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _nothing() -> None:
    return
