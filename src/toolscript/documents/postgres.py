"""Documents in schema `documents`: index versions and their changes, the query log, tenants and their lock.

A writer marks a document before and after it writes, so a change is recorded even if the writer is killed. With a
single version there is no change to record: the statement finds no other version.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import cast

import psycopg

from toolscript.core.auth.model import KnownTenant, Tenant
from toolscript.core.errors import Conflict, NotFound, ToolscriptError
from toolscript.core.postgres.pool import Connection, Pool, connection, transaction
from toolscript.core.retrieval.results import DocumentKey
from toolscript.documents.model.points import DocumentChange, DocumentVersion, FillPosition, VersionState
from toolscript.documents.model.query import LoggedQuery

# A write that is open for longer belongs to a killed writer.
WRITE_SECONDS = 60

_LOCK_VERSIONS = "LOCK TABLE documents.index_versions IN SHARE ROW EXCLUSIVE MODE"
_ALL = """
SELECT name, state, at_tenant, at_key, is_filled FROM documents.index_versions ORDER BY begun_at, name
"""
_ADD = """
INSERT INTO documents.index_versions (name, state) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING
"""
_ADVANCE = """
UPDATE documents.index_versions SET at_tenant = %s, at_key = %s, is_filled = %s WHERE name = %s
"""
_SWITCH = "UPDATE documents.index_versions SET state = CASE WHEN name = %s THEN 'live' ELSE 'previous' END"
_FORGET_VERSION = "DELETE FROM documents.index_versions WHERE name = %s"
_FORGET_VERSIONS = "DELETE FROM documents.index_versions"
_ADD_FIRST = """
INSERT INTO documents.index_versions (name, state)
SELECT %s, 'live' WHERE NOT EXISTS (SELECT FROM documents.index_versions)
"""
_KEEP_LIVE = "DELETE FROM documents.index_versions WHERE state <> 'live'"
_RENAME_LIVE = "UPDATE documents.index_versions SET name = %s"
_NOBODY_HOLDS = "UPDATE documents.tenants SET holds_documents = false WHERE holds_documents IS NOT FALSE"

# Ordered by key: otherwise two writers of the same documents could deadlock. A switch updates the row that is
# locked here: one of the two waits for the other.
_MARK = """
WITH live AS MATERIALIZED (
    SELECT name FROM documents.index_versions WHERE name = %(source)s AND state = 'live' FOR SHARE
), marked AS (
    INSERT INTO documents.index_changes AS known (target, tenant, key, source, revision, open_writes, at)
    SELECT version.name, %(tenant)s, wanted.key, live.name,
           nextval('documents.index_change_revisions'), 1, clock_timestamp()
    FROM live, documents.index_versions version, unnest(%(keys)s::text[]) AS wanted (key)
    WHERE version.name <> live.name ORDER BY wanted.key
    ON CONFLICT (target, tenant, key) DO UPDATE
    SET source = excluded.source, revision = excluded.revision, open_writes = known.open_writes + 1,
        at = excluded.at
)
SELECT EXISTS (SELECT FROM live), EXISTS (SELECT FROM documents.index_versions)
"""
_WRITTEN = """
INSERT INTO documents.index_changes AS known (target, tenant, key, source, revision, open_writes, at)
SELECT version.name, %(tenant)s, wanted.key, %(source)s,
       nextval('documents.index_change_revisions'), 0, clock_timestamp()
FROM documents.index_versions version, unnest(%(keys)s::text[]) AS wanted (key)
WHERE version.name <> %(source)s ORDER BY wanted.key
ON CONFLICT (target, tenant, key) DO UPDATE
SET source = excluded.source, revision = excluded.revision, open_writes = greatest(known.open_writes - 1, 0),
    at = excluded.at
"""
_CHANGES = """
SELECT target, source, tenant, key, revision FROM documents.index_changes
WHERE target = %s AND (open_writes = 0 OR at < now() - make_interval(secs => %s)) ORDER BY revision LIMIT %s
"""
_CLEAR = """
DELETE FROM documents.index_changes AS known
USING unnest(%s::text[], %s::text[], %s::bigint[]) AS done (tenant, key, revision)
WHERE known.target = %s AND known.tenant = done.tenant AND known.key = done.key AND known.revision = done.revision
"""
_MARKED = """
SELECT key, revision FROM documents.index_changes WHERE target = %s AND tenant = %s AND key = ANY(%s)
"""
_COUNT = "SELECT count(*) FROM documents.index_changes WHERE target = %s"

_TAKE_LEASE = """
INSERT INTO documents.reindex_lease AS held (holder, expires_at)
VALUES (%(holder)s, now() + make_interval(secs => %(seconds)s))
ON CONFLICT (only_row) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
WHERE held.holder = excluded.holder OR held.expires_at < now()
RETURNING holder
"""
_RELEASE_LEASE = "DELETE FROM documents.reindex_lease WHERE holder = %s"

_COPY = """
COPY documents.queries (at, query_id, tenant, plan, search_type, fusion, filters, top_k, hits, total, took_ms,
                        degraded, reranked_by, text, found) FROM STDIN
