"""Diffs of two definitions, for the person who decides about the change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.cli.sources import MAX_LINES_MATCHED, field_diff, visible

pytestmark = pytest.mark.requirement("SK-009")


def removed(lines: list[str]) -> list[str]:
    return [line[1:] for line in lines[2:] if line.startswith("-")]


def added(lines: list[str]) -> list[str]:
    return [line[1:] for line in lines[2:] if line.startswith("+")]


def test_a_changed_word_of_a_long_text_is_a_changed_line() -> None:
    words = [f"word{number}" for number in range(300)]
    other = [*words]
    other[150] = "other"
    lines = field_diff("description", " ".join(words), " ".join(other))
    assert lines[0] == "--- description in force"
    assert len(removed(lines)) == len(added(lines)) == 1
    assert "word150" in removed(lines)[0]
    assert "other" in added(lines)[0]


def test_a_schema_is_compared_member_by_member() -> None:
    old = {"type": "object", "properties": {"path": {"type": "string"}}}
    new = {"type": "object", "properties": {"path": {"type": "string"}, "copy_to": {"type": "string"}}}
    lines = field_diff("input_schema", old, new)
    assert any('"copy_to"' in line for line in added(lines))
    assert not any('"path"' in line for line in added(lines) + removed(lines))


def test_a_new_field_is_added_and_a_missing_field_is_removed() -> None:
    assert added(field_diff("annotations", None, {"a": 1})) == ["{", '  "a": 1', "}"]
    assert removed(field_diff("annotations", {"a": 1}, None)) == ["{", '  "a": 1', "}"]


INVISIBLE: list[tuple[str, str]] = [
    ("\x1b", "\\u001b"),
    ("\0", "\\u0000"),
    ("\t", "\\u0009"),
    ("\r", "\\u000d"),
    ("\u200b", "\\u200b"),
    ("\u202e", "\\u202e"),
    ("\u00a0", "\\u00a0"),
    ("\u2028", "\\u2028"),
    ("\ufe0f", "\\ufe0f"),
    ("\u3164", "\\u3164"),
    ("\U000e0041", "\\U000e0041"),
    ("\U000e0101", "\\U000e0101"),
    ("\ue000", "\\ue000"),
    ("é", "é"),
    ("日", "日"),
    (" ", " "),
]


def test_invisible_characters_are_written_as_escapes(subtests: pytest.Subtests) -> None:
    for char, expected in INVISIBLE:
        with subtests.test(char=char, expected=expected):
            assert visible(char) == expected
            assert added(field_diff("description", "a", f"a{char}b")) == [f"a{expected}b"]


SIMILAR = st.text(st.sampled_from("ax \\u200b\u200b\u21aa\n-+"), max_size=40)


@given(st.text() | SIMILAR, st.text() | SIMILAR)
def test_every_difference_is_visible_and_only_printable_text_is_shown(old: str, new: str) -> None:
    lines = field_diff("description", old, new)
    assert (lines == []) == (old == new)
    assert [line for line in lines if not line.isprintable()] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("\u200b", "\\u200b"),
        ("x" * 100 + "y", "x" * 100 + "\ny"),
        ("x" * 99 + " y", "x" * 99 + " \n\u21aa y"),
        ("a", "a\n"),
        ("", None),
        ({"a": "\u200b"}, {"a": "\\u200b"}),
        ({"a": 1}, {"a": 1.0}),
        ("{}", "{ }"),
    ],
)
def test_lookalike_texts_differ_in_the_diff(old: object, new: object) -> None:
    assert field_diff("description", old, new) != []


def test_another_order_of_members_is_not_a_difference() -> None:
    assert field_diff("input_schema", {"a": 1, "b": 2}, {"b": 2, "a": 1}) == []


def test_very_long_texts_are_shown_whole_between_their_common_ends() -> None:
    old = [str(number) for number in range(MAX_LINES_MATCHED + 10)]
    new = [*old[:5], "new", *old[7:]]
    lines = field_diff("description", "\n".join(old), "\n".join(new))
    assert lines[2:] == ["@@ after line 5 @@", "-5", "-6", "+new"]
    longer = field_diff("description", "a", "\n".join(old))
    assert len(added(longer)) == len(old)
