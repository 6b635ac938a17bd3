"""The dirty set in schema `mcp`: claimed with SKIP LOCKED, held by a lease, cleared by version."""

import asyncio
import logging
import threading
import time
import uuid
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import psycopg

from toolscript.core.errors import NotFound
from toolscript.core.postgres.pool import Pool, connection, transaction
from toolscript.tools.model.catalog import FAILING_AFTER, Claim, IndexVersion, IndexVersionState, Pending
from toolscript.tools.postgres.sql import LOCK_INDEX_VERSIONS, MARK

RENEWALS_A_LEASE = 4
# A worker that hangs forever must not hold its batch forever.
MAX_SECONDS = 3600.0

# Locked in order of id, the common order. The lease starts at the renewal, not at the wait for the locks.
_RENEW_BATCH = """
WITH held AS (
    SELECT item_id FROM mcp.dirty_items
    WHERE generation = %(generation)s AND held_by = %(token)s ORDER BY item_id FOR UPDATE
)
UPDATE mcp.dirty_items dirty SET free_at = clock_timestamp() + make_interval(secs => %(lease)s)
FROM held WHERE dirty.generation = %(generation)s AND dirty.item_id = held.item_id
"""

_INDEX_VERSIONS = "SELECT id, state, fingerprint FROM mcp.index_generations WHERE state <> 'dropped' ORDER BY id"

# An index version without a fingerprint keeps none while another one with its model is being built.
_ADOPT = """
UPDATE mcp.index_generations SET fingerprint = %(fingerprint)s
WHERE state = 'live' AND fingerprint IS NULL
  AND NOT EXISTS (SELECT FROM mcp.index_generations WHERE fingerprint = %(fingerprint)s)
"""

# Each namespace with items to index gets an equal share of a batch, whatever waits in the others. One row of the
# index is read for each namespace, and then as many as are taken.
_CLAIM = """
WITH RECURSIVE places AS (
    (SELECT namespace, free_at FROM mcp.dirty_items WHERE generation = %(generation)s
     ORDER BY namespace, free_at LIMIT 1)
    UNION ALL
    SELECT following.* FROM places CROSS JOIN LATERAL (
        SELECT namespace, free_at FROM mcp.dirty_items
        WHERE generation = %(generation)s AND namespace > places.namespace
        ORDER BY namespace, free_at LIMIT 1
    ) AS following
), sharing AS (
    SELECT namespace, ceil(%(limit)s::float / count(*) OVER ())::bigint AS share FROM places
    WHERE free_at <= now() ORDER BY random() LIMIT %(limit)s
), free AS (
    SELECT taken.* FROM sharing CROSS JOIN LATERAL (
        SELECT item_id, held_by IS NOT NULL AS lease_expired FROM mcp.dirty_items
        WHERE generation = %(generation)s AND namespace = sharing.namespace AND free_at <= now()
        ORDER BY free_at, item_id LIMIT sharing.share FOR UPDATE SKIP LOCKED
    ) AS taken LIMIT %(limit)s
)
UPDATE mcp.dirty_items dirty
SET held_by = %(token)s, free_at = now() + make_interval(secs => %(lease)s)
FROM free WHERE dirty.generation = %(generation)s AND dirty.item_id = free.item_id
RETURNING dirty.item_id, dirty.version, free.lease_expired
"""

# Few rows are held at a time, and a separate index finds them.
_CLAIM_ABANDONED = """
WITH free AS (
    SELECT item_id, true AS lease_expired FROM mcp.dirty_items
    WHERE generation = %(generation)s AND held_by IS NOT NULL AND free_at <= now()
    ORDER BY item_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE mcp.dirty_items dirty
SET held_by = %(token)s, free_at = now() + make_interval(secs => %(lease)s)
FROM free WHERE dirty.generation = %(generation)s AND dirty.item_id = free.item_id
RETURNING dirty.item_id, dirty.version, free.lease_expired
"""

# Rows are always locked in order of id, the common order, which prevents deadlocks.
_LOCK_LEASED = """
SELECT item_id FROM mcp.dirty_items
WHERE generation = %(generation)s AND held_by = %(token)s AND item_id = ANY(%(ids)s)
ORDER BY item_id FOR UPDATE
"""