"""

_FORGET_OLD_QUERIES = """
DELETE FROM documents.queries WHERE id = ANY(ARRAY(
    SELECT id FROM documents.queries WHERE at < now() - make_interval(days => %s) ORDER BY at LIMIT %s
    FOR UPDATE SKIP LOCKED
))
"""

KEPT_DAYS = 30
# Expired queries deleted per new one: a backlog shrinks over time, and no statement is long.
EXPIRED_PER_NEW = 2

BATCH = 5_000

_SEEN = """
WITH added AS (INSERT INTO documents.tenants (name) VALUES (%(name)s) ON CONFLICT DO NOTHING)
SELECT FROM documents.tenants WHERE name = %(name)s AND holds_documents
"""
_HOLDS = "SELECT FROM documents.tenants WHERE name = %s AND holds_documents"
_NOTE = """
UPDATE documents.tenants SET holds_documents = %(holds)s
WHERE name = %(name)s AND holds_documents IS DISTINCT FROM %(holds)s
"""
_HOLDERS = "SELECT count(*) FROM documents.tenants WHERE coalesce(holds_documents, %s)"
_PAGE = """
SELECT name, since FROM documents.tenants WHERE name COLLATE "C" > %s ORDER BY name COLLATE "C" LIMIT %s
"""
_FORGET_QUERIES = """
DELETE FROM documents.queries WHERE id IN (SELECT id FROM documents.queries WHERE tenant = %s ORDER BY id LIMIT %s)
"""
_FORGET_REQUESTS = "DELETE FROM documents.requests WHERE tenant = %s"
_FORGET_NAME = "DELETE FROM documents.tenants WHERE name = %s"

_TAKE = "SELECT pg_try_advisory_xact_lock(hashtextextended('toolscript tenant ' || %s, 0))"
# A move has no time limit. The setting ends with the transaction.
_NO_IDLE_TIMEOUT = "SET LOCAL idle_in_transaction_session_timeout = 0"


class PostgresDocumentVersions:
    def __init__(self, pool: Pool, *, write_seconds: float = WRITE_SECONDS) -> None:
        self._pool = pool
        self._write_seconds = write_seconds

    async def all(self) -> Sequence[DocumentVersion]:
        async with connection(self._pool) as conn:
            return await _versions(conn)

    async def begin_empty(self, name: str) -> None:
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCK_VERSIONS)
            await conn.execute(_FORGET_VERSIONS)
            await conn.execute(_ADD, (name, VersionState.LIVE))
            await conn.execute(_NOBODY_HOLDS)

    async def begin(self, live: str, building: str) -> DocumentVersion:
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCK_VERSIONS)
            versions = {version.name: version for version in await _versions(conn)}
            _require_only(versions.values(), live, building)
            await conn.execute(_ADD, (live, VersionState.LIVE))
            await conn.execute(_ADD, (building, VersionState.BUILDING))
            return versions.get(building, DocumentVersion(building, VersionState.BUILDING))

    async def advance(self, name: str, position: FillPosition) -> None:
        async with connection(self._pool) as conn:
            await conn.execute(_ADVANCE, (position.tenant, position.key, position.done, name))

    async def switch(self, name: str) -> None:
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCK_VERSIONS)
            if name not in {version.name for version in await _versions(conn)}:
                raise NotFound(f"no version {name} of the documents' index is known")
            await conn.execute(_SWITCH, (name,))

    async def forget(self, name: str) -> None:
        async with connection(self._pool) as conn:
            await conn.execute(_FORGET_VERSION, (name,))

    async def keep_live(self, name: str) -> None:
        """Forget all versions but the live one, which has this name from now on: after a restore."""
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCK_VERSIONS)
            await conn.execute(_KEEP_LIVE)
            await conn.execute(_RENAME_LIVE, (name,))
            await conn.execute(_ADD_FIRST, (name,))

    async def mark(self, source: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> bool:
        while True:
            async with connection(self._pool) as conn:
                row = await (await conn.execute(_MARK, _written_by(source, tenant, keys))).fetchone()
            is_live, is_recorded = row or (False, True)
            if is_recorded:
                return bool(is_live)
            await self._record_first(source)

    async def _record_first(self, live: str) -> None:
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCK_VERSIONS)
            await conn.execute(_ADD_FIRST, (live,))

    async def written(self, source: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> None:
        async with connection(self._pool) as conn:
            await conn.execute(_WRITTEN, _written_by(source, tenant, keys))

    async def changes(self, target: str, limit: int) -> Sequence[DocumentChange]:
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_CHANGES, (target, self._write_seconds, limit))).fetchall()
        return [_change(row) for row in rows]

    async def marked(self, target: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, int]:
        if not keys:
            return {}
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_MARKED, (target, tenant.name, list(keys)))).fetchall()
        return {str(key): cast("int", revision) for key, revision in rows}

    async def pending(self, target: str) -> int:
        async with connection(self._pool) as conn:
            row = await (await conn.execute(_COUNT, (target,))).fetchone()
        return cast("int", row[0]) if row else 0

    async def clear(self, changes: Sequence[DocumentChange]) -> None:
        if not changes:
            return
        columns = (
            [change.tenant.name for change in changes],
            [change.key for change in changes],
            [change.revision for change in changes],
        )
        async with connection(self._pool) as conn:
            await conn.execute(_CLEAR, (*columns, changes[0].target))

    async def hold(self, holder: str, seconds: float) -> bool:
        async with connection(self._pool) as conn:
            taken = await conn.execute(_TAKE_LEASE, {"holder": holder, "seconds": seconds})
            return await taken.fetchone() is not None

    async def release(self, holder: str) -> None:
        async with connection(self._pool) as conn:
            await conn.execute(_RELEASE_LEASE, (holder,))


def _written_by(source: str, tenant: Tenant, keys: Sequence[DocumentKey]) -> dict[str, object]:
    return {"source": source, "tenant": tenant.name, "keys": sorted(set(keys))}


async def _versions(conn: Connection) -> list[DocumentVersion]:
    rows = await (await conn.execute(_ALL)).fetchall()
    return [
        DocumentVersion(str(name), VersionState(str(state)), FillPosition(str(tenant), str(key), bool(done)))
        for name, state, tenant, key, done in rows
    ]


def _require_only(versions: Collection[DocumentVersion], live: str, building: str) -> None:
    """Raise Conflict on a third version: it would lack the changes recorded for the second."""
    expected = {live: VersionState.LIVE, building: VersionState.BUILDING}
    for version in versions:
        if expected.get(version.name) is not version.state:
            raise Conflict(
                f"there is a version {version.name} of the documents' index already ({version.state})",
                hint="`toolscript reindex documents --drop-previous` removes the one before the live one; "
                "`--cancel` drops one that is being built",
            )


def _change(row: tuple[object, ...]) -> DocumentChange:
    target, source, tenant, key, revision = row
    return DocumentChange(str(target), str(source), Tenant(str(tenant)), str(key), cast("int", revision))


class PostgresQueryLog:
    """Writes a batch in one statement: all or nothing. If its response is lost, a retry stores it twice."""

    def __init__(self, pool: Pool, keep_days: int = KEPT_DAYS) -> None:
        self._pool = pool
        self._keep_days = keep_days

    async def write(self, queries: Sequence[LoggedQuery]) -> None:
        async with connection(self._pool) as conn, conn.cursor() as cursor, cursor.copy(_COPY) as copy:
            for query in queries:
                await copy.write_row(_row(query))
        # The new queries are stored already: if this fails, the next batch does it.
        with suppress(ToolscriptError):
            await self._forget(EXPIRED_PER_NEW * len(queries))

    async def _forget(self, maximum: int) -> None:
        async with connection(self._pool) as conn:
            await conn.execute(_FORGET_OLD_QUERIES, (self._keep_days, maximum))


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


class PostgresTenants:
    def __init__(self, pool: Pool, batch: int = BATCH) -> None:
        self._pool = pool
        self._batch = batch

    async def seen(self, tenant: Tenant) -> bool:
        """Register the tenant. There is no cache: another process may have deleted it since."""
        async with connection(self._pool) as conn:
            return await (await conn.execute(_SEEN, {"name": tenant.name})).fetchone() is not None

    async def holds(self, tenant: Tenant) -> bool:
        async with connection(self._pool) as conn:
            return await (await conn.execute(_HOLDS, (tenant.name,))).fetchone() is not None

    async def note(self, tenant: Tenant, *, holds: bool) -> bool:
        async with connection(self._pool) as conn:
            return (await conn.execute(_NOTE, {"name": tenant.name, "holds": holds})).rowcount > 0

    async def holders(self, *, or_unknown: bool = False) -> int:
        async with connection(self._pool) as conn:
            row = await (await conn.execute(_HOLDERS, (or_unknown,))).fetchone()
        return cast("int", row[0]) if row else 0

    async def page(self, after: str, limit: int) -> Sequence[KnownTenant]:
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_PAGE, (after, limit))).fetchall()
        return [KnownTenant(Tenant(str(name)), _iso(since)) for name, since in rows]

    async def forget(self, tenant: Tenant) -> None:
        """Delete the name last: after an interruption the tenant is still listed, and this can be repeated."""
        async with connection(self._pool) as conn:
            while (await conn.execute(_FORGET_QUERIES, (tenant.name, self._batch))).rowcount == self._batch:
                pass
            await conn.execute(_FORGET_REQUESTS, (tenant.name,))
            await conn.execute(_FORGET_NAME, (tenant.name,))


def _iso(since: object) -> str:
    return cast("datetime", since).astimezone(UTC).isoformat()


@asynccontextmanager
async def tenant_lock(pool: Pool, tenant: Tenant) -> AsyncIterator[None]:
    async with connection(pool) as conn:
        await conn.execute("BEGIN")
        await conn.execute(_NO_IDLE_TIMEOUT)
        taken = await (await conn.execute(_TAKE, (tenant.name,))).fetchone()
        if taken != (True,):
            raise Conflict(f"another process is moving or erasing tenant {tenant}", hint="wait until it has ended")
        try:
            yield
        finally:
            # A lost connection has released the lock already.
            with suppress(psycopg.Error):
                await conn.rollback()
