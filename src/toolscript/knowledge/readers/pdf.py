"""PDF as blocks: text by page, with paragraphs restored from the layout of its lines."""

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pypdf import PasswordType, PdfReader, apply_configuration
from pypdf.errors import LimitReachedError

from toolscript.core.chunking import SENTENCE_END
from toolscript.knowledge.model.ingest import BlockKind
from toolscript.knowledge.readers.blocks import BlockList, ReadingLimits, Skip, skip
from toolscript.knowledge.readers.pdf_layout import (
    Heading,
    Headings,
    PdfLine,
    find_headings,
    largest_of_first_page,
    lines_of_page,
    without_running_lines,
)
from toolscript.knowledge.readers.text import Described, described

_ITEM = re.compile(r"^\s*(?:[•‣◦▪●○■□–—*·-]|\(?\d{1,3}[.)]|\(?[a-z]\))\s+\S")
_HYPHENATED = re.compile(r"[^\W\d_]{2,}-[^\W\d_]+")
_BROKEN = re.compile(r"([^\W\d_]+)[-\u00ad]$")
_NEXT_PART = re.compile(r"[^\W\d_]+")
_WIDER, _WIDER_IN_CODE = 1.25, 2.5
_INDENTED = 6.0
# A line shorter than this share of a full one ends on purpose.
_SHORT = 0.6

# Titles that programs write by default: the file name, or a placeholder.
_NO_TITLE = re.compile(r"^(?:untitled.*|.*\.(?:docx?|tex|dvi|indd|rtf|odt|qxd|fm|pages))$", re.IGNORECASE)
_PROGRAM = re.compile(r"^Microsoft (?:Word|PowerPoint) - ")
BOMB = "it unpacks to far more than a document of its size holds"
BROKEN = "it is damaged or no PDF"


class Paragraphs:
    def __init__(self, pages: Sequence[Sequence[PdfLine]], headings: Headings, blocks: BlockList) -> None:
        self._pages = pages
        self._headings = headings
        self._blocks = blocks
        self._usual_gap = _usual_gap(pages)
        lengths = sorted(len(line.text) for lines in pages for line in lines)
        self._full = lengths[int(len(lengths) * 0.9)] if lengths else 0
        self._compounds = {word for lines in pages for line in lines for word in _HYPHENATED.findall(line.text)}

    def add_all(self) -> None:
        for number, lines in enumerate(self._pages):
            position = 0
            for heading in self._headings.get(number, ()):
                self._text(lines[position : heading.first])
                self._heading(heading, lines, number)
                position = heading.after
            self._text(lines[position:])

    def _heading(self, heading: Heading, lines: Sequence[PdfLine], number: int) -> None:
        own = lines[heading.first : heading.after] or lines[heading.first : heading.first + 1]
        start = own[0].start if own else self._after(number)
        end = own[-1].end if heading.after > heading.first else start + len(heading.title)
        self._blocks.add(
            BlockKind.HEADING, heading.title, level=heading.level, page=number + 1, start=start, end=end
        )

    def _after(self, number: int) -> int:
        """Return the offset of a page without lines: after the previous pages."""
        return next((lines[-1].end + 1 for lines in reversed(self._pages[:number]) if lines), 0)

    def _text(self, lines: Sequence[PdfLine]) -> None:
        for own in self._parted(lines):
            kind, text = _kind(own), self._joined(own)
            self._blocks.add(kind, text, page=own[0].page, start=own[0].start, end=own[-1].end)

    def _parted(self, lines: Sequence[PdfLine]) -> Iterator[list[PdfLine]]:
        own: list[PdfLine] = []
        for line in lines:
            if own and self._begins(line, own):
                yield own
                own = []
            own.append(line)
        if own:
            yield own

    def _begins(self, line: PdfLine, own: Sequence[PdfLine]) -> bool:
        before = own[-1]
        if (
            line.is_monospaced != before.is_monospaced
            or abs(line.size - before.size) > 1
            or _ITEM.match(line.text)
        ):
            return True
        wider = _WIDER_IN_CODE if line.is_monospaced else _WIDER
        if self._usual_gap and before.y - line.y > self._usual_gap * wider:
            return True
        ended = SENTENCE_END.search(before.text[-4:] + " ") is not None
        return ended and not line.is_monospaced and line.x - min(pdf_line.x for pdf_line in own[-3:]) > _INDENTED

    def _joined(self, lines: Sequence[PdfLine]) -> str:
        if lines[0].is_monospaced:
            return "\n".join(line.text for line in lines)
        parts = [lines[0].text.strip()]
        for before, line in pairwise(lines):
            text = line.text.strip()
            broken, rest = _BROKEN.search(parts[-1]), _NEXT_PART.match(text)
            if broken and rest and text[0].islower():
                compound = f"{broken.group(1)}-{rest.group()}"
                parts[-1] = parts[-1] if compound in self._compounds else parts[-1][:-1]
            else:
                parts.append("\n" if len(before.text) < self._full * _SHORT else " ")
            parts.append(text)
        return "".join(parts)


