"""Results of any size fit a model's context, and every byte of them can be read."""

import base64
import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.core.mcp_client.model import CallResult
from toolscript.core.tokens import o200k_tokens
from toolscript.gateway.mcp.large_results import MAX_BYTES, LargeResults
from toolscript.gateway.store.results import MAX_AGE_SECONDS, Format, Part, ResultStore

pytestmark = pytest.mark.requirement("GW-004")

# 6.7 MB, as the file that once filled a context twice.
LINES = "\n".join(f"line {number}" for number in range(569_000))
MAX_TOKENS = 5_000


@pytest.fixture
def results(tmp_path: Path) -> LargeResults:
    return LargeResults(tmp_path / "results")


def text(content: str) -> dict[str, object]:
    return {"type": "text", "text": content}


def text_of(result: CallResult) -> str:
    return str(result.content[0]["text"])


def id_in(result: CallResult, part: str = "") -> str:
    match = re.search(rf'"id":"([\w-]{{16}}{part})"', text_of(result))
    assert match is not None, text_of(result)[-500:]
    return match[1]


def read_all(results: LargeResults, key: str, limit: int = 40_000, **more: object) -> str:
    """Follow the calls that each page names, and return what they add up to."""
    read, offset = "", 0
    while True:
        page = text_of(results.read({"id": key, "offset": offset, "limit": limit, **more}))
        shown, _, note = page.rpartition("\n[")
        read += shown
        following = re.search(r'"offset":(\d+)', note)
        if following is None:
            assert "this is the end" in note
            return read
        offset = int(following[1])


def cost(result: CallResult) -> int:
    count = o200k_tokens()
    structured = "" if result.structured_content is None else json.dumps(result.structured_content)
    return count("".join(str(block.get("text", "")) for block in result.content)) + count(structured)


def test_a_small_result_is_returned_unchanged(results: LargeResults) -> None:
    small = CallResult([text("x" * 9_000)], {"a": [1, None, 2.5]})
    assert results.fitting(small) == small


@pytest.mark.slow
def test_a_text_of_megabytes_costs_little_and_is_read_back_byte_by_byte(results: LargeResults) -> None:
    fitted = results.fitting(CallResult([text(LINES)], {"content": LINES}))
    assert fitted.structured_content is None
    assert cost(fitted) <= MAX_TOKENS
    assert f"{len(LINES):,} bytes" in text_of(fitted)
    assert read_all(results, id_in(fitted)) == LINES


@pytest.mark.slow
@pytest.mark.parametrize(
    "whole",
    [
        "x" * 3_000_000,
        base64.b64encode(os.urandom(1_500_000)).decode(),
        "猫の手も借りたい。" * 100_000,
        "🙂" * 300_000,
        "1234567890" * 200_000,
    ],
    ids=["one line", "base64", "Japanese", "emoji", "digits"],
)
def test_a_huge_line_of_any_script_is_cut_between_characters(results: LargeResults, whole: str) -> None:
    fitted = results.fitting(CallResult([text(whole)]))
    assert cost(fitted) <= MAX_TOKENS
    assert "\ufffd" not in text_of(fitted)
    assert read_all(results, id_in(fitted), 39_999) == whole


def test_an_offset_within_a_character_is_at_the_next_one(results: LargeResults) -> None:
    key = id_in(results.fitting(CallResult([text("猫" * 20_000)])))
    assert text_of(results.read({"id": key, "offset": 1, "limit": 3})).startswith("猫")
    assert "ends at byte 60,000" in text_of(results.read({"id": key, "offset": 60_000}))


def test_errors_are_never_cut(results: LargeResults) -> None:
    error = CallResult([text("why " * 50_000)], is_error=True)
    assert results.fitting(error) == error


def test_what_says_the_same_twice_is_kept_once(results: LargeResults) -> None:
    rows = {"rows": ["row " * 10] * 300}
    for content in (json.dumps(rows), json.dumps(rows, indent=1)):
        fitted = results.fitting(CallResult([text(content)], rows))
        assert (fitted.structured_content, text_of(fitted)) == (None, content)
    assert results.fitting(CallResult([text("summed up" * 10)], rows)).structured_content == rows


def test_grep_shows_the_matching_lines_after_their_offsets(results: LargeResults) -> None:
    key = id_in(results.fitting(CallResult([text(LINES[:500_000])])))
    found = text_of(results.read({"id": key, "grep": "^line 1234[0-9]$"})).splitlines()
    offset, _, line = found[0].partition(": ")
    assert (line, len(found)) == ("line 12340", 11)
    assert text_of(results.read({"id": key, "offset": int(offset), "limit": 10})).startswith("line 12340")
    assert "0 matching lines" in text_of(results.read({"id": key, "grep": "nowhere"}))


