"""The channel to Qdrant, and the one place where its errors become ours.

The generated stubs are called directly: the vendor client turns every hit into models that nobody reads,
which costs more than the search.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import grpc
from grpc import StatusCode

from toolscript.adapters.qdrant import wire
from toolscript.errors import IndexRejected, IndexUnavailable, InvalidRequest, SetupError, ToolscriptError

MAX_MESSAGE = 256 * 1024 * 1024

_DOWN = "is Qdrant running, and are TOOLSCRIPT_QDRANT_URL and TOOLSCRIPT_QDRANT_GRPC_PORT right?"
_KEY = "is TOOLSCRIPT_QDRANT_API_KEY right?"

TRANSLATIONS: Mapping[StatusCode, tuple[type[ToolscriptError], str]] = {
    StatusCode.UNAVAILABLE: (IndexUnavailable, _DOWN),
    StatusCode.DEADLINE_EXCEEDED: (IndexUnavailable, "try again, or give the request more time"),
    StatusCode.CANCELLED: (IndexUnavailable, "try again"),
    StatusCode.ABORTED: (IndexUnavailable, "try again"),
    StatusCode.RESOURCE_EXHAUSTED: (IndexUnavailable, "the engine is out of memory, disk or patience"),
    StatusCode.UNAUTHENTICATED: (SetupError, _KEY),
    StatusCode.PERMISSION_DENIED: (SetupError, _KEY),
    StatusCode.NOT_FOUND: (SetupError, "run `toolscript worker` to build the index"),
    StatusCode.ALREADY_EXISTS: (IndexRejected, ""),
    StatusCode.FAILED_PRECONDITION: (IndexRejected, ""),
    StatusCode.INVALID_ARGUMENT: (IndexRejected, ""),
    StatusCode.OUT_OF_RANGE: (IndexRejected, ""),
    StatusCode.UNIMPLEMENTED: (SetupError, "Qdrant 1.17 or newer is needed"),
    StatusCode.INTERNAL: (IndexRejected, ""),
    StatusCode.DATA_LOSS: (IndexRejected, ""),
    StatusCode.UNKNOWN: (IndexRejected, ""),
    StatusCode.OK: (IndexRejected, ""),
}


@dataclass(frozen=True)
class Qdrant:
    """The two services of the engine we use. Their generated stubs carry no types."""

    points: Any
    collections: Any
    timeout_seconds: float


@asynccontextmanager
async def connect(
    url: str, grpc_port: int, *, api_key: str = "", timeout_seconds: float = 30.0
) -> AsyncIterator[Qdrant]:
    address = urlsplit(url)
    if not address.hostname or address.scheme not in {"http", "https"}:
        raise InvalidRequest(f"TOOLSCRIPT_QDRANT_URL must be like http://host:6333, not {url!r}")
    target = f"{address.hostname}:{grpc_port}"
    channel = _channel(target, secure=address.scheme == "https", api_key=api_key)
    async with channel:
        yield Qdrant(
            points=wire.PointsStub(channel),  # type: ignore[no-untyped-call]
            collections=wire.CollectionsStub(channel),  # type: ignore[no-untyped-call]
            timeout_seconds=timeout_seconds,
        )


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as error:
        meaning, hint = TRANSLATIONS[error.code()]
        raise meaning(f"Qdrant: {error.details() or error.code().name}", hint=hint) from error


def _channel(target: str, *, secure: bool, api_key: str) -> grpc.aio.Channel:
    options = [
        ("grpc.max_receive_message_length", MAX_MESSAGE),
        ("grpc.max_send_message_length", MAX_MESSAGE),
        ("grpc.keepalive_time_ms", 30_000),
        # An engine that comes back is found again at once, not after gRPC's two minutes.
        ("grpc.initial_reconnect_backoff_ms", 100),
        # gRPC also takes this for how long one attempt to connect may last: a busy machine needs more than 100 ms.
        ("grpc.min_reconnect_backoff_ms", 3_000),
        ("grpc.max_reconnect_backoff_ms", 2_000),
    ]
    key = [_ApiKey(api_key)] if api_key else []
    if secure:
        return grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(), options, interceptors=key)
    return grpc.aio.insecure_channel(target, options, interceptors=key)


class _ApiKey(grpc.aio.UnaryUnaryClientInterceptor):
    def __init__(self, api_key: str) -> None:
        self._api_key = api_key

    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        metadata = client_call_details.metadata or grpc.aio.Metadata()
        metadata.add("api-key", self._api_key)
        client_call_details.metadata = metadata
        return await continuation(client_call_details, request)
