"""Responses of the reader process are validated."""

import json
from typing import Any

import pytest

from toolscript.core.errors import FileSkipped
from toolscript.knowledge.model.ingest import Block, BlockKind, Reading
from toolscript.knowledge.readers.blocks import ReadingLimits
from toolscript.knowledge.readers.wire import reading_from_json, reading_to_json

pytestmark = pytest.mark.requirement("KN-005")

LIMITS = ReadingLimits(blocks=3, letters=100)
READING = Reading(
    "0" * 64, "T", (Block(BlockKind.TEXT, "text \U0001f600", page=1, start=2, end=8),), ("a",), ("b",)
)


def altered(**changes: Any) -> bytes:
    data = json.loads(reading_to_json(READING))
    data["reading"] |= changes
    return json.dumps(data).encode()


def test_a_reading_survives_the_round_trip() -> None:
    assert reading_from_json(reading_to_json(READING), LIMITS) == READING


BLOCK = ["text", "x", 0, None, None, 0, 1]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff",
        b"[" * 100_000,
        b"{}",
        b'{"reading": 1}',
        altered(blocks=[]),
        altered(blocks=[BLOCK] * 4),
        altered(blocks=[["text", "x" * 101, 0, None, None, 0, 1]]),
        altered(blocks=[["script", *BLOCK[1:]]]),
        altered(blocks=[["text", 1, *BLOCK[2:]]]),
        altered(blocks=[["text", "x", -1, None, None, 0, 1]]),
        altered(blocks=[["text", "x", True, None, None, 0, 1]]),
        altered(blocks=[["text", "x", 10**30, None, None, 0, 1]]),
        altered(blocks=[BLOCK[:-1]]),
        altered(content_hash="../etc"),
        altered(title=["x"]),
        altered(authors="x"),
        altered(topics=["x"] * 51),
        altered(metadata={"a": {"b": 1}}),
    ],
)
def test_an_invalid_response_skips_the_file(answer: bytes) -> None:
    with pytest.raises(FileSkipped, match="invalid response"):
        reading_from_json(answer, LIMITS)


def test_a_lone_surrogate_is_replaced() -> None:
    reading = reading_from_json(altered(title="a\ud800b"), LIMITS)
    assert reading.title == "a\ufffdb"


def test_a_reason_is_no_longer_than_a_line() -> None:
    with pytest.raises(FileSkipped) as skipped:
        reading_from_json(json.dumps({"skipped": "x" * 10_000}).encode(), LIMITS)
    assert len(skipped.value.message) == 300
