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
# Dot leaders of a table of contents.
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
    """`size` is in points; `x` and `y` are its start on the page, `start` and `end` offsets in all pages' text."""

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
    """A line being assembled from spans."""

    text: str = ""
    weights: dict[float, int] = field(default_factory=dict)
    monospaced: int = 0
    place: tuple[float, float] | None = None

    def add(self, span: "_Span", text: str) -> None:
        self.text += text
        letters = len(text.strip())
        if letters:
            self.place = self.place or (span.x, span.y)
            self.weights[span.size] = self.weights.get(span.size, 0) + letters
            self.monospaced += letters * span.is_monospaced


@dataclass(frozen=True)
class _Span:
    text: str
    size: float
    x: float
    y: float
    is_monospaced: bool


def lines_of_page(page: PageObject, number: int, offset: int) -> tuple[list[PdfLine], int]:
    """Return the lines of a page, and the length of its text."""
    spans: list[_Span] = []

    def visit(text: str, cm: Any, tm: Any, font: Any, size: Any) -> None:
        spans.append(_span(text, cm, tm, font, size))

    page.extract_text(visitor_text=visit)
    lines: list[PdfLine] = []
    start = offset
    for line in _assemble(spans):
        if line.text.strip():
            lines.append(_pdf_line(line, number, start))
        start += len(line.text) + 1
    return lines, start - offset


def _span(text: str, cm: Any, tm: Any, font: Any, size: Any) -> _Span:
    try:
        height = float(size) * math.hypot(float(tm[2]), float(tm[3])) * math.hypot(float(cm[2]), float(cm[3]))
        x, y = float(tm[4]) * float(cm[0]) + float(cm[4]), float(tm[5]) * float(cm[3]) + float(cm[5])
    except (TypeError, ValueError, IndexError, OverflowError):
        height = x = y = 0.0
    finite = [number if math.isfinite(number) else 0.0 for number in (height, x, y)]
    font_name = str(font.get("/BaseFont", "")) if isinstance(font, Mapping) else ""
    return _Span(text, round(finite[0] * 2) / 2, finite[1], finite[2], bool(_MONOSPACED.search(font_name)))


def _assemble(spans: Sequence[_Span]) -> Iterator[_Line]:
    line = _Line()
    for span in spans:
        first, *further = span.text.split("\n")
        line.add(span, first)
        for text in further:
            yield line
            line = _Line()
            line.add(span, text)
    yield line


def _pdf_line(line: _Line, page: int, start: int) -> PdfLine:
    letters = max(1, sum(line.weights.values()))
    x, y = line.place or (0.0, 0.0)
    size = max(line.weights, key=lambda size: (line.weights[size], size), default=0.0)
    text = _LEADERS.sub(" … ", _CONTROLS.sub("", line.text.translate(_LIGATURES))).rstrip()
    return PdfLine(text, page, start, start + len(line.text), size, x, y, line.monospaced >= 0.8 * letters)


def without_running_lines(pages: Sequence[Sequence[PdfLine]]) -> list[list[PdfLine]]:
    """Remove running headers and footers: page numbers, names of the book or chapter."""
    tops = [_comparison_key(lines[0]) if lines else "" for lines in pages]
    bottoms = [_comparison_key(lines[-1]) if lines else "" for lines in pages]
    kept = []
    for index, lines in enumerate(pages):
        first, last = 0, len(lines)
        if lines and _is_running(tops, index):
            first = 1
        if last > first and _is_running(bottoms, index):
            last -= 1
        kept.append(list(_without_page_number(lines[first:last])))
    return kept


def _without_page_number(lines: Sequence[PdfLine]) -> Sequence[PdfLine]:
    if lines and _PAGE_NUMBER.match(lines[0].text):
        lines = lines[1:]
    return lines[:-1] if lines and _PAGE_NUMBER.match(lines[-1].text) else lines


def _comparison_key(line: PdfLine) -> str:
    """Return a key to compare lines. It has the size: a header can repeat the title, which is larger."""
    text = _DIGITS.sub("", line.text).strip().casefold()
    return f"{line.size} {text}" if text else ""


def _is_running(lines: Sequence[str], position: int) -> bool:
    """Compare with two pages on each side: left and right pages can have different headers."""
    near = {
        lines[other]
        for other in (position - 2, position - 1, position + 1, position + 2)
        if 0 <= other < len(lines)
    }
    return bool(lines[position]) and len(lines[position]) <= 120 and lines[position] in near


@dataclass(frozen=True)
class Entry:
    """An entry of the outline. `top` is its height on the page, if the outline has it."""

    title: str
    level: int
    page: int
    top: float | None


