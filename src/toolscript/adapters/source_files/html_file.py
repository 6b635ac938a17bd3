"""HTML as blocks: what a reader of the page sees, and nothing that a browser keeps to itself."""

import re
from collections.abc import Iterator
from typing import Any

from justhtml import JustHTML

from toolscript.adapters.source_files.block_list import BlockList
from toolscript.adapters.source_files.described import Described, described
from toolscript.adapters.source_files.html_page import Page, Source
from toolscript.adapters.source_files.limits import ReadingLimits
from toolscript.adapters.source_files.skipping import skip

# A tree of some other library: it has names, attributes, data and children.
Node = Any

UNSEEN = {
    "script", "style", "template", "noscript", "head", "nav", "svg", "iframe", "object", "embed", "canvas",
    "audio", "video", "button", "select", "input", "textarea", "datalist", "dialog", "map", "rp",
    "#comment", "!doctype",
}  # fmt: skip
_HIDING = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)


def read_html(text: str, blocks: BlockList, limits: ReadingLimits) -> Described:
    tree = _tree(text)
    _walk(_what_it_is_about(tree), Page(Source(text), blocks), limits)
    return _described(tree, limits)


def read_html_part(text: str, start: int, line: int, blocks: BlockList, limits: ReadingLimits) -> None:
    """What stands in the middle of another text."""
    _walk(_tree(text), Page(Source(text, start, line), blocks), limits)


def _tree(text: str) -> Node:
    return JustHTML(text, sanitize=False, track_node_locations=True).root


def _what_it_is_about(tree: Node) -> Node:
    """A page can say itself which part of it is its own, and not that of every page of the site."""
    own = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if node.name == "main":
            own.append(node)
        elif node.name != "#text" and not is_unseen(node):
            waiting.extend(node.children or ())
    return own[0] if len(own) == 1 and not is_unseen(own[0]) else tree


def _walk(tree: Node, page: Page, limits: ReadingLimits) -> None:
    """With a stack of its own: a page can be nested deeper than Python's."""
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
        if is_unseen(node):
            continue
        depth += 1
        if depth > limits.depth:
            skip("its elements are nested too deeply")
        page.enter(node)
        waiting.append((node, True))
        waiting.extend((child, False) for child in reversed(node.children or ()))
    page.done()


def is_unseen(node: Node) -> bool:
    if node.name in UNSEEN:
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
