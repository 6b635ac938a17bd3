"""Channels to Qdrant's nodes, their credentials, and the translation of its errors.

The generated stubs are called directly: the vendor client converts every hit into models that are not used here,
which costs more than the search.
"""

import asyncio
import ipaddress
import logging
import math
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import grpc
from grpc import StatusCode

from toolscript.core.breaker import OF_COMMANDS, Breaker, Engine, Patience
from toolscript.core.errors import (
    IndexMissing,
    IndexRejected,
    IndexUnavailable,
    InvalidRequest,
    SetupError,
    ToolscriptError,
)
from toolscript.core.qdrant import wire

MAX_MESSAGE = 256 * 1024 * 1024
TIMEOUT_SECONDS = 30.0

_DOWN = "is Qdrant running, and are TOOLSCRIPT_QDRANT_URL and TOOLSCRIPT_QDRANT_GRPC_PORT right?"
_ABSENT = "`toolscript worker` builds the index of items again, `toolscript restore` brings back that of documents"
_KEY = "is TOOLSCRIPT_QDRANT_API_KEY right?"
_FULL = "the disk of Qdrant is full; free some of it, or add more"
_TLS = (
    "is TOOLSCRIPT_QDRANT_CA_FILE the CA of Qdrant's certificate, does Qdrant require a "
    "TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE, and does the gRPC port speak TLS?"
)

TRANSLATIONS: Mapping[StatusCode, tuple[type[ToolscriptError], str]] = {
    StatusCode.UNAVAILABLE: (IndexUnavailable, _DOWN),
    StatusCode.DEADLINE_EXCEEDED: (IndexUnavailable, "try again, or give the request more time"),
    StatusCode.CANCELLED: (IndexUnavailable, "try again"),
    StatusCode.ABORTED: (IndexUnavailable, "try again"),
    StatusCode.RESOURCE_EXHAUSTED: (IndexUnavailable, "the engine is out of memory or disk, or overloaded"),
    StatusCode.UNAUTHENTICATED: (SetupError, _KEY),
    StatusCode.PERMISSION_DENIED: (SetupError, _KEY),
    StatusCode.NOT_FOUND: (IndexMissing, _ABSENT),
    StatusCode.ALREADY_EXISTS: (IndexRejected, ""),
    StatusCode.FAILED_PRECONDITION: (IndexRejected, ""),
    StatusCode.INVALID_ARGUMENT: (IndexRejected, ""),
    StatusCode.OUT_OF_RANGE: (IndexRejected, ""),
    StatusCode.UNIMPLEMENTED: (SetupError, "Qdrant 1.17 or newer is needed"),
    StatusCode.INTERNAL: (IndexRejected, ""),
    StatusCode.DATA_LOSS: (IndexRejected, ""),
    # gRPC reports UNKNOWN for a broken connection; Qdrant itself never does.
    StatusCode.UNKNOWN: (IndexUnavailable, "try again"),
    StatusCode.OK: (IndexRejected, ""),
}

# Errors that only their text identifies; the first match wins.
TRANSLATIONS_BY_TEXT: Mapping[StatusCode, Sequence[tuple[re.Pattern[str], type[ToolscriptError], str]]] = {
    StatusCode.UNAVAILABLE: [
        (re.compile(r"\bSSL_ERROR|\bT[lL][sS] handshake|Ssl handshake"), IndexUnavailable, _TLS)
    ],
    StatusCode.INTERNAL: [(re.compile(r"No space left", re.IGNORECASE), IndexUnavailable, _FULL)],
}

_TRY_NEXT_NODE = {StatusCode.UNAVAILABLE, StatusCode.UNKNOWN}
_SKIP_NODE = {*_TRY_NEXT_NODE, StatusCode.DEADLINE_EXCEEDED}
# A node that starts or ends a shard transfer does not find the shard for a moment; and a collection that another
# process creates has no shard yet.
_SHARD_TRANSFER = re.compile(r"Local shard \d+ not found|\b0 of 0 read operations failed")
_READS = frozenset(
    {"CollectionClusterInfo", "CollectionExists", "Count", "Facet", "Get", "List", "ListAliases", "Query"}
    | {"QueryBatch", "Scroll"}
)
SHARD_TRANSFER_TRIES, SHARD_TRANSFER_SECONDS = 20, 0.05

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tls:
    """Files in PEM format. Empty: the CAs that gRPC ships with, and no client certificate."""

    ca_file: str = ""
    client_certificate: str = ""
    client_key: str = ""

    def credentials(self) -> grpc.ChannelCredentials:
        if bool(self.client_certificate) != bool(self.client_key):
            raise SetupError(
                "TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE and TOOLSCRIPT_QDRANT_CLIENT_KEY belong together",
                hint="set both or neither",
            )
        return grpc.ssl_channel_credentials(
            root_certificates=_pem("TOOLSCRIPT_QDRANT_CA_FILE", self.ca_file),
            private_key=_pem("TOOLSCRIPT_QDRANT_CLIENT_KEY", self.client_key),
            certificate_chain=_pem("TOOLSCRIPT_QDRANT_CLIENT_CERTIFICATE", self.client_certificate),
        )

    def require_https(self, addresses: Sequence[SplitResult]) -> None:
        """Raise SetupError for TLS files with an http:// URL: the traffic would be unencrypted without notice."""
        has_files = self.ca_file or self.client_certificate or self.client_key
        if has_files and any(address.scheme != "https" for address in addresses):
            raise SetupError(
                "certificates for Qdrant are set, but TOOLSCRIPT_QDRANT_URL is http://",
                hint="write https:// in TOOLSCRIPT_QDRANT_URL, or remove the TOOLSCRIPT_QDRANT_CA_FILE "
                "and TOOLSCRIPT_QDRANT_CLIENT_* settings",
            )


