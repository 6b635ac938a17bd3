"""Hydration: load headers and snippets of the documents that are returned, and of no others."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from toolscript.core.auth.model import Plan
from toolscript.core.chunking import SENTENCE_END, WORD_END, between_letters
from toolscript.core.retrieval.fusion import RankedDocument
from toolscript.core.retrieval.results import ChunkId
from toolscript.core.retrieval.terms import UNSPACED, stems_with_positions
from toolscript.core.text import TextChunk
from toolscript.documents.model.answer import DocumentHit, Snippet
from toolscript.documents.model.document import DocumentHeader
from toolscript.documents.model.points import HitContent, ReadContent, no_content
from toolscript.documents.model.query import DocumentQuery
from toolscript.documents.plan_limits import visible_metadata
from toolscript.documents.ports import TenantDocuments
from toolscript.documents.retrieval import AnalyzedQuery

# Weight of a word without statistics, and of each repetition of a word.
MIN_IDF, AGAIN = 1e-3, 1e-5
# Share of a window that may stay unused so that it ends with a sentence.
MAX_EMPTY_SHARE = 0.35
# Without a sentence start in reach, this share of the remaining room goes before the match.
SHARE_BEFORE = 1 / 3

# The gap between two sentences, which belongs to neither.
_BORDER = re.compile(rf"\n\s*|{SENTENCE_END.pattern}")
_IS_UNSPACED = re.compile(f"[{UNSPACED}]")

MORE = 4
# Snippets take CPU time: yield to the event loop after this many.
AT_ONCE = 8


class _Span(NamedTuple):
    start: int
    end: int


class _Match(NamedTuple):
    start: int
    end: int
    stem: int


def snippet(chunk: TextChunk, idfs: Mapping[int, float], max_chars: int) -> Snippet:
    """Return the window with the best matches, or the beginning of the chunk if none match.

    `idfs` maps the stems of the query to their IDF.
    """
    text = chunk.text
    matches = list(_matches(text, idfs))
    core = _richest([match for match in matches if match.end - match.start <= max_chars], idfs, max_chars)
    start, end = _framed(text, core, max_chars)
    spans = _merged(
        _Span(match.start, match.end) for match in matches if start <= match.start and match.end <= end
    )
    highlights = tuple((span.start - start, span.end - start) for span in spans)
    return Snippet(text[start:end], chunk.start + start, chunk.start + end, highlights)


def _matches(text: str, idfs: Mapping[int, float]) -> Iterator[_Match]:
    return (_Match(start, end, stem) for stem, start, end in stems_with_positions(text, idfs))


def _richest(matches: Sequence[_Match], idfs: Mapping[int, float], max_chars: int) -> _Span | None:
    """Return the first window of highest worth that starts with a match, cut after its last match."""
    worth, best, richest = _Worth(idfs), 0.0, None
    by_start, by_end = sorted(matches), sorted(matches, key=lambda match: match.end)
    taken = 0
    for left, first in enumerate(by_start):
        if left:
            worth.leave(by_start[left - 1].stem)
        while taken < len(by_end) and by_end[taken].end <= first.start + max_chars:
            worth.enter(by_end[taken].stem)
            taken += 1
        if worth.total > best + AGAIN / 2:
            best, richest = worth.total, _Span(first.start, max(by_end[taken - 1].end, first.end))
    return richest


class _Worth:
    """Worth of a window: the IDF of each distinct stem, plus a little for each repetition."""

    def __init__(self, idfs: Mapping[int, float]) -> None:
        self._idfs = idfs
        self._times: Counter[int] = Counter()
        self.total = 0.0

    def enter(self, stem: int) -> None:
        self.total += self._of(stem)
        self._times[stem] += 1

    def leave(self, stem: int) -> None:
        self._times[stem] -= 1
        self.total -= self._of(stem)

    def _of(self, stem: int) -> float:
        return AGAIN if self._times[stem] else max(self._idfs[stem], MIN_IDF)


def _framed(text: str, core: _Span | None, max_chars: int) -> _Span:
    """Extend the core to sentence or word boundaries within `max_chars`."""
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
    in_reach = [start for start in beginnings if earliest <= start <= core.start]
    if in_reach:
        return next((start for start in in_reach if start >= last_full), in_reach[-1])
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
    """Merge overlapping spans, as terms of an unspaced script produce them."""
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
    analyzed: AnalyzedQuery | None = None
    content: ReadContent = no_content

    async def first(self, order: Sequence[RankedDocument]) -> tuple[list[DocumentHit], Sequence[RankedDocument]]:
        """Return the first `top_k` hits that still exist, and the rest of the ranking."""
        hits: list[DocumentHit] = []
        rest, at_once = order, self.query.top_k
        while rest and len(hits) < self.query.top_k:
            page = await self._hits(rest[:at_once])
            taken = page[: self.query.top_k - len(hits)]
            hits += [hit for _, hit in taken]
            used = at_once if len(taken) == len(page) else 1 + taken[-1][0]
            # If many were removed, it takes a few more rounds, not one for each.
            rest, at_once = rest[used:], at_once * MORE
        return hits, rest

    async def of_headers(self, headers: Sequence[DocumentHeader]) -> list[DocumentHit]:
        """Return unranked hits (documents chosen by filters alone), with a snippet of their first chunk."""
        ids = [ChunkId(header.key, 0) for header in headers] if self.query.include_snippets else []
        chunks = await self.documents.passages(ids)
        return [
            self._hit(RankedDocument(header.key, 1.0, 0), header, chunks.get(ChunkId(header.key, 0)))
            for header in headers
        ]

    async def _hits(self, order: Sequence[RankedDocument]) -> list[tuple[int, DocumentHit]]:
        """Return the hits that still exist, each with its position in `order`."""
        content = await self._shown(order)
        hits: list[tuple[int, DocumentHit]] = []
        for index, ranked in enumerate(order):
            if (header := content.headers.get(ranked.key)) is not None:
                hits.append(
                    (index, self._hit(ranked, header, content.passages.get(ChunkId(ranked.key, ranked.passage))))
                )
                if index % AT_ONCE == AT_ONCE - 1:
                    await asyncio.sleep(0)
        return hits

    async def _shown(self, order: Sequence[RankedDocument]) -> HitContent:
        if self.query.include_snippets:
            ids = [ChunkId(ranked.key, ranked.passage) for ranked in order]
            return self.content(ids) or await self.documents.shown(ids)
        return HitContent(await self.documents.headers([ranked.key for ranked in order]), {})

    def _hit(self, ranked: RankedDocument, header: DocumentHeader, chunk: TextChunk | None) -> DocumentHit:
        idfs = self.analyzed.idfs if self.analyzed else {}
        return DocumentHit(
            key=header.key,
            id=header.id,
            score=ranked.score,
            metadata=visible_metadata(self.plan, self.query, header.metadata),
            snippet=snippet(chunk, idfs, self.query.snippet_max_chars) if chunk else None,
            passage=ranked.passage,
        )
