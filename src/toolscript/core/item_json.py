"""Parse an item from plain JSON data; errors name the invalid field."""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from toolscript.core.errors import InvalidRequest
from toolscript.core.items import Item, ItemKind, JsonObject, why_hidden, why_misleading
from toolscript.core.text import readable, visible, visible_json

MAX_NAME = 512
MAX_TEXT = 100_000
MAX_DEPTH = 64


def item_from_json(data: object, *, needs_server: bool = True) -> Item:
    if not isinstance(data, Mapping):
        raise InvalidRequest("an item must be a JSON object")
    server = _text(data, "server", MAX_NAME, required=needs_server)
    kind = _kind(data)
    name = _text(data, "name", MAX_NAME, required=True)
    return Item(
        key=_text(data, "id", MAX_NAME) or natural_key(server, kind, name),
        kind=kind,
        server=server,
        name=name,
        description=_text(data, "description", MAX_TEXT),
        server_description=_text(data, "server_description", MAX_TEXT),
        input_schema=_object(data, "input_schema"),
        output_schema=_object(data, "output_schema"),
        annotations=_object(data, "annotations"),
    )


def catalog_item_from_json(data: object) -> Item:
    """Parse an item for a shared catalog: reject a server name that could pass for another's."""
    item = item_from_json(data)
    if why := why_misleading(item.server):
        raise InvalidRequest(f"server {why}", hint="give the server another name")
    return item


def visible_item_from_json(data: object, *, needs_server: bool = True) -> Item:
    """Parse an item that models will see: refuse names with invisible characters, spell them out in texts."""
    item = item_from_json(data, needs_server=needs_server)
    if why := why_hidden(item):
        raise InvalidRequest(why)
    objects = {
        name: visible_json(getattr(item, name)) for name in ("input_schema", "output_schema", "annotations")
    }
    texts = {name: visible(getattr(item, name)) for name in ("description", "server_description")}
    return replace(item, **texts, **objects)  # type: ignore[arg-type]


def storable(value: object, depth: int = 0) -> object:
    """Return the JSON value with only what a database can store; raise when it is nested too deeply."""
    if depth > MAX_DEPTH:
        raise InvalidRequest(f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, Mapping):
        return {readable(str(key)): storable(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [storable(inner, depth + 1) for inner in value]
    # NaN and 1e999 pass Python's reader and are no JSON: null, as JavaScript has it.
    return None if isinstance(value, float) and not math.isfinite(value) else value


def natural_key(server: str, kind: ItemKind, name: str) -> str:
    """Return a JSON list: `a` with `b__c` and `a__b` with `c` stay two items."""
    key = json.dumps([kind, server, name], ensure_ascii=False)
    # The key has a unique index, and an index entry holds little more than this.
    return key if len(key) <= MAX_NAME else hashlib.sha256(key.encode()).hexdigest()


def _kind(data: JsonObject) -> ItemKind:
    # Catalogs in the wild use `kind` for where a tool came from ("mcp", "api"): those are tools.
    value = data.get("type", data.get("kind", "tool"))
    if value in ("mcp", "api"):
        return ItemKind.TOOL
    try:
        return ItemKind(str(value))
    except ValueError:
        raise InvalidRequest(f"kind must be tool, prompt or resource, not {str(value)[:40]!r}") from None


def _text(data: JsonObject, field: str, maximum: int, *, required: bool = False) -> str:
    value = data.get(field)
    if value is None or value == "":
        if required:
            raise InvalidRequest(f"{field} is missing")
        return ""
    if not isinstance(value, str):
        raise InvalidRequest(f"{field} must be text")
    text = readable(value).strip()
    if required and not text:
        raise InvalidRequest(f"{field} is blank")
    if len(text) > maximum and maximum == MAX_NAME:
        raise InvalidRequest(f"{field} is longer than {maximum} characters")
    return text[:maximum]


def _object(data: JsonObject, field: str) -> JsonObject | None:
    value = data.get(field)
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{field} must be a JSON object")
    return cast("JsonObject", storable(value))
