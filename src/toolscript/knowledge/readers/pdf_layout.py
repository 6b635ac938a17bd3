"""The layout of a PDF: its lines, and which of them are headings."""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pypdf import PageObject, PdfReader

from toolscript.knowledge.readers.text import one_line

_MONOSPACED = re.compile(r"courier|mono|consol|menlo|typewriter|cmtt|code", re.IGNORECASE)
_PAGE_NUMBER = re.compile(
    r"^[\W_]*(?:(?:page|seite)\s+)?(?:\d{1,5}|[ivxlcdm]{1,8})(?:\s*(?:/|of|von)\s*\d{1,5})?[\W_]*$", re.IGNORECASE
)
_DIGITS = re.compile(r"\d+")
_LIGATURES = str.maketrans({
    "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\x00": " ", "\xa0": " ",
})  # fmt: skip
# Dots that lead the eye from a title to its page.
_LEADERS = re.compile(r"(?:\s*\.){4,}\s*")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")

MAX_ENTRIES = 20_000
MAX_LEVEL = 6
MAX_HEADING = 200
_LARGER, _MUCH_LARGER = 1.12, 1.3
_MAX_SHARE = 0.25
_PLAIN = re.compile(r"[\W_]+")
# Before the title itself: "Chapter 12:", "Appendix A".
_MAX_BEFORE = 20


@dataclass(frozen=True)
class PdfLine:
    """`size` in points, `x` and `y` of where it begins, `start` in the text of all pages."""

    text: str
    page: int
    start: int
    end: int
    size: float = 0.0
    x: float = 0.0
    y: float = 0.0
    is_monospaced: bool = False


@dataclass
class _Line:
    """While it is put together from pieces."""

    text: str = ""
    weights: dict[float, int] = field(default_factory=dict)
    monospaced: int = 0
    place: tuple[float, float] | None = None

    def add(self, piece: "_Piece", text: str) -> None:
        self.text += text
        letters = len(text.strip())
        if letters:
            self.place = self.place or (piece.x, piece.y)
            self.weights[piece.size] = self.weights.get(piece.size, 0) + letters
            self.monospaced += letters * piece.is_monospaced


@dataclass(frozen=True)
class _Piece:
    text: str
    size: float
    x: float
    y: float
    is_monospaced: bool


def lines_of_page(page: PageObject, number: int, offset: int) -> tuple[list[PdfLine], int]:
    """With the length of the page's text."""
    pieces: list[_Piece] = []

    def visit(text: str, cm: Any, tm: Any, font: Any, size: Any) -> None:
        pieces.append(_piece(text, cm, tm, font, size))

    page.extract_text(visitor_text=visit)
    lines: list[PdfLine] = []
    at = offset
    for line in _put_together(pieces):
        if line.text.strip():
            lines.append(_finished(line, number, at))
        at += len(line.text) + 1
    return lines, at - offset


def _piece(text: str, cm: Any, tm: Any, font: Any, size: Any) -> _Piece:
    try:
        tall = float(size) * math.hypot(float(tm[2]), float(tm[3])) * math.hypot(float(cm[2]), float(cm[3]))
        x, y = float(tm[4]) * float(cm[0]) + float(cm[4]), float(tm[5]) * float(cm[3]) + float(cm[5])
    except (TypeError, ValueError, IndexError, OverflowError):
        tall = x = y = 0.0
    finite = [one if math.isfinite(one) else 0.0 for one in (tall, x, y)]
    named = str(font.get("/BaseFont", "")) if isinstance(font, Mapping) else ""
    return _Piece(text, round(finite[0] * 2) / 2, finite[1], finite[2], bool(_MONOSPACED.search(named)))


def _put_together(pieces: Sequence[_Piece]) -> Iterator[_Line]:
    line = _Line()
    for piece in pieces:
        first, *further = piece.text.split("\n")
        line.add(piece, first)
        for text in further:
            yield line
            line = _Line()
            line.add(piece, text)
    yield line


