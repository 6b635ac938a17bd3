"""A log that never blocks what it records: a bounded queue, written in batches to a sink."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

from toolscript.core.errors import ToolscriptError

MAX_WAITING = 10_000
BATCH = 500
EVERY_SECONDS = 1.0
TRIES = 3
PAUSE_SECONDS = 1.0
WRITE_SECONDS = 10.0
SHUTDOWN_SECONDS = 5.0
WARN_EVERY_SECONDS = 60.0

Entry = TypeVar("Entry")
Entry_contra = TypeVar("Entry_contra", contravariant=True)

logger = logging.getLogger(__name__)


class LogSink(Protocol[Entry_contra]):
    """The target of batches. A batch that failed may be written again."""

    async def write(self, entries: Sequence[Entry_contra], /) -> None: ...


class Dropped(Protocol):
    """Callback with the number of lost entries; the reason is `full` (the queue) or `failed` (the write)."""

    def __call__(self, count: int, reason: str) -> None: ...


class QueuedLog(Generic[Entry]):
    """A bounded queue. It drops new entries when it is full, and batches that fail after a few tries."""

    def __init__(
        self,
        sink: LogSink[Entry],
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
        self._waiting: deque[Entry] = deque()
        self._some, self._enough, self._closing = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._writer = asyncio.create_task(self._write_all())

    def record(self, entry: Entry) -> None:
        if len(self._waiting) >= self._max_waiting or self._closing.is_set():
            self._losses.add(1, "full")
            return
        self._waiting.append(entry)
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

    async def _write(self, batch: Sequence[Entry]) -> None:
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

    async def _try(self, batch: Sequence[Entry]) -> bool:
        try:
            async with asyncio.timeout(self._write_seconds):
                await self._sink.write(batch)
        except ToolscriptError as error:
            self._losses.because(error.message)
            return False
        except Exception as error:  # noqa: BLE001 - a bad batch must not end the log
            # Its message could contain the text of a search.
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
