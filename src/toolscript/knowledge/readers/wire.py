"""What passes between the process that ingests and the one that reads a file: frames of JSON."""

import json
import re
import struct
from typing import Any

from toolscript.core.errors import FileSkipped
from toolscript.knowledge.model.ingest import Block, BlockKind, Reading
from toolscript.knowledge.readers.blocks import ReadingLimits

# Of what a file says of itself.
MAX_TITLE, MAX_NAMES, MAX_NAME = 500, 50, 200
# Whatever the process that read it says of a file goes to a person's terminal.
_MAX_REASON = 300
_MAX_METADATA = 10
_MAX_INTEGER = 2**53
# Half a letter, which no database stores.
_LONE = re.compile("[\ud800-\udfff]")
GARBLED = "the process that read it gave no sensible answer"


def reading_to_json(reading: Reading) -> bytes:
    blocks = [
        [block.kind.value, block.text, block.level, block.page, block.line, block.start, block.end]
        for block in reading.blocks
    ]
    told = {
        "content_hash": reading.content_hash,
        "title": reading.title,
        "authors": reading.authors,
        "topics": reading.topics,
        "type": reading.type,
        "metadata": reading.metadata,
        "blocks": blocks,
    }
    return json.dumps({"reading": told}, ensure_ascii=False).encode("utf-8", "replace")


def skipped_to_json(reason: str, hint: str = "", again: bool = False) -> bytes:
    """`again`: a fresh process may be able to do what this one could not."""
    return json.dumps({"skipped": reason, "hint": hint, "again": again}).encode()


def is_worth_another_try(answer: bytes) -> bool:
    """Looked at before it is taken in, and only where it is as short as a reason is."""
    if len(answer) > 4_096:
        return False
    try:
        told = json.loads(answer)
    except (ValueError, RecursionError):
        return True
    return isinstance(told, dict) and told.get("again") is True


def reading_from_json(answer: bytes, limits: ReadingLimits) -> Reading:
    try:
        told = json.loads(answer.decode("utf-8"))
        if isinstance(told, dict) and isinstance(told.get("skipped"), str):
            raise FileSkipped(
                _text(told["skipped"], _MAX_REASON),
                hint=_text(told.get("hint", ""), _MAX_REASON),
            )
        return _reading(told["reading"], limits)
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
    return tuple(_text(one, MAX_NAME) for one in value)


def _metadata(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > _MAX_METADATA:
        raise TypeError("no metadata")
    return {
        _text(name, MAX_NAME): _text(one, MAX_NAME) if isinstance(one, str) else _number(one)
        for name, one in value.items()
    }


HEAD = struct.Struct(">Q")
# The first that is said: now it can be asked.
READY = b"ready"


def framed(message: bytes) -> bytes:
    return HEAD.pack(len(message)) + message
