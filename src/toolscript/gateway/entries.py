"""Prompts, resources and templates of all servers as the gateway lists them: under unique names, in pages.

A prompt is `server__prompt`. A resource keeps its URI where no other server has it, else it is
`toolscript://server/` and its URI; so are templates.
"""

import hashlib
import json
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote

from toolscript.core.items import Item, ItemKind, JsonObject, tool_id
from toolscript.core.text import visible_json
from toolscript.core.web.cursors import decode_cursor, encode_cursor
from toolscript.gateway.model import LISTS, PAGE, PROMPTS, RESOURCES, SERVERS, TEMPLATES, TOOLS, EntryPage

URI_PREFIX = "toolscript://"
_URI = re.compile(r"(?P<scheme>[a-zA-Z][a-zA-Z0-9+.-]*):(?P<host>//[^/?#]*)?(?P<rest>.*)", re.DOTALL)
_IGNORED = re.compile(r"[\t\r\n]")
_BLANKS = "".join(map(chr, range(33)))

_ADDRESSES = {RESOURCES: "uri", TEMPLATES: "uriTemplate"}


@dataclass(frozen=True)
class Named:
    """An item, the name under which it is listed, and what its own server calls it."""

    name: str
    own_name: str
    item: Item


class Entries:
    """The prompts, resources and templates among these items. Names are made once, entries when they are shown.

    `own_names`: of one server, under the names and addresses that it gives them.
    """

    def __init__(self, items: Sequence[Item], *, own_names: bool = False) -> None:
        self._all = items
        self._own_names = own_names
        self._items = [item for item in items if item.kind is not ItemKind.TOOL]

    @cached_property
    def marks(self) -> Mapping[str, str]:
        """A hash of each list that clients watch, which changes with what is in it."""
        marks = {TOOLS: hashlib.sha256(), PROMPTS: hashlib.sha256(), RESOURCES: hashlib.sha256()}
        kinds = {ItemKind.TOOL: TOOLS, ItemKind.PROMPT: PROMPTS, ItemKind.RESOURCE: RESOURCES}
        for item in self._all:
            marks[kinds[item.kind]].update(f"{item.server} {item.fingerprint} {item.definition}\n".encode())
        servers = " ".join(sorted({item.server for item in self._all}))
        return {SERVERS: servers, **{kind: mark.hexdigest() for kind, mark in marks.items()}}

    def page(self, kind: str, cursor: str, limit: int = PAGE) -> EntryPage:
        names = self._names[kind]
        begin = bisect_right(names, decode_cursor(cursor, ""))
        listed = self._listed[kind]
        page = [_entry(kind, listed[name]) for name in names[begin : begin + limit]]
        has_more = begin + limit < len(names)
        return EntryPage(page, encode_cursor(names[begin + limit - 1]) if has_more else "")

    def names(self, kind: str) -> Sequence[str]:
        return self._names[kind]

    def prompt(self, name: str) -> Named | None:
        """Return the prompt of a listed name, or of a bare one that is unique."""
        return self._listed[PROMPTS].get(name) or self._bare_prompts.get(name)

    def resource(self, uri: str) -> Named | None:
        """Return the resource of a listed URI, also in another spelling, or of a server and its own URI."""
        return self._listed[RESOURCES].get(uri) or self._by_address[RESOURCES].get(address_of(uri))

    def template(self, uri_template: str) -> Named | None:
        known = self._listed[TEMPLATES].get(uri_template)
        return known or self._by_address[TEMPLATES].get(address_of(uri_template))

    def templates_of(self, uri: str) -> list[Named]:
        """Return the templates that begin as this URI does, of its server where it names one."""
        server, own_uri = without_server(uri)
        templates = [named for named in self._listed[TEMPLATES].values() if server in ("", named.item.server)]
        return [named for named in templates if own_uri.startswith(_fixed(named.own_name))]

    def servers_of(self, own_uri: str) -> set[str]:
        """Return the servers that list a resource of this URI."""
        return self._servers_of.get(own_uri, set())

    def servers_with_resources(self) -> set[str]:
        return {item.server for item in self._items if item.kind is ItemKind.RESOURCE}

    @cached_property
    def _listed(self) -> Mapping[str, Mapping[str, Named]]:
        own: dict[str, list[tuple[str, Item]]] = {kind: [] for kind in LISTS}
        for item in self._items:
            kind, name = own_name(item)
            own[kind].append((name, item))
        prompts = {
            name if self._own_names else tool_id(item.server, item.name): (name, item)
            for name, item in own[PROMPTS]
        }
        listed = {PROMPTS: {name: Named(name, *rest) for name, rest in prompts.items()}}
        for kind in (RESOURCES, TEMPLATES):
            times = Counter(address for address, _ in own[kind])
            named = [
                Named(
                    address if self._own_names or times[address] == 1 else with_server(item.server, address),
                    address,
                    item,
                )
                for address, item in own[kind]
            ]
            listed[kind] = {entry.name: entry for entry in named}
        return listed

    @cached_property
    def _by_address(self) -> Mapping[str, Mapping[tuple[str, str], Named]]:
        """By server and normal form of their own URI; without a server where no other has it."""
        found: dict[str, dict[tuple[str, str], Named]] = {kind: {} for kind in (RESOURCES, TEMPLATES)}
        for kind, by_address in found.items():
            times = Counter(normal_uri(named.own_name) for named in self._listed[kind].values())
            for named in self._listed[kind].values():
                address = normal_uri(named.own_name)
                by_address[named.item.server, address] = named
                if times[address] == 1:
                    by_address["", address] = named
        return found

    @cached_property
    def _servers_of(self) -> Mapping[str, set[str]]:
        servers = defaultdict[str, set[str]](set)
        for named in self._listed[RESOURCES].values():
            servers[named.own_name].add(named.item.server)
        return servers

    @cached_property
    def _names(self) -> Mapping[str, Sequence[str]]:
        return {kind: sorted(listed) for kind, listed in self._listed.items()}

    @cached_property
    def _bare_prompts(self) -> Mapping[str, Named]:
        prompts = self._listed[PROMPTS].values()
        times = Counter(named.own_name for named in prompts)
        return {named.own_name: named for named in prompts if times[named.own_name] == 1}


