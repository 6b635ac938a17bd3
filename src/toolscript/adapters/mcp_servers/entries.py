"""What a server lists, as items. Entries that are none are told apart and harm nobody."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolscript.errors import InvalidRequest
from toolscript.model.hidden_names import why_hidden
from toolscript.model.item_json import MAX_NAME, item_from_json
from toolscript.model.items import Item, ItemKind, JsonObject
from toolscript.model.servers import ServerSpec
from toolscript.model.text import visible, visible_json

MAX_REFUSED = 100

Entry = Mapping[str, object]


@dataclass
class Found:
    """Items so far, what was refused so far, and the name each tool has on the wire."""

    spec: ServerSpec
    about: str = ""
    items: list[Item] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    wire_names: dict[str, str] = field(default_factory=dict)
    _taken: set[tuple[str, str]] = field(default_factory=set)

    def refuse(self, where: str, reason: str) -> None:
        if len(self.refused) < MAX_REFUSED:
            self.refused.append(f"{where}: {reason}")

    def add(self, listing: str, entries: Sequence[object], check: Callable[[Item], str | None]) -> None:
        for number, entry in enumerate(entries):
            try:
                self._add_one(listing, entry, check)
            except InvalidRequest as error:
                self.refuse(f"{listing} {number + 1}", error.message)

    def _add_one(self, listing: str, entry: object, check: Callable[[Item], str | None]) -> None:
        if not isinstance(entry, Mapping):
            raise InvalidRequest("an entry must be a JSON object")
        shape = _SHAPES[listing]
        read = item_from_json({"server": self.spec.name, "server_description": self.about, **shape(entry)})
        if why := why_hidden(read):
            raise InvalidRequest(why)
        item = _seen(read)
        if item.kind is ItemKind.TOOL and not self.spec.offers(item.name):
            return
        if (item.kind, item.key) in self._taken:
            raise InvalidRequest(f"there is one named {item.name!r} before it")
        if reason := check(item):
            raise InvalidRequest(f"{item.name!r}: {reason}")
        self._taken.add((item.kind, item.key))
        self.items.append(item)
        if item.kind is ItemKind.TOOL:
            self.wire_names[item.name] = str(entry["name"])


def _seen(item: Item) -> Item:
    """What a server says is read by people and by models, who must see all of it."""
    objects = {
        name: visible_json(getattr(item, name)) for name in ("input_schema", "output_schema", "annotations")
    }
    texts = {name: visible(getattr(item, name)) for name in ("description", "server_description")}
    return replace(item, **texts, **objects)  # type: ignore[arg-type]


def _tool(entry: Entry) -> JsonObject:
    return {
        "type": ItemKind.TOOL,
        "name": entry.get("name"),
        "description": entry.get("description") or entry.get("title"),
        "input_schema": entry.get("inputSchema"),
        "output_schema": entry.get("outputSchema"),
        "annotations": _annotations(entry, "title"),
    }


def _prompt(entry: Entry) -> JsonObject:
    return {
        "type": ItemKind.PROMPT,
        "name": entry.get("name"),
        "description": entry.get("description") or entry.get("title"),
        "input_schema": _arguments(entry.get("arguments")),
        "annotations": _annotations(entry, "title"),
    }


def _resource(entry: Entry) -> JsonObject:
    """Two resources may share a name; what tells them apart is the address."""
    address = entry.get("uri") or entry.get("uriTemplate")
    if not isinstance(address, str):
        raise InvalidRequest("uri is missing")
    return {
        "id": _key(address),
        "type": ItemKind.RESOURCE,
        "name": entry.get("name") or address[:MAX_NAME],
        "description": entry.get("description") or entry.get("title"),
        "annotations": _annotations(entry, "title", "uri", "uriTemplate", "mimeType"),
    }


def _key(address: str) -> str:
    key = json.dumps([ItemKind.RESOURCE, address], ensure_ascii=False)
    return key if len(key) <= MAX_NAME else hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()


def _annotations(entry: Entry, *fields: str) -> object:
    given = entry.get("annotations") or {}
    if not isinstance(given, Mapping):
        return given
    return {**{name: entry[name] for name in fields if entry.get(name)}, **given} or None


def _arguments(given: object) -> JsonObject | None:
    """A prompt's arguments are text, each with a name; a schema says the same to whoever reads schemas."""
    if not given:
        return None
    if not isinstance(given, list):
        raise InvalidRequest("arguments must be a list")
    named = dict(_named(given))
    required = [name for name, one in named.items() if one.get("required") is True]
    properties = {name: {"type": "string", **_description(one)} for name, one in named.items()}
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _named(given: Sequence[object]) -> Iterator[tuple[str, Entry]]:
    for one in given:
        if not isinstance(one, Mapping) or not isinstance(one.get("name"), str):
            raise InvalidRequest("an argument must have a name")
        yield one["name"], one


def _description(argument: Entry) -> JsonObject:
    text = argument.get("description")
    return {"description": text} if isinstance(text, str) and text else {}


_SHAPES: Mapping[str, Callable[[Entry], JsonObject]] = {
    "tool": _tool,
    "prompt": _prompt,
    "resource": _resource,
    "resource template": _resource,
}
