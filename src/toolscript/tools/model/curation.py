"""Rules about tool search as the catalog stores them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from toolscript.core.errors import Conflict, NotFound
from toolscript.core.items import JsonObject
from toolscript.core.retrieval.curation import Rule

RULES_HINT = "`toolscript tools curation list` and GET /api/v1/curation list the rules"


@dataclass(frozen=True)
class StoredRule:
    """`rule.tool` is the id of an item; `tool_name` is its `server__name`, empty for a synonym."""

    id: int
    namespace: str
    rule: Rule
    tool_name: str
    created_at: datetime
    updated_at: datetime


def rule_to_json(rule: Rule) -> JsonObject:
    return {
        "kind": rule.kind.value,
        "words": rule.words,
        "tool_id": rule.tool,
        "means": rule.means,
        "mutual": rule.mutual,
    }


def changed_rule(rule: Rule, changes: Mapping[str, object]) -> Rule:
    """Return the rule with these fields; `tool_id` is its tool."""
    names = {"tool_id": "tool"}
    return replace(rule, **{names.get(name, name): value for name, value in changes.items()})  # type: ignore[arg-type]


def rule_difference(before: Rule, after: Rule) -> JsonObject:
    return {"before": rule_to_json(before), "after": rule_to_json(after)}


def unknown_rule(rule_id: int) -> NotFound:
    return NotFound(f"there is no rule {rule_id}", hint=RULES_HINT, details={"rule_id": rule_id})


def taken_rule() -> Conflict:
    return Conflict("there is this rule already", hint=RULES_HINT)
