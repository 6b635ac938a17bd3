"""What the catalog holds, as people look through it: its sources, and one item after the other."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from toolscript.errors import NotFound
from toolscript.model.assignments import Assignment
from toolscript.model.items import Item, ItemKind

LIST_HINT = "`toolscript tools list` and GET /api/v1/tools list what is there"


@dataclass(frozen=True)
class ItemSource:
    """Where items come from. `synced_at` is when something was last taken from it, changed or not."""

    name: str
    items: int
    synced_at: datetime


@dataclass(frozen=True)
class ItemFilter:
    """None: any."""

    source: str | None = None
    server: str | None = None
    kind: ItemKind | None = None


@dataclass(frozen=True)
class CatalogItem:
    """An item that is in force, and where it came from."""

    id: int
    source: str
    item: Item
    updated_at: datetime
    assignments: Sequence[Assignment] = ()


def unknown_item(item_id: int) -> NotFound:
    return NotFound(f"there is no tool {item_id} in the catalog", hint=LIST_HINT, details={"tool_id": item_id})


def source_to_json(source: ItemSource) -> dict[str, object]:
    return {"name": source.name, "item_count": source.items, "synced_at": source.synced_at.isoformat()}


def listed_to_json(one: CatalogItem) -> dict[str, object]:
    """Without schemas."""
    item = one.item
    return {
        "id": one.id,
        "source": one.source,
        "key": item.key,
        "item_type": str(item.kind),
        "server": item.server,
        "name": item.name,
        "description": item.description,
        "skill_ids": [given.skill_id for given in one.assignments],
        "updated_at": one.updated_at.isoformat(),
    }


def item_to_json(one: CatalogItem) -> dict[str, object]:
    item = one.item
    schemas = {name: getattr(item, name) for name in ("input_schema", "output_schema", "annotations")}
    return {
        **listed_to_json(one),
        "server_description": item.server_description,
        **{name: None if value is None else dict(value) for name, value in schemas.items()},
    }
