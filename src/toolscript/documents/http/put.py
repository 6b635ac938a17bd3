"""PUT of many documents: the body is cut into lines, and these are written in batches.

The next batch is read when the one before is written: a slow engine slows the sender, and memory stays as it is.
"""

import asyncio
import json
import zlib
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from toolscript.core.errors import InvalidRequest, ToolscriptError, envelope_of
from toolscript.documents.model.document import Document, PutOutcome, PutResult, line_read, refusal
from toolscript.documents.schemas import PutCounts, PutResultShown

MAX_LINE = 4 * 1024 * 1024
# Packed or not, of one request.
MAX_BYTES = 1024 * 1024 * 1024
# So many are cut until others have their turn.
LINES_PER_TURN = 500
# What text is packed to at best; whatever grows by more was made to.
MAX_GROWTH = 100
AT_ONCE = 64 * 1024
GZIP = 31

MAX_DOCUMENTS = 50_000
# Blank ones, too.
MAX_LINES = 4 * MAX_DOCUMENTS
# What is longer is read on a thread: it may take as long as many short ones.
READ_HERE = 32 * 1024
MAX_IN_BATCH = 64
MAX_BATCH_BYTES = 1024 * 1024
MAX_RESULT_BYTES = 16 * 1024 * 1024
LINES_AT_ONCE = 500

Put = Callable[[Sequence[Document]], Awaitable[Sequence[PutResult]]]


@dataclass(frozen=True)
class Line:
    """`data` is None of a line that is too long."""

    number: int
    data: bytes | None


class LineCutter:
    def __init__(self, maximum: int = MAX_LINE) -> None:
        self._maximum = maximum
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
        if self._too_long or len(self._kept) + len(piece) > self._maximum:
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


async def lines_of(chunks: AsyncIterator[bytes], maximum: int = MAX_LINE) -> AsyncIterator[Line]:
    cutter = LineCutter(maximum)
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
        if total > MAX_BYTES:
            raise InvalidRequest(
                f"a request is at most {MAX_BYTES >> 20} MiB, unpacked as well", hint="send the rest in another"
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
        if self._grown > self._packed * MAX_GROWTH + AT_ONCE:
            raise InvalidRequest(f"the body unpacks to more than {MAX_GROWTH} times its size")
        return piece


async def unpacked(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    unpacker = Unpacker()
    async for chunk in chunks:
        for piece in unpacker.unpack(chunk):
            yield piece
            await asyncio.sleep(0)
    unpacker.end()


@dataclass(frozen=True)
class Entry:
    """One that came: a document, or why it is none. `line` is where, if it came in lines."""

    read: Document | PutResult
    size: int
    line: int | None = None


class Writing:
    """The documents of one request. At most a batch of them is held, and of the rest what became of them."""

    def __init__(self, put: Put, written: Callable[[Sequence[PutResult]], None]) -> None:
        self._put = put
        self._written = written
        self._batch: list[Entry] = []
        self._held_bytes = 0
        self._results: list[str] = []
        self._result_bytes = 0
        self._counts: Counter[PutOutcome] = Counter()

    @property
    def results(self) -> Sequence[str]:
        """As JSON, in the order of the documents."""
        return self._results

    @property
    def counts(self) -> PutCounts:
        return PutCounts(**{outcome.value: self._counts[outcome] for outcome in PutOutcome})

    def has_room(self) -> bool:
        taken = len(self._results) + len(self._batch)
        return taken < MAX_DOCUMENTS and self._result_bytes < MAX_RESULT_BYTES

    async def add(self, entry: Entry) -> None:
        if self._batch and not self._fits(entry):
            await self.flush()
        self._batch.append(entry)
        self._held_bytes += entry.size

    async def flush(self) -> None:
        # What is refused or unchanged is never waited for, and then others would not have their turn.
        await asyncio.sleep(0)
        batch, self._batch, self._held_bytes = self._batch, [], 0
        documents = [entry.read for entry in batch if isinstance(entry.read, Document)]
        written = iter(await self._put(documents) if documents else ())
        results = [next(written) if isinstance(entry.read, Document) else entry.read for entry in batch]
        for entry, result in zip(batch, results, strict=True):
            self._note(result, entry.line)
        self._written(results)

    def _fits(self, entry: Entry) -> bool:
        return len(self._batch) < MAX_IN_BATCH and self._held_bytes + entry.size <= MAX_BATCH_BYTES

    def _note(self, result: PutResult, line: int | None) -> None:
        self._counts[result.outcome] += 1
        text = PutResultShown.of(result, line).model_dump_json(exclude_unset=True)
        self._results.append(text)
        self._result_bytes += len(text)


async def write_lines(writing: Writing, lines: AsyncIterable[Line]) -> ToolscriptError | None:
    """Why it stopped before the end, if it did. What was written before it is in the results."""
    try:
        async for line in lines:
            blank = line.data is not None and not line.data.strip()
            if line.number > MAX_LINES or not (blank or writing.has_room()):
                await writing.flush()
                return _too_many(line.number)
            if not blank:
                await writing.add(await _entry(line))
        await writing.flush()
    except ToolscriptError as error:
        return error
    return None


def _too_many(line: int) -> InvalidRequest:
    return InvalidRequest(
        f"at most {MAX_DOCUMENTS:,} documents a request, fewer with long ids, in {MAX_LINES:,} lines: none from "
        f"line {line} on was taken",
        hint="send the rest in another request",
        details={"line": line},
    )


async def _entry(line: Line) -> Entry:
    if line.data is None:
        return Entry(refusal(f"is longer than {MAX_LINE >> 20} MiB"), 0, line.number)
    short = len(line.data) <= READ_HERE
    read = line_read(line.data) if short else await asyncio.to_thread(line_read, line.data)
    return Entry(read, len(line.data), line.number)


def answer_in_lines(writing: Writing, stopped: ToolscriptError | None) -> Iterator[str]:
    """A line for each document, and a last one with the counts, and with the error that ended it too early."""
    results = writing.results
    for index in range(0, len(results), LINES_AT_ONCE):
        yield "".join(f"{result}\n" for result in results[index : index + LINES_AT_ONCE])
    counts = writing.counts.model_dump_json()
    said = "" if stopped is None else f',"error":{json.dumps(envelope_of(stopped)["error"], default=str)}'
    yield f'{{"counts":{counts}{said}}}\n'
