"""What passes between the process that ingests and the one that reads a file: frames of JSON."""

import json
import re
import struct
from typing import Any

from toolscript.core.errors import FileSkipped
from toolscript.knowledge.model.ingest import Block, BlockKind, Reading
from toolscript.knowledge.readers.blocks import ReadingLimits

# Of what a file says of itself.
MOST_TITLE, MOST_NAMES, MOST_NAME = 500, 50, 200
# Whatever the process that read it says of a file goes to a person's terminal.
_MOST_REASON = 300
_MOST_METADATA = 10
_LARGEST = 2**53
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
                _text(told["skipped"], _MOST_REASON),
                hint=_text(told.get("hint", ""), _MOST_REASON),
            )
        return _reading(told["reading"], limits)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileSkipped(GARBLED) from error


def _reading(told: dict[str, Any], limits: ReadingLimits) -> Reading:
    blocks = tuple(_block(*one) for one in told["blocks"])
    if not blocks or len(blocks) > limits.blocks or sum(len(one.text) for one in blocks) > limits.letters:
        raise ValueError("blocks")
    if not re.fullmatch("[0-9a-f]{64}", told["content_hash"]):
        raise ValueError("hash")
    return Reading(
        content_hash=told["content_hash"],
        title=_text(told["title"], MOST_TITLE),
        blocks=blocks,
        authors=_names(told["authors"]),
        topics=_names(told["topics"]),
        type=_text(told["type"], MOST_NAME),
        metadata=_metadata(told["metadata"]),
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


def _text(value: Any, most: int | None = None) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return _LONE.sub("\ufffd", value[:most])


def _number(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise TypeError("no number")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_NAMES:
        raise TypeError("no names")
    return tuple(_text(one, MOST_NAME) for one in value)


def _metadata(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > _MOST_METADATA:
        raise TypeError("no metadata")
    return {
        _text(name, MOST_NAME): _text(one, MOST_NAME) if isinstance(one, str) else _number(one)
        for name, one in value.items()
    }


HEAD = struct.Struct(">Q")
# The first that is said: now it can be asked.
READY = b"ready"


def framed(message: bytes) -> bytes:
    return HEAD.pack(len(message)) + message
