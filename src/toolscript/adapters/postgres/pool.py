"""Connections, and the one place where the driver's errors become ours."""

import asyncio
import logging
import select
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from weakref import WeakKeyDictionary

import psycopg
from psycopg import AsyncConnection, errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from toolscript.errors import CatalogRejected, CatalogUnavailable, SetupError, ToolscriptError

Connection = AsyncConnection[tuple[object, ...]]
Pool = AsyncConnectionPool[Connection]

MIGRATE_HINT = "run `toolscript migrate`"
DOWN_HINT = "is PostgreSQL running, and is TOOLSCRIPT_POSTGRES_URL right?"
URL_HINT = "write it like postgresql://user:password@host:5432/name, with special characters as %XX"

RETRY_AFTER_SECONDS = 1.0
_down_until: WeakKeyDictionary[Pool, float] = WeakKeyDictionary()

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
    # To the driver this is an OperationalError; to us it is data that will never fit.
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
                raise meaning(f"PostgreSQL: {_first_line(error)}", hint=hint) from error
        raise


@asynccontextmanager
async def open_pool(url: str, *, size: int, wait_seconds: float = 2.0) -> AsyncIterator[Pool]:
    """A pool that opens at once and connects when asked; an address that cannot be read is refused."""
    # Their warnings repeat what each caller is told anyway, and can quote the address.
    for noisy in ("psycopg", "psycopg.pool"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    require_readable(url)
    pool: Pool = AsyncConnectionPool(
        url,
        min_size=1,
        max_size=size,
        timeout=wait_seconds,
        max_waiting=size * 20,
        reconnect_timeout=0,
        # Statements are not prepared: behind PgBouncer the next one may run in another session, which knows
        # none of them. It would save 0.03 ms of a query.
        kwargs={
            "autocommit": True,
            "connect_timeout": max(2, int(wait_seconds)),
            "prepare_threshold": None,
        },
        check=_refuse_closed,
        # Connections are handed back by the pool's own tasks then, and not by the task of a request: one that is
        # cancelled in that moment would take its connection with it, and the pool would count it for ever.
        reset=_leave_as_it_is,
        open=False,
    )
    await pool.open(wait=False)
    try:
        yield pool
    finally:
        with_deadline = pool.close(timeout=2.0)
        await asyncio.shield(with_deadline)


async def _leave_as_it_is(conn: Connection) -> None:
    """What is handed back is in no transaction, and has no state of a session to be cleared."""


async def _refuse_closed(conn: Connection) -> None:
    """One that the other side has closed while it was idle is replaced, at no cost for one that is well.

    An idle connection is told nothing: whatever can be read is its end, or news that may precede it.
    """
    if sys.platform != "win32":
        looking = select.poll()
        looking.register(conn.fileno(), select.POLLIN)
        if looking.poll(0):
            await conn.execute("")


@asynccontextmanager
async def connection(pool: Pool) -> AsyncIterator[Connection]:
    """While the database is down, one request in a while waits for it, and the others hear so at once."""
    if time.monotonic() < _down_until.get(pool, 0.0):
        raise CatalogUnavailable("PostgreSQL did not answer a moment ago", hint=DOWN_HINT)
    with translated():
        try:
            async with pool.connection() as conn:
                yield conn
        except PoolTimeout:
            _down_until[pool] = time.monotonic() + RETRY_AFTER_SECONDS
            raise


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
