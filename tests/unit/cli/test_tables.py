"""Tables: what servers say is shown, never obeyed, and columns stand below each other."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolscript.cli.output import BOLD, PLAIN, harmless, printable, table, width

pytestmark = pytest.mark.requirement("TS-002")

HARMFUL = [
    *("\x1b[31mred", "a\x07b", "a\rb", "a\bb", "a\x9b31mb", "a\x7fb", "a\0b", "\x1b]0;title\x07"),
    *("a\u202eb", "a\u2066b\u2069", "a\u200fb", "a\u061cb", "a\ufeffb", "a\u200bb", "a\u2028b", "a\u2029b"),
    *("a\ud800b", "a\ue000b", "a\U000e0041b"),
]


@pytest.mark.parametrize("text", HARMFUL, ids=ascii)
def test_what_a_terminal_would_obey_is_taken_out(text: str) -> None:
    for shown in (printable(text), harmless(text)):
        assert all(unicodedata.category(char)[0] != "C" for char in shown)
        assert "\u2028" not in shown
    assert printable(text).replace(" ", "").isascii()


@given(st.text())
def test_what_is_printed_is_one_line_that_nothing_obeys(text: str) -> None:
    shown = printable(text)
    assert len(shown.splitlines()) <= 1
    assert not [char for char in shown if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")]
    assert printable(shown) == shown


def test_letters_of_all_scripts_stay_as_they_are() -> None:
    for text in ("Überprüfen", "расписание", "日本語のツール", "עברית", "ไทย", "💥 boom"):
        assert printable(text) == text


def test_lines_are_one_line_in_a_table_and_lines_elsewhere() -> None:
    assert printable(" a\n\tb  c ") == "a b c"
    assert harmless("a\n  b\x1b") == "a\n  b "


def test_columns_stand_below_each_other() -> None:
    shown = table(["Tool", "Sure", "Why"], [["a", "0.90", "x"], ["longer", "1", "y y"]], colour=False)
    assert shown.splitlines() == ["Tool    Sure  Why", "a       0.90  x", "longer  1     y y"]


@pytest.mark.parametrize("cell", ["日本語", "ﾊﾝｶｸ", "ＦＵＬＬ", "cafe\u0301", "नमस्ते", "plain"])
def test_wide_letters_and_marks_take_the_room_they_take(cell: str) -> None:
    lines = table(["A", "B"], [[cell, "x"], ["b" * 12, "y"]], colour=False).splitlines()
    starts = [width(line[: line.rindex(last)]) for line, last in zip(lines, ("B", "x", "y"), strict=True)]
    assert starts == [14, 14, 14]


def test_width_is_in_columns() -> None:
    assert width("日本") == width("ＦＵ") == 4
    assert width("e\u0301") == 1
    assert width("abc") == 3


def test_the_last_column_leaves_no_spaces_behind() -> None:
    assert all(
        line == line.rstrip() for line in table(["A", "B"], [["a", ""], ["b", "long"]], colour=False).split("\n")
    )


def test_a_table_may_have_no_rows() -> None:
    assert table(["A", "B"], [], colour=False) == "A  B"


def test_colour_is_for_the_head_alone() -> None:
    head, row = table(["A"], [["\x1b[31ma"]], colour=True).splitlines()
    assert head == f"{BOLD}A{PLAIN}"
    assert "\x1b" not in row