def test_grep_goes_on_where_it_stopped(results: LargeResults) -> None:
    key, found, offset = id_in(results.fitting(CallResult([text(LINES[:300_000])]))), list[str](), 0
    while offset >= 0:
        shown = text_of(results.read({"id": key, "grep": "7$", "limit": 2_000, "offset": offset}))
        found += [line.partition(": ")[2] for line in shown.splitlines()[:-1]]
        following = re.search(r'"offset":(\d+)', shown.splitlines()[-1])
        offset = int(following[1]) if following else -1
    assert found == [line for line in LINES[:300_000].splitlines() if line.endswith("7")]


def test_grep_finds_its_place_in_a_huge_line_and_takes_linear_time(results: LargeResults) -> None:
    key = id_in(results.fitting(CallResult([text("a" * 700_001 + "needle" + "a" * 700_000)])))
    assert "needle" in text_of(results.read({"id": key, "grep": "needle"}))
    began = time.perf_counter()
    results.read({"id": key, "grep": "(a+)+$b"})
    assert time.perf_counter() - began < 20
    # What is no regular expression is a text.
    assert "0 matching" in text_of(results.read({"id": key, "grep": "needle("}))


def test_data_has_a_shape_and_paths(results: LargeResults) -> None:
    users = [{"id": number, "name": f"user {number}", "tags": ["a", "b"]} for number in range(5_000)]
    fitted = results.fitting(CallResult([text("5000 users")], {"users": users, "next": None}))
    assert '{"users": [5,000 × {"id": number, "name": string, "tags": [2 × string]}], "next": null}' in text_of(
        fitted
    )
    assert "5000 users" in text_of(fitted)
    assert cost(fitted) <= MAX_TOKENS
    key = id_in(fitted)

    def at(path: str, **more: object) -> str:
        return text_of(results.read({"id": key, "path": path, **more}))

    assert at("users[4999].name").startswith('"user 4999"\n')
    assert at('$["users"][-1]["id"]').startswith("4999\n")
    assert at("users[1:3].name").startswith('["user 1","user 2"]\n')
    assert json.loads(read_all(results, key, 10_000, path="users[*].id").partition("\n")[2]) == [*range(5_000)]
    with pytest.raises(InvalidRequest, match="nothing at") as refused:
        at("users[0].nme")
    assert '"name": string' in refused.value.hint
    with pytest.raises(InvalidRequest, match="path is keys"):
        at("users[?(@.id)]")


def test_text_that_is_json_has_paths_too(results: LargeResults) -> None:
    key = id_in(results.fitting(CallResult([text(json.dumps({"rows": [*range(10_000)]}, indent=1))])))
    assert text_of(results.read({"id": key, "path": "rows[7]"})).startswith("7\n")
    with pytest.raises(InvalidRequest, match="not JSON"):
        results.read({"id": id_in(results.fitting(CallResult([text("x " * 20_000)]))), "path": "a"})


def test_binary_parts_and_resources_are_read_back(results: LargeResults) -> None:
    data = os.urandom(300_000)
    encoded = base64.b64encode(data).decode()
    picture = {"type": "image", "mimeType": "image/png", "data": "A" * 100_000}
    huge = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"p" * 5_000_000).decode()}
    blob = {
        "type": "resource",
        "resource": {"uri": "file:///a.zip", "mimeType": "application/zip", "blob": encoded},
    }
    note = {"type": "resource", "resource": {"uri": "file:///a.txt", "text": LINES[:100_000]}}
    fitted = results.fitting(CallResult([text("here"), picture, huge, blob, note]))
    assert [block["type"] for block in fitted.content] == ["text", "image"]
    assert cost(fitted) <= MAX_TOKENS
    shown = text_of(fitted)
    assert "resource file:///a.zip application/zip of 300,000 bytes" in shown
    assert "here" in shown
    zipped = re.search(r"a\.zip[^\n]*\n[^\n]*\"id\":\"([^\"]+)\"", shown)
    written = re.search(r"a\.txt[^\n]*\n[^\n]*\"id\":\"([^\"]+)\"", shown)
    assert zipped
    assert written
    assert base64.b64decode(read_all(results, zipped[1])) == data
    assert read_all(results, written[1]) == LINES[:100_000]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "something", "x": LINES[:200_000]},
        {"type": "resource_link", "uri": "file:///" + "a" * 300_000, "name": "x"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png", "_meta": {"x": LINES[:200_000]}},
        {"type": "resource", "resource": {"uri": "u", "blob": "no base64!" * 5_000}},
    ],
    ids=["unknown", "link", "image", "blob"],
)
def test_every_kind_of_block_is_limited_and_made_visible(results: LargeResults, block: dict[str, Any]) -> None:
    fitted = results.fitting(CallResult([{**block, "note\u202e": "a\u200b"}]))
    shown = json.dumps(list(fitted.content), ensure_ascii=False)
    assert block["type"] == "image" or len(shown) < MAX_BYTES
    assert "\u202e" not in shown
    assert "\u200b" not in shown