def with_server(server: str, address: str) -> str:
    return f"{URI_PREFIX}{quote(server, safe='')}/{address}"


def without_server(uri: str) -> tuple[str, str]:
    """Return the server that a URI names, and the rest; no server for a URI without one."""
    if not uri.startswith(URI_PREFIX):
        return "", uri
    server, slash, rest = uri.removeprefix(URI_PREFIX).partition("/")
    return (unquote(server), rest) if slash and rest else ("", uri)


def normal_uri(uri: str) -> str:
    """Return the form in which two spellings of a URI are equal (RFC 3986, 6.2.2; tabs and line ends are none)."""
    parts = _URI.fullmatch(_IGNORED.sub("", uri).strip(_BLANKS))
    if parts is None:
        return uri
    return unquote(f"{parts['scheme'].lower()}:{(parts['host'] or '').lower()}{parts['rest']}")


def address_of(uri: str) -> tuple[str, str]:
    """Return the server that a URI names, or none, and the normal form of the rest."""
    server, own_uri = without_server(uri)
    return server, normal_uri(own_uri)


def with_uri(answer: JsonObject, own: str, listed: str) -> JsonObject:
    """Return the contents under the URI that was read."""
    contents: Any = answer.get("contents")
    if not isinstance(contents, list):
        return answer
    renamed = [
        {**part, "uri": listed} if isinstance(part, dict) and part.get("uri") == own else part for part in contents
    ]
    return {**answer, "contents": renamed}


def own_name(item: Item) -> tuple[str, str]:
    """Return the list in which an item is, and what its server calls it there."""
    entry = _definition(item)
    if item.kind is ItemKind.PROMPT:
        return PROMPTS, str(entry.get("name") or item.name)
    kind = TEMPLATES if entry.get("uriTemplate") and not entry.get("uri") else RESOURCES
    return kind, str(entry.get(_ADDRESSES[kind]) or item.name)


def _definition(item: Item) -> dict[str, Any]:
    """Return what the server sent, or what an item from elsewhere has of it."""
    if item.definition:
        definition: dict[str, Any] = json.loads(item.definition)
        return definition
    entry = {"name": item.name, "description": item.description, **(item.annotations or {})}
    if item.kind is ItemKind.PROMPT and (schema := item.input_schema):
        required = schema.get("required", ())
        properties = schema.get("properties", {})
        assert isinstance(required, Sequence)  # noqa: S101
        assert isinstance(properties, Mapping)  # noqa: S101
        entry["arguments"] = [{"name": name, "required": name in required} for name in properties]
    return entry


def _entry(kind: str, named: Named) -> JsonObject:
    """Return the entry of a list, without invisible characters in what people and models read."""
    entry = visible_json(_definition(named.item))
    assert isinstance(entry, dict)  # noqa: S101
    entry.pop("_meta", None)
    entry["name"] = named.name if kind == PROMPTS else named.item.name
    return entry if kind == PROMPTS else {**entry, _ADDRESSES[kind]: named.name}


def _fixed(uri_template: str) -> str:
    return uri_template.partition("{")[0]
