"""The file of the activity log: its tables, and what is read from it and deleted in it."""

import logging
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

from toolscript.core.file_locks import take
from toolscript.core.own_files import is_own
from toolscript.gateway.activity import Action, ActivityFilter, Entry, Outcome, Record, Usage
from toolscript.gateway.callers import CLI, HTTP, PYTHON

FILE = "activity.db"
FORMAT = 1
BUSY_SECONDS = 0.5
# Rows that are deleted at once, at most: no call waits for long.
BATCH = 2_000
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
_COLUMNS = "id, at, action, client, server, tool, argument_bytes, arguments, outcome, took_ms, result_bytes, error"

logger = logging.getLogger(__name__)


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
        settle(connection, path.parent)
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


def settle(connection: sqlite3.Connection, folder: Path) -> None:
    """Declare calls unknown that dead processes were making."""
    running = connection.execute("SELECT DISTINCT process FROM activity WHERE outcome = 'running'").fetchall()
    for (owner,) in running:
        if not _is_alive(folder, owner):
            end_running(connection, owner)
    for lock in (folder / "run").glob("activity-*.lock"):
        if not _is_alive(folder, lock.stem.removeprefix("activity-")):
            with suppress(OSError):
                lock.unlink(missing_ok=True)


def end_running(connection: sqlite3.Connection, owner: str) -> None:
    connection.execute(
        "UPDATE activity SET outcome = 'unknown' WHERE outcome = 'running' AND process = ?", (owner,)
    )


def insert(connection: sqlite3.Connection, entry: Entry, outcome: Outcome, *ending: object) -> int:
    """Insert a row; `ending` is how long it took, the bytes of the result, the error, and the process of it."""
    row = (entry.at, entry.action.value, entry.client, entry.server, entry.tool, entry.argument_bytes)
    cursor = connection.execute(
        "INSERT INTO activity (at, action, client, server, tool, argument_bytes, arguments, outcome, took_ms, "
        "result_bytes, error, process) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*row, entry.arguments, outcome.value, *ending),
    )
    return int(cursor.lastrowid or 0)


def complete(connection: sqlite3.Connection, row: int, owner: str, outcome: Outcome, *ending: object) -> bool:
    """Complete a row that this owner began; return whether there is one."""
    cursor = connection.execute(
        "UPDATE activity SET outcome = ?, took_ms = ?, result_bytes = ?, error = ?, process = NULL "
        "WHERE id = ? AND process = ?",
        (outcome.value, *ending, row, owner),
    )
    return cursor.rowcount == 1


def prune(connection: sqlite3.Connection, limits: Limits) -> None:
    """Delete the oldest rows over the limits, a batch at most. Rows that run stay, to be completed."""
    first, last = connection.execute("SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM activity").fetchone()
    used, most = _used_bytes(connection), limits.megabytes << 20
    share = 1 - ROOM * most / used if used > most else 0.0
    kept_from = max(last - limits.rows + 1, first + math.ceil(share * (last - first)))
    connection.execute(
        "DELETE FROM activity WHERE id IN "
        "(SELECT id FROM activity WHERE id < ? AND outcome <> 'running' ORDER BY id LIMIT ?)",
        (kept_from, BATCH),
    )


def shrink(connection: sqlite3.Connection, pages: int = BATCH) -> None:
    """Give pages of deleted rows back to the system. Outside a transaction."""
    connection.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()


def check(path: Path) -> None:
    """Raise if the file cannot be written now."""
    with closing(open_file(path)) as connection, transaction(connection):
        connection.execute(f"PRAGMA user_version = {FORMAT}")


