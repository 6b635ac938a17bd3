"""The channels to Qdrant's nodes, their credentials, and the one place where its errors become ours.

The generated stubs are called directly: the vendor client turns every hit into models that nobody reads,
which costs more than the search.
"""

import asyncio
import ipaddress
import logging
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import grpc
from grpc import StatusCode

from toolscript.core.errors import IndexRejected, IndexUnavailable, InvalidRequest, SetupError, ToolscriptError
from toolscript.core.qdrant import wire

MAX_MESSAGE = 256 * 1024 * 1024
TIMEOUT_SECONDS = 30.0

_DOWN = "is Qdrant running, and are TOOLSCRIPT_QDRANT_URL and TOOLSCRIPT_QDRANT_GRPC_PORT right?"
_ABSENT = "`toolscript worker` makes the index of items, `toolscript serve` that of documents"
_KEY = "is TOOLSCRIPT_QDRANT_API_KEY right?"
_FULL = "the disk of Qdrant is full; free some of it, or add more"
_TLS = (
    "is TOOLSCRIPT_QDRANT_CA_FILE the CA of Qdrant's certificate, does Qdrant ask for a "
    "TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE, and does the gRPC port speak TLS?"
)

TRANSLATIONS: Mapping[StatusCode, tuple[type[ToolscriptError], str]] = {
    StatusCode.UNAVAILABLE: (IndexUnavailable, _DOWN),
    StatusCode.DEADLINE_EXCEEDED: (IndexUnavailable, "try again, or give the request more time"),
    StatusCode.CANCELLED: (IndexUnavailable, "try again"),
    StatusCode.ABORTED: (IndexUnavailable, "try again"),
    StatusCode.RESOURCE_EXHAUSTED: (IndexUnavailable, "the engine is out of memory, disk or patience"),
    StatusCode.UNAUTHENTICATED: (SetupError, _KEY),
    StatusCode.PERMISSION_DENIED: (SetupError, _KEY),
    StatusCode.NOT_FOUND: (SetupError, _ABSENT),
    StatusCode.ALREADY_EXISTS: (IndexRejected, ""),
    StatusCode.FAILED_PRECONDITION: (IndexRejected, ""),
    StatusCode.INVALID_ARGUMENT: (IndexRejected, ""),
    StatusCode.OUT_OF_RANGE: (IndexRejected, ""),
    StatusCode.UNIMPLEMENTED: (SetupError, "Qdrant 1.17 or newer is needed"),
    StatusCode.INTERNAL: (IndexRejected, ""),
    StatusCode.DATA_LOSS: (IndexRejected, ""),
    # gRPC says so of a connection that it cannot read any more; Qdrant itself never does.
    StatusCode.UNKNOWN: (IndexUnavailable, "try again"),
    StatusCode.OK: (IndexRejected, ""),
}

# What the status alone does not say; the first that is found in its text counts.
TOLD_BY_TEXT: Mapping[StatusCode, Sequence[tuple[re.Pattern[str], type[ToolscriptError], str]]] = {
    StatusCode.UNAVAILABLE: [
        (re.compile(r"\bSSL_ERROR|\bT[lL][sS] handshake|Ssl handshake"), IndexUnavailable, _TLS)
    ],
    StatusCode.INTERNAL: [(re.compile(r"No space left", re.IGNORECASE), IndexUnavailable, _FULL)],
}

