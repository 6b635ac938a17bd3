"""The contents of the catalog, in schema `mcp`. Every statement reads through an index, at any catalog size."""

from collections.abc import Sequence
from typing import Any

from psycopg.rows import class_row, dict_row

from toolscript.core.items import ItemKind
from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces, seen_in
from toolscript.core.postgres.audit import write_audit
from toolscript.core.postgres.pool import Connection, Pool, connection, transaction
from toolscript.core.taxonomy import DecidedBy
from toolscript.tools.model.catalog import CatalogItem, ItemFilter, ItemSource, unknown_item
from toolscript.tools.model.skills import valid_actor
from toolscript.tools.postgres.catalog import RETIRE, item_of_row, retired
from toolscript.tools.postgres.sql import (
    ASSIGNED,
    SHARE_GENERATIONS,
    SourceKey,
    add_to_source,
    assignments_of,
    forget_source,
    own_source,
)
from toolscript.tools.postgres.views import SEEN, seen_of

_SOURCES = "SELECT name, items, synced_at, namespace FROM mcp.sources"
_LATER_SOURCES = f"{_SOURCES} WHERE (name, namespace) > (%(name)s, %(namespace)s)"
_IN_ORDER = "ORDER BY name, namespace LIMIT %(limit)s"

# A page of each namespace, merged: as `page_of`, but in order of name.
_SOURCES_IN_VIEW = f"""
SELECT page.* FROM unnest(%(seen)s::text[]) AS seen (name)
CROSS JOIN LATERAL ({_LATER_SOURCES} AND name >= %(name)s AND namespace = seen.name {_IN_ORDER}) AS page
{_IN_ORDER}
"""  # noqa: S608 - built from constants only

# In the order of an index, so that no batch scans the rows that earlier ones removed; locked in the common order.
_REMOVE_NEXT = f"""
WITH chosen AS MATERIALIZED (
    SELECT id FROM mcp.items WHERE namespace = %s AND source = %s AND is_active ORDER BY kind, id LIMIT %s
), gone AS (
    SELECT id FROM mcp.items WHERE id IN (SELECT id FROM chosen) ORDER BY source, key FOR NO KEY UPDATE
)
{RETIRE}"""  # noqa: S608 - built from constants only

_REMOVE_ONE = f"""
WITH gone AS (SELECT id FROM mcp.items WHERE id = %s AND is_active FOR NO KEY UPDATE)
{RETIRE}"""  # noqa: S608 - built from constants only

_LISTED = f"""
SELECT id, namespace, source, key, kind, server, name, description, server_description, updated_at,
       {ASSIGNED} AS assigned
FROM mcp.items
"""  # noqa: S608 - built from constants only

_NAMESPACES_SEEN = "unnest(%(seen)s::text[])"
# An index scan for each namespace, however many sources it has.
_EVERY_NAMESPACE = """(
WITH RECURSIVE names AS (
    (SELECT namespace FROM mcp.sources ORDER BY namespace LIMIT 1)
    UNION ALL
    SELECT (SELECT namespace FROM mcp.sources WHERE namespace > names.namespace ORDER BY namespace LIMIT 1)
    FROM names WHERE names.namespace IS NOT NULL
)
SELECT namespace FROM names WHERE namespace IS NOT NULL)"""

_ONE = f"""
SELECT id, namespace, source, key, kind, server, name, description, server_description, updated_at,
       {ASSIGNED} AS assigned, input_schema, output_schema, annotations
FROM mcp.items WHERE is_active AND id = %(id)s AND {SEEN}
"""  # noqa: S608 - built from constants only

_COUNT_AFTER = """
SELECT coalesce((SELECT sum(items) FROM mcp.sources WHERE namespace = %(namespace)s), 0)
    - CASE WHEN %(prune)s
        THEN coalesce((SELECT items FROM mcp.sources WHERE namespace = %(namespace)s AND name = %(source)s), 0)
        ELSE (SELECT count(*) FROM mcp.items WHERE namespace = %(namespace)s AND source = %(source)s
                AND key = ANY(%(keys)s::text[]) AND is_active)
      END + cardinality(%(keys)s::text[])
"""

# An item never moves to another source.
_SOURCE_OF = f"SELECT namespace, source FROM mcp.items WHERE id = %(id)s AND {SEEN}"  # noqa: S608 - built from constants only


