"""The activity log in its file: written by a thread of its own, in batches, and never in the way of a call.

A batch is what came while the one before was committed, so many calls at once share commits. While the file cannot
be written, entries wait, up to a number, and calls wait for nothing.
"""

import asyncio
import logging
import math
import sqlite3
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from toolscript.core.errors import SetupError, Unavailable
from toolscript.core.observability.queued_log import QueuedLog
from toolscript.gateway.activity import ActivityFilter, Ending, Entry, Record, Ticket
from toolscript.gateway.store.activity_file import ActivityFile, Event, Limits

# How long a call waits for its entry, at most: the log is slow, and the call goes on without it.
WAIT_SECONDS = 1.0
WARN_AGAIN_SECONDS = 60.0
CLOSE_SECONDS = 5.0

logger = logging.getLogger(__name__)


class SqliteActivity:
    """Implements the port `ActivityLog`. The file is opened by the first entry, and again if it was removed."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        self._file = ActivityFile(path, limits)
        self._thread = ThreadPoolExecutor(1, "activity log")
        # No limit for a write: its thread goes on after it, and what is tried again would be in the log twice.
        self._queue = QueuedLog[Event](
            self, every_seconds=0.0, write_seconds=None, tries=None, what="entries of the activity log"
        )
        self._problem = ""
        self._warned_at = -math.inf
        self._has_warned = False

    @property
    def problem(self) -> str:
        return self._problem

    def begin(self, entry: Entry) -> Ticket:
        ticket = Ticket(entry)
        self._queue.record(Event(ticket))
        return ticket

    def finish(self, ticket: Ticket, ending: Ending) -> None:
        self._queue.record(Event(ticket, ending))

    def add(self, entry: Entry, ending: Ending) -> None:
        self.finish(Ticket(entry), ending)

    async def written(self) -> None:
        if not self._problem:
            await self._queue.written(WAIT_SECONDS)

    async def page(self, where: ActivityFilter, before: int | None, limit: int) -> Sequence[Record]:
        await self.written()
        try:
            return await asyncio.to_thread(self._file.page, where, before, limit)
        except SetupError as error:
            self._fail(error)
            return ()

    async def write(self, entries: Sequence[Event]) -> None:
        """Write a batch of the queue. Raise Unavailable if that may succeed later."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._file.write, entries)
        except (sqlite3.OperationalError, OSError) as error:
            raise Unavailable(self._fail(error)) from error
        except Exception as error:
            self._fail(error)
            raise
        self._problem = ""
        if self._has_warned:
            self._has_warned = False
            logger.warning("the activity log is written again")

    async def close(self) -> None:
        """Write what waits. Calls that run are unknown then."""
        await self._queue.aclose(CLOSE_SECONDS)
        ending = asyncio.get_running_loop().run_in_executor(self._thread, self._file.end)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.shield(ending)
        self._thread.shutdown(wait=False)

    def _fail(self, error: Exception) -> str:
        """Return the problem. Warn once until it works again, and once a minute: a full disk has room for the
        next small entry.

        The message of an unknown error could contain a part of an entry.
        """
        reason = str(error) if isinstance(error, sqlite3.Error | OSError | SetupError) else type(error).__name__
        if not self._problem and time.monotonic() - self._warned_at > WARN_AGAIN_SECONDS:
            self._warned_at, self._has_warned = time.monotonic(), True
            facts = {"file": str(self._file.path), "reason": reason}
            logger.warning("the activity log cannot be written; calls go on without it", extra=facts)
        self._problem = f"{self._file.path} cannot be written: {reason}"
        return self._problem
