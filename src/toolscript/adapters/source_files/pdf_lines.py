"""Lines of a PDF's pages, with how large they are set and where: a page knows of nothing else."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pypdf import PageObject

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
    for at, lines in enumerate(pages):
        first, last = 0, len(lines)
        if lines and _is_running(tops, at):
            first = 1
        if last > first and _is_running(bottoms, at):
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


def _is_running(lines: Sequence[str], at: int) -> bool:
    """Left and right pages can have lines of their own."""
    near = {lines[other] for other in (at - 2, at - 1, at + 1, at + 2) if 0 <= other < len(lines)}
    return bool(lines[at]) and len(lines[at]) <= 120 and lines[at] in near
