"""Tells whether the migrations have been run."""

from toolscript.adapters.postgres.pool import MIGRATE_HINT, Pool, connection
from toolscript.errors import SetupError

# The last of the migrations.
REVISION = "0004"


async def require_current_schema(pool: Pool) -> None:
    """Refuses a database that was not migrated to exactly this version's schema."""
    async with connection(pool) as conn:
        row = await (await conn.execute("SELECT version_num FROM public.toolscript_schema")).fetchone()
    found = row[0] if row else None
    if found != REVISION:
        raise SetupError(f"the database schema is at {found}, this version needs {REVISION}", hint=MIGRATE_HINT)
