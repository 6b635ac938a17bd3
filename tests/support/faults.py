"""A relay in front of an engine that can simulate failures of networks and engines."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import StrEnum


class Fault(StrEnum):
    """Fault of a response. A reset happens once; the others last until the relay is healed."""

    NONE = "none"
    REFUSED = "refused"
    RESET = "reset"
    HANGING = "hanging"
    SLOW = "slow"
    WRONG = "wrong"
    HALF_THEN_CUT = "half then cut"
    HALF_THEN_SILENT = "half then silent"


LAST_MOMENT_SECONDS = 0.01
GARBAGE = random.Random(6).randbytes(512)
_PASSING = {Fault.NONE, Fault.REFUSED, Fault.RESET}


class Relay:
    """Passes bytes both ways; a fault applies to open connections and to new ones."""

    def __init__(self, host: str, port: int, *, listens_on: str = "127.0.0.1", own_port: int = 0) -> None:
        self._target = (host, port)
        self._listens_on = listens_on
        self._writers: set[asyncio.StreamWriter] = set()
        self._spoilt: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._relays: set[asyncio.Task[None]] = set()
        self._healed = asyncio.Event()
        self._fault = Fault.NONE
        self._delay = 0.0
        self.port = own_port
        self.accepted = 0

    async def start(self, fault: Fault = Fault.NONE) -> None:
        self._healed.set()
        self._server = await asyncio.start_server(self._begin, self._listens_on, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        await self.fail(fault)

    async def fail(self, fault: Fault, *, delay: float = 0.0) -> None:
        """`delay`: seconds to hold back a slow response."""
        self._fault, self._delay = fault, delay
        if fault not in _PASSING:
            self._healed.clear()
        if fault is Fault.REFUSED and self._server is not None:
            self._server.close()
            self._server = None
        if fault in {Fault.REFUSED, Fault.RESET}:
            _abort(self._writers)

    async def heal(self) -> None:
        self._fault = Fault.NONE
        self._healed.set()
        # A stream with garbage in it cannot be resynchronized.
        _abort(self._spoilt)
        if self._server is None:
            await self.start()

    async def stop(self) -> None:
        self._healed.set()
        await self.fail(Fault.REFUSED)
        await asyncio.gather(*self._relays, return_exceptions=True)
        # Close connections that were just accepted: unclosed transports cause warnings much later.
        await asyncio.sleep(LAST_MOMENT_SECONDS)
        _abort(self._writers)
        await asyncio.sleep(0)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self._server is None:
            writer.transport.abort()
            return
        self._writers.add(writer)
        self._relays.add(asyncio.ensure_future(self._relay(reader, writer)))

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
        except OSError:
            self._writers.discard(writer)
            writer.transport.abort()
            return
        both = {writer, far_writer}
        self._writers |= both
        await asyncio.gather(self._ask(reader, far_writer), self._answer(far_reader, writer))
        self._writers -= both
        self._spoilt -= both

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if self._fault is Fault.HANGING:
                    await self._healed.wait()
                await _pass_on(data, writer)
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if not await self._fail_answer(data, writer):
                    await _pass_on(data, writer)
        writer.close()

    async def _fail_answer(self, data: bytes, writer: asyncio.StreamWriter) -> bool:
        """Apply the fault; return whether it replaced the response."""
        match self._fault:
            case Fault.HANGING:
                await self._healed.wait()
            case Fault.SLOW:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._healed.wait(), self._delay)
            case Fault.WRONG:
                self._spoilt.add(writer)
                await _pass_on(GARBAGE, writer)
                return True
            case Fault.HALF_THEN_CUT:
                await _pass_on(_half(data), writer)
                raise ConnectionAbortedError
            case Fault.HALF_THEN_SILENT:
                await _pass_on(_half(data), writer)
                await self._healed.wait()
                await _pass_on(data[len(_half(data)) :], writer)
                return True
        return False


async def _pass_on(data: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(data)
    await writer.drain()


def _half(data: bytes) -> bytes:
    return data[: (len(data) + 1) // 2]


def _abort(writers: set[asyncio.StreamWriter]) -> None:
    for writer in list(writers):
        writer.transport.abort()


@asynccontextmanager
async def relay(host: str, port: int, *, listens_on: str = "127.0.0.1", own_port: int = 0) -> AsyncIterator[Relay]:
    started = Relay(host, port, listens_on=listens_on, own_port=own_port)
    await started.start()
    try:
        yield started
    finally:
        await started.stop()
