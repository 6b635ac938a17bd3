"""The items of record in schema `mcp`."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.rows import class_row, dict_row

from toolscript.core.items import Item, ItemKind, JsonObject, Schemas, StoredItem, StoreReport
from toolscript.core.namespaces import DEFAULT_NAMESPACE, valid_namespace
from toolscript.core.postgres.pool import Connection, Pool, connection, transaction
from toolscript.core.retrieval.model import PointVersion
from toolscript.tools.model.catalog import ChangeState
from toolscript.tools.postgres.sql import (
    ASSIGNED,
    SHARE_GENERATIONS,
    Changed,
    SourceKey,
    add_to_source,
    assignments_of,
    detach_all_suggestions,
    hold,
    mark_changed,
    own_source,
    record,
    taken_from_source,
    withdraw_outdated,
)

# A removed item has no current fingerprint: when it comes back, it counts as changed.
_KNOWN = """
SELECT id, key, CASE WHEN is_active THEN fingerprint ELSE '' END
FROM mcp.items WHERE namespace = %s AND source = %s AND key = ANY(%s)
"""

# The current definitions.
_HOLD = """
SELECT * FROM mcp.items WHERE namespace = %s AND source = %s AND key = ANY(%s)
ORDER BY source, key FOR NO KEY UPDATE
"""

# Unchanged items take neither a lock nor an id: they are filtered before the upsert and again within it.
_STORE = """
WITH incoming AS (
    SELECT * FROM unnest(
        %(keys)s::text[], %(kinds)s::text[], %(servers)s::text[], %(names)s::text[], %(descriptions)s::text[],
        %(server_descriptions)s::text[], %(input_schemas)s::json[], %(output_schemas)s::json[],
        %(annotations)s::json[], %(fingerprints)s::text[])
    AS incoming (key, kind, server, name, description, server_description, input_schema, output_schema,
                 annotations, fingerprint)
)
INSERT INTO mcp.items AS stored (namespace, source, key, kind, server, name, description, server_description,
                                 input_schema, output_schema, annotations, fingerprint, version)
SELECT %(namespace)s, %(source)s, incoming.*, nextval('mcp.item_version')
FROM incoming LEFT JOIN mcp.items known
  ON known.namespace = %(namespace)s AND known.source = %(source)s AND known.key = incoming.key
WHERE known.fingerprint IS DISTINCT FROM incoming.fingerprint OR NOT known.is_active
ORDER BY incoming.key
ON CONFLICT (namespace, source, key) DO UPDATE SET
    kind = excluded.kind, server = excluded.server, name = excluded.name, description = excluded.description,
    server_description = excluded.server_description, input_schema = excluded.input_schema,
    output_schema = excluded.output_schema, annotations = excluded.annotations,
    fingerprint = excluded.fingerprint, version = nextval('mcp.item_version'), updated_at = now(),
    needs_skills = NOT stored.skills_by_hand, is_active = true
WHERE stored.fingerprint IS DISTINCT FROM excluded.fingerprint OR NOT stored.is_active
RETURNING id, version
"""

_REPLACE = """
UPDATE mcp.items SET
    kind = %(kind)s, server = %(server)s, name = %(name)s, description = %(description)s,
    server_description = %(server_description)s, input_schema = %(input_schema)s,
    output_schema = %(output_schema)s, annotations = %(annotations)s, fingerprint = %(fingerprint)s,
    version = nextval('mcp.item_version'), updated_at = now(), needs_skills = NOT skills_by_hand,
    is_active = true
WHERE id = %(id)s RETURNING id, version
"""

# A removed item is kept for a while, but not indexed: if it comes back with another definition, that is a change,
# and people's decisions about it apply again.
RETIRE = """
UPDATE mcp.items SET is_active = false, version = nextval('mcp.item_version'), updated_at = now()
FROM gone WHERE items.id = gone.id RETURNING items.id, items.version
"""

# An item that comes back is classified again. A list of a skill's items need not read through those that left.
_FORGET_CLASSIFIED = """
DELETE FROM mcp.tool_skill_assignments USING mcp.items
WHERE tool_id = ANY(%s) AND items.id = tool_id AND NOT skills_by_hand
"""

_DELETE_LONG_REMOVED = """
DELETE FROM mcp.items WHERE id IN (
    SELECT id FROM mcp.items
    WHERE namespace = %s AND source = %s AND NOT is_active AND updated_at < now() - interval '90 days'
      AND NOT skills_by_hand
      AND NOT EXISTS (SELECT FROM mcp.item_changes WHERE item_id = items.id AND state = 'rejected')
    ORDER BY source, key LIMIT 1000 FOR UPDATE SKIP LOCKED
)
"""

_REMOVE_OTHERS = f"""
WITH gone AS (
    SELECT id FROM mcp.items
    WHERE namespace = %s AND source = %s AND is_active
      AND NOT EXISTS (SELECT FROM kept WHERE kept.key = items.key)
    ORDER BY source, key FOR NO KEY UPDATE
)
{RETIRE}"""  # noqa: S608 - built from constants only

_REMOVE = f"""
WITH gone AS (
    SELECT id FROM mcp.items WHERE namespace = %s AND source = %s AND is_active AND key = ANY(%s)
    ORDER BY source, key FOR NO KEY UPDATE
)
{RETIRE}"""  # noqa: S608 - built from constants only

_ITEMS = f"""
SELECT id, version, is_active, namespace, key, kind, server, name, description, server_description,
       input_schema, output_schema, annotations, needs_skills, {ASSIGNED} AS assigned
