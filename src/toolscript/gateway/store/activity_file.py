"""The file of the activity log: what is written to it, read from it and deleted in it."""

import math
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from toolscript.core.errors import SetupError
from toolscript.core.file_locks import take
from toolscript.core.own_files import is_own
from toolscript.gateway.activity import Action, ActivityFilter, Ending, Entry, Outcome, Record, Ticket, Usage
from toolscript.gateway.callers import CLI, HTTP, PYTHON

FILE = "activity.db"
FORMAT = 1
BUSY_SECONDS = 0.5
# Rows that are deleted at once, at most: no call waits for long.
BATCH = 2_000
PRUNE_EVERY = 256
# The share of the largest size that is left when rows were deleted because of it.
ROOM = 0.9
# Clients over HTTP have no sessions: what a client searches after such a pause is another one.
SESSION_SECONDS = 30 * 60.0
_OPENING = """
    CREATE TABLE activity (
        id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, action TEXT NOT NULL, client TEXT NOT NULL,
        server TEXT NOT NULL, tool TEXT NOT NULL, argument_bytes INTEGER NOT NULL, arguments TEXT,
        outcome TEXT NOT NULL, took_ms REAL, result_bytes INTEGER, error TEXT NOT NULL DEFAULT '', process TEXT
    );
    CREATE INDEX activity_running ON activity (process) WHERE outcome = 'running';
"""
_COLUMNS = "at, action, client, server, tool, argument_bytes, arguments, outcome, took_ms, result_bytes, error"
_INSERT = f"INSERT INTO activity ({_COLUMNS}, process) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_COMPLETE = (
    "UPDATE activity SET outcome = ?, took_ms = ?, result_bytes = ?, error = ?, process = NULL "
    "WHERE id = ? AND process = ?"
)
_END_RUNNING = "UPDATE activity SET outcome = 'unknown' WHERE outcome = 'running' AND process = ?"
_USAGE = (
    "WITH done AS (SELECT action, argument_bytes + coalesce(result_bytes, 0) AS size, "
    "at - lag(at) OVER (PARTITION BY action, client ORDER BY at) AS pause, "
    "action = 'search' AND client NOT IN (?, ?, ?) AS of_mcp "
    "FROM activity WHERE at >= ? AND outcome <> 'refused') "
    "SELECT count(*) FILTER (WHERE action = 'search'), count(*) FILTER (WHERE action = 'call'), "
    "count(*) FILTER (WHERE of_mcp AND coalesce(pause, ?) >= ?), "
    "coalesce(sum(size) FILTER (WHERE of_mcp), 0) FROM done"
)


@dataclass(frozen=True)
class Limits:
    """When either is reached, the oldest rows are deleted."""

    rows: int = 100_000
    megabytes: int = 64


@dataclass(frozen=True)
class FileState:
    rows: int
    used_bytes: int
    oldest: float | None


@dataclass(frozen=True)
class Event:
    """A search or call that begins, without an ending, or ends. What only ends here is one row all the same."""

    ticket: Ticket
    ending: Ending | None = None


class Owner:
    """A writer of entries, as a rule one per process. While it lives, it holds a lock on a file of its own."""

    def __init__(self, folder: Path) -> None:
        self.id = f"{os.getpid()}-{secrets.token_hex(6)}"
        self._path = _lock_file(folder, self.id)
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = self._take()

    def _take(self) -> IO[bytes]:
        while True:
            lock = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
            # Another process may have taken it for a dead one's, and removed it, before it was locked.
            if take(lock) and self._path.exists() and os.fstat(lock.fileno()).st_ino == self._path.stat().st_ino:
                return lock
            lock.close()

    def close(self) -> None:
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        self._lock.close()


