"""Listing of a server: bounded, paged reads of its tools, prompts and resources as items."""

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import anyio

from toolscript.core.daemon_threads import OF_SERVERS
from toolscript.core.errors import InvalidRequest, ServerRejected
from toolscript.core.item_json import MAX_NAME, storable, visible_item_from_json
from toolscript.core.items import Item, ItemKind, JsonObject
from toolscript.core.mcp_client.model import CallResult, ServerSpec

MAX_REFUSED = 100

Entry = Mapping[str, object]

MAX_ITEMS = 20_000
MAX_PAGES = 1_000
# Every item carries the text: a long one would be stored thousands of times.
MAX_ABOUT = 1_000

SendRequest = Callable[[str, JsonObject], Awaitable[JsonObject]]

METHOD_NOT_FOUND = -32601


@dataclass
class ListedItems:
    """Accepted items, rejected entries, and the wire name of each tool, collected while listing."""

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
        item = listed_item(listing, entry, self.spec.name, self.about)
        if item.kind is ItemKind.TOOL and not self.spec.offers(item.name):
            return
        if (item.kind, item.key) in self._taken:
            raise InvalidRequest(f"the name {item.name!r} is already taken")
        if reason := check(item):
            raise InvalidRequest(f"{item.name!r}: {reason}")
        self._taken.add((item.kind, item.key))
        self.items.append(item)
        if item.kind is ItemKind.TOOL:
            self.wire_names[item.name] = str(entry["name"])


def listed_item(listing: str, entry: Entry, server: str, about: str = "") -> Item:
    """Return the item of an entry of a list."""
    fields = {"server": server, "server_description": about, **_SHAPES[listing](entry)}
    return replace(visible_item_from_json(fields), definition=canonical(entry))


def canonical(entry: Entry) -> str:
    """Return a definition as JSON that differs only where its values differ: not by key order or whitespace."""
    # A schema, one level below, may have the depth that every item's may have.
    storable(entry, depth=-1)
    return json.dumps(entry, sort_keys=True, separators=(",", ":"))


def tool_fields(entry: Entry) -> JsonObject:
    """Return the fields of a tool's item, from its definition in MCP."""
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
    """Two resources may share a name; the address identifies them."""
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
    annotations = entry.get("annotations") or {}
    if not isinstance(annotations, Mapping):
        return annotations
    return {**{name: entry[name] for name in fields if entry.get(name)}, **annotations} or None


def _arguments(value: object) -> JsonObject | None:
    """Return a JSON Schema of a prompt's arguments, all of them named strings."""
    if not value:
        return None
    if not isinstance(value, list):
        raise InvalidRequest("arguments must be a list")
    named = dict(_named_arguments(value))
    required = [name for name, argument in named.items() if argument.get("required") is True]
    properties = {name: {"type": "string", **_description(argument)} for name, argument in named.items()}
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _named_arguments(arguments: Sequence[object]) -> Iterator[tuple[str, Entry]]:
    for argument in arguments:
        if not isinstance(argument, Mapping) or not isinstance(argument.get("name"), str):
            raise InvalidRequest("an argument must have a name")
        yield argument["name"], argument


def _description(argument: Entry) -> JsonObject:
    text = argument.get("description")
    return {"description": text} if isinstance(text, str) and text else {}


_SHAPES: Mapping[str, Callable[[Entry], JsonObject]] = {
    "tool": tool_fields,
    "prompt": _prompt,
    "resource": _resource,
    "resource template": _resource,
}


@dataclass(frozen=True)
class Listing:
    """One list of a server: its method, and its field in the response."""

    name: str
    method: str
    field: str


TOOLS = Listing("tool", "tools/list", "tools")
PROMPTS = Listing("prompt", "prompts/list", "prompts")
RESOURCES = Listing("resource", "resources/list", "resources")
TEMPLATES = Listing("resource template", "resources/templates/list", "resourceTemplates")


async def list_all(
    send: SendRequest,
    spec: ServerSpec,
    about: str,
    listings: Sequence[Listing],
    check: Callable[[Item], str | None],
) -> ListedItems:
    """List a server. A failed tool list raises; failures of other lists only become refusals."""
    listed = ListedItems(spec, about[:MAX_ABOUT])
    if TOOLS in listings:
        await _read_listing(send, TOOLS, listed, check)
    try:
        with anyio.fail_after(spec.start_seconds / 3):
            for listing in listings:
                if listing is not TOOLS:
                    await _read_optional_listing(send, listing, listed, check)
    except TimeoutError:
        listed.refuse("prompts and resources", "the server did not list them all in time")
    return listed


async def _read_optional_listing(
    send: SendRequest, listing: Listing, listed: ListedItems, check: Callable[[Item], str | None]
) -> None:
    try:
        await _read_listing(send, listing, listed, check)
    except ServerRejected as error:
        # A server without the method has nothing to list.
        if error.details.get("code") != METHOD_NOT_FOUND:
            listed.refuse(f"{listing.name}s", error.message)


async def _read_listing(
    send: SendRequest, listing: Listing, listed: ListedItems, check: Callable[[Item], str | None]
) -> None:
    room = MAX_ITEMS - len(listed.items)
    entries = []
    async for page in _pages(send, listing, listed):
        entries += page
        if len(entries) > room:
            listed.refuse(f"{listing.name}s", f"only the first {MAX_ITEMS} items of a server are read")
            break
    # Parsing thousands of schemas takes long; in a thread it does not delay other servers' messages.
    await OF_SERVERS.run(lambda: listed.add(listing.name, entries[:room], check))


async def _pages(send: SendRequest, listing: Listing, listed: ListedItems) -> AsyncIterator[list[object]]:
    page, seen = await _page(send, listing, {}), set[object]()
    for _ in range(MAX_PAGES):
        yield page.entries
        # A repeated cursor would loop forever.
        if page.cursor is None or page.cursor in seen:
            return
        seen.add(page.cursor)
        try:
            page = await _page(send, listing, {"cursor": page.cursor})
        except ServerRejected as error:
            listed.refuse(f"{listing.name}s", f"page {len(seen) + 1}: {error.message}")
            return
    listed.refuse(f"{listing.name}s", f"only the first {MAX_PAGES} pages of a server are read")


@dataclass(frozen=True)
class _Page:
    entries: list[object]
    cursor: str | None


async def _page(send: SendRequest, listing: Listing, params: JsonObject) -> _Page:
    answer = await send(listing.method, params)
    entries, cursor = answer.get(listing.field), answer.get("nextCursor")
    if not isinstance(entries, list):
        raise ServerRejected(f"{listing.method}: the answer has no list of {listing.field}")
    return _Page(entries, cursor if isinstance(cursor, str) and cursor else None)


def call_result(tool: str, answer: JsonObject) -> CallResult:
    if answer.get("resultType", "complete") != "complete":
        raise ServerRejected(f"{tool}: the server answered neither with a result nor with a question")
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
