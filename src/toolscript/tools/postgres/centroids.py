"""Contributions of items and centroids of skills, in schema `mcp`: updated together, in one transaction."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from toolscript.core.items import Item, ItemKind
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.postgres.pool import Connection, Pool, connection, transaction
from toolscript.core.retrieval.model import Vector
from toolscript.core.taxonomy import Skill, skill_point_id
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.tools.model.catalog import Claim
from toolscript.tools.model.centroids import (
    Centroid,
    Counted,
    Rebuilt,
    SkillKey,
    SkillState,
    differences,
    rebuilt,
    sum_by_namespace,
)
from toolscript.tools.model.proposals import Observed
from toolscript.tools.postgres.sql import ASSIGNED, assignments_of

PAGE = 5_000

_RECALL = """
SELECT counted.item_id, counted.vector
FROM mcp.counted_items counted JOIN unnest(%(ids)s::bigint[], %(hashes)s::text[]) AS wanted (id, hash)
  ON counted.item_id = wanted.id AND counted.text_hash = wanted.hash
WHERE counted.generation = %(generation)s
"""

# A change of an item also updates its dirty row: while this transaction locks that row, the item cannot change.
_STILL_OURS = """
SELECT dirty.item_id
FROM mcp.dirty_items dirty JOIN unnest(%(ids)s::bigint[], %(versions)s::bigint[]) AS claimed (id, version)
  ON dirty.item_id = claimed.id AND dirty.version = claimed.version
WHERE dirty.generation = %(generation)s AND dirty.held_by = %(token)s
ORDER BY dirty.item_id FOR UPDATE OF dirty
"""

_COUNTED = """
SELECT item_id, text_hash, vector, skill_ids, weights, namespace FROM mcp.counted_items
WHERE generation = %(generation)s AND item_id = ANY(%(ids)s)
"""

# Lists of different lengths cannot be unnested side by side: each comes as one text.
_COUNT = """
INSERT INTO mcp.counted_items (generation, item_id, text_hash, vector, skill_ids, weights, namespace)
SELECT %(generation)s, id, hash, vector, string_to_array(skills, ','), string_to_array(weights, ',')::integer[],
       namespace
FROM unnest(%(ids)s::bigint[], %(hashes)s::text[], %(vectors)b::bytea[], %(skills)s::text[], %(weights)s::text[],
            %(namespaces)s::text[])
     AS counted (id, hash, vector, skills, weights, namespace)
ON CONFLICT (generation, item_id) DO UPDATE SET text_hash = excluded.text_hash, vector = excluded.vector,
    skill_ids = excluded.skill_ids, weights = excluded.weights, namespace = excluded.namespace
"""

# A skill that only other namespaces use has size 0.
_OBSERVED = f"""
SELECT items.id, kind, key, server, name, description, server_description, counted.vector, {ASSIGNED},
       items.skills_by_hand
FROM mcp.counted_items counted JOIN mcp.items ON items.id = counted.item_id AND items.is_active
WHERE counted.generation = %(generation)s AND counted.namespace = %(namespace)s AND counted.item_id > %(after)s
ORDER BY counted.item_id LIMIT %(limit)s
"""  # noqa: S608 - built from constants only

_DELETE_COUNTED = "DELETE FROM mcp.counted_items WHERE generation = %(generation)s AND item_id = ANY(%(ids)s)"

# A change of a skill marks the rows that it has, so a new row waits for its end: its point could keep
# the old text. Changes of skills lock no dirty items: to take this lock after those causes no deadlock.
_HOLD_NEW = """
SELECT FROM mcp.skill_categories WHERE id IN (
    SELECT moved.skill_id FROM unnest(%(skills)s::text[], %(namespaces)s::text[]) AS moved (skill_id, namespace)
    WHERE NOT EXISTS (SELECT FROM mcp.skill_vectors sums WHERE sums.generation = %(generation)s
                      AND sums.namespace = moved.namespace AND sums.skill_id = moved.skill_id)
) ORDER BY id FOR SHARE
"""

# Of two first items of a skill in a namespace, counted at once, the second waits here for the row of the first.
_ADD_NEW = """
INSERT INTO mcp.skill_vectors (generation, skill_id, namespace)
SELECT %(generation)s, moved.* FROM unnest(%(skills)s::text[], %(namespaces)s::text[]) AS moved ORDER BY 2, 3
ON CONFLICT DO NOTHING
"""

_SUMS = """
SELECT sums.skill_id, sums.namespace, total, weight, members
FROM mcp.skill_vectors sums JOIN unnest(%(skills)s::text[], %(namespaces)s::text[]) AS moved (skill_id, namespace)
  ON sums.skill_id = moved.skill_id AND sums.namespace = moved.namespace
