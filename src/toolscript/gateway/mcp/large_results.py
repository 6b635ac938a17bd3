"""Results that exceed a model's context: their beginning, and how to read the rest of what is kept."""

import base64
import binascii
import json
import re
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.items import JsonObject
from toolscript.core.mcp.answers import PICTURES, compact_json
from toolscript.core.mcp.arguments import require_known
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.text import visible, visible_json
from toolscript.core.tokens import size_of
from toolscript.gateway.mcp.definitions import READ_RESULT
from toolscript.gateway.mcp.result_reading import (
    MAX_JSON_BYTES,
    MAX_PAGE_BYTES,
    PAGE_BYTES,
    at_path,
    grep,
    outline,
    page,
)
from toolscript.gateway.store.results import Format, KeptPart, Part, ResultStore

# About five thousand tokens of English, for the text and the structured content together.
MAX_BYTES = 20_000
# How much of a larger result is shown at first.
PREVIEW_BYTES = 6_000
MAX_PICTURE_CHARACTERS = 4_000_000
# What else a result has is a part of its own, if it is this large.
MIN_PART_BYTES, MAX_PARTS = 2_000, 16
# The name by which `call_tool` reads a result, too.
READ = "toolscript__read_result"
# Beyond any result that is kept.
MAX_OFFSET = 2**40
ARGUMENTS = ("id", "offset", "limit", "grep", "path")
_PART = re.compile(r"[0-9]{1,9}")
_RULE = "offset and limit are whole numbers, limit more than 0; grep and path are texts, one of them at a time"


@dataclass(frozen=True)
class _Kept:
    """A part that is kept: what it is, and, of data, its shape."""

    part: Part
    label: str
    size: int
    shape: str = ""


