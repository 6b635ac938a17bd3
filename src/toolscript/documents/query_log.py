"""The query log: a queue that never blocks a search, written in batches to a file or a table."""

import asyncio
import json
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Protocol

from toolscript.core.auth.model import Principal
from toolscript.core.errors import SetupError, ToolscriptError, Unavailable
from toolscript.core.text import readable
from toolscript.documents.model.answer import DocumentAnswer
from toolscript.documents.model.query import DocumentQuery, LogDetail, LoggedQuery

MAX_WAITING = 10_000
BATCH = 500
EVERY_SECONDS = 1.0
TRIES = 3
PAUSE_SECONDS = 1.0
WRITE_SECONDS = 10.0
SHUTDOWN_SECONDS = 5.0
WARN_EVERY_SECONDS = 60.0
_HINT = "is there room on the disk, and may the service write there? See TOOLSCRIPT_QUERY_LOG"
_OWNER_ALONE = 0o600

logger = logging.getLogger(__name__)


class QuerySink(Protocol):
    """The target of batches. A batch that failed may be written again."""

    async def write(self, queries: Sequence[LoggedQuery]) -> None: ...


class Dropped(Protocol):
    """Callback with the number of lost entries; the reason is `full` (the queue) or `failed` (the write)."""

    def __call__(self, count: int, reason: str) -> None: ...


def log_entry(
    principal: Principal,
    query: DocumentQuery,
    answer: DocumentAnswer,
    keeps: LogDetail,
    *,
    at: str,
    query_id: str,
    took_ms: float,
) -> LoggedQuery:
    """Return the log entry of a search, with no more than the installation keeps."""
    with_text, with_results = keeps is not LogDetail.FIGURES, keeps is LogDetail.RESULTS
    return LoggedQuery(
        at=at,
        query_id=query_id,
        tenant=principal.tenant.name,
        plan=principal.plan.name,
        search_type=query.search_type.value,
        fusion=query.fusion.value if query.fusion else "",
        filters=len(query.filters.conditions),
        top_k=query.top_k,
        hits=len(answer.hits),
        total=answer.total.value,
        took_ms=took_ms,
        degraded=answer.degraded,
        reranked_by=answer.reranked_by,
        text=readable(query.text) if with_text else "",
        found=tuple(readable(hit.id) for hit in answer.hits) if with_results else (),
    )


class QueuedQueryLog:
    """A bounded queue. It drops new entries when it is full, and batches that fail after a few tries."""

    def __init__(
        self,
        sink: QuerySink,
        dropped: Dropped | None = None,
        *,
        max_waiting: int = MAX_WAITING,
        every_seconds: float = EVERY_SECONDS,
        pause_seconds: float = PAUSE_SECONDS,
        write_seconds: float = WRITE_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink = sink
        self._max_waiting = max_waiting
        self._every_seconds = every_seconds
        self._pause_seconds = pause_seconds
        self._write_seconds = write_seconds
        self._losses = _Losses(dropped, now)
        self._waiting: deque[LoggedQuery] = deque()
        self._some, self._enough, self._closing = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._writer = asyncio.create_task(self._write_all())

    def record(self, query: LoggedQuery) -> None:
        if len(self._waiting) >= self._max_waiting or self._closing.is_set():
            self._losses.add(1, "full")
            return
        self._waiting.append(query)
        self._some.set()
        if len(self._waiting) >= BATCH:
            self._enough.set()

    async def aclose(self, within_seconds: float = SHUTDOWN_SECONDS) -> None:
        """Write the queued entries, within this time."""
        self._closing.set()
        self._some.set()
        self._enough.set()
        await asyncio.wait({self._writer}, timeout=within_seconds)
        if not self._writer.done():
            self._writer.cancel()
            await asyncio.wait({self._writer}, timeout=within_seconds)
        if self._waiting:
            self._losses.add(len(self._waiting), "failed")
            self._waiting.clear()

    async def _write_all(self) -> None:
        while await self._wait_until_due():
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            if not self._waiting and not self._closing.is_set():
                self._some.clear()
            if len(self._waiting) < BATCH and not self._closing.is_set():
                self._enough.clear()
            await self._write(batch)

    async def _wait_until_due(self) -> bool:
        """Wait for a full batch, or until the interval has passed; return False at the end."""
        await self._some.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._every_seconds):
                await self._enough.wait()
        return bool(self._waiting) or not self._closing.is_set()

    async def _write(self, batch: Sequence[LoggedQuery]) -> None:
        written = False
        try:
            for again in range(TRIES):
                written = await self._try(batch)
                if written or again == TRIES - 1 or self._closing.is_set():
                    break
                await self._pause(2**again * self._pause_seconds)
        finally:
            if not written:
                self._losses.add(len(batch), "failed")

    async def _try(self, batch: Sequence[LoggedQuery]) -> bool:
        try:
            async with asyncio.timeout(self._write_seconds):
                await self._sink.write(batch)
        except ToolscriptError as error:
            self._losses.because(error.message)
            return False
        except Exception as error:  # noqa: BLE001 - a bad batch must not end the log
            # Its message could contain the text of a query.
            self._losses.because(type(error).__name__)
            return False
        return True

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()


class _Losses:
    """Counts each loss, and logs a warning at most once a minute."""

    def __init__(self, dropped: Dropped | None, now: Callable[[], float]) -> None:
        self._dropped = dropped
        self._now = now
        self._unreported = 0
        self._next = float("-inf")
        self._reason = ""

    def because(self, reason: str) -> None:
        self._reason = reason

    def add(self, count: int, reason: str) -> None:
        if self._dropped is not None:
            self._dropped(count, reason)
        self._unreported += count
        if (now := self._now()) >= self._next:
            self._next = now + WARN_EVERY_SECONDS
            cause = f"{reason}: {self._reason}" if self._reason else reason
            logger.warning("searches were not noted", extra={"total": self._unreported, "reason": cause})
            self._unreported = 0


class QueryLogFile:
    """A file that several processes may append to: each write stays contiguous."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # True if the last line is incomplete because the disk was full.
        self._torn = False
        try:
            self._file = _open(path)
        except OSError as error:
            raise SetupError(f"query log {path}: {error.strerror}", hint=_HINT) from error

    async def write(self, queries: Sequence[LoggedQuery]) -> None:
        await asyncio.to_thread(self._write, _lines(queries))

    def close(self) -> None:
        os.close(self._file)

    def _write(self, lines: bytes) -> None:
        try:
            self._reopen_if_moved()
            rest = b"\n" + lines if self._torn else lines
            while rest:
                rest = rest[os.write(self._file, rest) :]
                self._torn = bool(rest)
        except OSError as error:
            raise Unavailable(f"query log {self._path}: {error.strerror}", hint=_HINT) from error

    def _reopen_if_moved(self) -> None:
        """Open a new file if the old one was moved away, as log rotation does."""
        try:
            moved = not os.path.samestat(os.stat(self._path), os.fstat(self._file))  # noqa: PTH116
        except FileNotFoundError:
            moved = True
        if moved:
            new = _open(self._path)
            os.close(self._file)
            self._file, self._torn = new, False


def _open(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _OWNER_ALONE)


def _lines(queries: Sequence[LoggedQuery]) -> bytes:
    """Return lines of ASCII JSON: some readers treat other characters as line ends."""
    return b"".join(json.dumps(asdict(query)).encode() + b"\n" for query in queries)
