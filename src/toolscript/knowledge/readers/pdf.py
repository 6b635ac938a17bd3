"""Lines put back into paragraphs: a wider gap, another size or an indented line begins a new one."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from toolscript.adapters.source_files.block_list import BlockList
from toolscript.adapters.source_files.pdf_headings import Heading, Headings
from toolscript.adapters.source_files.pdf_lines import PdfLine
from toolscript.model.ingest import BlockKind
from toolscript.model.passages import SENTENCE_END

_ITEM = re.compile(r"^\s*(?:[•‣◦▪●○■□–—*·-]|\(?\d{1,3}[.)]|\(?[a-z]\))\s+\S")
_HYPHENATED = re.compile(r"[^\W\d_]{2,}-[^\W\d_]+")
_BROKEN = re.compile(r"([^\W\d_]+)[-\u00ad]$")
_NEXT_PART = re.compile(r"[^\W\d_]+")
_WIDER, _WIDER_IN_CODE = 1.25, 2.5
_INDENTED = 6.0
# A line that ends so far before the others was ended on purpose.
_SHORT = 0.6


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
            at = 0
            for heading in self._headings.get(number, ()):
                self._text(lines[at : heading.first])
                self._heading(heading, lines, number)
                at = heading.after
            self._text(lines[at:])

    def _heading(self, heading: Heading, lines: Sequence[PdfLine], number: int) -> None:
        own = lines[heading.first : heading.after] or lines[heading.first : heading.first + 1]
        start = own[0].start if own else self._after(number)
        end = own[-1].end if heading.after > heading.first else start + len(heading.title)
        self._blocks.add(
            BlockKind.HEADING, heading.title, level=heading.level, page=number + 1, start=start, end=end
        )

    def _after(self, number: int) -> int:
        """Where a page without a line begins: after those before it."""
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
        return ended and not line.is_monospaced and line.x - min(one.x for one in own[-3:]) > _INDENTED

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