class LargeResults:
    """Keeps large results in a folder, else in one that lasts as long as this object.

    Ids are random, so only the client that received one can read it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        if folder is None:
            folder = Path(tempfile.gettempdir(), f"toolscript-{secrets.token_hex(8)}")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._store = ResultStore(folder)

    def fitting(self, result: CallResult) -> CallResult:
        """Return the result without invisible characters, and of a large one the beginning. It takes time.

        An error is never cut: it says what to do.
        """
        if result.is_error or _size(result) <= MAX_BYTES:
            return _visible(result)
        is_doubled = _is_doubled(result)
        once = CallResult(result.content) if is_doubled else result
        if is_doubled and _size(once) <= MAX_BYTES:
            return _visible(once)
        # What only wraps the text has another shape than the text, which is what is kept.
        is_parsed = is_doubled and not _is_wrapped(result)
        pictures, parts = _parted(once, result.structured_content if is_parsed else None)
        if not parts:
            return _visible(once)
        try:
            key = self._store.keep([kept.part for kept in parts])
        except OSError as error:
            return CallResult([_as_text(f"{_not_kept(parts)} ({error.strerror})"), *pictures])
        return CallResult([_as_text(self._overview(key, parts)), *pictures])

    def read(self, arguments: JsonObject) -> CallResult:
        """Return a part of a kept result. Takes time: use a thread."""
        require_known(READ_RESULT, arguments, ARGUMENTS, also=("find",))
        key = str(arguments.get("id", ""))
        offset, limit = arguments.get("offset", 0), arguments.get("limit", PAGE_BYTES)
        # `find` is an earlier name.
        pattern, path = arguments.get("grep", arguments.get("find")), arguments.get("path")
        if not _is_count(offset) or not _is_count(limit) or not limit or not _are_texts(pattern, path):
            raise InvalidRequest(_RULE)
        if (pattern and path) or offset > MAX_OFFSET:
            raise InvalidRequest(_RULE)
        limit = min(limit, MAX_PAGE_BYTES)
        part = self._find(key)

        def next_call(following: int, **more: object) -> str:
            return f"{READ_RESULT} {compact_json({'id': key, **more, 'offset': following})}"

        if pattern:
            text = grep(part, str(pattern), offset, limit, lambda end: next_call(end, grep=pattern))
        elif path:
            text = at_path(part, str(path), offset, limit, lambda end: next_call(end, path=path))
        else:
            text = page(part, offset, limit, next_call)
        return CallResult([_as_text(text)])

    def _find(self, full_key: str) -> KeptPart:
        key, _, number = full_key.partition(".")
        part = self._store.find(key, int(number or 1)) if not number or _PART.fullmatch(number) else None
        if part is None:
            raise NotFound("this result is no longer kept", hint="call the tool again, and request less at once")
        return part

    def _overview(self, key: str, parts: Sequence[_Kept]) -> str:
        """Return the beginning of the first part, what the others are, and how to read on."""
        found = [self._find(f"{key}.{number}") for number in range(1, len(parts) + 1)]
        lines = [
            f"[This result is too large: {parts[0].label} of {found[0].size:,} bytes, kept for a day.]",
            *([f"[Its shape: {parts[0].shape}]"] if parts[0].shape else []),
            _beginning(found[0], key, PREVIEW_BYTES),
        ]
        for number, (kept, part) in enumerate(zip(parts[1:], found[1:], strict=True), 2):
            shape = f", shape: {kept.shape}" if kept.shape else ""
            lines.append(f"[Also {kept.label} of {part.size:,} bytes{shape}]")
            lines.append(_beginning(part, f"{key}.{number}", MIN_PART_BYTES if part.size < MIN_PART_BYTES else 0))
        paths = ", path the value at a place such as items[0].name" if any(kept.shape for kept in parts) else ""
        lines.append(f"[With grep it shows the lines that match{paths}. Or request less from the tool.]")
        return "\n".join(lines)


def text_says_all(result: CallResult) -> bool:
    """Return whether a text that is not cut says what the structured content says."""
    return _is_doubled(result) and _size(CallResult(result.content)) <= MAX_BYTES


def _beginning(part: KeptPart, key: str, limit: int) -> str:
    """Return the beginning of a part; of binary data, and without a limit, only how to read it."""
    if part.format is Format.BYTES or not limit:
        return f"[read it with {_next_call(key, 0)}{', in base64' if part.format is Format.BYTES else ''}]"
    return page(part, 0, limit, lambda end: _next_call(key, end))


def _next_call(key: str, offset: int) -> str:
    return f"{READ_RESULT} {compact_json({'id': key, 'offset': offset})}"


def _not_kept(parts: Sequence[_Kept]) -> str:
    """Return the beginning of a result that cannot be kept."""
    first = parts[0]
    shown = b"" if first.part.format is Format.BYTES else b"".join(first.part.chunks)[:PREVIEW_BYTES]
    return f"{visible(shown.decode('utf-8', 'replace'))}\n[of {first.size:,} bytes; the rest could not be kept]"


def _visible(result: CallResult) -> CallResult:
    content = [_block(block) for block in result.content]
    return CallResult(content, visible_json(result.structured_content), result.is_error)


def _size(result: CallResult) -> int:
    """Return the bytes that a model reads as text; pictures count only if clients could not show them."""
    structured = 0 if result.structured_content is None else size_of(result.structured_content)
    return structured + sum(size_of(_read_of(block)) for block in result.content)


def _read_of(block: JsonObject) -> object:
    if _is_text(block):
        return block["text"]
    return {name: value for name, value in block.items() if name != "data"} if _is_shown(block) else block


def _is_doubled(result: CallResult) -> bool:
    """Return whether the structured content says what the text says."""
    data = result.structured_content
    texts = [str(block["text"]) for block in result.content if _is_text(block)]
    if data is None or not texts or len(texts) < len(result.content):
        return False
    whole = "\n".join(texts)
    if _is_wrapped(result):
        return True
    return len(whole) <= MAX_JSON_BYTES and _parsed(whole) == data


def _is_wrapped(result: CallResult) -> bool:
    """Return whether the structured content is the text under one key."""
    data = result.structured_content
    texts = [str(block["text"]) for block in result.content if _is_text(block)]
    whole = (["\n".join(texts)], ["".join(texts)])
    return isinstance(data, Mapping) and len(data) == 1 and [*data.values()] in whole


def _parsed(text: str) -> object:
    """Return the JSON value of a text that looks like an object or a list; None if it is none."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _parted(result: CallResult, parsed: object) -> tuple[list[JsonObject], list[_Kept]]:
    """Return the pictures that clients show, and the parts to keep. `parsed`: the value of the text, if known."""
    pictures, parts, texts = list[JsonObject](), list[_Kept](), list[str]()
    for block in result.content:
        if _is_shown(block):
            pictures.append(_block(block))
        elif len(parts) < MAX_PARTS and (kept := _part_of(block)) is not None:
            parts.append(kept)
        else:
            texts.append(_text(block))
    if texts:
        parts.insert(0, _text_part("\n".join(texts), "a text", parsed))
    if (data := result.structured_content) is not None:
        parts.append(_Kept(Part(Format.JSON, _encoded(data)), "structured content", size_of(data), outline(data)))
    # The result begins with a part that is not small.
    return pictures, sorted(parts, key=lambda kept: kept.size < MIN_PART_BYTES)


