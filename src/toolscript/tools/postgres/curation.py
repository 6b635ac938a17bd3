"""The rules of record about tool search, in schema `mcp`."""

from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.rows import dict_row

from toolscript.core.items import tool_id
from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces, valid_namespace
from toolscript.core.postgres.audit import write_audit
from toolscript.core.postgres.pool import Connection, Pool, connection, transaction
from toolscript.core.retrieval.curation import MAX_RULES, Rule, RuleKind, too_many_rules
from toolscript.core.taxonomy import DecidedBy
from toolscript.tools.model.curation import (
    StoredRule,
    rule_difference,
    rule_to_json,
    taken_rule,
    unknown_rule,
)
from toolscript.tools.model.skills import unknown_item, valid_actor
from toolscript.tools.postgres.views import SEEN, page_of, seen_in_view, seen_of

_RULES = """
SELECT rules.id, rules.namespace, rules.kind, words, tool_id, means, mutual, rules.created_at, rules.updated_at,
       items.server, items.name
FROM mcp.curation_rules rules LEFT JOIN mcp.items ON items.id = tool_id
"""
_FIND = f"{_RULES} WHERE rules.id = %(id)s AND {seen_in_view('rules.namespace')}"
_LATER = "mcp.curation_rules WHERE id > %(after)s"
_ALL = """
SELECT kind, words, tool_id, means, mutual FROM mcp.curation_rules
WHERE namespace = ANY(%(namespaces)s) ORDER BY id
"""
_REVISIONS = "SELECT namespace, revision FROM mcp.curation_revisions WHERE namespace = ANY(%(namespaces)s)"
_BEGIN = """
INSERT INTO mcp.curation_revisions AS revisions (namespace, revision) VALUES (%(namespace)s, 1)
ON CONFLICT (namespace) DO UPDATE SET revision = revisions.revision + 1
"""
_COUNT = "SELECT count(*) FROM mcp.curation_rules WHERE namespace = %(namespace)s"
_HAS_ITEM = "SELECT FROM mcp.items WHERE id = %(tool_id)s AND is_active AND namespace = %(namespace)s"
_ADD = """
INSERT INTO mcp.curation_rules (namespace, kind, words, tool_id, means, mutual)
VALUES (%(namespace)s, %(kind)s, %(words)s, %(tool_id)s, %(means)s, %(mutual)s)
ON CONFLICT DO NOTHING RETURNING id
"""
_SAME = """
SELECT FROM mcp.curation_rules
WHERE namespace = %(namespace)s AND kind = %(kind)s AND words = %(words)s
  AND coalesce(tool_id, 0) = coalesce(%(tool_id)s, 0) AND means = %(means)s AND id <> %(id)s
"""
_CHANGE = """
UPDATE mcp.curation_rules
SET words = %(words)s, tool_id = %(tool_id)s, means = %(means)s, mutual = %(mutual)s, updated_at = now()
WHERE id = %(id)s
"""
_NAMESPACE = f"SELECT namespace FROM mcp.curation_rules WHERE id = %(id)s AND {SEEN}"  # noqa: S608 - constants only


