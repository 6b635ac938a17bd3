"""A text in pieces that are judged one by one: sentences, lines, what stands in brackets, blocks of code."""

import re
from collections.abc import Iterator, Sequence

Span = tuple[int, int]

QUOTED_KEY = re.compile(r"[\"'`][\w -]{1,40}[\"'`]\s*:")

_BLOCK = re.compile(
    r"```.*?(?:```|\Z)|<!--.*?(?:-->|\Z)"
    r"|<(system|assistant|user|instructions?|admin|developer|human|classification)\b[^>]{0,80}>.*?(?:</\1\s*>|\Z)"
    r"|\[inst\].*?(?:\[/inst\]|\Z)|<<sys>>.*?(?:<</sys>>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_END = re.compile(
    r"[.!?]+[\"')\]]*\s+|[。！？；]+\s*|;\s+|\s+(?:[-–—|•·*#~]{1,8}|//)\s+|\s*\n\s*|\s+(?=[(\[])|(?<=[)\]])\s+"
)
_BRACE = re.compile(r"[{}\[\]]")


def pieces_of(text: str) -> list[Span]:
    """Without a gap between them. A block of code, of markup or of JSON is one piece."""
    found: list[Span] = []
    at = 0
    for start, end in _blocks(text):
        found += [*_sentences(text, at, start), (start, end)]
        at = end
    return [*found, *_sentences(text, at, len(text))]


def runs_of(spans: Sequence[Span], left_out: Sequence[bool]) -> Iterator[Span]:
    """Neighbours that are kept, as one span each."""
    begun: int | None = None
    for (start, _), is_out in zip(spans, left_out, strict=True):
        if is_out and begun is not None:
            yield begun, start
        begun = None if is_out else start if begun is None else begun
    if begun is not None:
        yield begun, spans[-1][1]


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    for separator in _END.finditer(text, start, end):
        if separator.end() > start:
            yield start, separator.end()
            start = separator.end()
    if start < end:
        yield start, end


def _blocks(text: str) -> list[Span]:
    """The outermost, in order."""
    spans = [match.span() for match in _BLOCK.finditer(text)] + _objects(text)
    kept: list[Span] = []
    for span in sorted(spans, key=lambda one: (one[0], -one[1])):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


def _objects(text: str) -> list[Span]:
    """Outermost pairs of braces or square brackets with a quoted key in them."""
    opened: list[int] = []
    found: list[Span] = []
    for match in _BRACE.finditer(text):
        if match[0] in "{[":
            opened.append(match.start())
        elif opened:
            start = opened.pop()
            if not opened and QUOTED_KEY.search(text, start, match.end()):
                found.append((start, match.end()))
    return found
