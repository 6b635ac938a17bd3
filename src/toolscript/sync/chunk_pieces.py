"""Blocks cut into pieces that fit: where a reader would pause, and only where they have to be."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from toolscript.model.ingest import Block, BlockKind
from toolscript.model.passages import SENTENCE_END, WORD_END, between_letters

TokenCount = Callable[[str], int]

_LINE_END = re.compile(r"\n+")
# A text as long as this is cut before it is counted: whoever counts takes a while for it.
_MOST_LETTERS_OF_A_TOKEN = 60

_ESTIMATED = re.compile(r"(?P<latin>[A-Za-z]+)|(?P<digits>\d+)|(?P<other>[^\W\d_]+)|(?P<mark>[^\s\w]|_)")


@dataclass(frozen=True)
class Piece:
    """`start` to before `end` of the block with that number."""

    block: int
    start: int
    end: int
    tokens: int


def pieces_of(number: int, block: Block, whole: int, part: int, count: TokenCount) -> list[Piece]:
    """Code and tables of up to `whole` tokens are one piece; so is any other block of up to `part`."""
    text = block.text
    kept = whole if block.kind in {BlockKind.CODE, BlockKind.TABLE, BlockKind.HEADING} else part
    if len(text) <= kept * _MOST_LETTERS_OF_A_TOKEN:
        tokens = count(text)
        if tokens <= kept:
            return [Piece(number, 0, len(text), tokens)]
    borders = [_LINE_END, SENTENCE_END, WORD_END] if block.kind is not BlockKind.TEXT else [SENTENCE_END, WORD_END]
    cut = _Cutting(text, whole, count)
    return [Piece(number, start, end, tokens) for start, end, tokens in cut.apart(0, len(text), borders)]


class _Cutting:
    def __init__(self, text: str, most: int, count: TokenCount) -> None:
        self._text = text
        self._most = most
        self._count = count

    def apart(self, start: int, end: int, borders: list[re.Pattern[str]]) -> Iterator[tuple[int, int, int]]:
        """At the first kind of border; what is still too long between two of them, at the next kind."""
        if not borders:
            yield from self._letters(start, end)
            return
        for first, after in self._between(start, end, borders[0]):
            tokens = self._tokens(first, after)
            if tokens is not None:
                yield first, after, tokens
            else:
                yield from self.apart(first, after, borders[1:])

    def _between(self, start: int, end: int, border: re.Pattern[str]) -> Iterator[tuple[int, int]]:
        """The white space of a border belongs to neither side."""
        for found in border.finditer(self._text, start, end):
            after = found.start() + len(found.group().rstrip())
            if self._text[start:after].strip():
                yield start, after
                start = found.end()
        if self._text[start:end].strip():
            yield start, end

    def _tokens(self, start: int, end: int) -> int | None:
        """None where they are too many."""
        if end - start > self._most * _MOST_LETTERS_OF_A_TOKEN:
            return None
        tokens = self._count(self._text[start:end])
        return tokens if tokens <= self._most else None

    def _letters(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """A word that is too long: in halves, until each of them fits. One letter always does."""
        waiting = [(start, end)]
        while waiting:
            first, after = waiting.pop()
            tokens = self._tokens(first, after)
            if tokens is not None or after - first <= 1:
                yield first, after, self._most if tokens is None else tokens
                continue
            middle = between_letters(self._text, (first + after) // 2, first)
            waiting += [(middle, after), (first, middle)]


def estimated_tokens(text: str) -> int:
    """For a model whose tokens nobody can count here: rather too many than too few."""
    return sum(_estimated(found) for found in _ESTIMATED.finditer(text))


def _estimated(found: re.Match[str]) -> int:
    length = found.end() - found.start()
    shares = {"latin": 4, "digits": 2, "other": 1, "mark": 1}
    return -(-length // shares[found.lastgroup or "mark"])