def _finished(line: _Line, page: int, start: int) -> PdfLine:
    letters = max(1, sum(line.weights.values()))
    x, y = line.place or (0.0, 0.0)
    size = max(line.weights, key=lambda one: (line.weights[one], one), default=0.0)
    text = _LEADERS.sub(" … ", _CONTROLS.sub("", line.text.translate(_LIGATURES))).rstrip()
    return PdfLine(text, page, start, start + len(line.text), size, x, y, line.monospaced >= 0.8 * letters)


def without_running_lines(pages: Sequence[Sequence[PdfLine]]) -> list[list[PdfLine]]:
    """Without what every page repeats at its top and bottom: its number, the name of the book or chapter."""
    tops = [_alike(lines[0]) if lines else "" for lines in pages]
    bottoms = [_alike(lines[-1]) if lines else "" for lines in pages]
    kept = []
    for index, lines in enumerate(pages):
        first, last = 0, len(lines)
        if lines and _is_running(tops, index):
            first = 1
        if last > first and _is_running(bottoms, index):
            last -= 1
        kept.append(list(_numberless(lines[first:last])))
    return kept


def _numberless(lines: Sequence[PdfLine]) -> Sequence[PdfLine]:
    if lines and _PAGE_NUMBER.match(lines[0].text):
        lines = lines[1:]
    return lines[:-1] if lines and _PAGE_NUMBER.match(lines[-1].text) else lines


def _alike(line: PdfLine) -> str:
    """The title itself can be what is repeated, but is set larger."""
    said = _DIGITS.sub("", line.text).strip().casefold()
    return f"{line.size} {said}" if said else ""


def _is_running(lines: Sequence[str], position: int) -> bool:
    """Left and right pages can have lines of their own."""
    near = {
        lines[other]
        for other in (position - 2, position - 1, position + 1, position + 2)
        if 0 <= other < len(lines)
    }
    return bool(lines[position]) and len(lines[position]) <= 120 and lines[position] in near


@dataclass(frozen=True)
class Entry:
    """Of an outline. `top` is how high on its page it points, where it says that."""

    title: str
    level: int
    page: int
    top: float | None


@dataclass(frozen=True)
class Heading:
    """Of the lines `first` to before `after` of its page; of none, before `first`, where they do not have it."""

    title: str
    level: int
    first: int
    after: int


Headings = Mapping[int, Sequence[Heading]]


def find_headings(reader: PdfReader, pages: Sequence[Sequence[PdfLine]]) -> Headings:
    """By number of the page, from 0, in the order of its lines."""
    named: dict[int, list[Heading]] = {}
    for entry in _entries(reader):
        if 0 <= entry.page < len(pages):
            named.setdefault(entry.page, []).append(_placed(entry, pages[entry.page]))
    if not named:
        return _by_size(pages)
    return {
        page: _apart(sorted(headings, key=lambda heading: (heading.first, heading.level)))
        for page, headings in named.items()
    }


def _entries(reader: PdfReader) -> Iterator[Entry]:
    """An outline can be broken in any way: what can be read of it is used."""
    waiting: list[tuple[Any, int]] = [(iter(_outline(reader)), 1)]
    count = 0
    while waiting and count < MAX_ENTRIES:
        entries, level = waiting[-1]
        one = next(entries, None)
        if one is None:
            waiting.pop()
        elif isinstance(one, list):
            waiting.append((iter(one), level + 1))
        else:
            count += 1
            entry = _entry(reader, one, level)
            if entry:
                yield entry


def _outline(reader: PdfReader) -> Sequence[Any]:
    try:
        return reader.outline
    except Exception:  # noqa: BLE001 - the text can be read without it
        return ()


