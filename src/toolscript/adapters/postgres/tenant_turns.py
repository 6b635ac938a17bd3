"""Whoever moves or erases a tenant does so alone; if it is killed, the next one is let in at once.

The lock is that of a transaction which lasts as long, not of a session: behind a pooler such as PgBouncer the
next statement of a session may run in another one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import psycopg

from toolscript.adapters.postgres.pool import Pool, connection
from toolscript.errors import Conflict
from toolscript.model.tenancy import Tenant

_TAKE = "SELECT pg_try_advisory_xact_lock(hashtextextended('toolscript tenant ' || %s, 0))"
# Moving takes as long as it takes. What is set here ends with the transaction.
_MAY_BE_IDLE = "SET LOCAL idle_in_transaction_session_timeout = 0"


@asynccontextmanager
async def alone_with(pool: Pool, tenant: Tenant) -> AsyncIterator[None]:
    async with connection(pool) as conn:
        await conn.execute("BEGIN")
        await conn.execute(_MAY_BE_IDLE)
        taken = await (await conn.execute(_TAKE, (tenant.name,))).fetchone()
        if taken != (True,):
            raise Conflict(
                f"somebody else moves or erases tenant {tenant} at the moment", hint="wait until that has ended"
            )
        try:
            yield
        finally:
            # A connection that was lost meanwhile has given it back already.
            with suppress(psycopg.Error):
                await conn.rollback()
