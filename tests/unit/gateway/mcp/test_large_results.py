"""Results of any size reach a model in parts of limited length."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.mcp_client.model import CallResult
from toolscript.gateway.mcp.large_results import MAX_CHARACTERS, MAX_KEPT, LargeResults

pytestmark = [pytest.mark.requirement("GW-004"), pytest.mark.slow]

LINES = "\n".join(f"line {number}" for number in range(700_000))
ROOM = 400


def text_of(result: CallResult) -> str:
    return str(result.content[0]["text"])


def id_in(result: CallResult) -> str:
    match = re.search(r'"id":"([0-9a-f]+)"', text_of(result))
    assert match is not None
    return match[1]


def test_a_small_result_is_returned_unchanged() -> None:
    small = CallResult([{"type": "text", "text": "x" * MAX_CHARACTERS}], {"a": [1, None, 2.5]}, is_error=True)
    assert LargeResults().fitting(small) == small


def test_a_large_text_is_truncated_once_and_says_how_to_read_on() -> None:
    """Of 6.7 MB of text and as much structured data, the model gets a part."""
    fitted = LargeResults().fitting(CallResult([{"type": "text", "text": LINES}], {"result": LINES}))
    assert fitted.structured_content is None
    assert len(text_of(fitted)) < MAX_CHARACTERS + ROOM
    assert LINES.startswith(text_of(fitted)[:MAX_CHARACTERS])
    assert f"of {len(LINES):,}" in text_of(fitted)


def test_the_parts_add_up_to_the_whole_text() -> None:
    results = LargeResults()
    fitted = results.fitting(CallResult([{"type": "text", "text": LINES[:250_000]}]))
    key, read, offset = id_in(fitted), text_of(fitted)[:MAX_CHARACTERS], MAX_CHARACTERS
    while offset < 250_000:
        piece = text_of(results.read({"id": key, "offset": offset, "limit": 30_000})).rpartition("\n[")[0]
        read, offset = read + piece, offset + len(piece)
    assert read == LINES[:250_000]
    assert "ends at character 250,000" in text_of(results.read({"id": key, "offset": 250_000}))


def test_reading_can_start_at_a_given_text() -> None:
    results = LargeResults()
    key = id_in(results.fitting(CallResult([{"type": "text", "text": LINES}])))
    assert text_of(results.read({"id": key, "find": "line 654321", "limit": 20})).startswith(
        "line 654321\nline 65"
    )
    assert "is not in the rest" in text_of(results.read({"id": key, "find": "nowhere"}))


def test_structured_data_without_text_is_truncated_too() -> None:
    fitted = LargeResults().fitting(CallResult([], {"rows": [LINES[:100_000]]}))
    assert text_of(fitted).startswith('{"rows":["line 0')
    assert fitted.structured_content is None


def test_pictures_are_kept_and_oversized_ones_are_named() -> None:
    picture = {"type": "image", "mimeType": "image/png", "data": "A" * 100_000}
    huge = {"type": "image", "mimeType": "image/png", "data": "A" * 9_000_000}
    fitted = LargeResults().fitting(CallResult([picture, huge, {"type": "text", "text": LINES}]))
    assert [block["type"] for block in fitted.content] == ["text", "image"]
    assert "image of 6 MiB" in str(LargeResults().fitting(CallResult([huge])).content)


def test_a_resource_with_a_large_text_is_truncated() -> None:
    resource = {"type": "resource", "resource": {"uri": "file:///a", "text": LINES}}
    assert len(str(LargeResults().fitting(CallResult([resource])).content)) < MAX_CHARACTERS * 1.2


def test_only_the_last_few_results_are_kept_under_random_ids() -> None:
    results = LargeResults()
    keys = [
        id_in(results.fitting(CallResult([{"type": "text", "text": "x" * 50_000}]))) for _ in range(MAX_KEPT + 3)
    ]
    assert len({*keys}) == len(keys)
    assert min(map(len, keys)) >= 12
    with pytest.raises(NotFound, match="no longer kept"):
        results.read({"id": keys[0]})
    assert results.read({"id": keys[-1]}).content


@pytest.mark.parametrize(
    "wrong", [{"offset": -1}, {"offset": "1"}, {"limit": True}, {"limit": 0}, {"find": 3}, {"offset": 1.5}]
)
def test_invalid_read_arguments_are_refused(wrong: dict[str, Any]) -> None:
    results = LargeResults()
    key = id_in(results.fitting(CallResult([{"type": "text", "text": LINES}])))
    read: Callable[[], object] = lambda: results.read({"id": key, **wrong})  # noqa: E731
    with pytest.raises(InvalidRequest):
        read()


@pytest.mark.parametrize(
    "block",
    [
        {"type": "something", "x": LINES},
        {"type": "resource", "resource": {"uri": "file:///a", "blob": "A" * 5_000_000}},
        {"type": "resource_link", "uri": "file:///" + "a" * 300_000, "name": "x"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png", "_meta": {"x": LINES}},
    ],
    ids=lambda block: str(block["type"]),
)
def test_every_kind_of_block_is_limited_and_made_visible(block: dict[str, Any]) -> None:
    fitted = LargeResults().fitting(CallResult([{**block, "note\u202e": "a\u200b"}]))
    text = "".join(map(str, fitted.content[0].values()))
    assert len(text) < MAX_CHARACTERS + ROOM
    assert "\u202e" not in text
    assert "\u200b" not in text


def test_many_small_blocks_count_by_their_sum() -> None:
    links = [{"type": "resource_link", "uri": f"file:///{number}", "name": "x"} for number in range(5_000)]
    assert len(text_of(LargeResults().fitting(CallResult(links)))) < MAX_CHARACTERS + ROOM
