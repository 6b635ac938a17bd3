"""The log of tool searches in schema `mcp`, partitioned by day in UTC.

The partition of a day is made ahead, or by the first entry of that day. An old one is dropped as a whole, which
costs the same however many rows it has.
"""

import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any

from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from toolscript.core.items import tool_id
from toolscript.core.namespaces import Namespaces, ordered
from toolscript.core.postgres.pool import Connection, Pool, transaction
from toolscript.core.retrieval.query import SearchType
from toolscript.tools.model.query import Strategy
from toolscript.tools.model.search_log import (
    MAX_COUNTED,
    Channel,
    Gap,
    GapReport,
    LoggedSearch,
    SearchFilter,
    SearchPosition,
)

# Days ahead whose partitions are made: a service that cannot make one at midnight has two days left.
AHEAD_DAYS = 2
# So many sets of namespaces with the same first one are known. Only administrators see searches in further ones.
MAX_SCOPES = 200
MAX_CACHED = 10_000
LOCK_TIMEOUT, READ_TIMEOUT = "2s", "5s"

_FIRST = SearchPosition(datetime.max.replace(tzinfo=UTC), "ffffffff-ffff-ffff-ffff-ffffffffffff")
_PARTITION = re.compile(r"tool_searches_p(\d{4})(\d\d)(\d\d)")

_LIMIT_WAITS = "SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true)"
# Two processes that make or drop the same partition wait for each other.
_TAKE_TURNS = "SELECT pg_advisory_xact_lock(hashtextextended('toolscript tool searches', 0))"
_PARTITIONS = """
SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = 'mcp.tool_searches'::regclass
"""
# Attached, and not created as a partition: that would stop every reader of the log meanwhile.
_CREATE = "CREATE TABLE {partition} (LIKE mcp.tool_searches INCLUDING ALL)"
_ATTACH = "ALTER TABLE mcp.tool_searches ATTACH PARTITION {partition} FOR VALUES FROM ({day}) TO ({next})"
_DROP = "DROP TABLE {partition}"
_FORGET_SCOPES = "DELETE FROM mcp.tool_search_scopes WHERE last_day < %s"
_ADD_SCOPE = """
INSERT INTO mcp.tool_search_scopes AS known (scope, namespaces, first_namespace, last_day)
SELECT %(scope)s, %(namespaces)s::text[], %(first)s, %(day)s
WHERE EXISTS (SELECT FROM mcp.tool_search_scopes WHERE scope = %(scope)s)
   OR (SELECT count(*) FROM mcp.tool_search_scopes WHERE first_namespace = %(first)s) < %(max)s
ON CONFLICT (scope) DO UPDATE SET last_day = excluded.last_day WHERE known.last_day < excluded.last_day
"""
_SEEN_SCOPES = """
SELECT scope FROM mcp.tool_search_scopes
WHERE first_namespace = ANY(%(seen)s::text[]) AND namespaces <@ %(seen)s::text[] ORDER BY scope
"""
# Again after a lost answer, it adds nothing.
_ADD = """
INSERT INTO mcp.tool_searches
SELECT * FROM jsonb_populate_recordset(NULL::mcp.tool_searches, %s) ON CONFLICT DO NOTHING
"""
_SHOWN = """
SELECT searches.at, query_id, scope, channel, search_type, strategy, hits, good_match, took_ms, degraded, text,
       unmatched, tool_id, confidence, items.server, items.name
"""
_TOOLS = """
LEFT JOIN mcp.items ON items.id = tool_id AND is_active AND items.namespace = ANY(string_to_array(scope, ' '))
"""
# `at` alone, too: PostgreSQL leaves out partitions by that.
_DURING = "at >= %(since)s AND at <= %(before_at)s"
_MISSED = f"{_DURING} AND good_match IS FALSE AND text_key IS NOT NULL"
_EARLIER = "(at, query_id) < (%(before_at)s, %(before_id)s::uuid)"
_OF_SCOPE = """
(scope, at) >= (seen.name, %(since)s) AND (scope, at, query_id) < (seen.name, %(before_at)s, %(before_id)s::uuid)
"""
_GAPS = """
WITH missed AS MATERIALIZED ({missed}), top AS (
    SELECT text_key, count(*) AS total, max(at) AS at FROM missed
    GROUP BY text_key ORDER BY count(*) DESC, max(at) DESC, text_key LIMIT %(limit)s
)
{shown}, top.total, (SELECT count(*) FROM missed) AS counted
FROM top CROSS JOIN LATERAL (
    SELECT * FROM mcp.tool_searches
    WHERE at = top.at AND at >= %(since)s AND text_key = top.text_key AND good_match IS FALSE
      AND (%(scopes)s::text[] IS NULL OR scope = ANY(%(scopes)s::text[]))
    ORDER BY query_id DESC LIMIT 1
) AS searches {tools}
ORDER BY top.total DESC, top.at DESC, top.text_key
"""