def warn_of_unencrypted_key(addresses: Sequence[SplitResult]) -> None:
    readable = [address.hostname for address in addresses if address.scheme == "http" and not _is_local(address)]
    if readable:
        logger.warning(
            "the Qdrant API key is sent over the network unencrypted; use https:// in TOOLSCRIPT_QDRANT_URL",
            extra={"part": "qdrant", "hosts": readable},
        )


def _is_local(address: SplitResult) -> bool:
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
    # gRPC accepts any content, and later only reports that the server is unavailable.
    if b"-----BEGIN " not in content:
        raise SetupError(f"{setting} is not a PEM file: {file}", hint="convert it with `openssl`")
    return content


@dataclass(frozen=True)
class Qdrant:
    """The two gRPC services in use. Their generated stubs are untyped."""

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
    read_seconds: float = TIMEOUT_SECONDS,
    patience: Patience = OF_COMMANDS,
) -> AsyncIterator[Qdrant]:
    """Open channels. `urls` names one node or several of a cluster, separated by commas: `http://host:6333`, whose
    gRPC port is `grpc_port`, or `host:port` with a gRPC port of its own.

    `read_seconds` limits a call that reads, `timeout_seconds` any.
    """
    addresses = _addresses(urls)
    tls.require_https(addresses)
    if api_key:
        warn_of_unencrypted_key(addresses)
    async with AsyncExitStack() as stack:
        channels = [
            _channel(address, port or grpc_port, tls)
            for address, port in zip(addresses, _ports(urls), strict=True)
        ]
        opened = [await stack.enter_async_context(channel) for channel in channels]
        nodes = _Nodes(opened, api_key, min(timeout_seconds, read_seconds), patience)
        stack.enter_context(nodes.breaker.opened())
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
    matches = (row[1:] for row in TRANSLATIONS_BY_TEXT.get(code, ()) if row[0].search(text))
    return next(matches, TRANSLATIONS[code])


async def call_collections(qdrant: Qdrant, method: str, request: object) -> Any:
    """Send one request about collections, aliases or shards."""
    with translated():
        return await getattr(qdrant.collections, method)(request, timeout=qdrant.timeout_seconds)


def exists_already(error: ToolscriptError) -> bool:
    """Return whether a create request failed because the object exists."""
    cause = error.__cause__
    return isinstance(cause, grpc.aio.AioRpcError) and "already exists" in str(cause.details())


class _Nodes:
    """Channel for the generated stubs over several nodes; a node that is down moves to the end of the order."""

    def __init__(
        self, channels: Sequence[grpc.aio.Channel], api_key: str, read_seconds: float, patience: Patience
    ) -> None:
        self._channels = channels
        # Sent with each call: an interceptor would cost one task per call.
        self.metadata = (("api-key", api_key),) if api_key else ()
        self._read_seconds = read_seconds
        self._first = 0
        self._checks = [wire.QdrantStub(channel).HealthCheck for channel in channels]  # type: ignore[no-untyped-call]
        self.breaker = Breaker(Engine("Qdrant", IndexUnavailable, self._check_any, _is_down), patience)

    def unary_unary(self, method: str, *args: Any, **kwargs: Any) -> "_Call":
        seconds = self._read_seconds if method.rpartition("/")[2] in _READS else math.inf
        return _Call(self, [channel.unary_unary(method, *args, **kwargs) for channel in self._channels], seconds)

    def in_order(self) -> Sequence[int]:
        count = len(self._channels)
        return range(count) if self._first == 0 else [*range(self._first, count), *range(self._first)]

    def skip(self, node: int) -> None:
        if self._first == node:
            self._first = (node + 1) % len(self._channels)

    async def _check_any(self) -> None:
        """Ask all nodes at once. The first that answers goes before those that have not."""
        checks = [asyncio.ensure_future(self._check(node)) for node in range(len(self._channels))]
        try:
            for check in asyncio.as_completed(checks):
                node, reason = await check
                if reason is None:
                    if not checks[self._first].done():
                        self._first = node
                    return
        finally:
            for check in checks:
                check.cancel()
        raise IndexUnavailable(f"Qdrant: {reason}", hint=_DOWN)

    async def _check(self, node: int) -> tuple[int, str | None]:
        try:
            await self._checks[node](wire.HealthCheckRequest(), metadata=self.metadata)
        except grpc.aio.AioRpcError as error:
            # Any other error is an answer.
            return node, (error.details() or error.code().name) if _is_down(error) else None
        return node, None