def clear(path: Path) -> int:
    """Delete all rows but those of calls that run; return how many. A file that is no log is removed."""
    if not path.exists():
        return 0
    try:
        with closing(open_file(path)) as connection:
            with transaction(connection):
                deleted = connection.execute("DELETE FROM activity WHERE outcome <> 'running'").rowcount
                # Earlier versions kept one.
                connection.execute("DROP TABLE IF EXISTS sessions")
            shrink(connection, 0)
            # Else what was deleted is in the write-ahead log until that is used again.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return int(deleted)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        for name in ("", "-wal", "-shm"):
            path.with_name(path.name + name).unlink(missing_ok=True)
        return 0


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Open the file to read; None if there is none. Calls of dead processes are unknown in it."""
    if not path.exists():
        yield None
        return
    try:
        connection = open_file(path)
    except (sqlite3.OperationalError, OSError):
        # It can perhaps be read all the same.
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)
    with closing(connection):
        yield connection


def read_page(
    connection: sqlite3.Connection, where: ActivityFilter, before: int | None, limit: int
) -> list[Record]:
    """Return records with an id below `before`, the newest first."""
    conditions, values = _conditions(where)
    if before is not None:
        conditions, values = [*conditions, "id < ?"], [*values, before]
    return _records(connection, conditions, values, f"ORDER BY id DESC LIMIT {limit:d}")


def read_after(
    connection: sqlite3.Connection, where: ActivityFilter, after: int, running: Sequence[int], limit: int
) -> list[Record]:
    """Return records with an id above `after`, and those of `running`, the oldest first."""
    conditions, values = _conditions(where)
    ids = ", ".join(str(int(row)) for row in running)
    return _records(
        connection, [*conditions, f"(id > ? OR id IN ({ids}))"], [*values, after], f"ORDER BY id LIMIT {limit:d}"
    )


def _conditions(where: ActivityFilter) -> tuple[list[str], list[object]]:
    named = {name: value for name, value in vars(where).items() if value}
    conditions: list[str] = []
    values: list[object] = []
    for name, value in named.items():
        is_tool = name == "tool"
        conditions.append("(tool = ? OR server || '__' || tool = ?)" if is_tool else f"{name} = ?")
        values += [value, value] if is_tool else [value]
    return conditions, values


def _records(
    connection: sqlite3.Connection, conditions: Sequence[str], values: Sequence[object], rest: str
) -> list[Record]:
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM activity {where} {rest}", [*values])  # noqa: S608
    return [_record(*row) for row in rows]


def _record(*row: object) -> Record:
    number, at, action, client, server, tool, size, arguments, outcome, took_ms, result, error = row
    entry = Entry(
        Action(str(action)),
        float(str(at)),
        str(client),
        str(server),
        str(tool),
        int(str(size)),
        None if arguments is None else str(arguments),
    )
    return Record(
        int(str(number)),
        entry,
        Outcome(str(outcome)),
        None if took_ms is None else float(str(took_ms)),
        None if result is None else int(str(result)),
        str(error),
    )


def read_usage(connection: sqlite3.Connection, since: float) -> Usage:
    row = connection.execute(
        "WITH done AS (SELECT action, argument_bytes + coalesce(result_bytes, 0) AS size, "
        "at - lag(at) OVER (PARTITION BY action, client ORDER BY at) AS pause, "
        "action = 'search' AND client NOT IN (?, ?, ?) AS of_mcp "
        "FROM activity WHERE at >= ? AND outcome <> 'refused') "
        "SELECT count(*) FILTER (WHERE action = 'search'), count(*) FILTER (WHERE action = 'call'), "
        "count(*) FILTER (WHERE of_mcp AND coalesce(pause, ?) >= ?), "
        "coalesce(sum(size) FILTER (WHERE of_mcp), 0) FROM done",
        (CLI, HTTP, PYTHON, since, SESSION_SECONDS, SESSION_SECONDS),
    ).fetchone()
    return Usage(*row)


def state_of(connection: sqlite3.Connection) -> FileState:
    rows, oldest = connection.execute("SELECT count(*), min(at) FROM activity").fetchone()
    return FileState(rows, _used_bytes(connection), oldest)


def _used_bytes(connection: sqlite3.Connection) -> int:
    pages = _pragma(connection, "page_count") - _pragma(connection, "freelist_count")
    return pages * _pragma(connection, "page_size")


def identity_of(connection: sqlite3.Connection) -> int:
    return _pragma(connection, "application_id")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