def test_many_small_blocks_count_by_their_sum(results: LargeResults) -> None:
    links = [{"type": "resource_link", "uri": f"file:///{number}", "name": "x"} for number in range(5_000)]
    assert len(text_of(results.fitting(CallResult(links)))) < MAX_BYTES


def test_files_are_private_outlast_the_process_and_have_ids_that_cannot_be_guessed(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    keys = [id_in(LargeResults(folder).fitting(CallResult([text("x" * 50_000)]))) for _ in range(5)]
    assert len({*keys}) == 5
    assert text_of(LargeResults(folder).read({"id": keys[0], "limit": 5})).startswith("xxxxx\n")
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "key", ["", "../../etc/passwd", "a" * 16, "a" * 16 + ".1.text", "*", "a" * 15 + "\0", "x.99"]
)
def test_an_id_that_was_not_given_reads_nothing(results: LargeResults, key: str) -> None:
    id_in(results.fitting(CallResult([text("x" * 50_000)])))
    with pytest.raises(NotFound, match="no longer kept"):
        results.read({"id": key})


@pytest.mark.parametrize(
    "wrong",
    [
        {"offset": -1},
        {"offset": "1"},
        {"limit": True},
        {"limit": 0},
        {"grep": 3},
        {"offset": 1.5},
        {"grep": "a", "path": "b"},
        {"pth": "a"},
    ],
)
def test_invalid_read_arguments_are_refused(results: LargeResults, wrong: dict[str, Any]) -> None:
    key = id_in(results.fitting(CallResult([text("x" * 50_000)])))
    with pytest.raises(InvalidRequest):
        results.read({"id": key, **wrong})


def test_a_folder_that_cannot_be_written_costs_the_rest_and_not_the_call(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    shown = text_of(LargeResults(blocked / "results").fitting(CallResult([text(LINES[:100_000])])))
    assert shown.startswith("line 0\nline 1\n")
    assert "could not be kept" in shown


def test_count_bytes_and_age_are_bounded(tmp_path: Path) -> None:
    now = time.time()
    store = ResultStore(tmp_path, max_results=3, max_bytes=1_000, clock=lambda: now)
    keys = []
    for number in range(6):
        keys.append(store.keep([Part(Format.TEXT, (b"x" * 100,))]))
        (path,) = tmp_path.glob(f"{keys[-1]}*")
        os.utime(path, (now - 100 + number, now - 100 + number))
    assert [store.find(key, 1) is not None for key in keys] == [False] * 3 + [True] * 3
    large = store.keep([Part(Format.BYTES, (b"x" * 5_000,))])
    assert [store.find(key, 1) is not None for key in (*keys, large)] == [False] * 6 + [True]
    now += MAX_AGE_SECONDS + 10
    assert store.find(large, 1) is None
    store.keep([Part(Format.TEXT, (b"x",))])
    assert len([*tmp_path.iterdir()]) == 1


@pytest.mark.parametrize(
    "arguments",
    [{"offset": 10**30}, {"path": f"[{'9' * 5_000}]"}, {"path": f"[:{'9' * 5_000}]"}, {"part": "9" * 5_000}],
)
def test_enormous_numbers_are_refused_in_words(arguments: dict[str, Any], results: LargeResults) -> None:
    cut = results.fitting(CallResult(({"type": "text", "text": f"[{'1,' * 20_000}1]"},)))
    part = arguments.get("part", "")
    key = str(cut.content[0]["text"]).partition('"id":"')[2].partition('"')[0]
    given = {name: value for name, value in arguments.items() if name != "part"}
    with pytest.raises((InvalidRequest, NotFound)):
        results.read({**given, "id": f"{key}.{part}" if part else key})


def test_a_text_that_the_structured_content_wraps_has_its_own_shape(results: LargeResults) -> None:
    text = json.dumps({"users": [{"name": f"n{number}"} for number in range(5_000)]})
    shown = str(
        results.fitting(CallResult([{"type": "text", "text": text}], {"content": text})).content[0]["text"]
    )
    assert '[Its shape: {"users": [5,000 × {"name": string}]}]' in shown
    [key] = set(re.findall(r'"id":\s*"([^"]+)"', shown))
    assert '"n3"' in str(results.read({"id": key, "path": "users[3].name"}).content[0]["text"])