def _kind(lines: Sequence[PdfLine]) -> BlockKind:
    if _ITEM.match(lines[0].text):
        return BlockKind.LIST
    return BlockKind.CODE if lines[0].is_monospaced else BlockKind.TEXT


def _usual_gap(pages: Sequence[Sequence[PdfLine]]) -> float:
    gaps: Counter[float] = Counter()
    for lines in pages:
        for before, line in pairwise(lines):
            if 2 < before.y - line.y < 100:
                gaps[round((before.y - line.y) * 2) / 2] += 1
    return max(gaps, key=lambda gap: (gaps[gap], -gap), default=0.0)


@dataclass(frozen=True)
class PdfMetadata:
    """`unread` counts the broken pages that could not be read."""

    described: Described
    pages: int
    unread: int


def read_pdf(data: bytes, blocks: BlockList, limits: ReadingLimits) -> PdfMetadata:
    # Images are never needed, so no external decoder may be started.
    with apply_configuration(jbig2dec_binary=None):
        try:
            return _read(_opened(data), blocks, limits)
        except (Skip, MemoryError, RecursionError):
            raise
        except LimitReachedError as error:
            raise Skip(BOMB) from error
        except Exception as error:
            raise Skip(BROKEN) from error


def _opened(data: bytes) -> PdfReader:
    if b"%PDF-" not in data[:1024]:
        skip("it is not a PDF, despite its name")
    reader = PdfReader(io.BytesIO(data), strict=False)
    if reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED:
        skip("it requires a password", "save it without one")
    return reader


def _read(reader: PdfReader, blocks: BlockList, limits: ReadingLimits) -> PdfMetadata:
    count = len(reader.pages)
    if count > limits.pages:
        skip(f"it has more than {limits.pages:,} pages", "split it into several files")
    pages, unread = _pages(reader, count, limits)
    if not any(pages):
        skip("there is no text on its pages, only pictures", "let a program recognize their text (OCR) first")
    pages = without_running_lines(pages)
    Paragraphs(pages, find_headings(reader, pages), blocks).add_all()
    description = _described(reader)
    return PdfMetadata(
        replace(description, title=description.title or largest_of_first_page(pages)), count, unread
    )


def _pages(reader: PdfReader, count: int, limits: ReadingLimits) -> tuple[list[list[PdfLine]], int]:
    pages: list[list[PdfLine]] = []
    offset = unread = 0
    for number in range(count):
        try:
            lines, length = lines_of_page(reader.pages[number], number + 1, offset)
        except (Skip, MemoryError, RecursionError, LimitReachedError):
            raise
        except Exception:  # noqa: BLE001 - one page that is broken is no reason to leave the others out
            lines, length, unread = [], 0, unread + 1
        offset += length
        if offset > limits.letters:
            skip(f"it has more than {limits.letters:,} characters of text", "split it into several files")
        pages.append(lines)
    if unread and not any(pages):
        skip(BROKEN)
    return pages, unread


def _described(reader: PdfReader) -> Described:
    try:
        metadata = {str(name).lstrip("/").lower(): str(value) for name, value in (reader.metadata or {}).items()}
    except Exception:  # noqa: BLE001 - the text can be read without it
        return Described()
    description = described({name: metadata.get(name) for name in ("title", "author", "keywords")})
    title = _PROGRAM.sub("", description.title)
    return replace(description, title="" if _NO_TITLE.match(title) else title)
