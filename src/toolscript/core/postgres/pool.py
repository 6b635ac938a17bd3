"""Connection pool, and the translation of the driver's errors."""

import asyncio
import logging
import os
import re
import select
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any, ClassVar, Self, cast
from weakref import WeakKeyDictionary

import psycopg
from psycopg import AsyncConnection, errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from toolscript.core.breaker import OF_COMMANDS, Breaker, Engine, Patience
from toolscript.core.errors import CatalogRejected, CatalogUnavailable, SetupError, ToolscriptError

logger = logging.getLogger(__name__)

Connection = AsyncConnection[tuple[object, ...]]
Pool = AsyncConnectionPool[Connection]

MIGRATE_HINT = "run `toolscript migrate`"
DOWN_HINT = "is PostgreSQL running, and is TOOLSCRIPT_POSTGRES_URL right?"
REFUSED_HINT = "are user, password and database in TOOLSCRIPT_POSTGRES_URL right?"
GRANT_HINT = "grant it to the user of TOOLSCRIPT_POSTGRES_URL, or name the one that `toolscript migrate` ran as"
URL_HINT = "write it like postgresql://user:password@host:5432/name, with special characters as %XX"

# Login failures reported by PostgreSQL or a pooler, which a retry does not fix. They have no SQLSTATE on the
# client side, only a text.
_REFUSED = re.compile(
    r"authentication failed|(role|database) \".*\" does not exist|no pg_hba\.conf entry"
    r"|permission denied for database|is not permitted to log in|no password supplied"
    r"|no such (user|database)|auth failed"
)

_NO_DATABASE = re.compile(r"database \"(.*)\" does not exist")

# The database is well, and has no connection left.
_FULL = re.compile(r"too many (clients|connections)|connection slots are reserved|no more connections allowed")
# SQLSTATEs of a server that ends, or starts.
_ENDING = ("08", "57P")

_breakers: WeakKeyDictionary[Pool, Breaker] = WeakKeyDictionary()

# First match wins.
TRANSLATIONS: tuple[tuple[tuple[type[Exception], ...], type[ToolscriptError], str], ...] = (
    (
        (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName),
        SetupError,
        MIGRATE_HINT,
    ),
    (
        (
            errors.QueryCanceled,
            errors.DeadlockDetected,
            errors.SerializationFailure,
            errors.IdleInTransactionSessionTimeout,
            errors.ReadOnlySqlTransaction,
        ),
        CatalogUnavailable,
        "try again",
    ),
    ((errors.InsufficientPrivilege,), SetupError, GRANT_HINT),
    # The driver raises an OperationalError, but the data will never fit.
    ((errors.ProgramLimitExceeded,), CatalogRejected, ""),
    (
        (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, TimeoutError, OSError),
        CatalogUnavailable,
        DOWN_HINT,
    ),
    ((psycopg.Error,), CatalogRejected, ""),
)


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except (psycopg.Error, PoolTimeout, OSError) as error:
        for causes, meaning, hint in TRANSLATIONS:
            if isinstance(error, causes):
                raise meaning(f"PostgreSQL: {_client_message(error)}", hint=_hint(error, hint)) from error
        raise


def _hint(error: Exception, otherwise: str) -> str:
    """Return the command that creates a missing database, else the other hint."""
    missing = _NO_DATABASE.search(str(error))
    if missing is None:
        return otherwise
    return (
        f"`createdb {shlex.quote(missing[1])}` creates it, on the host and as the user of TOOLSCRIPT_POSTGRES_URL"
    )


def _client_message(error: Exception) -> str:
    """Return the message for clients; a missing privilege is logged in full, for administrators only."""
    if not isinstance(error, errors.InsufficientPrivilege):
        return _first_line(error)
    logger.error("PostgreSQL denies access", extra={"part": "catalog", "reason": _first_line(error)})
    return "a privilege is missing; see the log"


class _RecordingConnection(AsyncConnection[tuple[object, ...]]):
    """Keeps the error of the last connection attempt, which the pool hides. Each pool has its own subclass."""

    failure: ClassVar[str] = ""

    @classmethod
    async def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        try:
            connected = await super().connect(conninfo, **kwargs)
        except psycopg.Error as error:
            cls.failure = _first_line(error)
            raise
        cls.failure = ""
        return connected


