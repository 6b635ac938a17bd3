"""HTML as blocks: the visible text of a page, without what a browser does not show."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from justhtml import JustHTML

from toolscript.knowledge.model.ingest import BlockKind
from toolscript.knowledge.readers.blocks import BlockList, Lines, ReadingLimits, skip, table_text
from toolscript.knowledge.readers.text import Described, described

Node = Any

HEADINGS = {f"h{level}": level for level in range(1, 7)}
LISTS = {"ul", "ol", "menu", "dir"}
PARTING = {
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html", "legend", "li", "main", "option",
    "p", "section", "summary", "caption", "tbody", "thead", "tfoot", "tr", "td", "th", "table", "pre",
    *HEADINGS, *LISTS,
}  # fmt: skip
_NO_DATA_IN = {*HEADINGS, *LISTS, "table", "pre", "form", "article", "section"}
_CELLS = {"td", "th"}
_SPACE = re.compile(r"[ \t\n\f\r\xa0]+")
_INDENT = "  "

HIDDEN = {
    "script", "style", "template", "noscript", "head", "nav", "svg", "iframe", "object", "embed", "canvas",
    "audio", "video", "button", "select", "input", "textarea", "datalist", "dialog", "map", "rp",
    "#comment", "!doctype",
}  # fmt: skip
_HIDING = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)


class Source:
    """The text of a page, and its offset in a longer text."""

    def __init__(self, text: str, start: int = 0, line: int = 1) -> None:
        self._text = text
        self._lines = Lines(text)
        self._start = start
        self._line = line

    def span(self, node: Node) -> tuple[int, int] | None:
        """Return the span of a node without surrounding white space; None for implied elements."""
        start, data = node.origin_offset, node.data or ""
        if start is None:
            return None
        end = max(start + len(data), self._text.find("<", start))
        while start < end and self._text[start : start + 1].isspace():
            start += 1
        while end > start and self._text[end - 1 : end].isspace():
            end -= 1
        return self._start + start, self._start + end

    def line_at(self, offset: int) -> int:
        return self._lines.line_at(offset - self._start) + self._line - 1


@dataclass
class _Gathered:
    """The text of one block so far. `start` is -1 before the first."""

    parts: list[str] = field(default_factory=list)
    start: int = -1
    end: int = 0

    def add(self, text: str, span: tuple[int, int] | None) -> None:
        self.parts.append(text)
        if span and text.strip():
            self.start = span[0] if self.start < 0 else self.start
            self.end = max(self.end, span[1])


@dataclass
class _OpenList:
    next_number: int | None
    marker: str = ""


@dataclass
class _OpenTable:
    rows: list[list[str]] = field(default_factory=list)
    place: _Gathered = field(default_factory=_Gathered)
    is_headed: bool = False
    caption: str = ""


class Page:
    def __init__(self, source: Source, blocks: BlockList) -> None:
        self._source = source
        self._blocks = blocks
        self._gathered = _Gathered()
        self._lists: list[_OpenList] = []
        self._table: _OpenTable | None = None
        self._preformatted = 0

    def enter(self, node: Node) -> None:
        name = node.name
        if name == "br":
            self._gathered.add("\n", None)
        if name not in PARTING:
            return
        if self._table is not None:
            self._within_table(node)
            return
        self._flush(BlockKind.TEXT)
        if name in LISTS:
            self._lists.append(_OpenList(1 if name == "ol" else None))
        elif name == "li" and self._lists:
            self._begin_item(self._lists[-1])
        elif name == "pre":
            self._preformatted += 1
        elif name == "table" and _holds_data(node):
            self._table = _OpenTable()

    def text(self, node: Node) -> None:
        data = node.data or ""
        self._gathered.add(data if self._preformatted else _SPACE.sub(" ", data), self._source.span(node))

    def leave(self, node: Node) -> None:
        name = node.name
        if name not in PARTING:
            return
        if self._table is not None:
            self._leave_in_table(name)
        elif name in HEADINGS:
            self._flush(BlockKind.HEADING, HEADINGS[name])
        elif name == "pre":
            self._flush(BlockKind.CODE)
            self._preformatted -= 1
        else:
            self._flush(BlockKind.TEXT)
            if name in LISTS and self._lists:
                self._lists.pop()

    def done(self) -> None:
        self._flush(BlockKind.TEXT)

    def _begin_item(self, inner: _OpenList) -> None:
        inner.marker = "- " if inner.next_number is None else f"{inner.next_number}. "
        inner.next_number = None if inner.next_number is None else inner.next_number + 1

    def _within_table(self, node: Node) -> None:
        table = self._table
        if table is None:
            return
        if node.name == "tr":
            table.rows.append([])
        elif node.name in _CELLS:
            table.is_headed = table.is_headed or (node.name == "th" and len(table.rows) == 1)
            self._take_cell()
        else:
            self._gathered.add(" ", None)

    def _leave_in_table(self, name: str) -> None:
        table = self._table
        if table is None:
            return
        if name in _CELLS and table.rows:
            table.rows[-1].append(self._take_cell())
        elif name == "caption":
            table.caption = self._take_cell()
        elif name == "table":
            self._table = None
            self._gathered = table.place
            rows = [row for row in table.rows if any(row)]
            self._add(BlockKind.TABLE, f"{table.caption}\n{table_text(rows, table.is_headed)}".strip())
        else:
            self._gathered.add(" ", None)

    def _take_cell(self) -> str:
        cell, self._gathered = self._gathered, _Gathered()
        if self._table is not None and cell.start >= 0:
            place = self._table.place
            place.start = cell.start if place.start < 0 else place.start
            place.end = max(place.end, cell.end)
        return _SPACE.sub(" ", "".join(cell.parts)).strip()

    def _flush(self, kind: BlockKind, level: int = 0) -> None:
        text = "".join(self._gathered.parts)
        if self._preformatted:
            self._add(BlockKind.CODE, text.strip("\n"))
        elif kind is BlockKind.TEXT and self._lists:
            self._add(BlockKind.LIST, self._as_item(_flowing(text)))
        else:
            text = _flowing(text)
            self._add(kind, text.replace("\n", " ") if kind is BlockKind.HEADING else text, level)

    def _as_item(self, text: str) -> str:
        """Give the first block of an item its marker; indent further blocks."""
        if not text:
            return ""
        inner, outer = self._lists[-1], _INDENT * (len(self._lists) - 1)
        first, further = outer + (inner.marker or _INDENT), f"\n{outer}{_INDENT}"
        inner.marker = ""
        return first + text.replace("\n", further)

    def _add(self, kind: BlockKind, text: str, level: int = 0) -> None:
        place, self._gathered = self._gathered, _Gathered()
        start = max(place.start, 0)
        line = self._source.line_at(start) if place.start >= 0 else None
        self._blocks.add(kind, text, level=level, line=line, start=start, end=place.end)


def _flowing(text: str) -> str:
    """Collapse white space as a browser does: only elements end lines."""
    lines = [_SPACE.sub(" ", line).strip() for line in text.split("\n")]
    return "\n".join(line for line in lines if line)


def _holds_data(table: Node) -> bool:
    """Return False for a layout table: its cells hold headings, lists or other tables."""
    waiting = list(table.children or ())
    while waiting:
        node = waiting.pop()
        if node.name in _NO_DATA_IN:
            return False
        waiting.extend(node.children or ())
    return True


def read_html(text: str, blocks: BlockList, limits: ReadingLimits) -> Described:
    tree = _tree(text)
    _walk(_main_content(tree), Page(Source(text), blocks), limits)
    return _described(tree, limits)


def read_html_part(text: str, start: int, line: int, blocks: BlockList, limits: ReadingLimits) -> None:
    """Read HTML inside another text, from offset `start` and `line`."""
    _walk(_tree(text), Page(Source(text, start, line), blocks), limits)


def _tree(text: str) -> Node:
    return JustHTML(text, sanitize=False, track_node_locations=True).root


def _main_content(tree: Node) -> Node:
    """Return the only visible `main` element, or the whole tree."""
    own = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node.name == "main":
            own.append(node)
        elif node.name != "#text" and not is_hidden(node):
            waiting.extend(node.children or ())
    return own[0] if len(own) == 1 and not is_hidden(own[0]) else tree


def _walk(tree: Node, page: Page, limits: ReadingLimits) -> None:
    """Walk with an explicit stack: a page can be nested deeper than Python's call stack."""
    waiting: list[tuple[Node, bool]] = [(tree, False)]
    depth = 0
    while waiting:
        node, is_done = waiting.pop()
        if is_done:
            depth -= 1
            page.leave(node)
            continue
        if node.name == "#text":
            page.text(node)
            continue
        if is_hidden(node):
            continue
        depth += 1
        if depth > limits.depth:
            skip("its elements are nested too deeply")
        page.enter(node)
        waiting.append((node, True))
        waiting.extend((child, False) for child in reversed(node.children or ()))
    page.done()


def is_hidden(node: Node) -> bool:
    if node.name in HIDDEN:
        return True
    attributes = node.attrs or {}
    return bool(attributes) and (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") == "navigation"
        or _HIDING.search(attributes.get("style") or "") is not None
    )


def _described(tree: Node, limits: ReadingLimits) -> Described:
    fields: dict[str, object] = {}
    for node in _of_head(tree, limits):
        if node.name == "title":
            fields.setdefault("title", "".join(child.data or "" for child in node.children or ()))
        elif node.name == "meta":
            attributes = node.attrs or {}
            name, content = attributes.get("name") or attributes.get("property"), attributes.get("content")
            if name and content:
                fields.setdefault(name.lower(), content)
    return described(fields | {"type": None})


def _of_head(tree: Node, limits: ReadingLimits) -> Iterator[Node]:
    for html in tree.children or ():
        for head in html.children or () if html.name == "html" else ():
            if head.name == "head":
                yield from (head.children or ())[: limits.depth]