def _entry(reader: PdfReader, one: Any, level: int) -> Entry | None:
    try:
        title, page = one_line(str(one.title or "")), reader.get_destination_page_number(one)
        top = float(one.top) if one.top is not None else None
    except Exception:  # noqa: BLE001 - the text can be read without it
        return None
    return Entry(title, min(level, MAX_LEVEL), page, top) if title and page is not None else None


def _placed(entry: Entry, lines: Sequence[PdfLine]) -> Heading:
    wanted = _plain(entry.title)
    found = (_exactly(wanted, lines) or _with_number(wanted, lines)) if wanted else None
    if found:
        title = one_line(" ".join(line.text.strip() for line in lines[found[0] : found[1]]))
        return Heading(title, entry.level, *found)
    before = next((index for index, line in enumerate(lines) if entry.top and line.y <= entry.top), 0)
    return Heading(entry.title, entry.level, before, before)


def _exactly(wanted: str, lines: Sequence[PdfLine]) -> tuple[int, int] | None:
    for first in range(len(lines)):
        said = ""
        for after in range(first + 1, min(first + 3, len(lines)) + 1):
            said += _plain(lines[after - 1].text)
            if said == wanted:
                return first, after
            if not wanted.startswith(said):
                break
    return None


def _with_number(wanted: str, lines: Sequence[PdfLine]) -> tuple[int, int] | None:
    for index, line in enumerate(lines):
        said = _plain(line.text)
        if said.endswith(wanted) and len(said) <= len(wanted) + _MAX_BEFORE:
            return index, index + 1
    return None


def _plain(text: str) -> str:
    return _PLAIN.sub("", text).casefold()


def _apart(headings: Sequence[Heading]) -> list[Heading]:
    """Each line is of one heading at most."""
    kept: list[Heading] = []
    for heading in headings:
        if not kept or heading.first >= kept[-1].after:
            kept.append(heading)
    return kept


def largest_of_first_page(pages: Sequence[Sequence[PdfLine]]) -> str:
    """What is set so much larger than the rest at the front is the title; empty where nothing is."""
    letters = _letters_by_size(pages)
    first = next((lines for lines in pages if lines), ())
    largest = max((line.size for line in first), default=0.0)
    if not letters or largest <= _body(letters) * _MUCH_LARGER:
        return ""
    title = one_line(" ".join(line.text.strip() for line in first if line.size == largest), MAX_HEADING + 1)
    return title if len(title) <= MAX_HEADING and any(map(str.isalpha, title)) else ""


def _letters_by_size(pages: Sequence[Sequence[PdfLine]]) -> Counter[float]:
    letters: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            letters[line.size] += len(line.text)
    return letters


def _body(letters: Counter[float]) -> float:
    return max(letters, key=lambda size: (letters[size], -size))


def _by_size(pages: Sequence[Sequence[PdfLine]]) -> Headings:
    letters = _letters_by_size(pages)
    if not letters:
        return {}
    body = _body(letters)
    large = [size for size in letters if size > body * _LARGER]
    if sum(letters[size] for size in large) > _MAX_SHARE * sum(letters.values()):
        return {}
    levels = {size: min(level, MAX_LEVEL) for level, size in enumerate(sorted(large, reverse=True), 1)}
    found = {number: list(_large_lines(lines, levels)) for number, lines in enumerate(pages)}
    return {number: headings for number, headings in found.items() if headings}


def _large_lines(lines: Sequence[PdfLine], levels: Mapping[float, int]) -> Iterator[Heading]:
    """Lines of one size that follow each other are one heading."""
    at = 0
    while at < len(lines):
        size, after = lines[at].size, at + 1
        if size not in levels:
            at = after
            continue
        while after < len(lines) and lines[after].size == size:
            after += 1
        title = one_line(" ".join(line.text.strip() for line in lines[at:after]), MAX_HEADING + 1)
        if len(title) <= MAX_HEADING and any(map(str.isalpha, title)):
            yield Heading(title, levels[size], at, after)
        at = after
