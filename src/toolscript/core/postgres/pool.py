"""Connections, and the one place where the driver's errors become ours."""

import asyncio
import logging
import re
import select
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar, Self, cast
from weakref import WeakKeyDictionary

import psycopg
from psycopg import AsyncConnection, errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from toolscript.core.errors import CatalogRejected, CatalogUnavailable, SetupError, ToolscriptError

logger = logging.getLogger(__name__)

Connection = AsyncConnection[tuple[object, ...]]
Pool = AsyncConnectionPool[Connection]

MIGRATE_HINT = "run `toolscript migrate`"
DOWN_HINT = "is PostgreSQL running, and is TOOLSCRIPT_POSTGRES_URL right?"
REFUSED_HINT = "are user, password and database in TOOLSCRIPT_POSTGRES_URL right?"
GRANT_HINT = "grant it to the user of TOOLSCRIPT_POSTGRES_URL, or name the one that `toolscript migrate` ran as"
URL_HINT = "write it like postgresql://user:password@host:5432/name, with special characters as %XX"

# Said by PostgreSQL or by a pooler of who may not come in, which no waiting will change. They have no code of
# their own: whoever is refused at the door is told a text alone.
_REFUSED = re.compile(
    r"authentication failed|(role|database) \".*\" does not exist|no pg_hba\.conf entry"
    r"|permission denied for database|is not permitted to log in|no password supplied"
    r"|no such (user|database)|auth failed"
)

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
    ((errors.InsufficientPrivilege,), SetupError, GRANT_HINT),
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
                raise meaning(f"PostgreSQL: {_for_clients(error)}", hint=hint) from error
        raise


def _for_clients(error: Exception) -> str:
    """Which table it is about concerns whoever runs the service, and none of its callers."""
    if not isinstance(error, errors.InsufficientPrivilege):
        return _first_line(error)
    logger.error("PostgreSQL refuses", extra={"part": "catalog", "reason": _first_line(error)})
    return "a privilege is missing; the log says which"


class _Told(AsyncConnection[tuple[object, ...]]):
    """Keeps why the last attempt to connect failed, which the pool tells nobody. A class for each pool."""

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
            raise SetupError(f"PostgreSQL: {_first_line(error)}", hint=REFUSED_HINT) from error
        return False
    return True


@asynccontextmanager
async def open_pool(url: str, *, size: int, wait_seconds: float = 2.0) -> AsyncIterator[Pool]:
    """A pool that opens at once and connects when asked; an address that cannot be read is refused."""
    # Their warnings repeat what each caller is told anyway, and can quote the address.
    for noisy in ("psycopg", "psycopg.pool"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    require_readable(url)
    pool: Pool = AsyncConnectionPool(
        url,
        connection_class=type("_Told", (_Told,), {}),
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
    """While the database is down, one request in a while waits for it, and the others fail at once."""
    if time.monotonic() < _down_until.get(pool, 0.0):
        raise CatalogUnavailable("PostgreSQL did not answer a moment ago", hint=DOWN_HINT)
    with translated():
        try:
            async with pool.connection() as conn:
                yield conn
        except PoolTimeout as late:
            _down_until[pool] = time.monotonic() + RETRY_AFTER_SECONDS
            failure = cast("type[_Told]", pool.connection_class).failure
            raise PoolTimeout(failure or str(late)) from late


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