async def can_connect(pool: Pool) -> bool:
    """Connect once, outside the pool. Raise on a wrong password or a missing database, which no waiting changes.

    False: PostgreSQL does not answer. The pool waits for it.
    """
    try:
        await (
            await pool.connection_class.connect(str(pool.conninfo), **cast("dict[str, Any]", pool.kwargs))
        ).close()
    except psycopg.Error as error:
        if _REFUSED.search(str(error)):
            raise SetupError(f"PostgreSQL: {_first_line(error)}", hint=_hint(error, REFUSED_HINT)) from error
        return False
    return True


@asynccontextmanager
async def open_pool(
    url: str, *, size: int, wait_seconds: float = 2.0, patience: Patience = OF_COMMANDS
) -> AsyncIterator[Pool]:
    """Open a pool at once; it connects on demand. Raise SetupError for a malformed URL."""
    # Their warnings repeat errors that callers get anyway, and may quote the URL.
    for noisy in ("psycopg", "psycopg.pool"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    require_readable(url)
    pool: Pool = AsyncConnectionPool(
        url,
        connection_class=type("_RecordingConnection", (_RecordingConnection,), {}),
        min_size=1,
        max_size=size,
        timeout=wait_seconds,
        max_waiting=size * 20,
        reconnect_timeout=0,
        # No prepared statements: behind PgBouncer the next one may run in another session, which lacks them.
        # They would save 0.03 ms per query.
        kwargs={
            "autocommit": True,
            "connect_timeout": max(2, int(wait_seconds)),
            "prepare_threshold": None,
        },
        check=_check_open,
        # With a reset function, the pool's own tasks return connections, not the task of a request: a request
        # cancelled at that moment would leak its connection, and the pool would count it forever.
        reset=_keep_session,
        open=False,
    )
    await pool.open(wait=False)

    async def probe() -> None:
        await _probe(pool)

    breaker = Breaker(Engine("PostgreSQL", CatalogUnavailable, probe, _is_down), patience)
    _breakers[pool] = breaker
    try:
        with breaker.opened():
            yield pool
    finally:
        with_deadline = pool.close(timeout=2.0)
        await asyncio.shield(with_deadline)


async def _keep_session(conn: Connection) -> None:
    """Do nothing: a returned connection has no transaction and no session state."""


async def _check_open(conn: Connection) -> None:
    """Detect a connection that the server closed while it was idle, at no cost for an open one.

    The server sends nothing on an idle connection: readable data is its end, or a notice that precedes it.
    """
    if sys.platform != "win32":
        poller = select.poll()
        poller.register(conn.fileno(), select.POLLIN)
        if poller.poll(0):
            await conn.execute("")


async def _probe(pool: Pool) -> None:
    """Ask over a connection of its own: those of the pool may all be waiting."""
    try:
        connecting = pool.connection_class.connect(str(pool.conninfo), **cast("dict[str, Any]", pool.kwargs))
        async with await connecting as conn:
            await conn.execute("SELECT 1")
    except (psycopg.Error, OSError) as error:
        if not _FULL.search(str(error)):
            raise CatalogUnavailable(f"PostgreSQL: {_first_line(error)}", hint=DOWN_HINT) from error


def _is_down(error: BaseException) -> bool:
    """Return whether PostgreSQL could not be asked. The pool may have been too busy as well; a probe tells."""
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return error.sqlstate is None or error.sqlstate.startswith(_ENDING)
    return isinstance(error, OSError)


@asynccontextmanager
async def connection(pool: Pool) -> AsyncIterator[Connection]:
    """Yield a connection; raise at once while the database does not answer."""
    with translated(), _breakers[pool].call() as call:
        async with AsyncExitStack() as stack:
            try:
                async with call.cancelled():
                    conn = await stack.enter_async_context(pool.connection())
            except PoolTimeout as late:
                failure = cast("type[_RecordingConnection]", pool.connection_class).failure
                raise PoolTimeout(failure or str(late)) from late
            # To cancel a request, the driver would wait for the database.
            call.interrupt = lambda: _hang_up(conn)
            yield conn


def _hang_up(conn: Connection) -> None:
    """End what the connection waits for, with an error; the pool replaces it."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(conn.fileno())) as same:
        same.shutdown(socket.SHUT_RDWR)


@asynccontextmanager
async def transaction(pool: Pool) -> AsyncIterator[Connection]:
    async with connection(pool) as conn, conn.transaction():
        yield conn


def require_readable(url: str) -> None:
    try:
        conninfo_to_dict(url)
    except psycopg.Error:
        # The driver's own message quotes the address, password and all.
        raise SetupError("TOOLSCRIPT_POSTGRES_URL cannot be read", hint=URL_HINT) from None


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
