"""Searches in `documents.queries`."""

from collections.abc import Sequence

from toolscript.adapters.postgres.pool import Pool, connection
from toolscript.model.query_log import LoggedQuery

_COPY = """
COPY documents.queries (at, query_id, tenant, plan, search_type, fusion, filters, top_k, hits, total, took_ms,
                        degraded, reranked_by, text, found) FROM STDIN
"""

_FORGET = """
DELETE FROM documents.queries WHERE id = ANY(ARRAY(
    SELECT id FROM documents.queries WHERE at < now() - make_interval(days => %s) ORDER BY at LIMIT %s
))
"""

AT_ONCE = 5_000
MOST_FORGOTTEN = 1_000_000


class PostgresQueryLog:
    """A batch is one statement: all of it or nothing. Whose answer got lost may be in there twice."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def write(self, queries: Sequence[LoggedQuery]) -> None:
        async with connection(self._pool) as conn, conn.cursor() as cursor, cursor.copy(_COPY) as copy:
            for query in queries:
                await copy.write_row(_row(query))

    async def forget(self, older_than_days: int, most: int = MOST_FORGOTTEN) -> int:
        """Answers how many; when these are `most`, there may be more. No lock is held for long."""
        forgotten = 0
        while forgotten < most:
            limit = min(AT_ONCE, most - forgotten)
            async with connection(self._pool) as conn:
                gone = (await conn.execute(_FORGET, (older_than_days, limit))).rowcount
            forgotten += gone
            if gone < limit:
                break
        return forgotten


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
