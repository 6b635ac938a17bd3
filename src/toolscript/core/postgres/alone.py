"""Work that one process does for all: an advisory lock, which ends with the process."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import psycopg
from psycopg import AsyncConnection

from toolscript.core.postgres.pool import require_readable, translated

CONNECT_SECONDS = 5

# In a transaction, as in pool.py: behind PgBouncer the next statement may run in another session.
_BEGIN = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0"
_TAKE = "SELECT pg_try_advisory_xact_lock(hashtextextended('toolscript ' || %s, 0))"


@asynccontextmanager
async def alone(url: str, work: str) -> AsyncIterator[Callable[[], Awaitable[bool]]]:
    """Yield a function that returns whether no other process does this work, on a connection of its own.

    It returns False for good once that connection is lost: then another process may have begun. Raise
    CatalogUnavailable where there is no connection.
    """
    require_readable(url)
    with translated():
        conn = await AsyncConnection.connect(
            url, autocommit=True, prepare_threshold=None, connect_timeout=CONNECT_SECONDS
        )
    async with conn:
        with translated():
            await conn.execute(_BEGIN)

        async def is_alone() -> bool:
            try:
                return await (await conn.execute(_TAKE, (work,))).fetchone() == (True,)
            except psycopg.Error:
                return False

        yield is_alone
