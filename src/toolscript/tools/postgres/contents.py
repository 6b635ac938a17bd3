"""The contents of the catalog, in schema `mcp`. Every statement reads through an index, at any catalog size."""

from collections.abc import Sequence
from typing import Any

from psycopg.rows import class_row, dict_row

from toolscript.core.postgres.pool import Connection, Pool, connection, transaction
from toolscript.tools.model.catalog import CatalogItem, ItemFilter, ItemSource, unknown_item
from toolscript.tools.postgres.catalog import RETIRE, item_of_row, retired
from toolscript.tools.postgres.sql import (
    ASSIGNED,
    SHARE_GENERATIONS,
    add_to_source,
    assignments_of,
    forget_source,
    own_source,
)

_SOURCES = "SELECT name, items, synced_at FROM mcp.sources"

# By id, so that no batch scans the rows that earlier ones removed; locked in the common order.
_REMOVE_NEXT = f"""
WITH chosen AS MATERIALIZED (
    SELECT id FROM mcp.items WHERE source = %(source)s AND is_active ORDER BY id LIMIT %(limit)s
), gone AS (
    SELECT id FROM mcp.items WHERE id IN (SELECT id FROM chosen) ORDER BY source, key FOR NO KEY UPDATE
)
{RETIRE}"""  # noqa: S608 - built from constants only

_REMOVE_ONE = f"""
WITH gone AS (SELECT id FROM mcp.items WHERE id = %s AND is_active FOR NO KEY UPDATE)
{RETIRE}"""  # noqa: S608 - built from constants only

_LISTED = f"""
SELECT id, source, key, kind, server, name, description, server_description, updated_at, {ASSIGNED} AS assigned
FROM mcp.items WHERE is_active AND id > %(after)s
"""  # noqa: S608 - built from constants only

_ONE = f"""
SELECT id, source, key, kind, server, name, description, server_description, updated_at, {ASSIGNED} AS assigned,
       input_schema, output_schema, annotations
FROM mcp.items WHERE is_active AND id = %s
"""  # noqa: S608 - built from constants only


class PostgresCatalogContents:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def sources(self, after: str, limit: int) -> Sequence[ItemSource]:
        query = f"{_SOURCES} WHERE name > %s ORDER BY name LIMIT %s"
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(ItemSource)) as cursor:
            await cursor.execute(query, (after, limit))
            return await cursor.fetchall()

    async def source(self, name: str) -> ItemSource | None:
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(ItemSource)) as cursor:
            await cursor.execute(f"{_SOURCES} WHERE name = %s", (name,))
            return await cursor.fetchone()

    async def remove_source(self, name: str, limit: int) -> int:
        async with transaction(self._pool) as conn:
            await _own(conn, name)
            rows = await (await conn.execute(_REMOVE_NEXT, {"source": name, "limit": limit})).fetchall()
            await retired(conn, rows)
            if len(rows) == limit:
                await add_to_source(conn, name, -len(rows))
            else:
                await forget_source(conn, name)
        return len(rows)

    async def page(self, after: int, limit: int, wanted: ItemFilter) -> Sequence[CatalogItem]:
        filters = {"source": wanted.source, "server": wanted.server, "kind": wanted.kind and str(wanted.kind)}
        # The statement contains only the filters that are set, so that PostgreSQL uses their index.
        more = "".join(f" AND {name} = %({name})s" for name, value in filters.items() if value is not None)
        query = f"{_LISTED}{more} ORDER BY id LIMIT %(limit)s"
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query.encode(), {**filters, "after": after, "limit": limit})
            return [_listed(row) for row in await cursor.fetchall()]

    async def find(self, item_id: int) -> CatalogItem:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_ONE, (item_id,))
            row = await cursor.fetchone()
        if row is None:
            raise unknown_item(item_id)
        return _listed(row)

    async def remove(self, item_id: int) -> bool:
        async with transaction(self._pool) as conn:
            # An item never moves to another source.
            row = await (await conn.execute("SELECT source FROM mcp.items WHERE id = %s", (item_id,))).fetchone()
            if row is None:
                raise unknown_item(item_id)
            source = str(row[0])
            await _own(conn, source)
            rows = await (await conn.execute(_REMOVE_ONE, (item_id,))).fetchall()
            await retired(conn, rows)
            await add_to_source(conn, source, -len(rows))
        return bool(rows)


async def _own(conn: Connection, source: str) -> None:
    await conn.execute(SHARE_GENERATIONS)
    await own_source(conn, source)


def _listed(row: dict[str, Any]) -> CatalogItem:
    complete = {"input_schema": None, "output_schema": None, "annotations": None, **row}
    return CatalogItem(
        row["id"], row["source"], item_of_row(complete), row["updated_at"], assignments_of(row["assigned"])
    )
