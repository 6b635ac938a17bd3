"""The protocol between the ingest process and the reader process: frames of JSON."""

import json
import re
import struct
from typing import Any

from toolscript.core.errors import FileSkipped
from toolscript.knowledge.model.ingest import Block, BlockKind, Reading
from toolscript.knowledge.readers.blocks import ReadingLimits

# Limits of the metadata of a file.
MAX_TITLE, MAX_NAMES, MAX_NAME = 500, 50, 200
# The reason from the reader process is printed to a terminal.
_MAX_REASON = 300
_MAX_METADATA = 10
_MAX_INTEGER = 2**53
# Lone surrogates, which no database stores.
_LONE = re.compile("[\ud800-\udfff]")
GARBLED = "the reader process sent an invalid response"


def reading_to_json(reading: Reading) -> bytes:
    blocks = [
        [block.kind.value, block.text, block.level, block.page, block.line, block.start, block.end]
        for block in reading.blocks
    ]
    data = {
        "content_hash": reading.content_hash,
        "title": reading.title,
        "authors": reading.authors,
        "topics": reading.topics,
        "type": reading.type,
        "metadata": reading.metadata,
        "blocks": blocks,
    }
    return json.dumps({"reading": data}, ensure_ascii=False).encode("utf-8", "replace")


def skipped_to_json(reason: str, hint: str = "", again: bool = False) -> bytes:
    """`again`: a fresh process may be able to do what this one could not."""
    return json.dumps({"skipped": reason, "hint": hint, "again": again}).encode()


def is_worth_another_try(response: bytes) -> bool:
    """Return whether a fresh process should retry. Only short responses, as reasons are, are parsed for this."""
    if len(response) > 4_096:
        return False
    try:
        data = json.loads(response)
    except (ValueError, RecursionError):
        return True
    return isinstance(data, dict) and data.get("again") is True


def reading_from_json(response: bytes, limits: ReadingLimits) -> Reading:
    try:
        data = json.loads(response.decode("utf-8"))
        if isinstance(data, dict) and isinstance(data.get("skipped"), str):
            raise FileSkipped(
                _text(data["skipped"], _MAX_REASON),
                hint=_text(data.get("hint", ""), _MAX_REASON),
            )
        return _reading(data["reading"], limits)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileSkipped(GARBLED) from error


def _reading(data: dict[str, Any], limits: ReadingLimits) -> Reading:
    blocks = tuple(_block(*block) for block in data["blocks"])
    if not blocks or len(blocks) > limits.blocks or sum(len(block.text) for block in blocks) > limits.letters:
        raise ValueError("blocks")
    if not re.fullmatch("[0-9a-f]{64}", data["content_hash"]):
        raise ValueError("hash")
    return Reading(
        content_hash=data["content_hash"],
        title=_text(data["title"], MAX_TITLE),
        blocks=blocks,
        authors=_names(data["authors"]),
        topics=_names(data["topics"]),
        type=_text(data["type"], MAX_NAME),
        metadata=_metadata(data["metadata"]),
    )


def _block(kind: Any, text: Any, level: Any, page: Any, line: Any, start: Any, end: Any) -> Block:
    return Block(
        BlockKind(kind),
        _text(text),
        level=_number(level),
        page=None if page is None else _number(page),
        line=None if line is None else _number(line),
        start=_number(start),
        end=_number(end),
    )


def _text(value: Any, maximum: int | None = None) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return _LONE.sub("\ufffd", value[:maximum])


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MAX_INTEGER:
        raise TypeError("no number")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_NAMES:
        raise TypeError("no names")
    return tuple(_text(name, MAX_NAME) for name in value)


def _metadata(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > _MAX_METADATA:
        raise TypeError("no metadata")
    return {
        _text(name, MAX_NAME): _text(item, MAX_NAME) if isinstance(item, str) else _number(item)
        for name, item in value.items()
    }


HEAD = struct.Struct(">Q")
# The first message: the process accepts requests now.
READY = b"ready"


def framed(message: bytes) -> bytes:
    return HEAD.pack(len(message)) + message
