"""What items count as and what skills sum up to, in schema `mcp`: moved together, in one transaction."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from toolscript.core.postgres.pool import Connection, Pool, connection, transaction
from toolscript.core.retrieval.model import Vector
from toolscript.core.taxonomy import Skill, skill_point_id
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.tools.model.catalog import Claim
from toolscript.tools.model.centroids import Centroid, Counted, Rebuilt, SkillState, added_up, differences, rebuilt

PAGE = 5_000

_RECALL = """
SELECT counted.item_id, counted.vector
FROM mcp.counted_items counted JOIN unnest(%(ids)s::bigint[], %(hashes)s::text[]) AS wanted (id, hash)
  ON counted.item_id = wanted.id AND counted.text_hash = wanted.hash
WHERE counted.generation = %(generation)s
"""

# Who changes an item changes its dirty row too, and waits here: while we hold it, the item is as we have read it.
_STILL_OURS = """
SELECT dirty.item_id
FROM mcp.dirty_items dirty JOIN unnest(%(ids)s::bigint[], %(versions)s::bigint[]) AS claimed (id, version)
  ON dirty.item_id = claimed.id AND dirty.version = claimed.version
WHERE dirty.generation = %(generation)s AND dirty.held_by = %(token)s
ORDER BY dirty.item_id FOR UPDATE OF dirty
"""

_COUNTED = """
SELECT item_id, text_hash, vector, skill_ids, weights FROM mcp.counted_items
WHERE generation = %(generation)s AND item_id = ANY(%(ids)s)
"""

# Lists of different lengths cannot be unnested side by side: each comes as one text.
_COUNT = """
INSERT INTO mcp.counted_items (generation, item_id, text_hash, vector, skill_ids, weights)
SELECT %(generation)s, id, hash, vector, string_to_array(skills, ','), string_to_array(weights, ',')::integer[]
FROM unnest(%(ids)s::bigint[], %(hashes)s::text[], %(vectors)b::bytea[], %(skills)s::text[], %(weights)s::text[])
     AS counted (id, hash, vector, skills, weights)
ON CONFLICT (generation, item_id) DO UPDATE SET text_hash = excluded.text_hash, vector = excluded.vector,
    skill_ids = excluded.skill_ids, weights = excluded.weights
"""

_COUNT_NO_MORE = "DELETE FROM mcp.counted_items WHERE generation = %(generation)s AND item_id = ANY(%(ids)s)"

_SUMS = """
SELECT skill_id, total, weight, members FROM mcp.skill_vectors
WHERE generation = %(generation)s AND skill_id = ANY(%(skills)s) ORDER BY skill_id FOR UPDATE
"""

_MOVE = """
INSERT INTO mcp.skill_vectors AS sums (generation, skill_id, total, weight, members)
SELECT %(generation)s, moved.*
FROM unnest(%(skills)s::text[], %(totals)b::bytea[], %(weights)s::bigint[], %(members)s::bigint[]) AS moved
ORDER BY 2
ON CONFLICT (generation, skill_id) DO UPDATE SET total = excluded.total, weight = excluded.weight,
    members = excluded.members, version = nextval('mcp.item_version')
"""

_BEHIND = """
SELECT skills.id, name, description, parent_domain, keywords, examples, is_active, total, weight, members, version
FROM mcp.skill_vectors sums JOIN mcp.skill_categories skills ON skills.id = sums.skill_id
WHERE generation = %(generation)s AND point_version < version
  AND (cardinality(%(only)s::text[]) = 0 OR skill_id = ANY(%(only)s))
ORDER BY point_version, skill_id LIMIT %(limit)s
"""

_LOCKED = "SELECT skill_id FROM mcp.skill_vectors WHERE generation = %(generation)s ORDER BY skill_id FOR UPDATE"

# With a new version: whoever writes a skill just now may be writing it to a collection that is lost.
_ALL_BEHIND = """
UPDATE mcp.skill_vectors SET point_version = 0, version = nextval('mcp.item_version')
WHERE generation = %(generation)s
"""

_FOLLOWED = """
WITH locked AS (
    SELECT skill_id FROM mcp.skill_vectors
    WHERE generation = %(generation)s AND skill_id = ANY(%(skills)s) ORDER BY skill_id FOR UPDATE
)
UPDATE mcp.skill_vectors sums SET point_version = greatest(point_version, written.version)
FROM locked JOIN unnest(%(skills)s::text[], %(versions)s::bigint[]) AS written (id, version)
  ON written.id = locked.skill_id