WHERE generation = %(generation)s ORDER BY sums.skill_id, sums.namespace FOR UPDATE OF sums
"""

_MOVE = """
INSERT INTO mcp.skill_vectors AS sums (generation, skill_id, namespace, total, weight, members)
SELECT %(generation)s, moved.*
FROM unnest(%(skills)s::text[], %(namespaces)s::text[], %(totals)b::bytea[], %(weights)s::bigint[],
            %(members)s::bigint[]) AS moved
ORDER BY 2, 3
ON CONFLICT (generation, namespace, skill_id) DO UPDATE SET total = excluded.total, weight = excluded.weight,
    members = excluded.members, version = nextval('mcp.item_version')
"""

_BEHIND = """
SELECT skills.id, name, description, parent_domain, keywords, examples, is_active, total, weight, members, version,
       namespace
FROM mcp.skill_vectors sums JOIN mcp.skill_categories skills ON skills.id = sums.skill_id
WHERE generation = %(generation)s AND point_version < version
  AND (cardinality(%(only)s::text[]) = 0 OR skill_id = ANY(%(only)s))
ORDER BY point_version, skill_id, namespace LIMIT %(limit)s
"""

_LOCKED = """
SELECT FROM mcp.skill_vectors WHERE generation = %(generation)s ORDER BY skill_id, namespace FOR UPDATE
"""

# With a new version: a process that writes a skill right now may write it to a lost collection.
_ALL_BEHIND = """
UPDATE mcp.skill_vectors SET point_version = 0, version = nextval('mcp.item_version')
WHERE generation = %(generation)s
"""

_FOLLOWED = """
WITH locked AS (
    SELECT sums.skill_id, sums.namespace, written.version
    FROM mcp.skill_vectors sums
    JOIN unnest(%(skills)s::text[], %(namespaces)s::text[], %(versions)s::bigint[])
         AS written (skill_id, namespace, version)
      ON sums.skill_id = written.skill_id AND sums.namespace = written.namespace
    WHERE generation = %(generation)s ORDER BY sums.skill_id, sums.namespace FOR UPDATE OF sums
)
UPDATE mcp.skill_vectors sums SET point_version = greatest(point_version, locked.version)
FROM locked
WHERE generation = %(generation)s AND sums.skill_id = locked.skill_id AND sums.namespace = locked.namespace
"""

_WRITTEN = """
SELECT skill_id, namespace, point_version, version FROM mcp.skill_vectors WHERE generation = %(generation)s
"""
_IN_NAMESPACE = " AND namespace = %(namespace)s"

_OWN_RECOUNT = "SELECT pg_advisory_xact_lock(7406005, %s)"

# One statement reads both sides from one snapshot. A row is an item's contribution or the sum of a skill.
_BOTH_SIDES = """
SELECT item_id, text_hash, vector, skill_ids, weights, namespace,
       NULL::text AS skill_id, NULL::bigint AS weight, NULL::bigint AS members
