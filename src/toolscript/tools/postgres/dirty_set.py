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
from toolscript.tools.model.catalog import FAILING_AFTER, Claim, Generation, GenerationState, Pending
from toolscript.tools.postgres.sql import MARK, OWN_GENERATIONS

RENEWALS_A_LEASE = 4
# A worker that hangs for good must not hold its batch for good.
MAX_SECONDS = 3600.0

# Locked in order of id, as everybody does. The time is that of the renewal, not that of waiting for the locks.
_RENEW_BATCH = """
WITH held AS (
    SELECT item_id FROM mcp.dirty_items
    WHERE generation = %(generation)s AND held_by = %(token)s ORDER BY item_id FOR UPDATE
)
UPDATE mcp.dirty_items dirty SET free_at = clock_timestamp() + make_interval(secs => %(lease)s)
FROM held WHERE dirty.generation = %(generation)s AND dirty.item_id = held.item_id
"""

_GENERATIONS = "SELECT id, state, fingerprint FROM mcp.index_generations WHERE state <> 'dropped' ORDER BY id"

# A nameless generation stays nameless when its model is being built beside it.
_ADOPT = """
UPDATE mcp.index_generations SET fingerprint = %(fingerprint)s
WHERE state = 'live' AND fingerprint IS NULL
  AND NOT EXISTS (SELECT FROM mcp.index_generations WHERE fingerprint = %(fingerprint)s)
"""

_CLAIM = """
WITH free AS (
    SELECT item_id, held_by IS NOT NULL AS taken_over FROM mcp.dirty_items
    WHERE generation = %(generation)s AND free_at <= now()
    ORDER BY free_at, item_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE mcp.dirty_items dirty
SET held_by = %(token)s, free_at = now() + make_interval(secs => %(lease)s)
FROM free WHERE dirty.generation = %(generation)s AND dirty.item_id = free.item_id
RETURNING dirty.item_id, dirty.version, free.taken_over
"""

# Few rows are held at a time, and an index of their own finds them.
_CLAIM_ABANDONED = _CLAIM.replace("free_at <= now()", "held_by IS NOT NULL AND free_at <= now()").replace(
    "ORDER BY free_at, item_id", "ORDER BY item_id"
)

# Rows are always locked in order of id, as a store does: two that meet wait for each other, and never in a ring.
_LOCK = """
SELECT item_id FROM mcp.dirty_items
WHERE generation = %(generation)s AND held_by = %(token)s AND item_id = ANY(%(ids)s)
ORDER BY item_id FOR UPDATE
"""

_RENEW_ITEMS = """
UPDATE mcp.dirty_items SET free_at = now() + make_interval(secs => %(lease)s)
WHERE generation = %(generation)s AND held_by = %(token)s AND item_id = ANY(%(ids)s)
RETURNING item_id
"""

_FOLLOWED = """
DELETE FROM mcp.dirty_items dirty USING unnest(%(ids)s::bigint[], %(versions)s::bigint[]) AS done (id, version)
WHERE dirty.generation = %(generation)s AND dirty.item_id = done.id
  AND dirty.version = done.version AND dirty.held_by = %(token)s
RETURNING dirty.item_id
"""

_FREE = """
UPDATE mcp.dirty_items SET held_by = NULL, free_at = '-infinity'
WHERE generation = %(generation)s AND held_by = %(token)s AND item_id = ANY(%(ids)s)
RETURNING item_id
"""