WHERE sums.generation = %(generation)s AND sums.skill_id = locked.skill_id
"""

_OWN_RECOUNT = "SELECT pg_advisory_xact_lock(7406005, %s)"

# One statement sees both sides at one moment. A row is an item that counts, or else the sum of a skill.
_BOTH_SIDES = """
SELECT item_id, text_hash, vector, skill_ids, weights, NULL::text AS skill_id, NULL::bigint, NULL::bigint
FROM mcp.counted_items
WHERE generation = %(generation)s AND (cardinality(%(skills)s::text[]) = 0 OR skill_ids && %(skills)s::text[])
UNION ALL
SELECT NULL, NULL, total, NULL, NULL, skill_id, weight, members
FROM mcp.skill_vectors
WHERE generation = %(generation)s AND (cardinality(%(skills)s::text[]) = 0 OR skill_id = ANY(%(skills)s))
"""


class PostgresSkillVectors:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def recall(self, generation: int, text_hashes: Mapping[int, str]) -> Mapping[int, Vector]:
        if not text_hashes:
            return {}
        values = {"generation": generation, "ids": list(text_hashes), "hashes": list(text_hashes.values())}
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_RECALL, values, binary=True)).fetchall()
        return {int(str(row[0])): _vector(row[1]) for row in rows}

    async def count(self, generation: int, claim: Claim, counted: Sequence[Counted]) -> None:
        async with transaction(self._pool) as conn:
            ours = await _still_ours(conn, generation, claim)
            before = await _counted(conn, generation, ours)
            now = {one.item_id: one for one in counted if one.item_id in ours}
            differing = [id_ for id_ in before.keys() | now.keys() if not _same(before.get(id_), now.get(id_))]
            await _write(conn, generation, [now[id_] for id_ in differing if id_ in now])
            gone = [id_ for id_ in differing if id_ not in now]
            if gone:
                await conn.execute(_COUNT_NO_MORE, {"generation": generation, "ids": gone})
            added = added_up(now[id_] for id_ in differing if id_ in now)
            taken = added_up(before[id_] for id_ in differing if id_ in before)
            await _move(conn, generation, differences(taken, added))

    async def has_counted(self, generation: int) -> bool:
        query = "SELECT EXISTS (SELECT FROM mcp.counted_items WHERE generation = %s)"
        async with connection(self._pool) as conn:
            row = await (await conn.execute(query, (generation,))).fetchone()
        return bool(row and row[0])

    async def behind(self, generation: int, limit: int, only: Collection[str] = ()) -> Sequence[SkillState]:
        values = {"generation": generation, "limit": limit, "only": list(only)}
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_BEHIND, values, binary=True)).fetchall()
        return [_state(row) for row in rows]

    async def followed(self, generation: int, versions: Mapping[str, int]) -> None:
        if versions:
            values = {"generation": generation, "skills": list(versions), "versions": list(versions.values())}
            async with connection(self._pool) as conn:
                await conn.execute(_FOLLOWED, values)

    async def written(self, generation: int) -> Mapping[int, tuple[int, int]]:
        query = "SELECT skill_id, point_version, version FROM mcp.skill_vectors WHERE generation = %s"
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(query, (generation,))).fetchall()
        return {skill_point_id(str(row[0])): (int(str(row[1])), int(str(row[2]))) for row in rows}

    async def all_behind(self, generation: int) -> None:
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCKED, {"generation": generation})
            await conn.execute(_ALL_BEHIND, {"generation": generation})

    async def rebuild(
        self, generation: int, only: Collection[str] = (), on_progress: OnProgress = silent
    ) -> Rebuilt:
        """What both sides say at one moment is compared; what they differ by is then as true as it was."""
        async with transaction(self._pool) as conn:
            # Two at once would both add what is missing. The lock ends with the transaction, whatever happens.
            await conn.execute(_OWN_RECOUNT, (generation,))
            kept, exact, items = await _at_one_moment(conn, generation, list(only), on_progress)
            await _move(conn, generation, differences(kept, exact))
        return rebuilt(kept, exact, items)


async def _at_one_moment(
    conn: Connection, generation: int, only: list[str], on_progress: OnProgress
) -> tuple[dict[str, Centroid], dict[str, Centroid], int]:
    kept: dict[str, Centroid] = {}
    exact: dict[str, Centroid] = {}
    items = 0
    async with conn.cursor("both_sides", binary=True) as cursor:
        await cursor.execute(_BOTH_SIDES, {"generation": generation, "skills": only})
        while page := await cursor.fetchmany(PAGE):
            counted = [_counted_item(row[:5]) for row in page if row[5] is None]
            exact = added_up(counted, exact)
            kept |= {str(row[5]): _sum((row[2], *row[6:])) for row in page if row[5] is not None}
            items += len(counted)
            on_progress(Progress("add up", items))
    return kept, {skill: part for skill, part in exact.items() if not only or skill in only}, items


async def _still_ours(conn: Connection, generation: int, claim: Claim) -> set[int]:
    values = {
        "generation": generation,
        "token": claim.token,
        "ids": list(claim.versions),
        "versions": list(claim.versions.values()),
    }
    rows = await (await conn.execute(_STILL_OURS, values)).fetchall()
    return {int(str(row[0])) for row in rows}


async def _counted(conn: Connection, generation: int, ids: Iterable[int]) -> dict[int, Counted]:
    values = {"generation": generation, "ids": list(ids)}
    rows = await (await conn.execute(_COUNTED, values, binary=True)).fetchall()
    return {counted.item_id: counted for counted in map(_counted_item, rows)}


async def _write(conn: Connection, generation: int, counted: Sequence[Counted]) -> None:
    if counted:
        values = {
            "generation": generation,
            "ids": [one.item_id for one in counted],
            "hashes": [one.text_hash for one in counted],
            "vectors": [one.vector.astype("<f4").tobytes() for one in counted],
            "skills": [",".join(one.weights) for one in counted],
            "weights": [",".join(map(str, one.weights.values())) for one in counted],
        }
        await conn.execute(_COUNT, values)


async def _move(conn: Connection, generation: int, by: Mapping[str, Centroid]) -> None:
    if not by:
        return
    values: dict[str, object] = {"generation": generation, "skills": sorted(by)}
    rows = await (await conn.execute(_SUMS, values, binary=True)).fetchall()
    kept = {str(row[0]): _sum(row[1:]) for row in rows}
    moved = [kept.get(skill, Centroid.nothing()) + by[skill] for skill in sorted(by)]
    values["totals"] = [centroid.total.astype("<i8").tobytes() for centroid in moved]
    values["weights"] = [centroid.weight for centroid in moved]
    values["members"] = [centroid.members for centroid in moved]
    await conn.execute(_MOVE, values)


def _same(counted: Counted | None, other: Counted | None) -> bool:
    if counted is None or other is None:
        return counted is other
    return (
        counted.text_hash == other.text_hash
        and dict(counted.weights) == dict(other.weights)
        and np.array_equal(counted.vector, other.vector)
    )


def _counted_item(row: Sequence[Any]) -> Counted:
    id_, text_hash, vector, skills, weights = row
    return Counted(id_, text_hash, _vector(vector), dict(zip(skills, weights, strict=True)))


def _sum(row: Sequence[Any]) -> Centroid:
    total, weight, members = row
    if total is None:
        return Centroid(Centroid.nothing().total, weight, members)
    return Centroid(np.frombuffer(total, dtype="<i8"), weight, members)


def _state(row: Sequence[Any]) -> SkillState:
    id_, name, description, domain, keywords, examples, is_active, total, weight, members, version = row
    skill = Skill(id_, name, description, domain, tuple(keywords), tuple(examples), is_active)
    return SkillState(skill, _sum((total, weight, members)), version)


def _vector(raw: Any) -> Vector:
    return np.frombuffer(raw, dtype="<f4")