FROM mcp.counted_items
WHERE generation = %(generation)s AND (cardinality(%(skills)s::text[]) = 0 OR skill_ids && %(skills)s::text[])
UNION ALL
SELECT NULL, NULL, total, NULL, NULL, namespace, skill_id, weight, members
FROM mcp.skill_vectors
WHERE generation = %(generation)s AND (cardinality(%(skills)s::text[]) = 0 OR skill_id = ANY(%(skills)s))
"""


class PostgresSkillVectors:
    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def recall(self, index_version: int, text_hashes: Mapping[int, str]) -> Mapping[int, Vector]:
        if not text_hashes:
            return {}
        values = {"generation": index_version, "ids": list(text_hashes), "hashes": list(text_hashes.values())}
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_RECALL, values, binary=True)).fetchall()
        return {int(str(row[0])): _vector(row[1]) for row in rows}

    async def count(self, index_version: int, claim: Claim, counted: Sequence[Counted]) -> None:
        async with transaction(self._pool) as conn:
            ours = await _still_ours(conn, index_version, claim)
            before = await _counted(conn, index_version, ours)
            now = {item.item_id: item for item in counted if item.item_id in ours}
            differing = [id_ for id_ in before.keys() | now.keys() if not _same(before.get(id_), now.get(id_))]
            await _write(conn, index_version, [now[id_] for id_ in differing if id_ in now])
            gone = [id_ for id_ in differing if id_ not in now]
            if gone:
                await conn.execute(_DELETE_COUNTED, {"generation": index_version, "ids": gone})
            added = sum_by_namespace(now[id_] for id_ in differing if id_ in now)
            taken = sum_by_namespace(before[id_] for id_ in differing if id_ in before)
            await _move(conn, index_version, differences(taken, added))

    async def has_counted(self, index_version: int) -> bool:
        query = "SELECT EXISTS (SELECT FROM mcp.counted_items WHERE generation = %s)"
        async with connection(self._pool) as conn:
            row = await (await conn.execute(query, (index_version,))).fetchone()
        return bool(row and row[0])

    async def behind(self, index_version: int, limit: int, only: Collection[str] = ()) -> Sequence[SkillState]:
        values = {"generation": index_version, "limit": limit, "only": list(only)}
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_BEHIND, values, binary=True)).fetchall()
        return [_state(row) for row in rows]

    async def mark_indexed(self, index_version: int, states: Sequence[SkillState]) -> None:
        if states:
            values = {
                "generation": index_version,
                "skills": [state.skill.id for state in states],
                "namespaces": [state.namespace for state in states],
                "versions": [state.version for state in states],
            }
            async with connection(self._pool) as conn:
                await conn.execute(_FOLLOWED, values)

    async def written(self, index_version: int, namespace: str | None = None) -> Mapping[int, tuple[int, int]]:
        query = _WRITTEN + _IN_NAMESPACE * (namespace is not None)
        values = {"generation": index_version, "namespace": namespace}
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(query, values)).fetchall()
        return {
            skill_point_id(str(skill_id), str(place)): (int(str(point_version)), int(str(version)))
            for skill_id, place, point_version, version in rows
        }

    async def all_behind(self, index_version: int) -> None:
        async with transaction(self._pool) as conn:
            await conn.execute(_LOCKED, {"generation": index_version})
            await conn.execute(_ALL_BEHIND, {"generation": index_version})

    async def observed(
        self, index_version: int, after: int, limit: int, namespace: str = DEFAULT_NAMESPACE
    ) -> Sequence[Observed]:
        values = {"generation": index_version, "namespace": namespace, "after": after, "limit": limit}
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_OBSERVED, values)).fetchall()
        return [_observed(row) for row in rows]

    async def rebuild(
        self, index_version: int, only: Collection[str] = (), on_progress: OnProgress = silent
    ) -> Rebuilt:
        """Compare both sides in one snapshot. Adding their difference stays correct beside concurrent updates."""
        async with transaction(self._pool) as conn:
            # Two concurrent recounts would both add the difference. The lock always ends with the transaction.
            await conn.execute(_OWN_RECOUNT, (index_version,))
            kept, exact, items = await _read_snapshot(conn, index_version, list(only), on_progress)
            await _move(conn, index_version, differences(kept, exact))
        return rebuilt(kept, exact, items)


async def _read_snapshot(
    conn: Connection, index_version: int, only: list[str], on_progress: OnProgress
) -> tuple[dict[SkillKey, Centroid], dict[SkillKey, Centroid], int]:
    kept: dict[SkillKey, Centroid] = {}
    exact: dict[SkillKey, Centroid] = {}
    items = 0
    async with conn.cursor("both_sides", binary=True) as cursor:
        await cursor.execute(_BOTH_SIDES, {"generation": index_version, "skills": only})
        while page := await cursor.fetchmany(PAGE):
            counted = [_counted_item(row[:6]) for row in page if row[6] is None]
            exact = sum_by_namespace(counted, exact)
            kept |= {
                SkillKey(str(row[6]), str(row[5])): _sum((row[2], *row[7:])) for row in page if row[6] is not None
            }
            items += len(counted)
            on_progress(Progress("add up", items))
    return kept, {key: part for key, part in exact.items() if not only or key.skill_id in only}, items


async def _still_ours(conn: Connection, index_version: int, claim: Claim) -> set[int]:
    values = {
        "generation": index_version,
        "token": claim.token,
        "ids": list(claim.versions),
        "versions": list(claim.versions.values()),
    }
    rows = await (await conn.execute(_STILL_OURS, values)).fetchall()
    return {int(str(row[0])) for row in rows}


async def _counted(conn: Connection, index_version: int, ids: Iterable[int]) -> dict[int, Counted]:
    values = {"generation": index_version, "ids": list(ids)}
    rows = await (await conn.execute(_COUNTED, values, binary=True)).fetchall()
    return {counted.item_id: counted for counted in map(_counted_item, rows)}


async def _write(conn: Connection, index_version: int, counted: Sequence[Counted]) -> None:
    if counted:
        values = {
            "generation": index_version,
            "ids": [item.item_id for item in counted],
            "hashes": [item.text_hash for item in counted],
            "vectors": [item.vector.astype("<f4").tobytes() for item in counted],
            "skills": [",".join(item.weights) for item in counted],
            "weights": [",".join(map(str, item.weights.values())) for item in counted],
            "namespaces": [item.namespace for item in counted],
        }
        await conn.execute(_COUNT, values)


async def _move(conn: Connection, index_version: int, by: Mapping[SkillKey, Centroid]) -> None:
    if not by:
        return
    keys = sorted(by)
    values: dict[str, object] = {
        "generation": index_version,
        "skills": [key.skill_id for key in keys],
        "namespaces": [key.namespace for key in keys],
    }
    # In the default namespace, every skill has a row from its beginning.
    if any(key.namespace != DEFAULT_NAMESPACE for key in keys):
        await conn.execute(_HOLD_NEW, values)
        await conn.execute(_ADD_NEW, values)
    rows = await (await conn.execute(_SUMS, values, binary=True)).fetchall()
    kept = {SkillKey(str(row[0]), str(row[1])): _sum(row[2:]) for row in rows}
    moved = [kept.get(key, Centroid.nothing()) + by[key] for key in keys]
    values["totals"] = [centroid.total.astype("<i8").tobytes() for centroid in moved]
    values["weights"] = [centroid.weight for centroid in moved]
    values["members"] = [centroid.members for centroid in moved]
    await conn.execute(_MOVE, values)


def _same(counted: Counted | None, other: Counted | None) -> bool:
    if counted is None or other is None:
        return counted is other
    return (
        (counted.text_hash, counted.namespace) == (other.text_hash, other.namespace)
        and dict(counted.weights) == dict(other.weights)
        and np.array_equal(counted.vector, other.vector)
    )


def _counted_item(row: Sequence[Any]) -> Counted:
    id_, text_hash, vector, skills, weights, namespace = row
    return Counted(id_, text_hash, _vector(vector), dict(zip(skills, weights, strict=True)), namespace)


def _sum(row: Sequence[Any]) -> Centroid:
    total, weight, members = row
    if total is None:
        return Centroid(Centroid.nothing().total, weight, members)
    return Centroid(np.frombuffer(total, dtype="<i8"), weight, members)


def _state(row: Sequence[Any]) -> SkillState:
    id_, name, description, domain, keywords, examples, is_active, total, weight, members, version, namespace = row
    skill = Skill(id_, name, description, domain, tuple(keywords), tuple(examples), is_active)
    return SkillState(skill, _sum((total, weight, members)), version, namespace)


def _vector(raw: Any) -> Vector:
    return np.frombuffer(raw, dtype="<f4")


def _observed(row: Sequence[Any]) -> Observed:
    id_, kind, key, server, name, description, server_description, vector, assigned, by_hand = row
    item = Item(key, ItemKind(kind), server, name, description, server_description)
    copied = np.frombuffer(vector, dtype="<f4").astype(np.float32)
    return Observed(id_, item, copied, assignments_of(assigned), by_hand)
