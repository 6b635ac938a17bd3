"""Which tenants there are, and what is kept of them beside their documents, in schema `documents`."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

from toolscript.adapters.postgres.pool import Pool, connection
from toolscript.model.tenancy import KnownTenant, Tenant

BATCH = 5_000

_SEEN = "INSERT INTO documents.tenants (name) VALUES (%s) ON CONFLICT DO NOTHING"
_PAGE = """
SELECT name, since FROM documents.tenants WHERE name COLLATE "C" > %s ORDER BY name COLLATE "C" LIMIT %s
"""
_FORGET_QUERIES = """
DELETE FROM documents.queries WHERE id IN (SELECT id FROM documents.queries WHERE tenant = %s ORDER BY id LIMIT %s)
"""
_FORGET_REQUESTS = "DELETE FROM documents.requests WHERE tenant = %s"
_FORGET_NAME = "DELETE FROM documents.tenants WHERE name = %s"


class PostgresTenants:
    def __init__(self, pool: Pool, batch: int = BATCH) -> None:
        self._pool = pool
        self._batch = batch

    async def seen(self, tenant: Tenant) -> None:
        """Asked of the table every time: somebody else may have forgotten the tenant since."""
        async with connection(self._pool) as conn:
            await conn.execute(_SEEN, (tenant.name,))

    async def page(self, after: str, limit: int) -> Sequence[KnownTenant]:
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_PAGE, (after, limit))).fetchall()
        return [KnownTenant(Tenant(str(name)), _iso(since)) for name, since in rows]

    async def forget(self, tenant: Tenant) -> None:
        """The name goes last: killed on the way, the tenant is still listed, and can be forgotten again."""
        async with connection(self._pool) as conn:
            while (await conn.execute(_FORGET_QUERIES, (tenant.name, self._batch))).rowcount == self._batch:
                pass
            await conn.execute(_FORGET_REQUESTS, (tenant.name,))
            await conn.execute(_FORGET_NAME, (tenant.name,))


def _iso(since: object) -> str:
    return cast("datetime", since).astimezone(UTC).isoformat()