class PostgresCatalogContents:
    def __init__(self, pool: Pool, namespaces: Namespaces = None) -> None:
        self._pool = pool
        self._namespaces = namespaces

    def within(self, namespaces: Namespaces) -> "PostgresCatalogContents":
        return PostgresCatalogContents(self._pool, namespaces)

    async def sources(self, after: tuple[str, str], limit: int) -> Sequence[ItemSource]:
        name, namespace = after
        values = {"name": name, "namespace": namespace, "limit": limit, "seen": seen_of(self._namespaces)}
        query = f"{_LATER_SOURCES} {_IN_ORDER}" if self._namespaces is None else _SOURCES_IN_VIEW
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(ItemSource)) as cursor:
            await cursor.execute(query, values)
            return await cursor.fetchall()

    async def source(self, name: str, namespace: str = DEFAULT_NAMESPACE) -> ItemSource | None:
        if not seen_in(self._namespaces, namespace):
            return None
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(ItemSource)) as cursor:
            await cursor.execute(f"{_SOURCES} WHERE namespace = %s AND name = %s", (namespace, name))
            return await cursor.fetchone()

    async def remove_source(self, name: str, limit: int, namespace: str = DEFAULT_NAMESPACE) -> int:
        if not seen_in(self._namespaces, namespace):
            return 0
        source = SourceKey(namespace, name)
        async with transaction(self._pool) as conn:
            await _own(conn, source)
            rows = await (await conn.execute(_REMOVE_NEXT, (*source, limit))).fetchall()
            await retired(conn, rows)
            if len(rows) == limit:
                await add_to_source(conn, source, -len(rows))
            else:
                await forget_source(conn, source)
        return len(rows)

    async def page(self, after: int, limit: int, wanted: ItemFilter) -> Sequence[CatalogItem]:
        seen = self._namespaces
        if wanted.namespace is not None:
            seen = frozenset({wanted.namespace} if seen_in(seen, wanted.namespace) else ())
        filters = {"source": wanted.source, "server": wanted.server}
        kinds = list(ItemKind) if wanted.kind is None else [wanted.kind]
        ids = _page_of(seen, [name for name, value in filters.items() if value is not None])
        values = {**filters, "kinds": list(map(str, kinds)), "after": after, "limit": limit, "seen": seen_of(seen)}
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(f"{_LISTED} WHERE id IN ({ids}) ORDER BY id", values)
            return [_listed(row) for row in await cursor.fetchall()]

    async def find(self, item_id: int) -> CatalogItem:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_ONE, self._one(item_id))
            row = await cursor.fetchone()
        if row is None:
            raise unknown_item(item_id)
        return _listed(row)

    async def count_after(
        self, source: str, keys: Sequence[str], namespace: str = DEFAULT_NAMESPACE, *, prune: bool
    ) -> int:
        values = {"namespace": namespace, "source": source, "keys": list(keys), "prune": prune}
        async with connection(self._pool) as conn:
            row = await (await conn.execute(_COUNT_AFTER, values)).fetchone()
        return int(str(row[0])) if row else len(keys)

    async def remove(self, item_id: int, by: DecidedBy | None = None) -> bool:
        async with transaction(self._pool) as conn:
            row = await (await conn.execute(_SOURCE_OF, self._one(item_id))).fetchone()
            if row is None:
                raise unknown_item(item_id)
            source = SourceKey(str(row[0]), str(row[1]))
            await _own(conn, source)
            rows = await (await conn.execute(_REMOVE_ONE, (item_id,))).fetchall()
            await retired(conn, rows)
            await add_to_source(conn, source, -len(rows))
            if rows and by is not None:
                actor = valid_actor(by)
                await write_audit(conn, actor, "tool.remove", item_id, {"source": source.name}, source.namespace)
        return bool(rows)

    def _one(self, item_id: int) -> dict[str, object]:
        return {"id": item_id, "seen": seen_of(self._namespaces)}


def _page_of(namespaces: Namespaces, filters: Sequence[str]) -> str:
    """Return the statement for the ids of a page: a page of each kind in each namespace, merged.

    `filters` are columns with a value. The bounds on the kind are no equality, so that only an index in order of
    kind and id serves. Otherwise PostgreSQL may follow the primary key, through any number of rows that were
    removed or do not pass.
    """
    same = "".join(f" AND {name} = %({name})s" for name in filters)
    return f"""
SELECT page.id FROM {_EVERY_NAMESPACE if namespaces is None else _NAMESPACES_SEEN} AS seen (name)
CROSS JOIN unnest(%(kinds)s::text[]) AS kinds (kind) CROSS JOIN LATERAL (
    SELECT id FROM mcp.items
    WHERE is_active AND namespace = seen.name{same} AND (kind, id) > (kinds.kind, %(after)s) AND kind <= kinds.kind
    ORDER BY kind, id LIMIT %(limit)s
) AS page ORDER BY page.id LIMIT %(limit)s
"""  # noqa: S608 - built from constants only


async def _own(conn: Connection, source: SourceKey) -> None:
    await conn.execute(SHARE_GENERATIONS)
    await own_source(conn, source)


def _listed(row: dict[str, Any]) -> CatalogItem:
    complete = {"input_schema": None, "output_schema": None, "annotations": None, **row}
    return CatalogItem(
        row["id"],
        row["source"],
        item_of_row(complete),
        row["updated_at"],
        assignments_of(row["assigned"]),
        row["namespace"],
    )
