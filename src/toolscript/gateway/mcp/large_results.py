"""Results that exceed a model's context: the first part, and a tool to read the rest."""

import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TypeGuard

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.items import JsonObject
from toolscript.core.mcp.answers import compact_json
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.text import visible, visible_json

# About ten thousand tokens of English.
MAX_CHARACTERS = 40_000
MAX_PICTURE_CHARACTERS = 4_000_000
MAX_KEPT, MAX_KEPT_CHARACTERS = 16, 64_000_000
READ = "toolscript__read_result"
# The same tool where it is listed beside those of servers; no name of theirs is without `__`.
READ_RESULT = "read_result"
PICTURES = ("image", "audio")


def with_call_tool(arguments: JsonObject) -> str:
    """Return the call that reads on where clients call all tools with `call_tool`."""
    return f"call_tool {compact_json({'tool': READ, 'arguments': arguments})}"


def with_own_tool(arguments: JsonObject) -> str:
    """Return the call that reads on where clients call every tool by itself."""
    return f"{READ_RESULT} {compact_json(arguments)}"


class LargeResults:
    """Keeps the last few truncated results. Ids are random, so only the client that received one can read it."""

    def __init__(self, read_on: Callable[[JsonObject], str] = with_call_tool) -> None:
        self._read_on = read_on
        self._kept: OrderedDict[str, str] = OrderedDict()

    def fitting(self, result: CallResult) -> CallResult:
        """Return the result without invisible characters, truncated to the maximum length."""
        content = [_block(block) for block in result.content]
        data = visible_json(result.structured_content)
        pictures = [block for block in content if block["type"] in PICTURES]
        text = "\n".join(_text(block) for block in content if block["type"] not in PICTURES)
        structured = compact_json(data) if data is not None else ""
        if max(len(text), len(structured)) <= MAX_CHARACTERS:
            return CallResult(content, data, result.is_error)
        kept = self._keep(text if len(text) > MAX_CHARACTERS else structured)
        return CallResult([_as_text(self._part(kept, 0, MAX_CHARACTERS)), *pictures], is_error=result.is_error)

    def read(self, arguments: JsonObject) -> CallResult:
        """Return a part of a truncated result; with `find`, from the position of that text."""
        key, find = str(arguments.get("id", "")), arguments.get("find", "")
        offset, limit = arguments.get("offset", 0), arguments.get("limit", MAX_CHARACTERS)
        if key not in self._kept:
            raise NotFound("this result is no longer kept", hint="call the tool again, and request less at once")
        if not _is_count(offset) or not _is_count(limit) or not limit or not isinstance(find, str):
            raise InvalidRequest("offset and limit are whole numbers, limit more than 0, and find is a text")
        if find:
            offset = self._kept[key].find(find, offset)
            if offset < 0:
                return CallResult([_as_text(f"{find[:100]!r} is not in the rest of this result.")])
        return CallResult([_as_text(self._part(key, offset, min(limit, MAX_CHARACTERS)))])

    def _keep(self, text: str) -> str:
        key = secrets.token_hex(6)
        self._kept[key] = text
        while len(self._kept) > 1 and (
            len(self._kept) > MAX_KEPT or sum(map(len, self._kept.values())) > MAX_KEPT_CHARACTERS
        ):
            self._kept.popitem(last=False)
        return key

    def _part(self, key: str, offset: int, limit: int) -> str:
        text = self._kept[key]
        part = text[offset : offset + limit]
        end = offset + len(part)
        if not part:
            return f"[the result ends at character {len(text):,}]"
        if end == len(text):
            return f"{part}\n[characters {offset + 1:,} to {end:,}: this is the end]"
        next_call = self._read_on({"id": key, "offset": end})
        return (
            f"{part}\n[characters {offset + 1:,} to {end:,} of {len(text):,}. Read on with {next_call}; "
            f'with "find": "some text" from the position of that text. Or request less from the tool.]'
        )


def _block(block: Mapping[str, object]) -> JsonObject:
    """Remove invisible characters. Keep a picture or a sound, unless it is too large for clients."""
    visible_block = visible_json({name: value for name, value in block.items() if name != "data"})
    plain: dict[str, object] = dict(visible_block) if isinstance(visible_block, Mapping) else {}
    plain.setdefault("type", "unknown")
    if "data" not in block:
        return plain
    data = str(block["data"])
    if plain["type"] not in PICTURES:
        return {**plain, "data": visible(data)}
    if len(data) <= MAX_PICTURE_CHARACTERS and len(compact_json(plain)) <= MAX_CHARACTERS:
        return {**plain, "data": data}
    size = len(data) * 3 // 4 >> 20
    return _as_text(f"[{plain['type']} of {size} MiB ({str(plain.get('mimeType', ''))[:80]}) is left out]")


def _text(block: Mapping[str, object]) -> str:
    """Return the text of a block of any type."""
    if block["type"] == "text":
        return str(block.get("text", ""))
    resource = block.get("resource")
    text = resource.get("text") if isinstance(resource, Mapping) else None
    return str(text) if text is not None else compact_json(block)


def _as_text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