_ASK_ANOTHER = {StatusCode.UNAVAILABLE, StatusCode.UNKNOWN}
_PASS_BY = {*_ASK_ANOTHER, StatusCode.DEADLINE_EXCEEDED}
# A node that begins or ends to hand over a shard does not find it for a moment; and while somebody else makes a
# collection, there is none of it yet that could be asked.
_HANDING_OVER = re.compile(r"Local shard \d+ not found|\b0 of 0 read operations failed")
HAND_OVER_TRIES, HAND_OVER_SECONDS = 20, 0.05

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tls:
    """Files in PEM format; empty: the CAs that gRPC ships with, and no certificate of this client."""

    ca_file: str = ""
    client_certificate: str = ""
    client_key: str = ""

    def credentials(self) -> grpc.ChannelCredentials:
        if bool(self.client_certificate) != bool(self.client_key):
            raise SetupError(
                "TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE and TOOLSCRIPT_QDRANT_CLIENT_KEY belong together",
                hint="set both of them, or none",
            )
        return grpc.ssl_channel_credentials(
            root_certificates=_pem("TOOLSCRIPT_QDRANT_CA_FILE", self.ca_file),
            private_key=_pem("TOOLSCRIPT_QDRANT_CLIENT_KEY", self.client_key),
            certificate_chain=_pem("TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE", self.client_certificate),
        )

    def require_https(self, addresses: Sequence[SplitResult]) -> None:
        """Files for TLS and an address without it: the traffic would be readable, and nobody would know."""
        named = self.ca_file or self.client_certificate or self.client_key
        if named and any(address.scheme != "https" for address in addresses):
            raise SetupError(
                "certificates for Qdrant are set, but TOOLSCRIPT_QDRANT_URL is http://",
                hint="write https:// in TOOLSCRIPT_QDRANT_URL, or take the TOOLSCRIPT_QDRANT_CA_FILE "
                "and TOOLSCRIPT_QDRANT_CLIENT_* settings out",
            )


def warn_of_readable_key(addresses: Sequence[SplitResult]) -> None:
    readable = [address.hostname for address in addresses if address.scheme == "http" and not _is_here(address)]
    if readable:
        logger.warning(
            "the Qdrant API key goes over the network unencrypted; use https:// in TOOLSCRIPT_QDRANT_URL",
            extra={"part": "qdrant", "hosts": readable},
        )


def _is_here(address: SplitResult) -> bool:
    try:
        return ipaddress.ip_address(address.hostname or "").is_loopback
    except ValueError:
        return address.hostname == "localhost"


def _pem(setting: str, file: str) -> bytes | None:
    if not file:
        return None
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise SetupError(f"{setting} cannot be read: {error.strerror}: {file}", hint="name a PEM file") from None
    # gRPC takes anything, and says later that nobody answers.
    if b"-----BEGIN " not in content:
        raise SetupError(f"{setting} is not a PEM file: {file}", hint="convert it with `openssl`")
    return content


@dataclass(frozen=True)
class Qdrant:
    """The two services of the engine we use. Their generated stubs carry no types."""

    points: Any
    collections: Any
    timeout_seconds: float