FROM mcp.items WHERE id = ANY(%s) ORDER BY id
"""  # noqa: S608 - built from constants only

_SCHEMAS = "SELECT id, input_schema, output_schema, annotations FROM mcp.items WHERE id = ANY(%s)"

_REMOVED = """
SELECT asked.id FROM unnest(%s::bigint[]) AS asked (id)
WHERE NOT EXISTS (SELECT FROM mcp.items WHERE items.id = asked.id AND is_active)
"""


class PostgresCatalog:
    """With `hold_changes`, a change of a known item waits for a person."""

    def __init__(self, pool: Pool, *, hold_changes: bool = False, namespace: str = DEFAULT_NAMESPACE) -> None:
        self._pool = pool
        self._hold_changes = hold_changes
        self._namespace = valid_namespace(namespace)

    def of(self, namespace: str) -> "PostgresCatalog":
        return PostgresCatalog(self._pool, hold_changes=self._hold_changes, namespace=namespace)

    async def store(self, source: str, items: Sequence[Item]) -> StoreReport:
        if not items:
            return StoreReport()
        async with transaction(self._pool) as conn:
            await conn.execute(SHARE_GENERATIONS)
            own = await self._own(conn, source)
            known = await _known(conn, own, items)
            changed = await _hold_differing(conn, own, items, known)
            held_back, held = await self._record_changes(conn, own, items, known, changed)
            stored = [item for item in items if item.key not in known]
            stored += [change.new for change in changed if change.item_id not in held_back]
            rows = await _store(conn, own, stored)
            await detach_all_suggestions(
                conn, [change.item_id for change in changed if change.item_id not in held_back]
            )
            await mark_changed(conn, rows)
            added = len({row[0] for row in rows} - {change.item_id for change in changed if change.was_there})
            await taken_from_source(conn, own, added)
        return StoreReport(added, len(rows) - added, len(items) - len(rows) - held, held)

    async def _own(self, conn: Connection, source: str) -> SourceKey:
        """Begin a change of the definitions of a source."""
        own = SourceKey(self._namespace, source)
        await own_source(conn, own)
        return own

    async def _record_changes(
        self,
        conn: Connection,
        source: SourceKey,
        items: Sequence[Item],
        known: Mapping[str, tuple[int, str]],
        changed: Sequence[Changed],
    ) -> tuple[set[int], int]:
        """Record or hold the changes; return the items whose definition stays, and how many changes are held."""
        seen = {known[item.key][0]: item.fingerprint for item in items if item.key in known}
        # If only the fingerprint differs, another version of this program computed it.
        visible = [change for change in changed if change.difference.fields]
        if self._hold_changes:
            await withdraw_outdated(conn, seen)
            return {change.item_id for change in visible}, await hold(conn, source, visible)
        await withdraw_outdated(conn, dict.fromkeys(seen, ""))
        await record(conn, source, visible, ChangeState.APPLIED)
        return set(), 0

    async def keep_only(self, source: str, keys: Sequence[str]) -> int:
        async with transaction(self._pool) as conn:
            await conn.execute(SHARE_GENERATIONS)
            own = await self._own(conn, source)
            await conn.execute("CREATE TEMP TABLE kept (key text) ON COMMIT DROP")
            async with conn.cursor().copy("COPY kept FROM STDIN") as copy:
                for key in keys:
                    await copy.write_row((key,))
            await conn.execute("ANALYZE kept")
            rows = await (await conn.execute(_REMOVE_OTHERS, own)).fetchall()
            await retired(conn, rows)
            await taken_from_source(conn, own, -len(rows))
            await conn.execute(_DELETE_LONG_REMOVED, own)
        return len(rows)

    async def remove(self, source: str, keys: Sequence[str]) -> int:
        async with transaction(self._pool) as conn:
            await conn.execute(SHARE_GENERATIONS)
            own = await self._own(conn, source)
            rows = await (await conn.execute(_REMOVE, (*own, list(keys)))).fetchall()
            await retired(conn, rows)
            await add_to_source(conn, own, -len(rows))
        return len(rows)

    async def items(self, ids: Sequence[int]) -> Sequence[StoredItem]:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_ITEMS, (list(ids),))
            return [_stored(row) for row in await cursor.fetchall()]

    async def schemas(self, ids: Sequence[int]) -> Mapping[int, Schemas]:
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_SCHEMAS, (list(ids),))).fetchall()
        return {int(str(row[0])): Schemas(_object(row[1]), _object(row[2]), _object(row[3])) for row in rows}

    async def removed(self, ids: Sequence[int]) -> frozenset[int]:
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_REMOVED, (list(ids),))).fetchall()
        return frozenset(int(str(row[0])) for row in rows)

    async def scan(self, after: int, limit: int) -> Sequence[PointVersion]:
        query = "SELECT id, version, namespace FROM mcp.items WHERE id > %s AND is_active ORDER BY id LIMIT %s"
        async with connection(self._pool) as conn, conn.cursor(row_factory=class_row(PointVersion)) as cursor:
            await cursor.execute(query, (after, limit))
            return await cursor.fetchall()

    async def count(self) -> int:
        async with connection(self._pool) as conn:
            row = await (await conn.execute("SELECT count(*) FROM mcp.items WHERE is_active")).fetchone()
        return int(str(row[0])) if row else 0


async def retired(conn: Connection, rows: Sequence[Sequence[object]]) -> None:
    """Withdraw the held changes and suggestions of removed items, and mark the items dirty."""
    ids = [int(str(row[0])) for row in rows]
    await withdraw_outdated(conn, dict.fromkeys(ids, ""))
    await detach_all_suggestions(conn, ids)
    await conn.execute(_FORGET_CLASSIFIED, (ids,))
    await mark_changed(conn, [(row[0], row[1]) for row in rows])


async def replace_definition(conn: Connection, item_id: int, new: Item) -> tuple[object, object]:
    """Replace the definition of an item that the caller has locked; return its id and its new version."""
    values = {
        **{field: getattr(new, field) for field in ("server", "name", "description", "server_description")},
        **{field: _json(getattr(new, field)) for field in ("input_schema", "output_schema", "annotations")},
        "kind": str(new.kind),
        "fingerprint": new.fingerprint,
        "id": item_id,
    }
    ((id_, version),) = await (await conn.execute(_REPLACE, values)).fetchall()
    await detach_all_suggestions(conn, [item_id])
    return id_, version


async def _known(conn: Connection, source: SourceKey, items: Sequence[Item]) -> dict[str, tuple[int, str]]:
    """Return id and fingerprint of each known item, by key: unchanged items need not be sent."""
    rows = await (await conn.execute(_KNOWN, (*source, [item.key for item in items]))).fetchall()
    return {str(key): (int(str(id_)), str(fingerprint)) for id_, key, fingerprint in rows}


async def _hold_differing(
    conn: Connection, source: SourceKey, items: Sequence[Item], known: Mapping[str, tuple[int, str]]
) -> list[Changed]:
    differing = {item.key: item for item in items if item.key in known and item.fingerprint != known[item.key][1]}
    if not differing:
        return []
    async with conn.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(_HOLD, (*source, list(differing)))
        rows = await cursor.fetchall()
    return [
        Changed(row["id"], row["fingerprint"], item_of_row(row), differing[row["key"]], row["is_active"])
        for row in rows
    ]


async def _store(conn: Connection, source: SourceKey, items: Sequence[Item]) -> list[tuple[object, object]]:
    """Return the items that changed, with their new versions."""
    if not items:
        return []
    rows = await (await conn.execute(_STORE, _columns(source, items))).fetchall()
    return [(row[0], row[1]) for row in rows]


def _columns(source: SourceKey, items: Sequence[Item]) -> dict[str, object]:
    return {
        "namespace": source.namespace,
        "source": source.name,
        "keys": [item.key for item in items],
        "kinds": [str(item.kind) for item in items],
        "servers": [item.server for item in items],
        "names": [item.name for item in items],
        "descriptions": [item.description for item in items],
        "server_descriptions": [item.server_description for item in items],
        "input_schemas": [_json(item.input_schema) for item in items],
        "output_schemas": [_json(item.output_schema) for item in items],
        "annotations": [_json(item.annotations) for item in items],
        "fingerprints": [item.fingerprint for item in items],
    }


def _json(value: JsonObject | None) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def _object(value: object) -> JsonObject | None:
    return value if isinstance(value, dict) else None


def item_of_row(row: dict[str, Any]) -> Item:
    return Item(
        key=row["key"],
        kind=ItemKind(row["kind"]),
        server=row["server"],
        name=row["name"],
        description=row["description"],
        server_description=row["server_description"],
        input_schema=_object(row["input_schema"]),
        output_schema=_object(row["output_schema"]),
        annotations=_object(row["annotations"]),
    )


def _stored(row: dict[str, Any]) -> StoredItem:
    assigned = assignments_of(row["assigned"])
    return StoredItem(
        row["id"],
        row["version"],
        item_of_row(row),
        row["is_active"],
        assigned,
        row["needs_skills"],
        row["namespace"],
    )
