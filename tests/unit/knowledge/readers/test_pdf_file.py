"""PDF: text by page in paragraphs, headings, and files that are made to do harm."""

import zlib

import pytest

from tests.unit.knowledge.readers.builders import WORDS, book, pdf_bomb, pdf_of, read, read_or_reason, shown, texts
from toolscript.core.errors import FileSkipped
from toolscript.knowledge.model.ingest import BlockKind
from toolscript.knowledge.readers.blocks import ReadingLimits

pytestmark = pytest.mark.requirement("KN-005")

CHAPTERS = [("Beginnings", f"{WORDS * 3}\n\nA second paragraph."), ("Middles", WORDS * 2), ("Ends", WORDS)]


def lines(*texts: str) -> bytes:
    """Return the content stream of a page, line by line."""
    parts = [f"({line}) Tj 0 -14 Td" for line in texts]
    return ("BT /F1 11 Tf 50 700 Td " + " ".join(parts) + " ET").encode()


@pytest.mark.parametrize("outline", [True, False], ids=["by its outline", "by the size of letters"])
def test_headings_pages_and_paragraphs(outline: bool) -> None:
    pdf = book(CHAPTERS, outline=outline, title="A Book", author="Ann Author and Bob Author")
    reading = read("book.pdf", bytes(pdf.output()))
    assert (reading.title, reading.authors) == ("A Book", ("Ann Author", "Bob Author"))
    assert reading.metadata == {"format": "pdf", "pages": 3}
    assert [(block.kind.value, block.level, block.page, block.text) for block in reading.blocks] == [
        ("heading", 1, 1, "Beginnings"),
        ("text", 0, 1, (WORDS * 3).strip()),
        ("text", 0, 1, "A second paragraph."),
        ("heading", 1, 2, "Middles"),
        ("text", 0, 2, (WORDS * 2).strip()),
        ("heading", 1, 3, "Ends"),
        ("text", 0, 3, WORDS.strip()),
    ]
    starts = [block.start for block in reading.blocks]
    assert starts == sorted(starts)


def test_without_a_title_the_largest_line_of_the_first_page_is_it() -> None:
    pdf = book(CHAPTERS, outline=True, title="Microsoft Word - draft.doc")
    assert read("book.pdf", bytes(pdf.output())).title == "Beginnings"
    assert read("some book.pdf", pdf_of(lines("just text"))).title == "some book"


def test_broken_words_are_put_together_and_compounds_stay() -> None:
    broken = ["This long line ends with a manip-", "ulation, and a well-", "known word that is well-known here."]
    assert texts(read("a.pdf", pdf_of(lines(*broken))), BlockKind.TEXT) == [
        "This long line ends with a manipulation, and a well-known word that is well-known here."
    ]


def test_items_are_items() -> None:
    page = pdf_of(lines("Buy these things today:", "- milk and", "honey", "- bread", "1. first"))
    assert shown(read("a.pdf", page)) == [
        ("text", "Buy these things today:"),
        ("list", "- milk and\nhoney"),
        ("list", "- bread"),
        ("list", "1. first"),
    ]


def test_a_file_with_an_empty_password_is_read_and_any_other_is_not() -> None:
    pdf = book(CHAPTERS[:1], outline=False)
    pdf.set_encryption(owner_password="owner", user_password="")
    assert read("a.pdf", bytes(pdf.output())).title == "Beginnings"
    locked = book(CHAPTERS[:1], outline=False)
    locked.set_encryption(owner_password="owner", user_password="secret")
    with pytest.raises(FileSkipped, match="requires a password"):
        read("a.pdf", bytes(locked.output()))


def test_a_decompression_bomb_is_left_out() -> None:
    bomb = pdf_bomb()
    assert len(bomb) < 20_000
    with pytest.raises(FileSkipped, match="unpacks to far more"):
        read("a.pdf", bomb)


def test_more_pages_or_letters_than_allowed_are_left_out() -> None:
    data = bytes(book(CHAPTERS, outline=False).output())
    with pytest.raises(FileSkipped, match="more than 2 pages"):
        read("a.pdf", data, ReadingLimits(pages=2))
    with pytest.raises(FileSkipped, match="more than 100 characters"):
        read("a.pdf", data, ReadingLimits(letters=100))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no PDF at all", "it is not a PDF"),
        (b"%PDF-1.7\n", "damaged"),
        (b"%PDF-1.7\n" + bytes(range(256)) * 40, "damaged"),
        (pdf_of(b""), "only pictures"),
        (pdf_of(b"q 10 0 0 10 0 0 cm /Im1 Do Q"), "only pictures"),
        (pdf_of(lines("x"))[:200], "damaged|no text"),
        (pdf_of(b"[" * 50_000), "damaged|nested|pictures|no text"),
        (pdf_of(zlib.compress(lines("cut"))[:10], filters="/Filter /FlateDecode"), "damaged|pictures"),
        (pdf_of(lines("x")).replace(b"/Kids [3 0 R]", b"/Kids [2 0 R]"), "damaged|pictures"),
    ],
)
def test_an_unreadable_file_is_skipped_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(FileSkipped, match=reason):
        read("a.pdf", data)


def test_an_outline_that_leads_nowhere_does_no_harm() -> None:
    broken = pdf_of(lines("Still to be read."), extra="/Outlines 2 0 R ")
    assert shown(read("a.pdf", broken)) == [("text", "Still to be read.")]


def test_cut_off_at_any_place_it_is_read_or_left_out() -> None:
    whole = bytes(book(CHAPTERS, outline=True).output())
    for end in range(0, len(whole), len(whole) // 40):
        assert read_or_reason("a.pdf", whole[:end])
