"""A relay to PostgreSQL that records the statements that a client runs."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

# A request for encryption may precede the start of a session; unlike all later messages, neither has a type.
ENCRYPTION = {80877103, 80877104}


@dataclass
class Statements:
    """The statements of one connection, parsed from PostgreSQL's protocol."""

    run: list[str]
    _unread: bytes = b""
    _started: bool = False
    _prepared: dict[bytes, str] = field(default_factory=dict)

    def read(self, data: bytes) -> None:
        self._unread += data
        for kind, body in self._messages():
            if kind == b"P":
                name, text, _ = body.split(b"\0", 2)
                self._prepared[name] = text.decode()
            elif kind == b"B":
                self.run.append(self._prepared[body.split(b"\0", 2)[1]])
            elif kind == b"Q":
                self.run.append(body.rstrip(b"\0").decode())

    def _messages(self) -> Iterator[tuple[bytes, bytes]]:
        while True:
            start = 1 if self._started else 0
            if len(self._unread) < start + 4:
                return
            end = start + int.from_bytes(self._unread[start : start + 4], "big")
            if len(self._unread) < end:
                return
            kind, body = self._unread[:start], self._unread[start + 4 : end]
            self._unread = self._unread[end:]
            if not self._started:
                self._started = int.from_bytes(body[:4], "big") not in ENCRYPTION
            yield kind, body


@dataclass
class WatchedPostgres:
    """`run` are the statements of all connections, in the order they were sent."""

    host: str
    target: int
    port: int = 0
    run: list[str] = field(default_factory=list)

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self.host, self.target)
        statements = Statements(self.run)
        await asyncio.gather(_pump(reader, far_writer, statements), _pump(far_reader, writer))


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, statements: Statements | None = None
) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            if statements is not None:
                statements.read(data)
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def watched_postgres(host: str, port: int) -> AsyncIterator[WatchedPostgres]:
    watched = WatchedPostgres(host, port)
    server = await asyncio.start_server(watched.connect, "127.0.0.1", 0)
    watched.port = server.sockets[0].getsockname()[1]
    try:
        yield watched
    finally:
        server.close()
        await server.wait_closed()