class PostgresSearchLog:
    """A view of some namespaces shows the searches in them alone: one in others, too, is not for its clients."""

    def __init__(self, pool: Pool, namespaces: Namespaces = None, max_counted: int = MAX_COUNTED) -> None:
        self._pool = pool
        self._namespaces = namespaces
        self._max_counted = max_counted
        self._days = set[date]()
        self._scopes: dict[str, date] = {}

    def within(self, namespaces: Namespaces) -> "PostgresSearchLog":
        return PostgresSearchLog(self._pool, namespaces, self._max_counted)

    async def write(self, searches: Sequence[LoggedSearch], /) -> None:
        days = {_day(search) for search in searches}
        if not days <= self._days:
            await self._create(days - self._days)
        try:
            async with self._limited(LOCK_TIMEOUT) as conn:
                await self._add_scopes(conn, searches)
                await conn.execute(_ADD, (Jsonb([_row(search) for search in searches]),))
        except Exception:
            # A partition may be gone: the next try looks again.
            self._days.clear()
            self._scopes.clear()
            raise

    async def keep(self, today: date, days: int, *, ahead: bool) -> None:
        oldest = today - timedelta(days=days)
        if ahead:
            await self._create({today + timedelta(days=later) for later in range(AHEAD_DAYS + 1)})
        for day in sorted(day for day in await self._partitions() if day < oldest):
            async with self._limited(LOCK_TIMEOUT) as conn:
                await conn.execute(_TAKE_TURNS)
                if day in await _partitions(conn):
                    await conn.execute(_ddl(_DROP, day))
        async with self._limited(LOCK_TIMEOUT) as conn:
            await conn.execute(_FORGET_SCOPES, (oldest,))

    async def days(self) -> list[date]:
        """Return the days that have a partition, for a backup."""
        return sorted(await self._partitions())

    async def make_days(self, days: Collection[date]) -> None:
        """Make the partitions of these days, before entries are copied into them."""
        await self._create(set(days))

    async def page(self, where: SearchFilter, before: SearchPosition | None, limit: int) -> Sequence[LoggedSearch]:
        good = "" if where.good_match is None else f" AND good_match IS {where.good_match}"
        values = {**_range(where.since, before or _FIRST), "limit": limit}
        async with self._limited(READ_TIMEOUT) as conn, conn.cursor(row_factory=dict_row) as cursor:
            scopes = await self._seen(conn)
            latest = _latest(scopes, _DURING + good, "*")
            query = f"{_SHOWN} FROM ({latest}) AS searches {_TOOLS} ORDER BY searches.at DESC, query_id DESC"
            await cursor.execute(query, {**values, "scopes": scopes})
            return [_search(row) for row in await cursor.fetchall()]

    async def gaps(self, since: datetime, limit: int) -> GapReport:
        async with self._limited(READ_TIMEOUT) as conn, conn.cursor(row_factory=dict_row) as cursor:
            scopes = await self._seen(conn)
            missed = _latest(scopes, _MISSED, "text_key, at, query_id", "%(counted)s")
            query = _GAPS.format(missed=missed, shown=_SHOWN, tools=_TOOLS)
            values = {**_range(since, _FIRST), "limit": limit, "counted": self._max_counted, "scopes": scopes}
            await cursor.execute(query, values)
            rows = await cursor.fetchall()
        counted = int(rows[0]["counted"]) if rows else 0
        gaps = tuple(Gap(int(row["total"]), _search(row)) for row in rows)
        return GapReport(gaps, counted, is_complete=counted < self._max_counted)

    @asynccontextmanager
    async def _limited(self, lock_timeout: str) -> AsyncIterator[Connection]:
        """Yield a transaction that waits no longer than this for a lock, and whose statements take no longer."""
        async with transaction(self._pool) as conn:
            await conn.execute(_LIMIT_WAITS, (lock_timeout, READ_TIMEOUT))
            yield conn

    async def _create(self, days: set[date]) -> None:
        async with self._limited(LOCK_TIMEOUT) as conn:
            await conn.execute(_TAKE_TURNS)
            for day in sorted(days - await _partitions(conn)):
                await conn.execute(_ddl(_CREATE, day))
                await conn.execute(_ddl(_ATTACH, day))
        self._days |= days

    async def _partitions(self) -> set[date]:
        async with self._limited(LOCK_TIMEOUT) as conn:
            return await _partitions(conn)

    async def _add_scopes(self, conn: Connection, searches: Sequence[LoggedSearch]) -> None:
        if len(self._scopes) > MAX_CACHED:
            self._scopes.clear()
        latest = {_scope(search): search for search in sorted(searches, key=_day)}
        for scope, search in sorted(latest.items()):
            day = _day(search)
            if self._scopes.get(scope, date.min) < day:
                names = ordered(search.namespaces)
                values = {"scope": scope, "namespaces": list(names), "first": names[0], "day": day}
                await conn.execute(_ADD_SCOPE, {**values, "max": MAX_SCOPES})
                self._scopes[scope] = day

    async def _seen(self, conn: Connection) -> list[str] | None:
        if self._namespaces is None:
            return None
        rows = await conn.execute(_SEEN_SCOPES, {"seen": list(ordered(self._namespaces))})
        return [str(scope) for (scope,) in await rows.fetchall()]


