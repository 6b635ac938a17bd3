"""HTTP for `toolscript mcp`, by hand: one request on one connection, and its answer read as it comes.

The standard library's own client reads headers with a parser of e-mails, which takes longer to import than all the
rest of `toolscript mcp`. A connection carries one request: whether that was sent is never in doubt.
"""

import contextlib
import io
import socket
from collections.abc import Iterator, Mapping

CONNECT_SECONDS = 5.0
# A gateway sends something every 15 s, in every answer that takes longer.
SILENT_SECONDS = 60.0
MAX_HEADERS = 100
BLOCK_BYTES = 64 * 1024
EVENTS = "text/event-stream"


class NotSent(Exception):
    """Nobody took the request: nothing has happened."""


class Lost(Exception):
    """The request was sent, and its answer did not come, or not to its end."""


class Address:
    """Where a gateway listens: `path` is before that of every request."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        place, _, path = rest.partition("/")
        host, colon, port = place.rpartition(":")
        self.is_secure = scheme == "https"
        self.host = (host if colon and port.isdigit() else place).strip("[]")
        self.port = int(port) if colon and port.isdigit() else (443 if self.is_secure else 80)
        self.place = place
        self.path = f"/{path}".rstrip("/")


class Exchange:
    """One request and its answer. `close` may be called from another thread, and ends it."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self.is_closed = False
        self.status = 0
        self.headers: dict[str, str] = {}

    def send(self, address: Address, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        """Send the request, and read the head of its answer."""
        lines = [f"{method} {address.path}{path} HTTP/1.1", f"Host: {address.place}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if method == "POST":
            lines.append(f"Content-Length: {len(body)}")
        self._connect(address)
        assert self._socket is not None  # noqa: S101
        try:
            self._socket.sendall("\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body)
            self._file = io.BufferedReader(socket.SocketIO(self._socket, "r"), BLOCK_BYTES)
            self._read_head()
        except (OSError, ValueError) as error:
            self.close()
            raise Lost(_words(error)) from error

    def close(self) -> None:
        self.is_closed = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()

    def read(self) -> bytes:
        """Return the whole body."""
        try:
            return b"".join(self._blocks())
        except (OSError, ValueError) as error:
            raise Lost(_words(error)) from error
        finally:
            self.close()

    def messages(self) -> Iterator[bytes]:
        """Yield the messages of the answer: those of its events, or the one that it is."""
        if not self.headers.get("content-type", "").startswith(EVENTS):
            if body := self.read().strip():
                yield body
            return
        try:
            yield from _data_of_events(self._lines())
        except (OSError, ValueError) as error:
            raise Lost(_words(error)) from error
        finally:
            self.close()

    def _connect(self, address: Address) -> None:
        try:
            self._socket = socket.create_connection((address.host, address.port), CONNECT_SECONDS)
            self._socket.settimeout(SILENT_SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.is_secure:
                import ssl

                context = ssl.create_default_context()
                self._socket = context.wrap_socket(self._socket, server_hostname=address.host)
        except OSError as error:
            self.close()
            raise NotSent(_words(error)) from error
        if self.is_closed:
            self.close()

    def _read_head(self) -> None:
        words = self._file.readline(BLOCK_BYTES).split(None, 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1."):
            raise ValueError("the connection was closed without an answer")
        self.status = int(words[1])
        for _ in range(MAX_HEADERS):
            name, colon, value = self._file.readline(BLOCK_BYTES).decode("latin-1").partition(":")
            if not colon:
                return
            self.headers[name.strip().lower()] = value.strip()
        raise ValueError("the answer has too many headers")

    def _blocks(self) -> Iterator[bytes]:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int(self._file.readline(BLOCK_BYTES).partition(b";")[0] or b"-", 16):
                yield self._exactly(size)
                self._file.readline(BLOCK_BYTES)
        elif length := self.headers.get("content-length"):
            yield self._exactly(int(length))
        else:
            while block := self._file.read1(BLOCK_BYTES):
                yield block

    def _exactly(self, size: int) -> bytes:
        block = self._file.read(size)
        if len(block) < size:
            raise ValueError("the connection was closed in the middle of an answer")
        return block

    def _lines(self) -> Iterator[bytes]:
        parts: list[bytes] = []
        for block in self._blocks():
            *lines, rest = block.split(b"\n")
            for line in lines:
                yield b"".join((*parts, line)).rstrip(b"\r")
                parts.clear()
            parts.append(rest)


def _data_of_events(lines: Iterator[bytes]) -> Iterator[bytes]:
    data: list[bytes] = []
    for line in lines:
        if line.startswith(b"data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield b" ".join(data)
            data.clear()


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it sends nothing any more"
    return str(getattr(error, "strerror", "") or error) or type(error).__name__