@dataclass(frozen=True)
class Heading:
    """A heading of the lines `first` to `after` (exclusive) of its page; equal if no line has it."""

    title: str
    level: int
    first: int
    after: int


Headings = Mapping[int, Sequence[Heading]]


def find_headings(reader: PdfReader, pages: Sequence[Sequence[PdfLine]]) -> Headings:
    """Return headings by page number, from 0, in the order of lines."""
    named: dict[int, list[Heading]] = {}
    for entry in _entries(reader):
        if 0 <= entry.page < len(pages):
            named.setdefault(entry.page, []).append(_placed(entry, pages[entry.page]))
    if not named:
        return _by_size(pages)
    return {
        page: _without_overlaps(sorted(headings, key=lambda heading: (heading.first, heading.level)))
        for page, headings in named.items()
    }


def _entries(reader: PdfReader) -> Iterator[Entry]:
    """Yield the readable entries of the outline, which can be broken in any way."""
    waiting: list[tuple[Any, int]] = [(iter(_outline(reader)), 1)]
    count = 0
    while waiting and count < MAX_ENTRIES:
        entries, level = waiting[-1]
        item = next(entries, None)
        if item is None:
            waiting.pop()
        elif isinstance(item, list):
            waiting.append((iter(item), level + 1))
        else:
            count += 1
            entry = _entry(reader, item, level)
            if entry:
                yield entry


def _outline(reader: PdfReader) -> Sequence[Any]:
    try:
        return reader.outline
    except Exception:  # noqa: BLE001 - the text can be read without it
        return ()


def _entry(reader: PdfReader, item: Any, level: int) -> Entry | None:
    try:
        title, page = one_line(str(item.title or "")), reader.get_destination_page_number(item)
        top = float(item.top) if item.top is not None else None
    except Exception:  # noqa: BLE001 - the text can be read without it
        return None
    return Entry(title, min(level, MAX_LEVEL), page, top) if title and page is not None else None


def _placed(entry: Entry, lines: Sequence[PdfLine]) -> Heading:
    title_key = _plain(entry.title)
    line_range = (_exactly(title_key, lines) or _with_number(title_key, lines)) if title_key else None
    if line_range:
        title = one_line(" ".join(line.text.strip() for line in lines[line_range[0] : line_range[1]]))
        return Heading(title, entry.level, *line_range)
    before = next((index for index, line in enumerate(lines) if entry.top and line.y <= entry.top), 0)
    return Heading(entry.title, entry.level, before, before)


def _exactly(title_key: str, lines: Sequence[PdfLine]) -> tuple[int, int] | None:
    for first in range(len(lines)):
        text = ""
        for after in range(first + 1, min(first + 3, len(lines)) + 1):
            text += _plain(lines[after - 1].text)
            if text == title_key:
                return first, after
            if not title_key.startswith(text):
                break
    return None


def _with_number(title_key: str, lines: Sequence[PdfLine]) -> tuple[int, int] | None:
    for index, line in enumerate(lines):
        text = _plain(line.text)
        if text.endswith(title_key) and len(text) <= len(title_key) + _MAX_BEFORE:
            return index, index + 1
    return None


def _plain(text: str) -> str:
    return _PLAIN.sub("", text).casefold()


def _without_overlaps(headings: Sequence[Heading]) -> list[Heading]:
    """Drop overlapping headings: a line belongs to at most one."""
    kept: list[Heading] = []
    for heading in headings:
        if not kept or heading.first >= kept[-1].after:
            kept.append(heading)
    return kept


def largest_of_first_page(pages: Sequence[Sequence[PdfLine]]) -> str:
    """Return the title: the text of the first page that is much larger than the rest; empty if there is none."""
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
    by_page = {number: list(_large_lines(lines, levels)) for number, lines in enumerate(pages)}
    return {number: headings for number, headings in by_page.items() if headings}


def _large_lines(lines: Sequence[PdfLine], levels: Mapping[float, int]) -> Iterator[Heading]:
    """Yield headings; consecutive lines of one size are one heading."""
    first = 0
    while first < len(lines):
        size, after = lines[first].size, first + 1
        if size not in levels:
            first = after
            continue
        while after < len(lines) and lines[after].size == size:
            after += 1
        title = one_line(" ".join(line.text.strip() for line in lines[first:after]), MAX_HEADING + 1)
        if len(title) <= MAX_HEADING and any(map(str.isalpha, title)):
            yield Heading(title, levels[size], first, after)
        first = after
