"""A definition that changed after it was seen. What a server says of itself later is not what somebody trusted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from toolscript.errors import Conflict, NotFound
from toolscript.model.items import Item, ItemKind, JsonObject

# What a person compares, in the order in which it is shown; all that an item's fingerprint covers.
DEFINING_FIELDS = (
    "kind",
    "server",
    "name",
    "description",
    "server_description",
    "input_schema",
    "output_schema",
    "annotations",
)
MOST_KEPT_PER_ITEM = 20


class ChangeState(StrEnum):
    """`applied` as it came; `held` until somebody decides; `withdrawn` when the source did not wait for that."""

    APPLIED = "applied"
    HELD = "held"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class ItemChange:
    """`server` and `name` are those in force now."""

    id: int
    item_id: int
    source: str
    key: str
    server: str
    name: str
    old_fingerprint: str
    new_fingerprint: str
    changed_fields: tuple[str, ...]
    state: ChangeState
    seen_at: datetime
    reviewed_by: str | None = None
    reviewed_at: datetime | None = None


@dataclass(frozen=True)
class ChangeDetails:
    """The fields that changed, as they were and as they are said to be."""

    change: ItemChange
    old: JsonObject
    new: JsonObject


@dataclass(frozen=True)
class Difference:
    """Two definitions of one item; `fields` is empty when nothing in them differs."""

    fields: tuple[str, ...]
    old: JsonObject
    new: JsonObject


def definition_of(item: Item) -> dict[str, object]:
    return {field: getattr(item, field) for field in DEFINING_FIELDS}


def item_of(key: str, definition: Mapping[str, object]) -> Item:
    """What `definition_of` took apart. Built from our own record: nothing in it is checked again."""
    given = {field: definition[field] for field in DEFINING_FIELDS}
    return Item(key=key, **{**given, "kind": ItemKind(str(given["kind"]))})  # type: ignore[arg-type]


def difference(old: Item, new: Item) -> Difference:
    was, now = definition_of(old), definition_of(new)
    # As JSON, because to Python 1, 1.0 and True are the same.
    fields = tuple(name for name in DEFINING_FIELDS if _canonical(was[name]) != _canonical(now[name]))
    return Difference(fields, {name: was[name] for name in fields}, {name: now[name] for name in fields})


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def unknown_change(change_id: int) -> NotFound:
    hint = "see which there are with `toolscript changes list`"
    return NotFound(f"there is no change {change_id}", hint=hint, details={"change_id": change_id})


def not_held(change: ItemChange) -> Conflict:
    by = f" by {change.reviewed_by}" if change.reviewed_by else ""
    return Conflict(
        f"change {change.id} does not wait for a decision: it is {change.state}{by}",
        hint="see which wait with `toolscript changes list --state held`",
        details={"change_id": change.id, "state": str(change.state)},
    )


def outdated_change(change: ItemChange) -> Conflict:
    return Conflict(
        f"the definition that change {change.id} would replace is no longer in force",
        hint="sync the source again, then decide about what it says now",
        details={"change_id": change.id, "state": str(change.state)},
    )
