"""Markdown as blocks: each heading, paragraph, item of a list, table and code block with its lines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.token import Token

from toolscript.knowledge.model.ingest import BlockKind
from toolscript.knowledge.readers.blocks import BlockList, Lines, ReadingLimits, skip, table_text
from toolscript.knowledge.readers.html import read_html_part

# Deeper than real documents, and within Python's recursion limit.
MAX_NESTING = 100
_INDENT = "  "


@dataclass
class _OpenList:
    """`next_number` is None for an unordered list."""

    next_number: int | None
    marker: str = ""


class _Walk:
    """Walks the flat list of tokens: opening token, content, closing token."""

    def __init__(self, text: str, offset: int, blocks: BlockList, limits: ReadingLimits) -> None:
        self._lines = Lines(text)
        self._skipped_lines = self._lines.line_at(offset) - 1
        self._blocks = blocks
        self._limits = limits
        self._lists: list[_OpenList] = []

    def all(self, tokens: Sequence[Token]) -> None:
        rest = iter(tokens)
        for token in rest:
            if token.level >= MAX_NESTING - 2:
                skip("its quotes or lists are nested too deeply")
            self._token(token, rest)

    def _token(self, token: Token, rest: Iterator[Token]) -> None:
        match token.type:
            case "heading_open":
                self._add(BlockKind.HEADING, _inline(next(rest)).replace("\n", " "), token, int(token.tag[1]))
            case "paragraph_open":
                self._paragraph(token, _inline(next(rest)))
            case "fence" | "code_block":
                # The fence lines are not part of the code.
                self._add(BlockKind.CODE, token.content.rstrip("\n"), token, fence=token.type == "fence")
            case "table_open":
                self._add(BlockKind.TABLE, _table(rest), token)
            case "html_block":
                self._html(token)
            case _:
                self._list(token)

    def _list(self, token: Token) -> None:
        match token.type:
            case "bullet_list_open":
                self._lists.append(_OpenList(None))
            case "ordered_list_open":
                self._lists.append(_OpenList(int(token.attrGet("start") or 1)))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                inner = self._lists[-1]
                inner.marker = "- " if inner.next_number is None else f"{inner.next_number}. "
                inner.next_number = None if inner.next_number is None else inner.next_number + 1

    def _paragraph(self, token: Token, text: str) -> None:
        """Give the first paragraph of an item its marker; indent further ones."""
        if not self._lists:
            self._add(BlockKind.TEXT, text, token)
            return
        inner = self._lists[-1]
        outer = _INDENT * (len(self._lists) - 1)
        first, further = outer + (inner.marker or _INDENT), f"\n{outer}{_INDENT}"
        inner.marker = ""
        self._add(BlockKind.LIST, first + text.replace("\n", further), token)

    def _html(self, token: Token) -> None:
        line, start, _ = self._place(token)
        read_html_part(token.content, start, line, self._blocks, self._limits)

    def _add(self, kind: BlockKind, text: str, token: Token, level: int = 0, fence: bool = False) -> None:
        line, start, end = self._place(token)
        if fence:
            line, start = line + 1, self._lines.start_of(line + 1)
            end = min(max(start, end), start + len(text)) if not self._lists else end
        self._blocks.add(kind, text, level=level, line=line, start=start, end=end)

    def _place(self, token: Token) -> tuple[int, int, int]:
        first, after = token.map or (0, 1)
        first, after = first + self._skipped_lines + 1, after + self._skipped_lines + 1
        start = self._lines.start_of(first)
        return first, start, max(start + 1, self._lines.start_of(after) - 1)


def read_markdown(text: str, offset: int, blocks: BlockList, limits: ReadingLimits) -> None:
    """Read from `offset`, the start of a line. Positions of blocks are those in the whole text."""
    parser = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING}).enable(["table", "strikethrough"])
    _Walk(text, offset, blocks, limits).all(parser.parse(text[offset:]))


def _inline(token: Token) -> str:
    """Return the visible text: links without their targets, code in backticks."""
    return "".join(_inline_parts(token.children or ())).strip()


def _inline_parts(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        match token.type:
            case "softbreak" | "hardbreak":
                yield "\n"
            case "code_inline":
                yield f"`{token.content}`"
            case "image":
                yield token.content
            case "html_inline":
                yield "\n" if token.content.lower().startswith("<br") else ""
            case _:
                yield token.content


def _table(rest: Iterator[Token]) -> str:
    rows: list[list[str]] = []
    for token in rest:
        if token.type == "table_close":
            break
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_inline(token).replace("\n", " "))
    return table_text(rows, headed=True)
