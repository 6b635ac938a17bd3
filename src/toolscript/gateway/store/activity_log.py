"""The activity log in its file: written by a thread of its own, in batches, and never in the way of a call.

A batch is what came while the one before was committed, so many calls at once share commits. While the file cannot
be written, entries wait, up to a number, and calls wait for nothing.
"""

import asyncio
import contextlib
import logging
import math
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from toolscript.gateway.activity import ActivityFilter, Ending, Entry, Outcome, Record, Ticket
from toolscript.gateway.store.activity_file import (
    Limits,
    Owner,
    complete,
    end_running,
    identity_of,
    insert,
    open_file,
    prune,
    read_page,
    reading,
    shrink,
    transaction,
)

# How long a call waits for its entry, at most: the log is slow, and the call goes on without it.
WAIT_SECONDS = 1.0
RETRY_SECONDS = 1.0
WARN_AGAIN_SECONDS = 60.0
CLOSE_SECONDS = 5.0
MAX_WAITING = 10_000
PRUNE_EVERY = 256

Write = Callable[[sqlite3.Connection], None]
Waiter = tuple[asyncio.AbstractEventLoop, "asyncio.Future[None]"]

logger = logging.getLogger(__name__)


class SqliteActivity:
    """Implements the port `ActivityLog`. The file is opened by the first entry, and again if it was removed."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        self._path = path
        self._limits = limits or Limits()
        self._problem = ""
        self._warned_at = -math.inf
        self._has_warned = False
        self._queue: deque[Callable[[], Write]] = deque()
        self._waiters: deque[Waiter] = deque()
        self._news = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None
        # Only the thread uses what follows.
        self._owner: Owner | None = None
        self._connection: sqlite3.Connection | None = None
        self._inode: object = None
        self._file: object = None
        self._unwritten: deque[Write] = deque(maxlen=MAX_WAITING)
        self._inserted = 0

    @property
    def problem(self) -> str:
        return self._problem

    def begin(self, entry: Entry) -> Ticket:
        ticket = Ticket(entry)
        self._put(lambda: partial(self._begin, ticket))
        return ticket

    def finish(self, ticket: Ticket, ending: Ending) -> None:
        self._put(lambda: partial(self._finish, ticket, ending, ending.measure()))

    def add(self, entry: Entry, ending: Ending) -> None:
        self._put(lambda: partial(self._insert, entry, ending, ending.measure()))

    async def written(self) -> None:
        if self._problem:
            return
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        self._waiters.append((loop, waiter))
        self._news.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                await waiter

    async def page(self, where: ActivityFilter, before: int | None, limit: int) -> Sequence[Record]:
        await self.written()
        return await asyncio.to_thread(self._page, where, before, limit)

    def _page(self, where: ActivityFilter, before: int | None, limit: int) -> Sequence[Record]:
        try:
            with reading(self._path) as connection:
                return read_page(connection, where, before, limit) if connection is not None else ()
        except (sqlite3.Error, OSError) as error:
            self._fail(error)
            return ()

    async def close(self) -> None:
        """Write what waits. Calls that run are unknown then."""
        self._closing = True
        if self._thread is not None:
            self._news.set()
            await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)

    def _put(self, prepare: Callable[[], Write]) -> None:
        self._queue.append(prepare)
        if self._thread is None and not self._closing:
            self._thread = threading.Thread(target=self._run, name="activity log", daemon=True)
            self._thread.start()
        self._news.set()

    def _run(self) -> None:
        while not self._closing:
            self._news.wait(RETRY_SECONDS if self._unwritten else None)
            self._news.clear()
            self._write_waiting()
        self._write_waiting()
        self._end()

    def _write_waiting(self) -> None:
        # In this order: whoever waits has put its entry before.
        waiters = [self._waiters.popleft() for _ in range(len(self._waiters))]
        for _ in range(len(self._queue)):
            try:
                self._unwritten.append(self._queue.popleft()())
            except Exception as error:  # noqa: BLE001 - what cannot be measured must not end the log
                self._fail(error)
        try:
            self._write_all()
        except (sqlite3.OperationalError, OSError) as error:
            self._fail(error)
            self._close_file()
        except Exception as error:  # noqa: BLE001 - a batch that can never be written must not end the log
            self._fail(error)
            self._close_file()
            self._unwritten.clear()
        for loop, waiter in waiters:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(_resolve, waiter)

    def _write_all(self) -> None:
        if not self._unwritten:
            return
        connection = self._open()
        with transaction(connection):
            for write in self._unwritten:
                write(connection)
            if due := self._inserted >= PRUNE_EVERY:
                prune(connection, self._limits)
        self._unwritten.clear()
        if due:
            self._inserted = 0
            shrink(connection)
        self._problem = ""
        if self._has_warned:
            self._has_warned = False
            logger.warning("the activity log is written again")

    def _open(self) -> sqlite3.Connection:
        """Open the file, also one that took the place of the one that was open."""
        if self._connection is not None and _inode(self._path) != self._inode:
            self._close_file()
        if self._connection is None:
            self._owner = self._owner or Owner(self._path.parent)
            self._connection = open_file(self._path)
            self._inode, self._file = _inode(self._path), identity_of(self._connection)
        return self._connection

    def _begin(self, ticket: Ticket, connection: sqlite3.Connection) -> None:
        ticket.id = insert(connection, ticket.entry, Outcome.RUNNING, None, None, "", self._owner_id)
        ticket.file = self._file
        self._inserted += 1

    def _finish(self, ticket: Ticket, ending: Ending, result_bytes: int, connection: sqlite3.Connection) -> None:
        """Complete the row; where it was removed meanwhile, insert it, so that the call is in the log."""
        facts = (ending.took_ms, result_bytes, ending.error)
        has_row = ticket.file == self._file and complete(
            connection, ticket.id, self._owner_id, ending.outcome, *facts
        )
        if not has_row:
            self._insert(ticket.entry, ending, result_bytes, connection)

    def _insert(self, entry: Entry, ending: Ending, result_bytes: int, connection: sqlite3.Connection) -> None:
        insert(connection, entry, ending.outcome, ending.took_ms, result_bytes, ending.error, None)
        self._inserted += 1

    @property
    def _owner_id(self) -> str:
        return self._owner.id if self._owner is not None else ""

    def _fail(self, error: Exception) -> None:
        """Warn once until it works again, and once a minute: a full disk has room for the next small entry.

        The message of an unknown error could contain a part of an entry.
        """
        reason = str(error) if isinstance(error, sqlite3.Error | OSError) else type(error).__name__
        if not self._problem and time.monotonic() - self._warned_at > WARN_AGAIN_SECONDS:
            self._warned_at, self._has_warned = time.monotonic(), True
            facts = {"file": str(self._path), "reason": reason}
            logger.warning("the activity log cannot be written; calls go on without it", extra=facts)
        self._problem = f"{self._path} cannot be written: {reason}"

    def _end(self) -> None:
        if self._connection is not None and self._owner is not None:
            with contextlib.suppress(sqlite3.Error):
                end_running(self._connection, self._owner.id)
        self._close_file()
        if self._owner is not None:
            self._owner.close()

    def _close_file(self) -> None:
        connection, self._connection, self._file = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()


def _inode(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _resolve(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
