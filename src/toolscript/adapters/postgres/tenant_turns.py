"""Whoever moves or erases a tenant does so alone; if it is killed, the next one is let in at once."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import psycopg

from toolscript.adapters.postgres.pool import Pool, connection
from toolscript.errors import Conflict
from toolscript.model.tenancy import Tenant

_TAKE = "SELECT pg_try_advisory_lock(hashtextextended('toolscript tenant ' || %s, 0))"
_GIVE_BACK = "SELECT pg_advisory_unlock(hashtextextended('toolscript tenant ' || %s, 0))"


@asynccontextmanager
async def alone_with(pool: Pool, tenant: Tenant) -> AsyncIterator[None]:
    async with connection(pool) as conn:
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
                await conn.execute(_GIVE_BACK, (tenant.name,))
