"""In-memory rules of people about tool search."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from toolscript.core.items import StoredItem, tool_id
from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces, seen_in, valid_namespace
from toolscript.core.retrieval.curation import MAX_RULES, Rule, too_many_rules
from toolscript.core.taxonomy import Actor, DecidedBy
from toolscript.testing.catalog import MemoryCatalog
from toolscript.testing.skills import MemoryTaxonomy
from toolscript.tools.model.curation import (
    StoredRule,
    rule_difference,
    rule_to_json,
    taken_rule,
    unknown_rule,
)
from toolscript.tools.model.skills import unknown_item, valid_actor


class MemoryCurationRules:
    """A view of some namespaces is a shallow copy: it shares the rows. The audit is that of the taxonomy."""

    def __init__(self, catalog: MemoryCatalog, taxonomy: MemoryTaxonomy) -> None:
        self._catalog = catalog
        self._taxonomy = taxonomy
        self._ids = count(1)
        self._rows: dict[int, StoredRule] = {}
        self._revisions: dict[str, int] = {}
        self.namespaces: Namespaces = None

    def within(self, namespaces: Namespaces) -> "MemoryCurationRules":
        view = copy(self)
        view.namespaces = namespaces
        return view

    async def page(self, after: int, limit: int) -> Sequence[StoredRule]:
        rows = [row for id_, row in self._rows.items() if id_ > after and seen_in(self.namespaces, row.namespace)]
        return rows[:limit]

    async def find(self, rule_id: int) -> StoredRule:
        row = self._rows.get(rule_id)
        if row is None or not seen_in(self.namespaces, row.namespace):
            raise unknown_rule(rule_id)
        return row

    async def add(self, rule: Rule, by: DecidedBy, namespace: str = DEFAULT_NAMESPACE) -> StoredRule:
        actor, namespace = valid_actor(by), valid_namespace(namespace)
        item = self._item(rule, namespace)
        if sum(row.namespace == namespace for row in self._rows.values()) >= MAX_RULES:
            raise too_many_rules()
        self._require_new(rule, namespace)
        now = datetime.now(UTC)
        added = StoredRule(next(self._ids), namespace, rule, _name(item), now, now)
        self._rows[added.id] = added
        self._written(added, actor, "curation.add", {"after": rule_to_json(rule)})
        return added

    async def change(self, rule_id: int, rule: Rule, by: DecidedBy) -> StoredRule:
        actor, before = valid_actor(by), await self.find(rule_id)
        if before.rule == rule:
            return before
        name = before.tool_name
        if rule.tool != before.rule.tool:
            name = _name(self._item(rule, before.namespace))
        self._require_new(rule, before.namespace, rule_id)
        changed = replace(before, rule=rule, tool_name=name, updated_at=datetime.now(UTC))
        self._rows[rule_id] = changed
        self._written(changed, actor, "curation.change", rule_difference(before.rule, rule))
        return changed

    async def remove(self, rule_id: int, by: DecidedBy) -> None:
        actor, before = valid_actor(by), await self.find(rule_id)
        del self._rows[rule_id]
        self._written(before, actor, "curation.remove", {"before": rule_to_json(before.rule)})

    async def revisions(self, namespaces: Sequence[str]) -> Mapping[str, int]:
        return {name: self._revisions[name] for name in namespaces if name in self._revisions}

    async def all(self, namespaces: Sequence[str]) -> Sequence[Rule]:
        return [row.rule for row in self._rows.values() if row.namespace in namespaces]

    def _item(self, rule: Rule, namespace: str) -> StoredItem | None:
        if not isinstance(rule.tool, int):
            return None
        stored = self._catalog.stored(rule.tool)
        if stored is None or stored.namespace != namespace:
            raise unknown_item(rule.tool)
        return stored

    def _require_new(self, rule: Rule, namespace: str, rule_id: int = 0) -> None:
        key = namespace, rule.kind, rule.words, rule.tool, rule.means
        for row in self._rows.values():
            other = row.rule
            if (row.namespace, other.kind, other.words, other.tool, other.means) == key and row.id != rule_id:
                raise taken_rule()

    def _written(self, row: StoredRule, actor: Actor, action: str, details: Mapping[str, object]) -> None:
        self._revisions[row.namespace] = self._revisions.get(row.namespace, 0) + 1
        self._taxonomy.write_audit(actor, action, row.id, details, row.namespace)


def _name(stored: StoredItem | None) -> str:
    return "" if stored is None else tool_id(stored.item.server, stored.item.name)