_LATER = """
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

# Nothing follows a dropped generation any more, and its model may be begun anew.
_DROP = """
UPDATE mcp.index_generations SET state = 'dropped', fingerprint = NULL
WHERE id = %s AND state NOT IN ('live', 'dropped')
"""

_DELETE_DROPPED = """
WITH gone AS (
    SELECT generation, {column} FROM mcp.{table}
    WHERE generation IN (SELECT id FROM mcp.index_generations WHERE state = 'dropped')
    ORDER BY generation, {column} LIMIT %s FOR UPDATE
)
DELETE FROM mcp.{table} USING gone WHERE {table}.generation = gone.generation AND {table}.{column} = gone.{column}
"""

_OF_GENERATIONS = (("dirty_items", "item_id"), ("counted_items", "item_id"), ("skill_vectors", "skill_id"))
DROP_BATCH = 10_000

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

# Whoever holds an item may have written it to a collection that is lost: a new version has it done once more.
_FILL = """
INSERT INTO mcp.dirty_items AS dirty (generation, item_id, version)
SELECT %(generation)s, id, version FROM mcp.items WHERE id > %(after)s AND id <= %(last)s AND is_active ORDER BY id
ON CONFLICT (generation, item_id) DO UPDATE SET version = nextval('mcp.item_version')
WHERE dirty.held_by IS NOT NULL
"""

# Items that come after the last page are marked by whoever stores them.
_ALL_FILLED = 9223372036854775807

logger = logging.getLogger(__name__)


class LeaseRenewer:
    def __init__(self, url: str, generation: int, token: str, lease_seconds: float) -> None:
        self._url = url
        self._values = {"generation": generation, "token": token, "lease": lease_seconds}
        self._lease_seconds = lease_seconds
        self._ended = threading.Event()
        self._connection: psycopg.Connection[tuple[object, ...]] | None = None
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Waits for a renewal that is under way, but not for a server that does not answer."""
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
        """One that fails is tried again; whether the batch is still held is found out before it is written."""
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

    async def generations(self) -> Sequence[Generation]:
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_GENERATIONS)).fetchall()
        return [_generation(row) for row in rows]

    async def adopt(self, fingerprint: str) -> Generation:
        async with transaction(self._pool) as conn:
            await conn.execute(OWN_GENERATIONS)
            await conn.execute(_ADOPT, {"fingerprint": fingerprint})
        return next(
            generation for generation in await self.generations() if generation.state is GenerationState.LIVE
        )

    async def begin(self, fingerprint: str, *, afresh: bool = False) -> Generation:
        async with transaction(self._pool) as conn:
            await conn.execute(OWN_GENERATIONS)
            await conn.execute(_BEGIN, {"fingerprint": fingerprint, "afresh": afresh})
            await conn.execute(_ALL_SKILLS)
        return next(generation for generation in await self.generations() if generation.fingerprint == fingerprint)

    async def fill(self, generation: int, limit: int) -> int:
        async with transaction(self._pool) as conn:
            held = await conn.execute(
                "SELECT filled_up_to FROM mcp.index_generations WHERE id = %s FOR NO KEY UPDATE", (generation,)
            )
            row = await held.fetchone()
            after = row[0] if row else 0
            page = await conn.execute(
                "SELECT max(id), count(*) FROM (SELECT id FROM mcp.items WHERE id > %s ORDER BY id LIMIT %s) page",
                (after, limit),
            )
            last, count = await page.fetchone() or (None, 0)
            if last is not None:
                await conn.execute(_FILL, {"generation": generation, "after": after, "last": last})
            filled = _ALL_FILLED if last is None else last
            if filled != after:
                await conn.execute(
                    "UPDATE mcp.index_generations SET filled_up_to = %s WHERE id = %s", (filled, generation)
                )
            return int(str(count))

    async def set_state(self, generation: int, state: GenerationState) -> None:
        async with transaction(self._pool) as conn:
            await conn.execute(OWN_GENERATIONS)
            if state is GenerationState.LIVE:
                await conn.execute(
                    "UPDATE mcp.index_generations SET state = 'previous' WHERE state = 'live' AND id <> %s",
                    (generation,),
                )
            changed = await conn.execute(
                "UPDATE mcp.index_generations SET state = %s WHERE id = %s", (state, generation)
            )
            if not changed.rowcount:
                raise NotFound(f"there is no generation {generation}")

    async def forget(self, generation: int) -> None:
        async with transaction(self._pool) as conn:
            await conn.execute(OWN_GENERATIONS)
            gone = await conn.execute(_DROP, (generation,))
        if not gone.rowcount:
            raise NotFound(f"there is no generation {generation} that could be dropped")
        for table, column in _OF_GENERATIONS:
            while await self._delete_dropped(table, column):
                pass
        async with transaction(self._pool) as conn:
            await conn.execute("DELETE FROM mcp.index_generations WHERE state = 'dropped'")

    async def _delete_dropped(self, table: str, column: str) -> int:
        """A page at a time, so that nobody waits; what an earlier run has left is finished too."""
        async with transaction(self._pool) as conn:
            gone = await conn.execute(_DELETE_DROPPED.format(table=table, column=column), (DROP_BATCH,))
        return gone.rowcount

    async def claim(
        self, generation: int, limit: int, lease_seconds: float, *, abandoned_first: bool = False
    ) -> Claim:
        token = uuid.uuid4().hex
        values = {"generation": generation, "limit": limit, "token": token, "lease": lease_seconds}
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_CLAIM_ABANDONED, values)).fetchall() if abandoned_first else []
            rows = rows or await (await conn.execute(_CLAIM, values)).fetchall()
        taken_over = frozenset(int(str(row[0])) for row in rows if row[2])
        return Claim(token, {int(str(row[0])): int(str(row[1])) for row in rows}, taken_over)

    @asynccontextmanager
    async def kept(self, generation: int, claim: Claim, lease_seconds: float) -> AsyncIterator[None]:
        keeper = LeaseRenewer(str(self._pool.conninfo), generation, claim.token, lease_seconds)
        keeper.start()
        try:
            yield
        finally:
            await asyncio.to_thread(keeper.end)

    async def renew(self, generation: int, claim: Claim, lease_seconds: float) -> Claim:
        values = {**_held(generation, claim), "lease": lease_seconds}
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCK, values)
            rows = await (await conn.execute(_RENEW_ITEMS, values)).fetchall()
        kept = {int(str(row[0])) for row in rows}
        return replace(claim, versions={id_: version for id_, version in claim.versions.items() if id_ in kept})

    async def clear(
        self, generation: int, claim: Claim, again: Collection[int] = (), after_seconds: float = 0.0
    ) -> None:
        values = _held(generation, claim)
        later = {**values, "ids": list(again), "after": after_seconds}
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCK, values)
            waiting = await (await conn.execute(_LATER, later)).fetchall() if again else []
            followed = await (await conn.execute(_FOLLOWED, values)).fetchall()
            freed = await (await conn.execute(_FREE, values)).fetchall()
            lost = claim.versions.keys() - {int(str(row[0])) for row in waiting + followed + freed}
            if lost:
                await conn.execute(MARK, {"generation": generation, "ids": sorted(lost)})

    async def postpone(self, generation: int, claim: Claim, reason: str) -> None:
        values = {**_held(generation, claim), "reason": reason[:500]}
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCK, values)
            await conn.execute(_POSTPONE, values)

    async def mark(self, generation: int, ids: Sequence[int]) -> None:
        async with connection(self._pool) as conn:
            await conn.execute(MARK, {"generation": generation, "ids": list(ids)})

    async def pending(self, generation: int) -> Pending:
        async with connection(self._pool) as conn:
            row = await (await conn.execute(_PENDING, (FAILING_AFTER, generation))).fetchone()
        return Pending(int(str(row[0])), int(str(row[1])), float(str(row[2]))) if row else Pending(0, 0)

    async def are_dirty(self, generation: int, ids: Sequence[int]) -> set[int]:
        query = "SELECT item_id FROM mcp.dirty_items WHERE generation = %s AND item_id = ANY(%s)"
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(query, (generation, list(ids)))).fetchall()
        return {int(str(row[0])) for row in rows}

    async def failing(self, generation: int, limit: int) -> Sequence[tuple[int, str]]:
        query = (
            "SELECT item_id, last_error FROM mcp.dirty_items "
            "WHERE generation = %s AND last_error IS NOT NULL ORDER BY item_id LIMIT %s"
        )
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(query, (generation, limit))).fetchall()
        return [(int(str(row[0])), str(row[1])) for row in rows]


def _generation(row: tuple[object, ...]) -> Generation:
    fingerprint = None if row[2] is None else str(row[2])
    return Generation(int(str(row[0])), GenerationState(str(row[1])), fingerprint)


def _held(generation: int, claim: Claim) -> dict[str, object]:
    return {
        "generation": generation,
        "token": claim.token,
        "ids": list(claim.versions),
        "versions": list(claim.versions.values()),
    }
