"""Which lines of a PDF are headings: those its outline names, else those that are set larger than the rest."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pypdf import PdfReader

from toolscript.adapters.source_files.described import one_line
from toolscript.adapters.source_files.pdf_lines import PdfLine

MOST_ENTRIES = 20_000
MOST_LEVEL = 6
LONGEST_HEADING = 200
_LARGER, _MUCH_LARGER = 1.12, 1.3
_MOST_SHARE = 0.25
_PLAIN = re.compile(r"[\W_]+")
# Before the title itself: "Chapter 12:", "Appendix A".
_LONGEST_BEFORE = 20


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
    return {page: _apart(sorted(found, key=lambda one: (one.first, one.level))) for page, found in named.items()}


def _entries(reader: PdfReader) -> Iterator[Entry]:
    """An outline can be broken in any way: what can be read of it is used."""
    waiting: list[tuple[Any, int]] = [(iter(_outline(reader)), 1)]
    count = 0
    while waiting and count < MOST_ENTRIES:
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
    except Exception:  # noqa: BLE001 - an entry that leads nowhere is none
        return None
    return Entry(title, min(level, MOST_LEVEL), page, top) if title and page is not None else None


def _placed(entry: Entry, lines: Sequence[PdfLine]) -> Heading:
    wanted = _plain(entry.title)
    found = (_exactly(wanted, lines) or _with_number(wanted, lines)) if wanted else None
    if found:
        title = one_line(" ".join(line.text.strip() for line in lines[found[0] : found[1]]))
        return Heading(title, entry.level, *found)
    before = next((at for at, line in enumerate(lines) if entry.top and line.y <= entry.top), 0)
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
    for at, line in enumerate(lines):
        said = _plain(line.text)
        if said.endswith(wanted) and len(said) <= len(wanted) + _LONGEST_BEFORE:
            return at, at + 1
    return None


def _plain(text: str) -> str:
    return _PLAIN.sub("", text).casefold()


def _apart(found: Sequence[Heading]) -> list[Heading]:
    """Each line is of one heading at most."""
    kept: list[Heading] = []
    for one in found:
        if not kept or one.first >= kept[-1].after:
            kept.append(one)
    return kept


def largest_of_first_page(pages: Sequence[Sequence[PdfLine]]) -> str:
    """What is set so much larger than the rest at the front is the title; empty where nothing is."""
    letters = _letters_by_size(pages)
    first = next((lines for lines in pages if lines), ())
    largest = max((line.size for line in first), default=0.0)
    if not letters or largest <= _body(letters) * _MUCH_LARGER:
        return ""
    title = one_line(" ".join(line.text.strip() for line in first if line.size == largest), LONGEST_HEADING + 1)
    return title if len(title) <= LONGEST_HEADING and any(map(str.isalpha, title)) else ""


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
    if sum(letters[size] for size in large) > _MOST_SHARE * sum(letters.values()):
        return {}
    levels = {size: min(level, MOST_LEVEL) for level, size in enumerate(sorted(large, reverse=True), 1)}
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
        title = one_line(" ".join(line.text.strip() for line in lines[at:after]), LONGEST_HEADING + 1)
        if len(title) <= LONGEST_HEADING and any(map(str.isalpha, title)):
            yield Heading(title, levels[size], at, after)
        at = after
