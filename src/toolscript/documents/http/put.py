"""PUT of many documents: split the body into lines, and write these in batches.

The next batch is read when the previous one is written: a slow engine slows the client, and memory stays bounded.
"""

import asyncio
import json
import zlib
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from toolscript.core.errors import InvalidRequest, ToolscriptError, envelope_of, told_to_clients
from toolscript.documents.model.document import Document, PutOutcome, PutResult, parse_line, refusal
from toolscript.documents.schemas import PutCounts

MAX_LINE = 4 * 1024 * 1024
# Limit of one request, compressed and uncompressed.
MAX_BYTES = 1024 * 1024 * 1024
# Lines between two yields to the event loop.
LINES_PER_TURN = 500
# Maximum expansion by gzip. Text stays below; a decompression bomb does not.
MAX_GROWTH = 100
AT_ONCE = 64 * 1024
GZIP = 31

MAX_DOCUMENTS = 50_000
# Blank lines count.
MAX_LINES = 4 * MAX_DOCUMENTS
# A longer line is parsed on a thread: it may take as long as many short ones.
MAX_INLINE_LINE = 32 * 1024
MAX_IN_BATCH = 64
MAX_BATCH_BYTES = 1024 * 1024
MAX_RESULT_BYTES = 16 * 1024 * 1024
LINES_AT_ONCE = 500

Put = Callable[[Sequence[Document]], Awaitable[Sequence[PutResult]]]
# Arguments: the result, and its line in a body of lines.
ShowResult = Callable[[PutResult, int | None], BaseModel]


@dataclass(frozen=True)
class Line:
    """`data` is None for a line that is too long."""

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

    def cut(self, block: bytes) -> Iterator[Line]:
        """Yield the complete lines lazily: a block may be nothing but line breaks."""
        start = 0
        while (end := block.find(b"\n", start)) >= 0:
            self._keep(block[start:end])
            yield self._line()
            start = end + 1
        self._keep(block[start:])

    def last(self) -> Iterator[Line]:
        """Yield the rest after the last line break, if any."""
        if self._kept or self._too_long:
            yield self._line()

    def _keep(self, part: bytes) -> None:
        if self._too_long or len(self._kept) + len(part) > self._maximum:
            self._too_long = True
            self._kept.clear()
        else:
            self._kept += part

    def _line(self) -> Line:
        self._number += 1
        line = Line(self._number, None if self._too_long else bytes(self._kept))
        self._kept.clear()
        self._too_long = False
        return line


async def lines_of(blocks: AsyncIterator[bytes], maximum: int = MAX_LINE) -> AsyncIterator[Line]:
    cutter = LineCutter(maximum)
    async for block in blocks:
        for line in cutter.cut(block):
            yield line
            if line.number % LINES_PER_TURN == 0:
                await asyncio.sleep(0)
    for line in cutter.last():
        yield line


async def bounded(blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    total = 0
    async for block in blocks:
        total += len(block)
        if total > MAX_BYTES:
            raise InvalidRequest(
                f"a request is at most {MAX_BYTES >> 20} MiB, also uncompressed", hint="send the rest in another"
            )
        yield block


class GzipDecoder:
    """Decompresses gzip in blocks: a few bytes can expand to more than fits in memory."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(wbits=GZIP)
        self._packed = self._grown = 0
        self._within = False

    def unpack(self, compressed: bytes) -> Iterator[bytes]:
        self._packed += len(compressed)
        rest, more = compressed, False
        while rest or more:
            block = self._decompress_block(rest)
            yield block
            rest, more = self._decompressor.unconsumed_tail, len(block) == AT_ONCE
            self._within = not self._decompressor.eof
            if self._decompressor.eof:
                rest, self._decompressor = self._decompressor.unused_data, zlib.decompressobj(wbits=GZIP)

    def end(self) -> None:
        if self._within:
            raise InvalidRequest("the gzip body is truncated")

    def _decompress_block(self, compressed: bytes) -> bytes:
        try:
            block = self._decompressor.decompress(compressed, AT_ONCE)
        except zlib.error:
            raise InvalidRequest("the body is not gzip, but its Content-Encoding is") from None
        self._grown += len(block)
        if self._grown > self._packed * MAX_GROWTH + AT_ONCE:
            raise InvalidRequest(f"the body decompresses to more than {MAX_GROWTH} times its size")
        return block


async def unpacked(blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    decoder = GzipDecoder()
    async for compressed in blocks:
        for block in decoder.unpack(compressed):
            yield block
            await asyncio.sleep(0)
    decoder.end()


@dataclass(frozen=True)
class Entry:
    """One entry of a request: a document, or its refusal. `line` is its line in a body of lines."""

    read: Document | PutResult
    size: int
    line: int | None = None


class UploadWriter:
    """Writes the documents of one request. It holds at most one batch, and the results of the rest."""

    def __init__(self, put: Put, written: Callable[[Sequence[PutResult]], None], show: ShowResult) -> None:
        self._put = put
        self._written = written
        self._show = show
        self._batch: list[Entry] = []
        self._held_bytes = 0
        self._results: list[str] = []
        self._result_bytes = 0
        self._counts: Counter[PutOutcome] = Counter()

    @property
    def results(self) -> Sequence[str]:
        """Results as JSON, in the order of the documents."""
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
        # A batch of refused or unchanged documents never awaits: yield to the event loop here.
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
        text = self._show(result, line).model_dump_json(exclude_unset=True)
        self._results.append(text)
        self._result_bytes += len(text)


async def write_lines(writing: UploadWriter, lines: AsyncIterable[Line]) -> ToolscriptError | None:
    """Write all lines; return the error that ended it early, if any. The results hold what was written before."""
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
        f"at most {MAX_DOCUMENTS:,} documents a request, fewer with long ids, in {MAX_LINES:,} lines: line {line} "
        "and all after it were not processed",
        hint="send the rest in another request",
        details={"line": line},
    )


async def _entry(line: Line) -> Entry:
    if line.data is None:
        return Entry(refusal(f"is longer than {MAX_LINE >> 20} MiB"), 0, line.number)
    is_short = len(line.data) <= MAX_INLINE_LINE
    parsed = parse_line(line.data) if is_short else await asyncio.to_thread(parse_line, line.data)
    return Entry(parsed, len(line.data), line.number)


def response_lines(writing: UploadWriter, stopped: ToolscriptError | None, *, by_kind: bool) -> Iterator[str]:
    """Yield a line for each document, and a last one with the counts, and with the error that ended it early."""
    results = writing.results
    for index in range(0, len(results), LINES_AT_ONCE):
        yield "".join(f"{result}\n" for result in results[index : index + LINES_AT_ONCE])
    counts = writing.counts.model_dump_json()
    error = ""
    if stopped is not None:
        told = envelope_of(told_to_clients(stopped), by_kind=by_kind)["error"]
        error = f',"error":{json.dumps(told, default=str)}'
    yield f'{{"counts":{counts}{error}}}\n'
