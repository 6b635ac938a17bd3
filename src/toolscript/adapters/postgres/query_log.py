"""Searches in `documents.queries`."""

from collections.abc import Sequence
from contextlib import suppress

from toolscript.adapters.postgres.pool import Pool, connection
from toolscript.errors import ToolscriptError
from toolscript.model.query_log import LoggedQuery

_COPY = """
COPY documents.queries (at, query_id, tenant, plan, search_type, fusion, filters, top_k, hits, total, took_ms,
                        degraded, reranked_by, text, found) FROM STDIN
"""

_FORGET = """
DELETE FROM documents.queries WHERE id = ANY(ARRAY(
    SELECT id FROM documents.queries WHERE at < now() - make_interval(days => %s) ORDER BY at LIMIT %s
    FOR UPDATE SKIP LOCKED
))
"""

KEPT_DAYS = 30
# For each that comes, so many old ones go: whatever has gathered is gone some day, and no statement is long.
FORGOTTEN_FOR_EACH = 2


class PostgresQueryLog:
    """A batch is one statement: all of it or nothing. Whose answer got lost may be in there twice."""

    def __init__(self, pool: Pool, keep_days: int = KEPT_DAYS) -> None:
        self._pool = pool
        self._keep_days = keep_days

    async def write(self, queries: Sequence[LoggedQuery]) -> None:
        async with connection(self._pool) as conn, conn.cursor() as cursor, cursor.copy(_COPY) as copy:
            for query in queries:
                await copy.write_row(_row(query))
        # Those that came are there already: if this fails, it is done by the next.
        with suppress(ToolscriptError):
            await self._forget(FORGOTTEN_FOR_EACH * len(queries))

    async def _forget(self, most: int) -> None:
        async with connection(self._pool) as conn:
            await conn.execute(_FORGET, (self._keep_days, most))


def _row(query: LoggedQuery) -> tuple[object, ...]:
    return (
        query.at,
        query.query_id,
        query.tenant,
        query.plan,
        query.search_type,
        query.fusion,
        query.filters,
        query.top_k,
        query.hits,
        query.total,
        query.took_ms,
        list(query.degraded),
        query.reranked_by,
        query.text,
        list(query.found),
    )
