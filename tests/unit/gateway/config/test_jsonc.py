"""JSON with comments and trailing commas."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.core.errors import ConfigInvalid
from toolscript.gateway.config.jsonc import MAX_BYTES, is_strict, parse, read_document, without_comments

pytestmark = pytest.mark.requirement("TS-001")

FILE = Path("/x/.toolscript.json")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1} // end', {"a": 1}),
        ('// first\n{"a": 1}', {"a": 1}),
        ('{/* all\nof it */"a": 1}', {"a": 1}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('{"a": 1, // why\n}', {"a": 1}),
        ('{"a": 1 /* x */ , /* y */ }', {"a": 1}),
        ('{"url": "https://h/p"}', {"url": "https://h/p"}),
        ('{"a": "/* text */", "b": "a,}", "c": "\\"//"}', {"a": "/* text */", "b": "a,}", "c": '"//'}),
    ],
)
def test_comments_and_trailing_commas_are_accepted_and_texts_are_kept(text: str, value: object) -> None:
    assert parse(text, FILE).value == value


@pytest.mark.parametrize(
    ("text", "strict"),
    [
        ('{"a": "//", "b": ",}"}', True),
        ('{"a": 1} // x', False),
        ('{"a": 1 /**/}', False),
        ('{"a": 1,}', False),
        ("[1, ]", False),
    ],
)
def test_text_with_comments_or_trailing_commas_is_not_strict(text: str, strict: bool) -> None:
    assert is_strict(text) is strict


@given(JSON)
def test_every_json_reads_as_it_is(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
        assert parse(text, FILE).value == value
        assert is_strict(text)
        assert without_comments(text) == text


@given(st.text(alphabet='"\\/*,{}[]:a\n 1'))
def test_any_text_is_parsed_or_refused_with_its_position(text: str) -> None:
    refusal = None
    try:
        parse(text, FILE)
    except ConfigInvalid as error:
        refusal = error
    assert refusal is None or (str(FILE) in refusal.message and refusal.hint)


def test_a_mistake_is_named_by_file_line_and_column_as_they_are_in_the_file() -> None:
    text = '{\n  // a comment, with a comma\n  "a": 1, /* two\nlines */\n  "b" 2\n}'
    with pytest.raises(ConfigInvalid, match="line 5, column 7") as caught:
        parse(text, FILE)
    assert str(FILE) in caught.value.message
    assert caught.value.details == {"file": str(FILE), "line": 5, "column": 7}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"  \n",
        b"{",
        b"nonsense",
        b"[" * 200_000,
        b"\xff\xfe{}",
        b'{"a": NaN}',
        b'{"a": 1' + b"0" * 5000 + b"}",
    ],
    ids=lambda content: ascii(content[:12]),
)
def test_text_other_than_json_is_refused_and_names_the_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(content)
    with pytest.raises(ConfigInvalid, match=r"c\.json"):
        read_document(file)


@pytest.mark.parametrize("text", ["", "\ufeff", " \n\t"])
def test_an_empty_file_is_refused_and_stops_no_servers(tmp_path: Path, text: str) -> None:
    file = tmp_path / "c.json"
    file.write_text(text, "utf-8")
    with pytest.raises(ConfigInvalid, match="is empty") as caught:
        read_document(file)
    assert "mcpServers" in caught.value.hint


@pytest.mark.parametrize("text", ['"' * 300_001, "/*" * 200_000, '\\"' * 200_000, ", " * 200_000, "{/" * 200_000])
def test_hostile_text_takes_no_longer_than_other_text(text: str) -> None:
    with pytest.raises(ConfigInvalid):
        parse(text, FILE)


def test_a_message_never_quotes_what_is_in_the_file() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        parse('{"env": {"TOKEN": "hunter2" "x"}}', FILE)
    assert "hunter2" not in caught.value.message + caught.value.hint


def test_a_file_that_does_not_exist_is_none_and_a_folder_is_refused(tmp_path: Path) -> None:
    assert read_document(tmp_path / "absent.json") is None
    assert read_document(write_file(tmp_path) / "below") is None
    with pytest.raises(ConfigInvalid, match="cannot read"):
        read_document(tmp_path)


def write_file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("{}")
    return path


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_bytes(b"\xef\xbb\xbf{}")
    document = read_document(file)
    assert document is not None
    assert document.value == {}


def test_a_file_too_large_for_a_config_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    with file.open("wb") as sparse:
        sparse.truncate(MAX_BYTES + 1)
    with pytest.raises(ConfigInvalid, match="larger than"):
        read_document(file)


def test_duplicate_keys_are_reported() -> None:
    assert parse('{"a": 1, "b": {"c": 1, "c": 2}, "a": 3}', FILE).repeated == ("c", "a")
