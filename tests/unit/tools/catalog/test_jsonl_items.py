"""Items from a file of JSON lines, good and bad."""

import json
from pathlib import Path

import pytest

from toolscript.core.errors import NotFound
from toolscript.core.items import Item, RefusedItem
from toolscript.tools.catalog.files import MAX_LINE, count_lines, read_items

pytestmark = pytest.mark.requirement("SK-010")

GOOD = b'{"server": "fs", "name": "read"}'


def read(tmp_path: Path, content: bytes) -> list[Item | RefusedItem]:
    file = tmp_path / "items.jsonl"
    file.write_bytes(content)
    return list(read_items(file))


def names(entries: list[Item | RefusedItem]) -> list[str]:
    return [entry.name if isinstance(entry, Item) else entry.where for entry in entries]


@pytest.mark.parametrize(
    "content", [GOOD, GOOD + b"\n", GOOD + b"\r\n", b"\xef\xbb\xbf" + GOOD, b"\n  \n" + GOOD + b"\n\n"]
)
def test_lines_are_items_however_they_end(tmp_path: Path, content: bytes) -> None:
    assert names(read(tmp_path, content)) == ["read"]


def test_an_empty_file_has_no_items(tmp_path: Path) -> None:
    assert read(tmp_path, b"") == []


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"not json",
        b"[1]",
        b"null",
        b"{}",
        b'{"server": "fs", "name": 7}',
        b'{"server": "fs", "name": "n", "kind": []}',
        b"\xff\xfe\xfd",
        b'{"server": "fs", "name": "n", "input_schema": {"n": 1' + b"0" * 5000 + b"}}",
        b"[" * 200_000,
        b'{"server": "fs", "name": "n", "input_schema": ' + b'{"a":' * 500 + b"1" + b"}" * 501,
    ],
    ids=lambda line: ascii(line[:30]),
)
def test_a_bad_line_is_refused_by_number_and_the_good_lines_around_it_are_read(
    tmp_path: Path, line: bytes
) -> None:
    entries = read(tmp_path, GOOD + b"\n" + line + b"\n" + GOOD)
    assert names(entries) == ["read", "line 2", "read"]
    refused = entries[1]
    assert isinstance(refused, RefusedItem)
    assert 0 < len(refused.reason) < 200


@pytest.mark.parametrize("too_long_by", [1, MAX_LINE + 1])
def test_a_huge_line_is_refused_and_skipped_to_its_end(tmp_path: Path, too_long_by: int) -> None:
    entries = read(tmp_path, b"x" * (MAX_LINE + too_long_by) + b"\n" + GOOD + b"\n")
    assert names(entries) == ["line 1", "read"]
    assert entries[0] == RefusedItem("line 1", "longer than 1 MiB")


def test_a_huge_line_at_the_end_of_the_file_is_refused_once(tmp_path: Path) -> None:
    assert names(read(tmp_path, GOOD + b"\n" + b"x" * (MAX_LINE + 1))) == ["read", "line 2"]


def test_a_long_line_within_bounds_is_read(tmp_path: Path) -> None:
    line = json.dumps({"server": "fs", "name": "read", "description": "d" * (MAX_LINE - 100)}).encode()
    assert names(read(tmp_path, line)) == ["read"]


@pytest.mark.parametrize(
    ("content", "count"), [(b"", 0), (b"a\n", 1), (b"a\nb\n", 2), (b"a\nb", 2), (b"\n" * 3, 3)]
)
def test_the_last_line_is_counted_with_and_without_a_newline(tmp_path: Path, content: bytes, count: int) -> None:
    file = tmp_path / "items.jsonl"
    file.write_bytes(content)
    assert count_lines(file) == count


def test_a_file_that_cannot_be_read_is_not_found(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.jsonl", tmp_path):
        with pytest.raises(NotFound, match="cannot read"):
            list(read_items(path))
    with pytest.raises(NotFound):
        count_lines(tmp_path / "absent.jsonl")


def test_the_lines_of_a_pipe_are_not_counted() -> None:
    assert count_lines(Path("/dev/null")) is None
