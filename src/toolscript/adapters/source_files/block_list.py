"""The blocks of a file while it is read, within its limits, and where in its text they stand."""

from bisect import bisect_right

from toolscript.adapters.source_files.limits import ReadingLimits
from toolscript.adapters.source_files.skipping import skip
from toolscript.model.ingest import Block, BlockKind


class Lines:
    """Which line of a text, counted from 1, an offset lies in."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        at = text.find("\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = text.find("\n", at + 1)
        self._length = len(text)

    def line_at(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def start_of(self, line: int) -> int:
        """Of a line after the last: the end of the text."""
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
        """Of a text of nothing: nothing."""
        if not text.strip():
            return
        self._letters += len(text)
        if self._letters > self._limits.letters:
            skip(f"it has more than {self._limits.letters:,} characters of text", "split it into several files")
        if len(self.blocks) >= self._limits.blocks:
            skip(f"it has more than {self._limits.blocks:,} paragraphs", "split it into several files")
        self.blocks.append(Block(kind, text, level, page, line, start, end or start + len(text)))

    def first_heading(self) -> str:
        return next((one.text for one in self.blocks if one.kind is BlockKind.HEADING), "")
