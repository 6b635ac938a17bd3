"""A result of any size reaches a model in pieces that it can take."""

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
    found = re.search(r'"id":"([0-9a-f]+)"', text_of(result))
    assert found is not None
    return found[1]


def test_what_fits_is_handed_on_as_it_is() -> None:
    small = CallResult([{"type": "text", "text": "x" * MAX_CHARACTERS}], {"a": [1, None, 2.5]}, is_error=True)
    assert LargeResults().fitting(small) == small


def test_a_large_text_is_cut_once_and_says_how_to_read_on() -> None:
    """Of 6.7 MB and as much again as data, the model gets a piece."""
    shown = LargeResults().fitting(CallResult([{"type": "text", "text": LINES}], {"result": LINES}))
    assert shown.structured_content is None
    assert len(text_of(shown)) < MAX_CHARACTERS + ROOM
    assert LINES.startswith(text_of(shown)[:MAX_CHARACTERS])
    assert f"of {len(LINES):,}" in text_of(shown)


def test_the_pieces_are_the_whole() -> None:
    results = LargeResults()
    shown = results.fitting(CallResult([{"type": "text", "text": LINES[:250_000]}]))
    key, read, offset = id_in(shown), text_of(shown)[:MAX_CHARACTERS], MAX_CHARACTERS
    while offset < 250_000:
        piece = text_of(results.read({"id": key, "offset": offset, "limit": 30_000})).rpartition("\n[")[0]
        read, offset = read + piece, offset + len(piece)
    assert read == LINES[:250_000]
    assert "ends at character 250,000" in text_of(results.read({"id": key, "offset": 250_000}))


def test_a_text_in_it_can_be_jumped_to() -> None:
    results = LargeResults()
    key = id_in(results.fitting(CallResult([{"type": "text", "text": LINES}])))
    assert text_of(results.read({"id": key, "find": "line 654321", "limit": 20})).startswith(
        "line 654321\nline 65"
    )
    assert "is not in the rest" in text_of(results.read({"id": key, "find": "nowhere"}))


def test_data_without_text_is_cut_as_well() -> None:
    shown = LargeResults().fitting(CallResult([], {"rows": [LINES[:100_000]]}))
    assert text_of(shown).startswith('{"rows":["line 0')
    assert shown.structured_content is None


def test_pictures_stay_and_those_that_no_client_takes_are_named() -> None:
    picture = {"type": "image", "mimeType": "image/png", "data": "A" * 100_000}
    huge = {"type": "image", "mimeType": "image/png", "data": "A" * 9_000_000}
    shown = LargeResults().fitting(CallResult([picture, huge, {"type": "text", "text": LINES}]))
    assert [block["type"] for block in shown.content] == ["text", "image"]
    assert "image of 6 MiB" in str(LargeResults().fitting(CallResult([huge])).content)


def test_a_resource_with_a_large_text_is_cut() -> None:
    resource = {"type": "resource", "resource": {"uri": "file:///a", "text": LINES}}
    assert len(str(LargeResults().fitting(CallResult([resource])).content)) < MAX_CHARACTERS * 1.2


def test_only_the_last_few_are_kept_and_ids_are_not_to_be_guessed() -> None:
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
def test_arguments_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    results = LargeResults()
    key = id_in(results.fitting(CallResult([{"type": "text", "text": LINES}])))
    asked: Callable[[], object] = lambda: results.read({"id": key, **wrong})  # noqa: E731
    with pytest.raises(InvalidRequest):
        asked()


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
def test_no_kind_of_block_gets_past_the_limit_or_hides_something(block: dict[str, Any]) -> None:
    shown = LargeResults().fitting(CallResult([{**block, "note\u202e": "a\u200b"}]))
    said = "".join(map(str, shown.content[0].values()))
    assert len(said) < MAX_CHARACTERS + ROOM
    assert "\u202e" not in said
    assert "\u200b" not in said


def test_many_small_blocks_are_as_large_as_their_sum() -> None:
    links = [{"type": "resource_link", "uri": f"file:///{number}", "name": "x"} for number in range(5_000)]
    assert len(text_of(LargeResults().fitting(CallResult(links)))) < MAX_CHARACTERS + ROOM
