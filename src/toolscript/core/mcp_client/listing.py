"""All that a server offers, read page by page within bounds, as items."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import anyio

from toolscript.core.errors import InvalidRequest, ServerRejected
from toolscript.core.item_json import MAX_NAME, item_from_json, storable
from toolscript.core.items import Item, ItemKind, JsonObject, why_hidden
from toolscript.core.mcp_client.model import CallResult, ServerSpec
from toolscript.core.text import visible, visible_json

MAX_REFUSED = 100

Entry = Mapping[str, object]

MAX_ITEMS = 20_000
MAX_PAGES = 1_000
# Every item carries it, so that a long text would be kept thousands of times.
MAX_ABOUT = 1_000

Ask = Callable[[str, JsonObject], Awaitable[JsonObject]]

METHOD_NOT_FOUND = -32601


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


def _arguments(value: object) -> JsonObject | None:
    """A prompt's arguments are text, each with a name; a schema says the same to whoever reads schemas."""
    if not value:
        return None
    if not isinstance(value, list):
        raise InvalidRequest("arguments must be a list")
    named = dict(_named(value))
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


@dataclass(frozen=True)
class Listing:
    """One list of a server: how it is asked for, and where in the answer it stands."""

    name: str
    method: str
    field: str


TOOLS = Listing("tool", "tools/list", "tools")
PROMPTS = Listing("prompt", "prompts/list", "prompts")
RESOURCES = Listing("resource", "resources/list", "resources")
TEMPLATES = Listing("resource template", "resources/templates/list", "resourceTemplates")


async def list_all(
    ask: Ask, spec: ServerSpec, about: str, wanted: Sequence[Listing], check: Callable[[Item], str | None]
) -> Found:
    """Without its tools a server is of no use; what is wrong with its other lists is noted and no more."""
    found = Found(spec, about[:MAX_ABOUT])
    if TOOLS in wanted:
        await _take(ask, TOOLS, found, check)
    try:
        with anyio.fail_after(spec.start_seconds / 3):
            for listing in wanted:
                if listing is not TOOLS:
                    await _take_if_given(ask, listing, found, check)
    except TimeoutError:
        found.refuse("prompts and resources", "the server did not list them all in time")
    return found


async def _take_if_given(ask: Ask, listing: Listing, found: Found, check: Callable[[Item], str | None]) -> None:
    try:
        await _take(ask, listing, found, check)
    except ServerRejected as error:
        # Who lacks a method has nothing to list by it.
        if error.details.get("code") != METHOD_NOT_FOUND:
            found.refuse(f"{listing.name}s", error.message)


async def _take(ask: Ask, listing: Listing, found: Found, check: Callable[[Item], str | None]) -> None:
    room = MAX_ITEMS - len(found.items)
    entries = []
    async for page in _pages(ask, listing, found):
        entries += page
        if len(entries) > room:
            found.refuse(f"{listing.name}s", f"a server's first {MAX_ITEMS} items are taken, the rest is not")
            break
    # Thousands of schemas take their time, and the other servers' messages do not wait for them.
    await asyncio.to_thread(found.add, listing.name, entries[:room], check)


async def _pages(ask: Ask, listing: Listing, found: Found) -> AsyncIterator[list[object]]:
    page, seen = await _page(ask, listing, {}), set[object]()
    for _ in range(MAX_PAGES):
        yield page.entries
        # A cursor that comes again would lead in a circle.
        if page.cursor is None or page.cursor in seen:
            return
        seen.add(page.cursor)
        try:
            page = await _page(ask, listing, {"cursor": page.cursor})
        except ServerRejected as error:
            found.refuse(f"{listing.name}s", f"page {len(seen) + 1}: {error.message}")
            return
    found.refuse(f"{listing.name}s", f"a server's first {MAX_PAGES} pages are read, the rest is not")


@dataclass(frozen=True)
class _Page:
    entries: list[object]
    cursor: str | None


async def _page(ask: Ask, listing: Listing, params: JsonObject) -> _Page:
    answer = await ask(listing.method, params)
    entries, cursor = answer.get(listing.field), answer.get("nextCursor")
    if not isinstance(entries, list):
        raise ServerRejected(f"{listing.method}: the answer has no list of {listing.field}")
    return _Page(entries, cursor if isinstance(cursor, str) and cursor else None)


def call_result(tool: str, answer: JsonObject) -> CallResult:
    if answer.get("resultType", "complete") != "complete":
        raise ServerRejected(f"{tool}: the server asks back before it answers, and nobody here can reply")
    content = answer.get("content", [])
    if not isinstance(content, list) or not all(isinstance(block, Mapping) for block in content):
        raise ServerRejected(f"{tool}: the answer has no list of content")
    try:
        return CallResult(
            content=tuple(_block(block) for block in content),
            structured_content=storable(answer.get("structuredContent")),
            is_error=answer.get("isError") is True,
        )
    except InvalidRequest as error:
        raise ServerRejected(f"{tool}: the answer is {error.message}") from error


def _block(block: JsonObject) -> JsonObject:
    plain = storable(block)
    return {name: value for name, value in plain.items() if value is not None} if isinstance(plain, dict) else {}
