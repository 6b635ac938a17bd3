"""Definitions of tools as servers send them, read as the gateway's own client reads them."""

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from toolscript.core.items import JsonObject
from toolscript.core.mcp_client.listing import TOOLS, list_all
from toolscript.core.mcp_client.model import Offer, ServerSpec, Transport

REMOTE = ServerSpec("notes", Transport.HTTP, url="https://notes.example/mcp", file="/own/.toolscript.json")
_PATH = {"type": "string", "description": "Where the note is", "minLength": 1}
ENTRIES: Sequence[Mapping[str, Any]] = (
    {
        "name": "read_note",
        "title": "Read a note",
        "description": "Read a note. Gives its text and when it was written; ünïcode, too.",
        "inputSchema": {"type": "object", "properties": {"path": _PATH}, "required": ["path"]},
        "annotations": {"readOnlyHint": True, "title": "Reads"},
    },
    {
        "name": "list_notes",
        "description": "List notes\nNewest first",
        "inputSchema": {"type": "object", "properties": {"limit": {"type": "integer", "maximum": 50}}},
        "outputSchema": {"type": "object", "properties": {"notes": {"type": "array", "items": _PATH}}},
        "_meta": {"ui": {"resourceUri": "ui://notes"}},
    },
    {
        "name": "delete_note",
        "description": "Delete a note for good",
        "inputSchema": {"type": "object", "properties": {"path": _PATH}},
        "annotations": {"destructiveHint": True, "idempotentHint": False},
        "icons": [{"src": "https://notes.example/icon.png"}],
    },
)


async def listed(entries: Sequence[Mapping[str, Any]]) -> Offer:
    """Return the offer of a server that lists these, sent as JSON."""

    async def send(_method: str, _params: JsonObject) -> JsonObject:
        answer: JsonObject = json.loads(json.dumps({"tools": list(entries)}))
        return answer

    items = await list_all(send, REMOTE, "", (TOOLS,), lambda _: None)
    return Offer(REMOTE.name, tuple(items.items), tuple(items.refused))


def shuffled(entries: Sequence[Mapping[str, Any]], dice: random.Random) -> list[Mapping[str, Any]]:
    """Return the same definitions in another order, with keys in another order, after other whitespace."""
    mixed = [_mixed(entry, dice) for entry in entries]
    dice.shuffle(mixed)
    text = json.dumps(
        mixed, indent=dice.choice([None, 1, 4]), separators=dice.choice([(",", ":"), (" , ", " : ")])
    )
    again: list[Mapping[str, Any]] = json.loads(text)
    return again


def _mixed(value: Any, dice: random.Random) -> Any:
    if not isinstance(value, Mapping):
        return value
    keys = [*value]
    dice.shuffle(keys)
    return {key: _mixed(value[key], dice) for key in keys}
