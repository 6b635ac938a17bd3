"""Plain text: paragraphs, visible headings, and common encodings."""

import codecs

import pytest

from tests.unit.knowledge.readers.builders import WORDS, read, shown
from toolscript.core.errors import FileSkipped

pytestmark = pytest.mark.requirement("KN-005")

BOOK = """\
The Title
=========

CHAPTER I. Which begins

It was a dark night.
It rained.

    set = in

Shopping:
- milk
- eggs
  and more

A part
------
ends.
"""

TEXTS = {
    "cp1252": "Der Größenwahn des Königs führte zu Ärger – „das ist schön“, sagte er. Ça va très bien, élève. "
    * 3,
    "cp1251": "Съешь же ещё этих мягких французских булок, да выпей чаю. Это простой текст. " * 3,
    "koi8_r": "Съешь же ещё этих мягких французских булок, да выпей чаю. Это простой текст. " * 3,
    "cp932": "これは日本語の文章です。吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。" * 3,
    "gb18030": "这是一个中文文本文件，用于测试编码检测。人工智能的发展非常迅速。" * 3,
    "cp1250": "Příliš žluťoučký kůň úpěl ďábelské ódy. Všichni lidé rodí se svobodní. " * 3,
    "utf-16-le": "Kein Zeichen am Anfang, und doch lesbar. " * 3,
    "utf-16-be": "Kein Zeichen am Anfang, und doch lesbar. " * 3,
    "utf-8": "Ein “Text” — wie heute üblich, mit 文字. " * 3,
}


def test_paragraphs_headings_items_and_indented_code() -> None:
    reading = read("book.txt", BOOK)
    assert shown(reading) == [
        ("heading1", "The Title"),
        ("heading2", "CHAPTER I. Which begins"),
        ("text", "It was a dark night.\nIt rained."),
        ("code", "    set = in"),
        ("text", "Shopping:"),
        ("list", "- milk"),
        ("list", "- eggs\n  and more"),
        ("heading2", "A part"),
        ("text", "ends."),
    ]
    for block in reading.blocks:
        assert BOOK[block.start : block.end] == block.text
        assert block.line == BOOK.count("\n", 0, block.start) + 1
    assert reading.title == "The Title"


def test_markdown_is_markdown_whatever_its_name() -> None:
    text = "# One\n\nWords *here*.\n\n## Two\n\n```\ncode\n```\n"
    assert shown(read("notes.txt", text)) == shown(read("notes.md", text))


def test_a_script_with_remarks_is_no_markdown() -> None:
    text = "# a remark\nset x = 1\n# another\nset y = *2*\n"
    assert shown(read("conf.txt", text)) == [("text", text.strip())]


@pytest.mark.parametrize("encoding", TEXTS)
def test_text_in_the_encodings_it_comes_in(encoding: str) -> None:
    text = TEXTS[encoding]
    reading = read("a.txt", text.encode(encoding))
    assert [block.text for block in reading.blocks] == [text]
    assert reading.metadata["encoding"] == encoding


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
    ],
)
def test_a_byte_order_mark_decides_the_encoding_and_is_not_text(mark: bytes, encoding: str) -> None:
    assert shown(read("a.txt", mark + "Text ü".encode(encoding))) == [("text", "Text ü")]


@pytest.mark.parametrize(
    "data",
    [
        b"\x7fELF" + bytes(range(256)) * 20,
        b"\x89PNG\r\n\x1a\n" + bytes(reversed(range(256))) * 20,
        bytes(10_000),
        b"\xff\xfe" + b"\x00\xd8" * 50,
        bytes((number * number * 7 + 13) % 251 for number in range(5_000)),
    ],
)
def test_a_binary_file_is_skipped(data: bytes) -> None:
    with pytest.raises(FileSkipped, match=r"other than text|and is not|encoding cannot be detected"):
        read("a.txt", data)


def test_a_long_text_in_another_encoding_is_read_to_its_end() -> None:
    text = "吾輩は猫である。名前はまだ無い。\n" * 5_000
    assert sum(len(block.text) for block in read("a.txt", text.encode("cp932")).blocks) == len(text.rstrip())


def test_a_file_of_nothing_is_left_out() -> None:
    with pytest.raises(FileSkipped, match="it is empty"):
        read("a.txt", b"")
    with pytest.raises(FileSkipped, match="no text in it"):
        read("a.txt", " \n\t\n")


def test_the_same_file_gives_the_same_reading() -> None:
    assert read("a.txt", WORDS * 50) == read("a.txt", WORDS * 50)