def _part_of(block: JsonObject) -> _Kept | None:
    """Return a part for binary data, and for a resource that is not small."""
    about = block.get("resource") if block.get("type") == "resource" else block
    if not isinstance(about, Mapping):
        return None
    label = visible(" ".join(f"{block.get('type')} {about.get('uri', '')} {about.get('mimeType', '')}".split()))[
        :200
    ]
    encoded, text = about.get("blob", about.get("data")), about.get("text")
    if isinstance(encoded, str) and len(encoded) >= MIN_PART_BYTES:
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            return _text_part(encoded, label, None)
        return _Kept(Part(Format.BYTES, (data,)), label, len(data))
    if about is not block and isinstance(text, str) and len(text) >= MIN_PART_BYTES:
        return _text_part(text, label, None)
    return None


def _text_part(text: str, label: str, value: object) -> _Kept:
    """Return a part with a text, which has a shape if it is JSON."""
    data = text.encode("utf-8", "surrogatepass")
    value = _parsed(text) if value is None and len(data) <= MAX_JSON_BYTES else value
    if not isinstance(value, Mapping | list) or text.lstrip()[:1] not in ("{", "["):
        return _Kept(Part(Format.TEXT, (data,)), label, len(data))
    return _Kept(Part(Format.JSON, (data,)), f"{label} of JSON", len(data), outline(value))


def _encoded(value: object) -> Iterator[bytes]:
    """Yield a value as JSON, in small pieces: encoding it at once would stop the other threads."""
    for chunk in json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).iterencode(value):
        yield chunk.encode("utf-8", "surrogatepass")


def _block(block: JsonObject) -> JsonObject:
    """Remove invisible characters, of everything but a picture's data."""
    data = {"data": block["data"]} if _is_picture(block) else {}
    plain = visible_json({name: value for name, value in block.items() if name not in data})
    return {"type": "unknown", **(plain if isinstance(plain, Mapping) else {}), **data}


def _text(block: JsonObject) -> str:
    """Return the text of a block of any type."""
    if _is_text(block):
        return str(block["text"])
    resource = block.get("resource")
    text = resource.get("text") if isinstance(resource, Mapping) else None
    return str(text) if text is not None else compact_json(block)


def _is_text(block: JsonObject) -> bool:
    return block.get("type") == "text" and "text" in block


def _is_picture(block: JsonObject) -> bool:
    return block.get("type") in PICTURES and isinstance(block.get("data"), str)


def _is_shown(block: JsonObject) -> bool:
    """Return whether clients show a block as a picture, or play it."""
    return _is_picture(block) and len(str(block["data"])) <= MAX_PICTURE_CHARACTERS


def _as_text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_texts(*values: object) -> bool:
    return all(value is None or isinstance(value, str) for value in values)
