"""A body of lines, cut into lines as it arrives. However long it is, no more than one line of it is held."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from toolscript.errors import InvalidRequest

MOST_LINE = 4 * 1024 * 1024
# Packed or not, of one request.
MOST_BYTES = 1024 * 1024 * 1024
# So many are cut until others have their turn.
LINES_PER_TURN = 500
# What text is packed to at best; whatever grows by more was made to.
MOST_GROWTH = 100
AT_ONCE = 64 * 1024
GZIP = 31


@dataclass(frozen=True)
class Line:
    """`data` is None of a line that is too long."""

    number: int
    data: bytes | None


class LineCutter:
    def __init__(self, most: int = MOST_LINE) -> None:
        self._most = most
        self._kept = bytearray()
        self._too_long = False
        self._number = 0

    @property
    def held(self) -> int:
        return len(self._kept)

    def cut(self, chunk: bytes) -> Iterator[Line]:
        """One after the other: a chunk may be nothing but line breaks."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._keep(chunk[start:end])
            yield self._line()
            start = end + 1
        self._keep(chunk[start:])

    def last(self) -> Iterator[Line]:
        """What came after the last line break, if anything did."""
        if self._kept or self._too_long:
            yield self._line()

    def _keep(self, piece: bytes) -> None:
        if self._too_long or len(self._kept) + len(piece) > self._most:
            self._too_long = True
            self._kept.clear()
        else:
            self._kept += piece

    def _line(self) -> Line:
        self._number += 1
        line = Line(self._number, None if self._too_long else bytes(self._kept))
        self._kept.clear()
        self._too_long = False
        return line


async def lines_of(chunks: AsyncIterator[bytes], most: int = MOST_LINE) -> AsyncIterator[Line]:
    cutter = LineCutter(most)
    async for chunk in chunks:
        for line in cutter.cut(chunk):
            yield line
            if line.number % LINES_PER_TURN == 0:
                await asyncio.sleep(0)
    for line in cutter.last():
        yield line


async def bounded(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    total = 0
    async for chunk in chunks:
        total += len(chunk)
        if total > MOST_BYTES:
            raise InvalidRequest(
                f"a request is at most {MOST_BYTES >> 20} MiB, unpacked as well", hint="send the rest in another"
            )
        yield chunk


class Unpacker:
    """What gzip packed, in pieces: a few bytes can unpack to more than any memory holds."""

    def __init__(self) -> None:
        self._unpacker = zlib.decompressobj(wbits=GZIP)
        self._packed = self._grown = 0
        self._within = False

    def unpack(self, chunk: bytes) -> Iterator[bytes]:
        self._packed += len(chunk)
        rest, more = chunk, False
        while rest or more:
            piece = self._piece(rest)
            yield piece
            rest, more = self._unpacker.unconsumed_tail, len(piece) == AT_ONCE
            self._within = not self._unpacker.eof
            if self._unpacker.eof:
                rest, self._unpacker = self._unpacker.unused_data, zlib.decompressobj(wbits=GZIP)

    def end(self) -> None:
        if self._within:
            raise InvalidRequest("the body is gzip, and its end is missing")

    def _piece(self, packed: bytes) -> bytes:
        try:
            piece = self._unpacker.decompress(packed, AT_ONCE)
        except zlib.error:
            raise InvalidRequest("the body is not gzip, as its Content-Encoding says") from None
        self._grown += len(piece)
        if self._grown > self._packed * MOST_GROWTH + AT_ONCE:
            raise InvalidRequest(f"the body unpacks to more than {MOST_GROWTH} times its size")
        return piece


async def unpacked(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    unpacker = Unpacker()
    async for chunk in chunks:
        for piece in unpacker.unpack(chunk):
            yield piece
            await asyncio.sleep(0)
    unpacker.end()
