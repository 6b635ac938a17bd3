"""How many items each source has, for whoever owns the source: nobody else changes its row meanwhile."""

from toolscript.adapters.postgres.pool import Connection

_TAKEN = """
INSERT INTO mcp.sources (name, items) VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET items = sources.items + excluded.items, synced_at = now()
"""


async def taken_from_source(conn: Connection, source: str, difference: int) -> None:
    """Something was taken from it now, and it has so many more."""
    await conn.execute(_TAKEN, (source, difference))


async def add_to_source(conn: Connection, source: str, difference: int) -> None:
    if difference:
        await conn.execute("UPDATE mcp.sources SET items = items + %s WHERE name = %s", (difference, source))


async def forget_source(conn: Connection, source: str) -> None:
    await conn.execute("DELETE FROM mcp.sources WHERE name = %s", (source,))