class PostgresCurationRules:
    def __init__(self, pool: Pool, namespaces: Namespaces = None) -> None:
        self._pool = pool
        self._namespaces = namespaces

    def within(self, namespaces: Namespaces) -> "PostgresCurationRules":
        return PostgresCurationRules(self._pool, namespaces)

    async def page(self, after: int, limit: int) -> Sequence[StoredRule]:
        ids = page_of(self._namespaces, _LATER)
        values = {"after": after, "limit": limit, "seen": seen_of(self._namespaces)}
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(f"{_RULES} WHERE rules.id IN ({ids}) ORDER BY rules.id", values)
            return [_stored(row) for row in await cursor.fetchall()]

    async def find(self, rule_id: int) -> StoredRule:
        async with connection(self._pool) as conn:
            return await self._find(conn, rule_id)

    async def add(self, rule: Rule, by: DecidedBy, namespace: str = DEFAULT_NAMESPACE) -> StoredRule:
        actor, values = valid_actor(by), {**rule_to_json(rule), "namespace": valid_namespace(namespace)}
        async with transaction(self._pool) as conn:
            await conn.execute(_BEGIN, values)
            await _require_item(conn, values)
            if (await _first(conn, _COUNT, values))[0] >= MAX_RULES:
                raise too_many_rules()
            added = await (await conn.execute(_ADD, values)).fetchone()
            if added is None:
                raise taken_rule()
            await write_audit(conn, actor, "curation.add", added[0], {"after": rule_to_json(rule)}, namespace)
            return await self._find(conn, int(str(added[0])))

    async def change(self, rule_id: int, rule: Rule, by: DecidedBy) -> StoredRule:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            before = await self._begin(conn, rule_id)
            if before.rule == rule:
                return before
            values = {**rule_to_json(rule), "id": rule_id, "namespace": before.namespace}
            if rule.tool != before.rule.tool:
                await _require_item(conn, values)
            if await (await conn.execute(_SAME, values)).fetchone() is not None:
                raise taken_rule()
            await conn.execute(_CHANGE, values)
            details = rule_difference(before.rule, rule)
            await write_audit(conn, actor, "curation.change", rule_id, details, before.namespace)
            return await self._find(conn, rule_id)

    async def remove(self, rule_id: int, by: DecidedBy) -> None:
        actor = valid_actor(by)
        async with transaction(self._pool) as conn:
            before = await self._begin(conn, rule_id)
            await conn.execute("DELETE FROM mcp.curation_rules WHERE id = %(id)s", {"id": rule_id})
            details = {"before": rule_to_json(before.rule)}
            await write_audit(conn, actor, "curation.remove", rule_id, details, before.namespace)

    async def revisions(self, namespaces: Sequence[str]) -> Mapping[str, int]:
        async with connection(self._pool) as conn:
            rows = await (await conn.execute(_REVISIONS, {"namespaces": list(namespaces)})).fetchall()
        return {str(namespace): int(str(revision)) for namespace, revision in rows}

    async def all(self, namespaces: Sequence[str]) -> Sequence[Rule]:
        async with connection(self._pool) as conn, conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_ALL, {"namespaces": list(namespaces)})
            return [_rule(row) for row in await cursor.fetchall()]

    async def _begin(self, conn: Connection, rule_id: int) -> StoredRule:
        """Find a rule to write, after the writers before."""
        values = {"id": rule_id, "seen": seen_of(self._namespaces)}
        row = await (await conn.execute(_NAMESPACE, values)).fetchone()
        if row is None:
            raise unknown_rule(rule_id)
        await conn.execute(_BEGIN, {"namespace": row[0]})
        return await self._find(conn, rule_id)

    async def _find(self, conn: Connection, rule_id: int) -> StoredRule:
        async with conn.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(_FIND, {"id": rule_id, "seen": seen_of(self._namespaces)})
            row = await cursor.fetchone()
        if row is None:
            raise unknown_rule(rule_id)
        return _stored(row)


async def _require_item(conn: Connection, values: Mapping[str, Any]) -> None:
    id_ = values["tool_id"]
    if id_ is not None and await (await conn.execute(_HAS_ITEM, values)).fetchone() is None:
        raise unknown_item(id_)


async def _first(conn: Connection, statement: str, values: Mapping[str, Any]) -> Any:
    return await (await conn.execute(statement, values)).fetchone()


def _stored(row: dict[str, Any]) -> StoredRule:
    name = "" if row["name"] is None else tool_id(row["server"], row["name"])
    return StoredRule(row["id"], row["namespace"], _rule(row), name, row["created_at"], row["updated_at"])


def _rule(row: dict[str, Any]) -> Rule:
    return Rule(RuleKind(row["kind"]), row["words"], row["tool_id"], row["means"], row["mutual"])