def _latest(scopes: Sequence[str] | None, where: str, columns: str, limit: str = "%(limit)s") -> str:
    """Return the statement for the latest entries of these scopes, None for all.

    It reads the latest of each scope through an index, and merges them: entries of other scopes cost nothing. The
    bounds of a scope and their order fit that index alone. With `scope = seen.name`, PostgreSQL may read the
    entries of all scopes in order of time instead, because it does not know how rare a scope is.
    """
    order = f"ORDER BY at DESC, query_id DESC LIMIT {limit}"
    if scopes is None:
        return f"SELECT {columns} FROM mcp.tool_searches WHERE {where} AND {_EARLIER} {order}"  # noqa: S608
    return f"""
SELECT latest.* FROM unnest(%(scopes)s::text[]) AS seen (name) CROSS JOIN LATERAL (
    SELECT {columns} FROM mcp.tool_searches WHERE {where} AND {_OF_SCOPE}
    ORDER BY scope DESC, at DESC, query_id DESC LIMIT {limit}
) AS latest {order}
"""  # noqa: S608 - callers pass constants only


def _range(since: datetime, before: SearchPosition) -> dict[str, object]:
    return {"since": since, "before_at": before.at, "before_id": before.query_id}


async def _partitions(conn: Connection) -> set[date]:
    names = [str(name) for (name,) in await (await conn.execute(_PARTITIONS)).fetchall()]
    found = [match for match in map(_PARTITION.fullmatch, names) if match]
    return {date(int(match[1]), int(match[2]), int(match[3])) for match in found}


def _ddl(statement: str, day: date) -> sql.Composed:
    partition = sql.Identifier("mcp", f"tool_searches_p{day:%Y%m%d}")
    bounds = [sql.Literal(f"{bound:%Y-%m-%d} 00:00+00") for bound in (day, day + timedelta(days=1))]
    return sql.SQL(statement).format(partition=partition, day=bounds[0], next=bounds[1])


def _day(search: LoggedSearch) -> date:
    return search.at.astimezone(UTC).date()


def _scope(search: LoggedSearch) -> str:
    return " ".join(ordered(search.namespaces))


def _row(search: LoggedSearch) -> dict[str, object]:
    names = ("query_id", "channel", "search_type", "strategy", "hits", "good_match", "took_ms", "text", "text_key")
    return {
        **{name: getattr(search, name) for name in (*names, "tool_id", "confidence")},
        "at": search.at.isoformat(),
        "scope": _scope(search),
        "degraded": list(search.degraded),
        "unmatched": list(search.unmatched),
    }


def _search(row: Mapping[str, Any]) -> LoggedSearch:
    names = ("hits", "good_match", "took_ms", "text", "tool_id", "confidence")
    return LoggedSearch(
        **{name: row[name] for name in names},
        at=row["at"].astimezone(UTC),
        query_id=str(row["query_id"]),
        namespaces=tuple(row["scope"].split(" ")),
        channel=Channel(row["channel"]),
        search_type=SearchType(row["search_type"]),
        strategy=Strategy(row["strategy"]),
        degraded=tuple(row["degraded"]),
        unmatched=tuple(row["unmatched"]),
        tool_name="" if row["name"] is None else tool_id(row["server"], row["name"]),
    )