def _is_down(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or (
        isinstance(error, grpc.aio.AioRpcError) and error.code() in _SKIP_NODE
    )


@dataclass(frozen=True)
class _Call:
    """One gRPC method on every node. Retries are harmless: writes carry versions."""

    nodes: _Nodes
    calls: Sequence[Any]
    max_seconds: float

    async def __call__(self, request: object, timeout: float = TIMEOUT_SECONDS) -> Any:  # noqa: ASYNC109
        with self.nodes.breaker.call() as call:
            async with call.cancelled():
                return await self._on_any_node(request, time.monotonic() + min(timeout, self.max_seconds))

    async def _on_any_node(self, request: object, deadline: float) -> Any:
        nodes = iter(self.nodes.in_order())
        node = next(nodes)
        while True:
            try:
                return _require_parsed(await self._call_with_retries(self.calls[node], request, deadline))
            except grpc.aio.AioRpcError as error:
                if error.code() in _SKIP_NODE:
                    self.nodes.skip(node)
                next_node = next(nodes, None)
                if error.code() not in _TRY_NEXT_NODE or next_node is None:
                    raise
                node = next_node
            except asyncio.CancelledError:
                # The caller's deadline has passed without a response of the node.
                self.nodes.skip(node)
                raise

    async def _call_with_retries(self, call: Any, request: object, deadline: float) -> Any:
        for _ in range(SHARD_TRANSFER_TRIES):
            try:
                return await self._call(call, request, deadline)
            except grpc.aio.AioRpcError as error:
                if not _SHARD_TRANSFER.search(str(error.details())):
                    raise
            await asyncio.sleep(SHARD_TRANSFER_SECONDS)
        return await self._call(call, request, deadline)

    async def _call(self, call: Any, request: object, deadline: float) -> Any:
        return await call(request, timeout=deadline - time.monotonic(), metadata=self.nodes.metadata)


def _require_parsed(response: object) -> object:
    """Return the response; gRPC returns None for one that it cannot parse."""
    if response is None:
        raise IndexRejected("Qdrant: the response cannot be read", hint=_DOWN)
    return response


def listed_nodes(urls: str) -> list[str]:
    return [url.strip() for url in urls.split(",")]


def _ports(urls: str) -> list[int | None]:
    """Return the gRPC port of each node that has one of its own."""
    return [None if "://" in url else urlsplit(f"//{url}").port for url in listed_nodes(urls)]


def _addresses(urls: str) -> list[SplitResult]:
    """A node without a scheme has that of the others."""
    scheme = "https" if "https://" in urls else "http"
    return [_address(url if "://" in url else f"{scheme}://{url}", url) for url in listed_nodes(urls)]


def _address(url: str, written: str) -> SplitResult:
    address = urlsplit(url)
    with suppress(ValueError):
        has_port = address.port is not None or "://" in written
        if address.hostname and has_port and address.scheme in {"http", "https"}:
            return address
    raise InvalidRequest(
        f"TOOLSCRIPT_QDRANT_URL must be like http://host:6333, or host:6334 by the gRPC port, not {written!r}"
    )


def _channel(address: SplitResult, grpc_port: int, tls: Tls) -> grpc.aio.Channel:
    options = [
        ("grpc.max_receive_message_length", MAX_MESSAGE),
        ("grpc.max_send_message_length", MAX_MESSAGE),
        ("grpc.keepalive_time_ms", 30_000),
        # No compression: compressing a response takes longer than sending it.
        ("grpc.compression_enabled_algorithms_bitset", 1 << grpc.Compression.NoCompression.value),
        # Reconnect to a restarted engine at once, not after gRPC's default of two minutes.
        ("grpc.initial_reconnect_backoff_ms", 100),
        # gRPC also uses this as the timeout of a connection attempt: a busy machine needs more than 100 ms.
        ("grpc.min_reconnect_backoff_ms", 3_000),
        ("grpc.max_reconnect_backoff_ms", 2_000),
    ]
    target = f"{address.hostname}:{grpc_port}"
    if address.scheme == "https":
        return grpc.aio.secure_channel(target, tls.credentials(), options)
    return grpc.aio.insecure_channel(target, options)
