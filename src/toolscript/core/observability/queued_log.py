"""A log that never blocks what it records: a bounded queue, written in batches to a sink."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
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
    """The target of batches."""

    async def write(self, entries: Sequence[Entry_contra], /) -> None:
        """Write a batch. It is written again after a ToolscriptError, and lost after any other error."""


class Dropped(Protocol):
    """Callback with the number of lost entries; the reason is `full` (the queue) or `failed` (the write)."""

    def __call__(self, count: int, reason: str) -> None: ...


class QueuedLog(Generic[Entry]):
    """A bounded queue. It drops new entries when it is full, and batches that fail after a few tries.

    Without a number of `tries`, a batch is tried until the log is closed. `what` names the entries in warnings.
    """

    def __init__(
        self,
        sink: LogSink[Entry],
        dropped: Dropped | None = None,
        *,
        max_waiting: int = MAX_WAITING,
        every_seconds: float = EVERY_SECONDS,
        pause_seconds: float = PAUSE_SECONDS,
        write_seconds: float | None = WRITE_SECONDS,
        tries: int | None = TRIES,
        what: str = "searches",
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink = sink
        self._max_waiting = max_waiting
        self._every_seconds = every_seconds
        self._pause_seconds = pause_seconds
        self._write_seconds = write_seconds
        self._tries = tries
        self._losses = _Losses(dropped, now, what)
        self._waiting: deque[Entry] = deque()
        # How many were accepted and are done with, and who waits for how many.
        self._accepted = self._done = 0
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._some, self._enough, self._closing = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._writer = asyncio.create_task(self._write_all())

    def record(self, entry: Entry) -> None:
        if len(self._waiting) >= self._max_waiting or self._closing.is_set():
            self._losses.add(1, "full")
            return
        self._waiting.append(entry)
        self._accepted += 1
        self._some.set()
        if len(self._waiting) >= BATCH:
            self._enough.set()

    async def written(self, within_seconds: float) -> None:
        """Wait until all entries so far are written, or a write has failed, at most for this time."""
        if self._done == self._accepted:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append((self._accepted, waiter))
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                await waiter

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
        self._release(self._accepted)

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
        if self._every_seconds:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_seconds):
                    await self._enough.wait()
        return bool(self._waiting) or not self._closing.is_set()

    async def _write(self, batch: Sequence[Entry]) -> None:
        written = False
        try:
            for again in count(1):
                written = await self._try(batch)
                if written or again == self._tries or self._closing.is_set():
                    break
                self._release(self._accepted)
                await self._pause(self._pause_seconds * (2 ** (again - 1) if self._tries else 1))
        except Exception as error:  # noqa: BLE001 - a bad batch must not end the log
            # Its message could contain the text of a search.
            self._losses.because(type(error).__name__)
        finally:
            self._done += len(batch)
            self._release(self._done)
            if not written:
                self._losses.add(len(batch), "failed")

    async def _try(self, batch: Sequence[Entry]) -> bool:
        try:
            async with asyncio.timeout(self._write_seconds):
                await self._sink.write(batch)
        except TimeoutError:
            self._losses.because("TimeoutError")
            return False
        except ToolscriptError as error:
            self._losses.because(error.message)
            return False
        return True

    def _release(self, done: int) -> None:
        """End the waiting of all that wait for no more than so many entries."""
        while self._waiters and self._waiters[0][0] <= done:
            _, waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()


class _Losses:
    """Counts each loss, and logs a warning at most once a minute."""

    def __init__(self, dropped: Dropped | None, now: Callable[[], float], what: str) -> None:
        self._what = what
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
            logger.warning("%s were not noted", self._what, extra={"total": self._unreported, "reason": cause})
            self._unreported = 0
