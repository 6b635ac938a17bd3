"""Compatibility of this version of the program with the schema of the database.

Revisions are four digits in the order of the migrations, so a later one is a greater string.
"""

import asyncio

from toolscript.core.errors import CatalogUnavailable, SetupError
from toolscript.core.postgres.pool import MIGRATE_HINT, Pool, can_connect, connection

# The first migration and the latest.
BASELINE, REVISION = "0015", "0017"
FIRST_ATTEMPTS, PAUSE_SECONDS = 5, 1.0

FIND_REVISION = "SELECT version_num FROM public.toolscript_schema"
FIND_OLDEST_CODE = "SELECT oldest_code FROM mcp.schema_compatibility"
OLD_HINT = (
    "begin with an empty database: `toolscript migrate` makes the schema and `toolscript sync` fills it; or first"
    " run `toolscript migrate` of a version that has the migrations in between"
)
UPDATE_HINT = "update toolscript to the version that migrated the database, or a later one"


async def require_current_schema(pool: Pool) -> None:
    """Raise SetupError unless the schema is this version's, or a later one that still serves it."""
    # A busy machine may take longer for a pool's first connection than a request may wait for one.
    attempts = FIRST_ATTEMPTS if await can_connect(pool) else 1
    for left in reversed(range(attempts)):
        try:
            require_usable(*await _revisions(pool))
        except CatalogUnavailable:
            if not left:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
        else:
            return


async def _revisions(pool: Pool) -> tuple[str | None, str | None]:
    """The schema's revision, and the oldest revision whose code it serves, where it is newer than this code."""
    async with connection(pool) as conn:
        row = await (await conn.execute(FIND_REVISION)).fetchone()
        revision = None if row is None else str(row[0])
        row = await (await conn.execute(FIND_OLDEST_CODE)).fetchone() if is_newer(revision) else None
    return revision, None if row is None else str(row[0])


def is_newer(current: str | None) -> bool:
    return current is not None and current > REVISION


def require_usable(current: str | None, oldest_code: str | None) -> None:
    if current is None:
        raise SetupError("the database has no schema yet", hint=MIGRATE_HINT)
    if current < BASELINE:
        raise SetupError(
            f"the database schema is at {current}, and this version upgrades a schema from {BASELINE} on",
            hint=OLD_HINT,
        )
    if current < REVISION:
        raise SetupError(f"the database schema is at {current}, this version needs {REVISION}", hint=MIGRATE_HINT)
    if current == REVISION or (oldest_code is not None and oldest_code <= REVISION):
        return
    serves = f" and serves programs from {oldest_code} on" if oldest_code else ""
    raise SetupError(
        f"the database schema is at {current}{serves}; this version of toolscript is of {REVISION}",
        hint=UPDATE_HINT,
    )
