"""A relay between us and an engine that can be told to fail in the ways networks do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import StrEnum


class Fault(StrEnum):
    NONE = "none"
    REFUSED = "refused"
    RESET = "reset"
    HANGING = "hanging"


class Relay:
    """Passes bytes both ways; `fault` applies to open connections and to new ones."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._relays: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self.port = 0

    async def start(self, fault: Fault = Fault.NONE) -> None:
        self._flowing.set()
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        await self.fail(fault)

    async def fail(self, fault: Fault) -> None:
        if fault is Fault.HANGING:
            self._flowing.clear()
        if fault is Fault.REFUSED and self._server is not None:
            self._server.close()
            self._server = None
        if fault in {Fault.REFUSED, Fault.RESET}:
            for writer in list(self._writers):
                writer.transport.abort()

    async def heal(self) -> None:
        self._flowing.set()
        if self._server is None:
            await self.start()

    async def stop(self) -> None:
        self._flowing.set()
        await self.fail(Fault.REFUSED)
        await asyncio.gather(*self._relays, return_exceptions=True)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._relays.add(asyncio.ensure_future(self._relay(reader, writer)))

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        self._writers -= {writer, far_writer}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def relay(host: str, port: int) -> AsyncIterator[Relay]:
    started = Relay(host, port)
    await started.start()
    try:
        yield started
    finally:
        await started.stop()