_RENEW_ITEMS = """
UPDATE mcp.dirty_items SET free_at = now() + make_interval(secs => %(lease)s)
WHERE generation = %(generation)s AND held_by = %(token)s AND item_id = ANY(%(ids)s)
RETURNING item_id
"""

_CLEAR_INDEXED = """
DELETE FROM mcp.dirty_items dirty USING unnest(%(ids)s::bigint[], %(versions)s::bigint[]) AS done (id, version)
WHERE dirty.generation = %(generation)s AND dirty.item_id = done.id
  AND dirty.version = done.version AND dirty.held_by = %(token)s
RETURNING dirty.item_id
"""

_RELEASE = """
UPDATE mcp.dirty_items SET held_by = NULL, free_at = '-infinity'
WHERE generation = %(generation)s AND held_by = %(token)s AND item_id = ANY(%(ids)s)
RETURNING item_id
"""

_RELEASE_LATER = """
UPDATE mcp.dirty_items SET held_by = NULL, free_at = now() + make_interval(secs => %(after)s)
WHERE generation = %(generation)s AND held_by = %(token)s AND item_id = ANY(%(ids)s)
RETURNING item_id
"""

_POSTPONE = """
UPDATE mcp.dirty_items SET held_by = NULL, attempts = attempts + 1, last_error = %(reason)s,
    free_at = now() + make_interval(secs => least(60, power(2, least(attempts, 6))))
WHERE generation = %(generation)s AND held_by = %(token)s AND item_id = ANY(%(ids)s)
"""

_BEGIN = """
INSERT INTO mcp.index_generations AS known (state, fingerprint) VALUES ('building', %(fingerprint)s)
ON CONFLICT (fingerprint) DO UPDATE SET filled_up_to = 0 WHERE %(afresh)s
"""

# A dropped index version receives no more changes, and a new one can be built with its model.
_DROP = """
UPDATE mcp.index_generations SET state = 'dropped', fingerprint = NULL
WHERE id = %s AND state NOT IN ('live', 'dropped')
"""

_DELETE_DROPPED = """
WITH gone AS (
    SELECT generation, {key} FROM mcp.{table}
    WHERE generation IN (SELECT id FROM mcp.index_generations WHERE state = 'dropped')
    ORDER BY generation, {key} LIMIT %s FOR UPDATE
)
DELETE FROM mcp.{table} WHERE (generation, {key}) IN (SELECT generation, {key} FROM gone)
"""

_TABLES_OF_INDEX_VERSIONS = (
    ("dirty_items", "item_id"),
    ("counted_items", "item_id"),
    ("skill_vectors", "skill_id, namespace"),
)
DROP_BATCH = 10_000

# In the default namespace: an item of another one makes the rows of its skills there.
_ALL_SKILLS = """
INSERT INTO mcp.skill_vectors (generation, skill_id)
SELECT generations.id, skills.id FROM mcp.index_generations generations, mcp.skill_categories skills
WHERE state <> 'dropped'
ON CONFLICT DO NOTHING
"""

_PENDING = """
SELECT count(*), count(*) FILTER (WHERE attempts >= %s),
    coalesce(greatest(0, extract(epoch FROM clock_timestamp() - min(marked_at))), 0)
FROM mcp.dirty_items WHERE generation = %s
"""

# A worker that holds an item may have written it to a lost collection: a new version has it indexed again.
_FILL = """
INSERT INTO mcp.dirty_items AS dirty (generation, item_id, version, namespace)
SELECT %(generation)s, id, version, namespace FROM mcp.items
WHERE id > %(after)s AND id <= %(last)s AND is_active ORDER BY id
ON CONFLICT (generation, item_id) DO UPDATE SET version = nextval('mcp.item_version')
WHERE dirty.held_by IS NOT NULL
"""

# Items stored after the last page are marked when they are stored.
_ALL_FILLED = 9223372036854775807

logger = logging.getLogger(__name__)