@asynccontextmanager
async def open_qdrant(
    urls: str,
    grpc_port: int,
    *,
    api_key: str = "",
    tls: Tls = Tls(),  # noqa: B008 - frozen
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> AsyncIterator[Qdrant]:
    """`urls` are those of one node or of several of a cluster, with commas between them."""
    addresses = [_address(url.strip()) for url in urls.split(",")]
    tls.require_https(addresses)
    if api_key:
        warn_of_readable_key(addresses)
    async with AsyncExitStack() as stack:
        channels = [_channel(address, grpc_port, tls) for address in addresses]
        nodes = _Nodes([await stack.enter_async_context(channel) for channel in channels], api_key)
        yield Qdrant(
            points=wire.PointsStub(nodes),  # type: ignore[no-untyped-call]
            collections=wire.CollectionsStub(nodes),  # type: ignore[no-untyped-call]
            timeout_seconds=timeout_seconds,
        )


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except grpc.aio.AioRpcError as error:
        meaning, hint = _meaning(error.code(), error.details() or "")
        raise meaning(f"Qdrant: {error.details() or error.code().name}", hint=hint) from error


def _meaning(code: StatusCode, text: str) -> tuple[type[ToolscriptError], str]:
    told = (row[1:] for row in TOLD_BY_TEXT.get(code, ()) if row[0].search(text))
    return next(told, TRANSLATIONS[code])


async def ask_collections(qdrant: Qdrant, method: str, request: object) -> Any:
    """One request about collections, aliases or shards."""
    with translated():
        return await getattr(qdrant.collections, method)(request, timeout=qdrant.timeout_seconds)


def exists_already(error: ToolscriptError) -> bool:
    """Whether what was to be made was there."""
    cause = error.__cause__
    return isinstance(cause, grpc.aio.AioRpcError) and "already exists" in str(cause.details())


class _Nodes:
    """What the generated stubs take for a channel. A node that is down is passed by until its turn comes again."""

    def __init__(self, channels: Sequence[grpc.aio.Channel], api_key: str = "") -> None:
        self._channels = channels
        # With each call, not by an interceptor: that would cost every call a task of its own.
        self.metadata = (("api-key", api_key),) if api_key else ()
        self._first = 0

    def unary_unary(self, *args: Any, **kwargs: Any) -> "_Call":
        return _Call(self, [channel.unary_unary(*args, **kwargs) for channel in self._channels])

    def in_order(self) -> Sequence[int]:
        count = len(self._channels)
        return range(count) if self._first == 0 else [*range(self._first, count), *range(self._first)]

    def pass_by(self, node: int) -> None:
        if self._first == node:
            self._first = (node + 1) % len(self._channels)


@dataclass(frozen=True)
class _Call:
    """A method of the engine, at each node. What is sent twice does no harm: writes carry versions."""

    nodes: _Nodes
    at: Sequence[Any]

    async def __call__(self, request: object, timeout: float = TIMEOUT_SECONDS) -> Any:  # noqa: ASYNC109
        ends_at = time.monotonic() + timeout
        nodes = iter(self.nodes.in_order())
        node = next(nodes)
        while True:
            try:
                return _readable(await self._patiently(self.at[node], request, ends_at))
            except grpc.aio.AioRpcError as error:
                if error.code() in _PASS_BY:
                    self.nodes.pass_by(node)
                following = next(nodes, None)
                if error.code() not in _ASK_ANOTHER or following is None:
                    raise
                node = following
            except asyncio.CancelledError:
                # Somebody has waited long enough for a node that says nothing.
                self.nodes.pass_by(node)
                raise

    async def _patiently(self, call: Any, request: object, ends_at: float) -> Any:
        for _ in range(HAND_OVER_TRIES):
            try:
                return await self._once(call, request, ends_at)
            except grpc.aio.AioRpcError as error:
                if not _HANDING_OVER.search(str(error.details())):
                    raise
            await asyncio.sleep(HAND_OVER_SECONDS)
        return await self._once(call, request, ends_at)

    async def _once(self, call: Any, request: object, ends_at: float) -> Any:
        return await call(request, timeout=ends_at - time.monotonic(), metadata=self.nodes.metadata)


def _readable(answer: object) -> object:
    """gRPC hands over None in place of an answer that it cannot read."""
    if answer is None:
        raise IndexRejected("Qdrant: the answer cannot be read", hint=_DOWN)
    return answer


def _address(url: str) -> SplitResult:
    address = urlsplit(url)
    if not address.hostname or address.scheme not in {"http", "https"}:
        raise InvalidRequest(f"TOOLSCRIPT_QDRANT_URL must be like http://host:6333, not {url!r}")
    return address


def _channel(address: SplitResult, grpc_port: int, tls: Tls) -> grpc.aio.Channel:
    options = [
        ("grpc.max_receive_message_length", MAX_MESSAGE),
        ("grpc.max_send_message_length", MAX_MESSAGE),
        ("grpc.keepalive_time_ms", 30_000),
        # Only as it is: the engine would pack every answer, which takes longer than to send it.
        ("grpc.compression_enabled_algorithms_bitset", 1 << grpc.Compression.NoCompression.value),
        # An engine that comes back is found again at once, not after gRPC's two minutes.
        ("grpc.initial_reconnect_backoff_ms", 100),
        # gRPC also takes this for how long one attempt to connect may last: a busy machine needs more than 100 ms.
        ("grpc.min_reconnect_backoff_ms", 3_000),
        ("grpc.max_reconnect_backoff_ms", 2_000),
    ]
    target = f"{address.hostname}:{grpc_port}"
    if address.scheme == "https":
        return grpc.aio.secure_channel(target, tls.credentials(), options)
    return grpc.aio.insecure_channel(target, options)
