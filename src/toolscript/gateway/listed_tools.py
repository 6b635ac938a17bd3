"""The tools as clients list them by themselves: under names that every model accepts, a page at a time.

A name is a function of server and tool alone. It stays the same whatever else there is, and after a restart.
"""

import hashlib
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolscript.core.items import SEPARATOR, Item, ItemKind, JsonObject, tool_id
from toolscript.core.text import visible_json

# What model providers accept as the name of a tool.
MAX_LISTED_NAME = 64
MAX_PAGE = 250
_ACCEPTED = re.compile(r"[a-zA-Z0-9_-]+")
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]+")
_DIGEST = 12
# A name that ends like this is a shortened one; another that does so by itself gets a hash, too.
_SHORTENED = re.compile(rf"_[0-9a-f]{{{_DIGEST}}}")
_MAX_SERVER_SHOWN = 20


def listed_name(server: str, tool: str) -> str:
    """Return `server__tool` where models accept it, else a shortened form that ends with a hash of it."""
    whole = tool_id(server, tool)
    looks_shortened = _SHORTENED.fullmatch(whole[-_DIGEST - 1 :]) is not None
    if len(whole) <= MAX_LISTED_NAME and _ACCEPTED.fullmatch(whole) and not looks_shortened:
        return whole
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    shown = tool_id(_accepted(server)[:_MAX_SERVER_SHOWN], _accepted(tool))
    return f"{shown[: MAX_LISTED_NAME - _DIGEST - 1]}_{digest}"


def _accepted(text: str) -> str:
    return _REFUSED.sub("_", text)


@dataclass(frozen=True)
class ToolPage:
    """Definitions as servers sent them, under the names that are listed; `following` is empty on the last page."""

    tools: tuple[JsonObject, ...]
    following: str = ""


class ListedTools:
    """The tools of a catalog by the names that are listed. Immutable: another catalog has another one.

    `own_names`: of one server, under the names that it gives them.
    """

    def __init__(self, items: Iterable[Item], *, own_names: bool = False) -> None:
        tools = [item for item in items if item.kind is ItemKind.TOOL]
        # Two ids with one name can only be made on purpose: then neither is offered.
        by_name = _unambiguous(
            (item.name if own_names else listed_name(item.server, item.name), item) for item in tools
        )
        self._by_name = by_name
        # With a separator in it, a tool of one server could pose as that of another which is not there.
        self._by_bare_name = _unambiguous((item.name, item) for item in tools if SEPARATOR not in item.name)
        self._names = sorted(by_name)

    def __len__(self) -> int:
        return len(self._names)

    def find(self, name: str) -> Item | None:
        """Return the tool of a name that is listed, or of a bare name that only one server has."""
        return self._by_name.get(name) or self._by_bare_name.get(name)

    def page(self, after: str = "", limit: int = MAX_PAGE) -> ToolPage:
        """Return the tools whose names follow `after`: when others come and go between pages, none is skipped."""
        start = bisect_right(self._names, after) if after else 0
        names = self._names[start : start + limit]
        more = start + limit < len(self._names)
        tools = tuple(listed_definition(name, self._by_name[name]) for name in names)
        return ToolPage(tools, names[-1] if more else "")


def _unambiguous(named: Iterable[tuple[str, Item]]) -> dict[str, Item]:
    found: dict[str, Item] = {}
    ambiguous = set()
    for name, item in named:
        if name in found:
            ambiguous.add(name)
        found[name] = item
    return {name: item for name, item in found.items() if name not in ambiguous}


def listed_definition(name: str, item: Item) -> dict[str, Any]:
    """Return what the server sent, under another name, with invisible characters spelled out."""
    sent = json.loads(item.definition) if item.definition else _from_fields(item)
    shown = visible_json(sent)
    definition = dict(shown) if isinstance(shown, Mapping) else {}
    return {"inputSchema": {"type": "object"}, **definition, "name": name}


def _from_fields(item: Item) -> JsonObject:
    fields = {
        "description": item.description,
        "inputSchema": item.input_schema,
        "outputSchema": item.output_schema,
        "annotations": item.annotations,
    }
    return {name: value for name, value in fields.items() if value}