class LeaseRenewer:
    def __init__(self, url: str, index_version: int, token: str, lease_seconds: float) -> None:
        self._url = url
        self._values = {"generation": index_version, "token": token, "lease": lease_seconds}
        self._lease_seconds = lease_seconds
        self._ended = threading.Event()
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Stop. Wait for a renewal in progress, but not for a server that does not answer."""
        self._ended.set()
        self._thread.join(self._lease_seconds)

    def _run(self) -> None:
        ends_at = time.monotonic() + MAX_SECONDS
        try:
            while not self._ended.wait(self._lease_seconds / RENEWALS_A_LEASE) and time.monotonic() < ends_at:
                self._renew()
        finally:
            self._disconnect()

    def _renew(self) -> None:
        """Renew the lease. A failure is retried; the indexer checks the lease before it writes."""
        try:
            if self._connection is None:
                # Prepared statements would outlive the transaction, which a pooler does not allow.
                self._connection = psycopg.connect(
                    self._url, autocommit=True, connect_timeout=2, prepare_threshold=None
                )
            self._connection.execute(_RENEW_BATCH, self._values)
        except psycopg.Error as error:
            logger.warning("lease not renewed", extra={"part": "worker", "reason": str(error).partition("\n")[0]})
            self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


class PostgresDirtySet:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def index_versions(self) -> Sequence[IndexVersion]:
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_INDEX_VERSIONS)).fetchall()
        return [_index_version(row) for row in rows]

    async def adopt(self, fingerprint: str) -> IndexVersion:
        async with transaction(self._pool) as conn:
            await conn.execute(LOCK_INDEX_VERSIONS)
            await conn.execute(_ADOPT, {"fingerprint": fingerprint})
        return next(
            index_version
            for index_version in await self.index_versions()
            if index_version.state is IndexVersionState.LIVE
        )

    async def begin(self, fingerprint: str, *, afresh: bool = False) -> IndexVersion:
        async with transaction(self._pool) as conn:
            await conn.execute(LOCK_INDEX_VERSIONS)
            await conn.execute(_BEGIN, {"fingerprint": fingerprint, "afresh": afresh})
            await conn.execute(_ALL_SKILLS)
        return next(
            index_version
            for index_version in await self.index_versions()
            if index_version.fingerprint == fingerprint
        )

    async def fill(self, index_version: int, limit: int) -> int:
        async with transaction(self._pool) as conn:
            held = await conn.execute(
                "SELECT filled_up_to FROM mcp.index_generations WHERE id = %s FOR NO KEY UPDATE", (index_version,)
            )
            row = await held.fetchone()
            after = row[0] if row else 0
            page = await conn.execute(
                "SELECT max(id), count(*) FROM (SELECT id FROM mcp.items WHERE id > %s ORDER BY id LIMIT %s) page",
                (after, limit),
            )
            last, count = await page.fetchone() or (None, 0)
            if last is not None:
                await conn.execute(_FILL, {"generation": index_version, "after": after, "last": last})
            filled = _ALL_FILLED if last is None else last
            if filled != after:
                await conn.execute(
                    "UPDATE mcp.index_generations SET filled_up_to = %s WHERE id = %s", (filled, index_version)
                )
            return int(str(count))

    async def set_state(self, index_version: int, state: IndexVersionState) -> None:
        async with transaction(self._pool) as conn:
            await conn.execute(LOCK_INDEX_VERSIONS)
            if state is IndexVersionState.LIVE:
                await conn.execute(
                    "UPDATE mcp.index_generations SET state = 'previous' WHERE state = 'live' AND id <> %s",
                    (index_version,),
                )
            changed = await conn.execute(
                "UPDATE mcp.index_generations SET state = %s WHERE id = %s", (state, index_version)
            )
            if not changed.rowcount:
                raise NotFound(f"there is no index version {index_version}")

    async def forget(self, index_version: int) -> None:
        async with transaction(self._pool) as conn:
            await conn.execute(LOCK_INDEX_VERSIONS)
            gone = await conn.execute(_DROP, (index_version,))
        if not gone.rowcount:
            raise NotFound(f"there is no index version {index_version} that could be dropped")
        for table, key in _TABLES_OF_INDEX_VERSIONS:
            while await self._delete_dropped(table, key):
                pass
        async with transaction(self._pool) as conn:
            await conn.execute("DELETE FROM mcp.index_generations WHERE state = 'dropped'")

    async def _delete_dropped(self, table: str, key: str) -> int:
        """Delete the next page of rows, so that locks are short; this also finishes an interrupted run."""
        async with transaction(self._pool) as conn:
            gone = await conn.execute(_DELETE_DROPPED.format(table=table, key=key), (DROP_BATCH,))
        return gone.rowcount

    async def claim(
        self, index_version: int, limit: int, lease_seconds: float, *, abandoned_first: bool = False
    ) -> Claim:
        token = uuid.uuid4().hex
        values = {"generation": index_version, "limit": limit, "token": token, "lease": lease_seconds}
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_CLAIM_ABANDONED, values)).fetchall() if abandoned_first else []
            rows = rows or await (await conn.execute(_CLAIM, values)).fetchall()
        expired_leases = frozenset(int(str(row[0])) for row in rows if row[2])
        return Claim(token, {int(str(row[0])): int(str(row[1])) for row in rows}, expired_leases)

    @asynccontextmanager
    async def keep_lease(self, index_version: int, claim: Claim, lease_seconds: float) -> AsyncIterator[None]:
        renewer = LeaseRenewer(str(self._pool.conninfo), index_version, claim.token, lease_seconds)
        renewer.start()
        try:
            yield
        finally:
            await asyncio.to_thread(renewer.end)

    async def renew(self, index_version: int, claim: Claim, lease_seconds: float) -> Claim:
        values = {**_lease_values(index_version, claim), "lease": lease_seconds}
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCK_LEASED, values)
            rows = await (await conn.execute(_RENEW_ITEMS, values)).fetchall()
        still_leased = {int(str(row[0])) for row in rows}
        return replace(
            claim, versions={id_: version for id_, version in claim.versions.items() if id_ in still_leased}
        )

    async def clear(
        self, index_version: int, claim: Claim, release_later: Collection[int] = (), after_seconds: float = 0.0
    ) -> None:
        values = _lease_values(index_version, claim)
        later = {**values, "ids": list(release_later), "after": after_seconds}
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCK_LEASED, values)
            waiting = await (await conn.execute(_RELEASE_LATER, later)).fetchall() if release_later else []
            indexed = await (await conn.execute(_CLEAR_INDEXED, values)).fetchall()
            freed = await (await conn.execute(_RELEASE, values)).fetchall()
            lost = claim.versions.keys() - {int(str(row[0])) for row in waiting + indexed + freed}
            if lost:
                await conn.execute(MARK, {"generation": index_version, "ids": sorted(lost)})

    async def postpone(self, index_version: int, claim: Claim, reason: str) -> None:
        values = {**_lease_values(index_version, claim), "reason": reason[:500]}
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCK_LEASED, values)
            await conn.execute(_POSTPONE, values)

    async def mark(self, index_version: int, ids: Sequence[int]) -> None:
        async with connection(self._pool) as conn:
            await conn.execute(MARK, {"generation": index_version, "ids": list(ids)})

    async def pending(self, index_version: int) -> Pending:
        async with connection(self._pool) as conn:
            row = await (await conn.execute(_PENDING, (FAILING_AFTER, index_version))).fetchone()
        return Pending(int(str(row[0])), int(str(row[1])), float(str(row[2]))) if row else Pending(0, 0)

    async def are_dirty(self, index_version: int, ids: Sequence[int]) -> set[int]:
        query = "SELECT item_id FROM mcp.dirty_items WHERE generation = %s AND item_id = ANY(%s)"
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(query, (index_version, list(ids)))).fetchall()
        return {int(str(row[0])) for row in rows}

    async def failing(self, index_version: int, limit: int) -> Sequence[tuple[int, str]]:
        query = (
            "SELECT item_id, last_error FROM mcp.dirty_items "
            "WHERE generation = %s AND last_error IS NOT NULL ORDER BY item_id LIMIT %s"
        )
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(query, (index_version, limit))).fetchall()
        return [(int(str(row[0])), str(row[1])) for row in rows]


def _index_version(row: tuple[object, ...]) -> IndexVersion:
    fingerprint = None if row[2] is None else str(row[2])
    return IndexVersion(int(str(row[0])), IndexVersionState(str(row[1])), fingerprint)


def _lease_values(index_version: int, claim: Claim) -> dict[str, object]:
    return {
        "generation": index_version,
        "token": claim.token,
        "ids": list(claim.versions),
        "versions": list(claim.versions.values()),
    }
