"""Tables: no control characters of servers, and aligned columns."""

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


def test_terminal_control_characters_are_removed(subtests: pytest.Subtests) -> None:
    for text in HARMFUL:
        with subtests.test(text=text):
            for output in (printable(text), harmless(text)):
                assert all(unicodedata.category(char)[0] != "C" for char in output)
                assert "\u2028" not in output
            assert printable(text).replace(" ", "").isascii()


@given(st.text())
def test_printable_text_is_one_line_without_control_characters(text: str) -> None:
    output = printable(text)
    assert len(output.splitlines()) <= 1
    assert not [
        char for char in output if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    ]
    assert printable(output) == output


def test_letters_of_all_scripts_are_kept() -> None:
    for text in ("Überprüfen", "расписание", "日本語のツール", "עברית", "ไทย", "💥 boom"):
        assert printable(text) == text


def test_line_breaks_are_removed_in_a_table_and_kept_elsewhere() -> None:
    assert printable(" a\n\tb  c ") == "a b c"
    assert harmless("a\n  b\x1b") == "a\n  b "


def test_columns_are_aligned() -> None:
    output = table(["Tool", "Sure", "Why"], [["a", "0.90", "x"], ["longer", "1", "y y"]], colour=False)
    assert output.splitlines() == ["Tool    Sure  Why", "a       0.90  x", "longer  1     y y"]


@pytest.mark.parametrize("cell", ["日本語", "ﾊﾝｶｸ", "ＦＵＬＬ", "cafe\u0301", "नमस्ते", "plain"])
def test_wide_letters_and_combining_marks_are_aligned(cell: str) -> None:
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


def test_only_the_head_is_coloured() -> None:
    head, row = table(["A"], [["\x1b[31ma"]], colour=True).splitlines()
    assert head == f"{BOLD}A{PLAIN}"
    assert "\x1b" not in row
