"""Plain text as blocks: paragraphs between empty lines, and what looks like a heading to anybody."""

import re
from collections.abc import Iterator
from itertools import pairwise

from toolscript.adapters.source_files.block_list import BlockList, Lines
from toolscript.model.ingest import BlockKind

_PARAGRAPH = re.compile(r"[^\n]*\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")
_UNDERLINED = re.compile(r"^(?P<title>\S[^\n]{0,150})\n(?P<line>=+|-+|~+|\*+|\^+|#+)[ \t]*(?:\n|\Z)")
_CHAPTER = re.compile(
    r"^(?:(?P<outer>part|book|volume)|(?P<chapter>chapter|appendix|kapitel)|section)\s+(?:\d+|[IVXLCDM]+|[A-Z])\b[^\n]{0,100}$",
    re.IGNORECASE,
)
_ITEM = re.compile(r"^\s*(?:[-*•+]|\d{1,3}[.)])\s+\S")
_ITEM_START = re.compile(r"^(?=[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+\S)", re.MULTILINE)
_SET_IN = re.compile(r"(?:(?: {4}|\t)[^\n]*(?:\n|\Z))+\Z")
# Notes are often Markdown, whatever their name ends in: a heading between empty lines, more than once.
_MARKDOWN_HEADING = re.compile(r"(?:\A|\n\n)#{1,6} [^\n]+(?=\n\n|\n\Z|\n[^\n#])")


def is_markdown(text: str) -> bool:
    return len(_MARKDOWN_HEADING.findall(text, 0, 200_000)) >= 2


def read_text(text: str, offset: int, blocks: BlockList) -> None:
    lines = Lines(text)
    underlines: dict[str, int] = {}
    for found in _PARAGRAPH.finditer(text, offset):
        start, paragraph = found.start(), found.group()
        heading = _UNDERLINED.match(paragraph)
        if heading and len(heading["line"]) >= min(3, len(heading["title"])):
            level = underlines.setdefault(heading["line"][0], len(underlines) + 1)
            _add(blocks, lines, BlockKind.HEADING, heading["title"].strip(), start, level)
            start, paragraph = start + heading.end(), paragraph[heading.end() :]
        chapter = _CHAPTER.match(paragraph.strip())
        if chapter:
            _add(blocks, lines, BlockKind.HEADING, paragraph.strip(), start, _level(chapter))
            continue
        for at, kind, part in _parts(paragraph):
            _add(blocks, lines, kind, part, start + at)


def _level(chapter: re.Match[str]) -> int:
    if chapter["outer"]:
        return 1
    return 2 if chapter["chapter"] else 3


def _parts(paragraph: str) -> Iterator[tuple[int, BlockKind, str]]:
    """The items of a list each on their own, with what was said before the first."""
    if _SET_IN.match(paragraph) and not _ITEM.match(paragraph):
        yield 0, BlockKind.CODE, paragraph
        return
    starts = [found.start() for found in _ITEM_START.finditer(paragraph)]
    borders = sorted({0, *starts, len(paragraph)})
    for at, end in pairwise(borders):
        part = paragraph[at:end].rstrip("\n")
        yield at, BlockKind.LIST if at in starts else BlockKind.TEXT, part


def _add(blocks: BlockList, lines: Lines, kind: BlockKind, text: str, start: int, level: int = 0) -> None:
    blocks.add(kind, text, level=level, line=lines.line_at(start), start=start, end=start + len(text))
