"""Hydration: headers and snippets of the documents that are returned, and of no others."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from toolscript.core.auth.model import Plan
from toolscript.core.chunking import SENTENCE_END, WORD_END, between_letters
from toolscript.core.retrieval.fusion import Ranked
from toolscript.core.retrieval.results import ChunkId
from toolscript.core.retrieval.terms import UNSPACED, placed_stems
from toolscript.core.text import Passage
from toolscript.documents.model.answer import DocumentHit, Snippet
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.points import ShownChunks
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.plan_limits import shown_metadata
from toolscript.documents.ports import TenantDocuments
from toolscript.documents.retrieval import Understood

# A word that no statistics know still counts, and one that is said again a little.
MIN_IDF, AGAIN = 1e-3, 1e-5
# How much of a window may stay empty for the sake of ending with a sentence.
MAX_EMPTY_SHARE = 0.35
# Where no sentence begins in reach, so much of the room that is left stands before what matched.
SHARE_BEFORE = 1 / 3

# Where a sentence ends and the next begins: what is between them is in neither.
_BORDER = re.compile(rf"\n\s*|{SENTENCE_END.pattern}")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")

MORE = 4
# A window takes a while to find: after so many, others have their turn.
AT_ONCE = 8


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
    spans = _merged(_Span(one.start, one.end) for one in matches if start <= one.start and one.end <= end)
    highlights = tuple((one.start - start, one.end - start) for one in spans)
    return Snippet(text[start:end], passage.start + start, passage.start + end, highlights)


def _matches(text: str, wanted: Mapping[int, float]) -> Iterator[_Match]:
    return (_Match(start, end, stem) for stem, start, end in placed_stems(text, wanted))


def _richest(matches: Sequence[_Match], wanted: Mapping[int, float], max_chars: int) -> _Span | None:
    """Of all windows that begin with a match, the first that is worth most, up to its last match."""
    worth, best, richest = _Worth(wanted), 0.0, None
    by_start, by_end = sorted(matches), sorted(matches, key=lambda match: match.end)
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
        return AGAIN if self._times[stem] else max(self._wanted[stem], MIN_IDF)


def _framed(text: str, core: _Span | None, max_chars: int) -> _Span:
    """The core with what stands around it, from where a reader can begin to where one can stop."""
    first = len(text) - len(text.lstrip())
    core = core or _Span(first, first)
    borders = [_Span(match.start() + len(match[0].rstrip()), match.end()) for match in _BORDER.finditer(text)]
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
    full_enough = max(core.end, start + int(max_chars * (1 - MAX_EMPTY_SHARE)))
    in_reach = [end for end in ends if full_enough <= end <= limit]
    if in_reach:
        return in_reach[-1]
    words = [match.start() for match in WORD_END.finditer(text, core.end, limit + 1)]
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


@dataclass(frozen=True)
class Hydration:
    documents: TenantDocuments
    plan: Plan
    query: DocumentQuery
    understood: Understood | None = None

    async def first(self, order: Sequence[Ranked]) -> tuple[list[DocumentHit], Sequence[Ranked]]:
        """The first `top_k` that are still there, and what is left after them."""
        hits: list[DocumentHit] = []
        rest, at_once = order, self.query.top_k
        while rest and len(hits) < self.query.top_k:
            found = await self._hits(rest[:at_once])
            taken = found[: self.query.top_k - len(hits)]
            hits += [hit for _, hit in taken]
            used = at_once if len(taken) == len(found) else 1 + taken[-1][0]
            # Where many have left, it takes a few more rounds, not one for each.
            rest, at_once = rest[used:], at_once * MORE
        return hits, rest

    async def of_headers(self, headers: Sequence[DocumentHeader]) -> list[DocumentHit]:
        """Of documents that nothing but filters have chosen: all are as good, and shown from their beginning."""
        ids = [ChunkId(header.key, 0) for header in headers] if self.query.include_snippets else []
        passages = await self.documents.passages(ids)
        return [
            self._hit(Ranked(header.key, 1.0, 0), header, passages.get(ChunkId(header.key, 0)))
            for header in headers
        ]

    async def _hits(self, order: Sequence[Ranked]) -> list[tuple[int, DocumentHit]]:
        """Those that are there, each with its place."""
        chunks = await self._shown(order)
        hits: list[tuple[int, DocumentHit]] = []
        for index, ranked in enumerate(order):
            if (header := chunks.headers.get(ranked.key)) is not None:
                hits.append(
                    (index, self._hit(ranked, header, chunks.passages.get(ChunkId(ranked.key, ranked.passage))))
                )
                if index % AT_ONCE == AT_ONCE - 1:
                    await asyncio.sleep(0)
        return hits

    async def _shown(self, order: Sequence[Ranked]) -> ShownChunks:
        if self.query.include_snippets:
            return await self.documents.shown([ChunkId(ranked.key, ranked.passage) for ranked in order])
        return ShownChunks(await self.documents.headers([ranked.key for ranked in order]), {})

    def _hit(self, ranked: Ranked, header: DocumentHeader, passage: Passage | None) -> DocumentHit:
        said = self.understood.said if self.understood else {}
        return DocumentHit(
            key=header.key,
            id=header.id,
            score=ranked.score,
            metadata=shown_metadata(self.plan, self.query, header.metadata),
            snippet=snippet(passage, said, self.query.snippet_max_chars) if passage else None,
            passage=ranked.passage,
        )