class ActivityFile:
    """One thread writes with `write` and `end`. All other methods are for any process, whether a gateway runs or
    not; they raise `SetupError` where the file cannot be used."""

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        self.path = path
        self._limits = limits or Limits()
        self._owner: Owner | None = None
        self._connection: sqlite3.Connection | None = None
        self._inode: object = None
        self._identity = 0
        self._inserted = 0

    def write(self, events: Sequence[Event]) -> None:
        """Write events in one transaction. Raise sqlite3.Error or OSError if that fails: then none is written."""
        sizes = [_size(event.ending) for event in events]
        try:
            connection, owner = self._open()
            with transaction(connection):
                for event, size in zip(events, sizes, strict=True):
                    self._write(connection, owner.id, event, size)
                if due := self._inserted >= PRUNE_EVERY:
                    self._prune(connection)
            if due:
                self._inserted = 0
                _shrink(connection)
        except BaseException:
            self._close()
            raise

    def end(self) -> None:
        """End this writer: its calls that run are unknown."""
        if self._connection is not None and self._owner is not None:
            with suppress(sqlite3.Error):
                self._connection.execute(_END_RUNNING, (self._owner.id,))
        self._close()
        if self._owner is not None:
            self._owner.close()

    def page(self, where: ActivityFilter, before: int | None, limit: int) -> Sequence[Record]:
        """Return the records with an id below `before`, the newest first."""
        older = ([], []) if before is None else (["id < ?"], [before])
        return self._records(where, *older, f"ORDER BY id DESC LIMIT {limit:d}")

    def after(self, where: ActivityFilter, last: int, running: Sequence[int], limit: int) -> Sequence[Record]:
        """Return records with an id above `last`, and those of `running`, the oldest first."""
        ids = ", ".join(str(int(row)) for row in running)
        return self._records(where, [f"(id > ? OR id IN ({ids}))"], [last], f"ORDER BY id LIMIT {limit:d}")

    def usage(self, since: float) -> Usage:
        """Return what was done after that time."""
        with self._reading() as connection:
            if connection is None:
                return Usage()
            values = (CLI, HTTP, PYTHON, since, SESSION_SECONDS, SESSION_SECONDS)
            return Usage(*connection.execute(_USAGE, values).fetchone())

    def state(self) -> FileState | None:
        """Return how large it is, None without a file."""
        with self._reading() as connection:
            if connection is None:
                return None
            rows, oldest = connection.execute("SELECT count(*), min(at) FROM activity").fetchone()
            return FileState(rows, _used_bytes(connection), oldest)

    def check(self) -> None:
        """Raise if it cannot be written. A file that is not there is not made."""
        with self._explained():
            if self.path.exists():
                with closing(open_file(self.path)) as connection, transaction(connection):
                    connection.execute(f"PRAGMA user_version = {FORMAT}")

    def clear(self) -> int:
        """Delete all rows but those of calls that run; return how many. A file that is no log is removed."""
        with self._explained():
            if not self.path.exists():
                return 0
            try:
                with closing(open_file(self.path)) as connection:
                    with transaction(connection):
                        deleted = connection.execute("DELETE FROM activity WHERE outcome <> 'running'").rowcount
                        # Earlier versions kept one.
                        connection.execute("DROP TABLE IF EXISTS sessions")
                    _shrink(connection, 0)
                    # Else what was deleted is in the write-ahead log until that is used again.
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                    return int(deleted)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                for name in ("", "-wal", "-shm"):
                    self.path.with_name(self.path.name + name).unlink(missing_ok=True)
                return 0

    def _open(self) -> tuple[sqlite3.Connection, Owner]:
        """Open the file, also one that took the place of the one that was open."""
        if self._connection is not None and _inode(self.path) != self._inode:
            self._close()
        self._owner = self._owner or Owner(self.path.parent)
        if self._connection is None:
            self._connection = open_file(self.path)
            self._inode, self._identity = _inode(self.path), _pragma(self._connection, "application_id")
        return self._connection, self._owner

    def _write(self, connection: sqlite3.Connection, owner: str, event: Event, size: int | None) -> None:
        """Insert or complete a row. One that was removed meanwhile is inserted, so that the call is in the log."""
        ticket, ending = event.ticket, event.ending
        entry = ticket.entry
        row = (entry.at, entry.action, entry.client, entry.server, entry.tool, entry.argument_bytes)
        if ending is None:
            values = (*row, entry.arguments, Outcome.RUNNING, None, None, "", owner)
            ticket.id, ticket.file = connection.execute(_INSERT, values).lastrowid or 0, self._identity
            self._inserted += 1
            return
        facts = (ending.outcome, ending.took_ms, size, ending.error)
        if ticket.file == self._identity and connection.execute(_COMPLETE, (*facts, ticket.id, owner)).rowcount:
            return
        connection.execute(_INSERT, (*row, entry.arguments, *facts, None))
        self._inserted += 1

    def _prune(self, connection: sqlite3.Connection) -> None:
        """Delete the oldest rows over the limits, a batch at most. Rows that run stay, to be completed."""
        statement = "SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM activity"
        first, last = connection.execute(statement).fetchone()
        used, most = _used_bytes(connection), self._limits.megabytes << 20
        share = 1 - ROOM * most / used if used > most else 0.0
        kept_from = max(last - self._limits.rows + 1, first + math.ceil(share * (last - first)))
        connection.execute(
            "DELETE FROM activity WHERE id IN "
            "(SELECT id FROM activity WHERE id < ? AND outcome <> 'running' ORDER BY id LIMIT ?)",
            (kept_from, BATCH),
        )

    def _close(self) -> None:
        connection, self._connection, self._identity = self._connection, None, 0
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _records(
        self, where: ActivityFilter, conditions: Sequence[str], values: Sequence[object], rest: str
    ) -> list[Record]:
        conditions, values = [*conditions], [*values]
        for name, value in vars(where).items():
            if value:
                is_tool = name == "tool"
                conditions.append("(tool = ? OR server || '__' || tool = ?)" if is_tool else f"{name} = ?")
                values += [value, value] if is_tool else [value]
        wanted = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        with self._reading() as connection:
            if connection is None:
                return []
            rows = connection.execute(f"SELECT id, {_COLUMNS} FROM activity {wanted} {rest}", values)  # noqa: S608
            return [_record(*row) for row in rows]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """Open the file to read; None if there is none. Calls of dead processes are unknown in it."""
        with self._explained():
            if not self.path.exists():
                yield None
                return
            try:
                connection = open_file(self.path)
            except (sqlite3.OperationalError, OSError):
                # It can perhaps be read all the same.
                url = f"{self.path.absolute().as_uri()}?mode=ro"
                connection = sqlite3.connect(url, uri=True, timeout=BUSY_SECONDS)
            with closing(connection):
                yield connection

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise SetupError(f"{self.path} cannot be used: {error}", hint="try again in a moment") from error
        except (sqlite3.Error, OSError) as error:
            raise SetupError(
                f"{self.path} cannot be used: {error}",
                hint=f"`toolscript activity --clear` begins it anew; or remove {self.path} yourself",
            ) from error


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file, create it if there is none, and declare the calls of dead processes unknown."""
    _require_own(path)
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        _prepare(connection)
        _settle(connection, path.parent)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _require_own(path: Path) -> None:
    """Create the file for this user alone, or raise if another could have put it there.

    An existing file is not opened: to close it would release the locks of this process's other connections.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or not is_own(status):
        raise PermissionError(f"{path} is not a regular file of this user")
    if os.name != "nt" and status.st_mode & 0o077:
        path.chmod(0o600)


def _prepare(connection: sqlite3.Connection) -> None:
    # What is deleted is overwritten, and the file shrinks.
    connection.execute("PRAGMA secure_delete = ON")
    if (found := _pragma(connection, "user_version")) not in (0, FORMAT):
        raise sqlite3.DatabaseError(f"another version of Toolscript wrote it (format {found})")
    if found == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    # The end of this process loses nothing that is committed, a power failure at most the last moments.
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {4 << 20}")
    if found == 0:
        with transaction(connection):
            if _pragma(connection, "user_version") == 0:
                for statement in filter(str.strip, _OPENING.split(";")):
                    connection.execute(statement)
                # Tells this file from one that took its place, which may even have its inode.
                connection.execute(f"PRAGMA application_id = {1 + secrets.randbelow(2**31 - 1)}")
                connection.execute(f"PRAGMA user_version = {FORMAT}")


def _settle(connection: sqlite3.Connection, folder: Path) -> None:
    """Declare calls unknown that dead processes were making."""
    running = connection.execute("SELECT DISTINCT process FROM activity WHERE outcome = 'running'").fetchall()
    for (owner,) in running:
        if not _is_alive(folder, owner):
            connection.execute(_END_RUNNING, (owner,))
    for lock in (folder / "run").glob("activity-*.lock"):
        if not _is_alive(folder, lock.stem.removeprefix("activity-")):
            with suppress(OSError):
                lock.unlink(missing_ok=True)


def _lock_file(folder: Path, owner: str) -> Path:
    return folder / "run" / f"activity-{owner}.lock"


def _is_alive(folder: Path, owner: str) -> bool:
    try:
        with _lock_file(folder, owner).open("rb") as lock:
            return not take(lock, shared=True)
    except FileNotFoundError:
        return False
    except OSError:
        # Who cannot say must not declare a call of another lost.
        return True


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _record(
    number: int,
    at: float,
    action: str,
    client: str,
    server: str,
    tool: str,
    size: int,
    arguments: str | None,
    outcome: str,
    *facts: object,
) -> Record:
    took_ms, result_bytes, error = facts
    entry = Entry(Action(action), at, client, server, tool, size, arguments)
    return Record(number, entry, Outcome(outcome), took_ms, result_bytes, str(error))  # type: ignore[arg-type]


def _size(ending: Ending | None) -> int | None:
    """Return the bytes of a result, None where they cannot be told: the row matters more."""
    try:
        return None if ending is None else ending.measure()
    except Exception:  # noqa: BLE001 - it measures what servers and clients sent
        return None


def _shrink(connection: sqlite3.Connection, pages: int = BATCH) -> None:
    """Give pages of deleted rows back to the system. Outside a transaction."""
    connection.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages = _pragma(connection, "page_count") - _pragma(connection, "freelist_count")
    return pages * _pragma(connection, "page_size")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _inode(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
