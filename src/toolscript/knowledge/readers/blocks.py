"""Blocks of a file, for all readers: kinds of files, limits, positions, tables, and skipping with a reason."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from pathlib import PurePosixPath
from typing import NoReturn

from toolscript.knowledge.model.ingest import Block, BlockKind

MEGABYTE = 1024 * 1024
# Longer than the maximum path of any system.
MAX_NAME = 8_192


@dataclass(frozen=True)
class ReadingLimits:
    """`cpu_seconds` and `memory` limit the reader process, `seconds` the wait for it.

    The reader process sends a reading as JSON of at most `answer` bytes.
    """

    pdf_bytes: int = 100 * MEGABYTE
    other_bytes: int = 50 * MEGABYTE
    letters: int = 20_000_000
    blocks: int = 200_000
    depth: int = 400
    pages: int = 10_000
    cpu_seconds: int = 60
    seconds: float = 120.0
    memory: int = 1_536 * MEGABYTE
    answer: int = 160 * MEGABYTE

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def limits_from_json(data: dict[str, object]) -> ReadingLimits:
    names = {field.name for field in fields(ReadingLimits)}
    return ReadingLimits(**{name: value for name, value in data.items() if name in names})  # type: ignore[arg-type]


class Skip(Exception):
    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


def skip(reason: str, hint: str = "") -> NoReturn:
    raise Skip(reason, hint)


def in_megabytes(count: int) -> str:
    return f"{count / 1024 / 1024:,.0f} MB"


class Lines:
    """Maps offsets of a text to lines, counted from 1, and back."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        line_end = text.find("\n")
        while line_end >= 0:
            self._starts.append(line_end + 1)
            line_end = text.find("\n", line_end + 1)
        self._length = len(text)

    def line_at(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def start_of(self, line: int) -> int:
        """Return the offset of a line; the end of the text for a line after the last."""
        return self._starts[line - 1] if line <= len(self._starts) else self._length


class BlockList:
    def __init__(self, limits: ReadingLimits) -> None:
        self.blocks: list[Block] = []
        self._limits = limits
        self._letters = 0

    def add(
        self,
        kind: BlockKind,
        text: str,
        *,
        level: int = 0,
        page: int | None = None,
        line: int | None = None,
        start: int = 0,
        end: int = 0,
    ) -> None:
        """Add a block; ignore blank text."""
        if not text.strip():
            return
        self._letters += len(text)
        if self._letters > self._limits.letters:
            skip(f"it has more than {self._limits.letters:,} characters of text", "split it into several files")
        if len(self.blocks) >= self._limits.blocks:
            skip(f"it has more than {self._limits.blocks:,} paragraphs", "split it into several files")
        self.blocks.append(Block(kind, text, level, page, line, start, end or start + len(text)))

    def first_heading(self) -> str:
        return next((block.text for block in self.blocks if block.kind is BlockKind.HEADING), "")


class FileKind(StrEnum):
    MARKDOWN = "markdown"
    TEXT = "text"
    HTML = "html"
    PDF = "pdf"


SUFFIXES = {
    ".md": FileKind.MARKDOWN,
    ".markdown": FileKind.MARKDOWN,
    ".mdown": FileKind.MARKDOWN,
    ".txt": FileKind.TEXT,
    ".text": FileKind.TEXT,
    ".html": FileKind.HTML,
    ".htm": FileKind.HTML,
    ".xhtml": FileKind.HTML,
    ".pdf": FileKind.PDF,
}
known_suffixes = frozenset(SUFFIXES)


def is_known(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in SUFFIXES


def kind_of(name: str) -> FileKind:
    kind = SUFFIXES.get(PurePosixPath(name).suffix.lower())
    if kind is None:
        skip("files of this kind are not supported", f"supported are {', '.join(sorted(SUFFIXES))}")
    return kind


def table_text(rows: Sequence[Sequence[str]], headed: bool) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if headed and rows:
        lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)
