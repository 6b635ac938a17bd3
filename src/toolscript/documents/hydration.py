"""What of a passage is shown: the window that has most of what was asked for, and where in it that stands.

Nothing is put into the text. What matched is told by offsets, and whoever shows it decides how.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from toolscript.model.document_results import Snippet
from toolscript.model.documents import Passage
from toolscript.model.passages import SENTENCE_END, WORD_END, between_letters
from toolscript.model.words import UNSPACED, placed_stems

# A word that no statistics know still counts, and one that is said again a little.
LEAST_RARITY, AGAIN = 1e-3, 1e-5
# How much of a window may stay empty for the sake of ending with a sentence.
MOST_EMPTY_SHARE = 0.35
# Where no sentence begins in reach, so much of the room that is left stands before what matched.
SHARE_BEFORE = 1 / 3

# Where a sentence ends and the next begins: what is between them is in neither.
_BORDER = re.compile(rf"\n\s*|{SENTENCE_END.pattern}")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")


class _Span(NamedTuple):
    start: int
    end: int


class _Match(NamedTuple):
    start: int
    end: int
    stem: int


def snippet(passage: Passage, wanted: Mapping[int, float], max_chars: int) -> Snippet:
    """`wanted`: the stems of the query, with how rare each is. Where none is in the passage, its beginning."""
    text = passage.text
    matches = list(_matches(text, wanted))
    core = _richest([one for one in matches if one.end - one.start <= max_chars], wanted, max_chars)
    start, end = _framed(text, core, max_chars)
    shown = _merged(_Span(one.start, one.end) for one in matches if start <= one.start and one.end <= end)
    highlights = tuple((one.start - start, one.end - start) for one in shown)
    return Snippet(text[start:end], passage.start + start, passage.start + end, highlights)


def _matches(text: str, wanted: Mapping[int, float]) -> Iterator[_Match]:
    return (_Match(start, end, stem) for stem, start, end in placed_stems(text, wanted))


def _richest(matches: Sequence[_Match], wanted: Mapping[int, float], max_chars: int) -> _Span | None:
    """Of all windows that begin with a match, the first that is worth most, up to its last match."""
    worth, best, richest = _Worth(wanted), 0.0, None
    by_start, by_end = sorted(matches), sorted(matches, key=lambda one: one.end)
    taken = 0
    for gone, first in enumerate(by_start):
        if gone:
            worth.leave(by_start[gone - 1].stem)
        while taken < len(by_end) and by_end[taken].end <= first.start + max_chars:
            worth.enter(by_end[taken].stem)
            taken += 1
        if worth.total > best + AGAIN / 2:
            best, richest = worth.total, _Span(first.start, max(by_end[taken - 1].end, first.end))
    return richest


class _Worth:
    """Of what is in a window: each stem by its rarity, and a little for each time it is said again."""

    def __init__(self, wanted: Mapping[int, float]) -> None:
        self._wanted = wanted
        self._times: Counter[int] = Counter()
        self.total = 0.0

    def enter(self, stem: int) -> None:
        self.total += self._of(stem)
        self._times[stem] += 1

    def leave(self, stem: int) -> None:
        self._times[stem] -= 1
        self.total -= self._of(stem)

    def _of(self, stem: int) -> float:
        return AGAIN if self._times[stem] else max(self._wanted[stem], LEAST_RARITY)


def _framed(text: str, core: _Span | None, max_chars: int) -> _Span:
    """The core with what stands around it, from where a reader can begin to where one can stop."""
    first = len(text) - len(text.lstrip())
    core = core or _Span(first, first)
    borders = [_Span(found.start() + len(found[0].rstrip()), found.end()) for found in _BORDER.finditer(text)]
    start = _start(text, core, max_chars, [first, *(border.end for border in borders if border.end > first)])
    end = _end(text, start, core, max_chars, [border.start for border in borders])
    return _Span(start, start + len(text[start:end].rstrip()))


def _start(text: str, core: _Span, max_chars: int, beginnings: Sequence[int]) -> int:
    earliest = max(0, core.end - max_chars)
    # From here on the rest of the text does not fill the window.
    last_full = max(0, len(text) - max_chars)
    in_reach = [at for at in beginnings if earliest <= at <= core.start]
    if in_reach:
        return next((at for at in in_reach if at >= last_full), in_reach[-1])
    room = max_chars - (core.end - core.start)
    ideal = max(earliest, min(core.start - int(room * SHARE_BEFORE), last_full))
    word = WORD_END.search(text, max(ideal - 1, 0), core.start)
    if word:
        return word.end()
    return between_letters(text, ideal, earliest) if _IS_UNSPACED.match(text, ideal) else core.start


def _end(text: str, start: int, core: _Span, max_chars: int, ends: Sequence[int]) -> int:
    limit = start + max_chars
    if limit >= len(text):
        return len(text)
    full_enough = max(core.end, start + int(max_chars * (1 - MOST_EMPTY_SHARE)))
    in_reach = [at for at in ends if full_enough <= at <= limit]
    if in_reach:
        return in_reach[-1]
    words = [found.start() for found in WORD_END.finditer(text, core.end, limit + 1)]
    if words and not _IS_UNSPACED.match(text, limit):
        return words[-1]
    return between_letters(text, limit, core.end)


def _merged(spans: Iterable[_Span]) -> list[_Span]:
    """Of words that stand in each other, as those of an unspaced script do, one."""
    merged: list[_Span] = []
    for span in sorted(spans):
        if merged and span.start < merged[-1].end:
            merged[-1] = _Span(merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged
