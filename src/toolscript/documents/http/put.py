"""Documents that arrive in a request, written batch after batch.

The next batch is read when the one before is written: a slow engine slows the sender, and memory stays as it is.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterable, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from toolscript.errors import InvalidRequest, ToolscriptError
from toolscript.model.document_json import line_read, refusal
from toolscript.model.documents import Document, PutOutcome, PutResult
from toolscript.surfaces.error_table import envelope_of
from toolscript.surfaces.http.document_lines import MOST_LINE, Line
from toolscript.surfaces.http.document_models import PutCounts, PutResultShown

MOST_DOCUMENTS = 50_000
# Blank ones, too.
MOST_LINES = 4 * MOST_DOCUMENTS
# What is longer is read on a thread: it may take as long as many short ones.
READ_HERE = 32 * 1024
MOST_IN_BATCH = 64
MOST_BATCH_BYTES = 1024 * 1024
MOST_RESULT_BYTES = 16 * 1024 * 1024
LINES_AT_ONCE = 500

Put = Callable[[Sequence[Document]], Awaitable[Sequence[PutResult]]]


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
        return taken < MOST_DOCUMENTS and self._result_bytes < MOST_RESULT_BYTES

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
        return len(self._batch) < MOST_IN_BATCH and self._held_bytes + entry.size <= MOST_BATCH_BYTES

    def _note(self, result: PutResult, line: int | None) -> None:
        self._counts[result.outcome] += 1
        facts: dict[str, Any] = {"doc_id": result.id or None, "status": result.outcome}
        facts["passages"] = result.passages
        facts |= {"error": result.problem} if result.problem else {}
        facts |= {} if line is None else {"line": line}
        text = PutResultShown.model_construct(**facts).model_dump_json(exclude_unset=True)
        self._results.append(text)
        self._result_bytes += len(text)


async def write_lines(writing: Writing, lines: AsyncIterable[Line]) -> ToolscriptError | None:
    """Why it stopped before the end, if it did. What was written before it is in the results."""
    try:
        async for line in lines:
            blank = line.data is not None and not line.data.strip()
            if line.number > MOST_LINES or not (blank or writing.has_room()):
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
        f"at most {MOST_DOCUMENTS:,} documents a request, fewer with long ids, in {MOST_LINES:,} lines: none from "
        f"line {line} on was taken",
        hint="send the rest in another request",
        details={"line": line},
    )


async def _entry(line: Line) -> Entry:
    if line.data is None:
        return Entry(refusal(f"is longer than {MOST_LINE >> 20} MiB"), 0, line.number)
    short = len(line.data) <= READ_HERE
    read = line_read(line.data) if short else await asyncio.to_thread(line_read, line.data)
    return Entry(read, len(line.data), line.number)


def answer_in_lines(writing: Writing, stopped: ToolscriptError | None) -> Iterator[str]:
    """A line for each document, and a last one with the counts, and with the error that ended it too early."""
    results = writing.results
    for at in range(0, len(results), LINES_AT_ONCE):
        yield "".join(f"{result}\n" for result in results[at : at + LINES_AT_ONCE])
    counts = writing.counts.model_dump_json()
    said = "" if stopped is None else f',"error":{json.dumps(envelope_of(stopped)["error"], default=str)}'
    yield f'{{"counts":{counts}{said}}}\n'
