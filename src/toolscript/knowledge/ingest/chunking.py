"""Chunking: packs the blocks of a file into chunks that fit one vector and are about one subject.

A chunk never crosses a heading of the first or second level. Smaller sections that belong together are joined
while they are short.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from toolscript.core.chunking import SENTENCE_END, WORD_END, between_letters, terms_of_chunk
from toolscript.knowledge.model.ingest import Block, BlockKind
from toolscript.knowledge.model.library import Chunk, Position, chunk_id

TokenCount = Callable[[str], int]

_LINE_END = re.compile(r"\n+")
# A text with more letters per token than this is split before it is counted: tokenizing long texts is slow.
_MAX_LETTERS_OF_A_TOKEN = 60

_ESTIMATED = re.compile(r"(?P<latin>[A-Za-z]+)|(?P<digits>\d+)|(?P<other>[^\W\d_]+)|(?P<mark>[^\s\w]|_)")

# A chunk ends at the first good place after half of the target, and before a segment that would exceed it.
TARGET_TOKENS = 200
_HALF, _SHORT = TARGET_TOKENS // 2, TARGET_TOKENS // 4
# A heading up to this level always begins a new chunk.
PARTING_LEVEL = 2

# Part of the pipeline fingerprint: raise it whenever files are read, chunked or embedded differently.
CHUNKS_VERSION = 1

# The input limit of all-MiniLM-L6-v2; larger models are no better with more text in one vector.
MAX_TOKENS = 256
# Special tokens of the model around each text, and the prefix that some models need.
_SPECIAL_TOKENS = 6
# Length of the title and the heading before a chunk; in scripts without spaces each letter is a token.
_MAX_LETTERS, _MAX_WIDE_LETTERS = 100, 30


@dataclass(frozen=True)
class Segment:
    """The text from `start` to `end` (exclusive) of the block with that number."""

    block: int
    start: int
    end: int
    tokens: int


def segments_of(number: int, block: Block, whole: int, part: int, count: TokenCount) -> list[Segment]:
    """Split a block. Code, tables and headings up to `whole` tokens stay whole, other blocks up to `part`."""
    text = block.text
    maximum = whole if block.kind in {BlockKind.CODE, BlockKind.TABLE, BlockKind.HEADING} else part
    if len(text) <= maximum * _MAX_LETTERS_OF_A_TOKEN:
        tokens = count(text)
        if tokens <= maximum:
            return [Segment(number, 0, len(text), tokens)]
    borders = [_LINE_END, SENTENCE_END, WORD_END] if block.kind is not BlockKind.TEXT else [SENTENCE_END, WORD_END]
    splitter = _Splitter(text, whole, count)
    return [Segment(number, start, end, tokens) for start, end, tokens in splitter.split(0, len(text), borders)]


class _Splitter:
    def __init__(self, text: str, maximum: int, count: TokenCount) -> None:
        self._text = text
        self._maximum = maximum
        self._count = count

    def split(self, start: int, end: int, borders: list[re.Pattern[str]]) -> Iterator[tuple[int, int, int]]:
        """Split at the first kind of border; split parts that are still too long at the next kind."""
        if not borders:
            yield from self._letters(start, end)
            return
        for first, after in self._between(start, end, borders[0]):
            tokens = self._tokens(first, after)
            if tokens is not None:
                yield first, after, tokens
            else:
                yield from self.split(first, after, borders[1:])

    def _between(self, start: int, end: int, border: re.Pattern[str]) -> Iterator[tuple[int, int]]:
        """Yield the spans between borders. The white space of a border belongs to neither side."""
        for match in border.finditer(self._text, start, end):
            after = match.start() + len(match.group().rstrip())
            if self._text[start:after].strip():
                yield start, after
                start = match.end()
        if self._text[start:end].strip():
            yield start, end

    def _tokens(self, start: int, end: int) -> int | None:
        """Return the number of tokens; None if they are too many."""
        if end - start > self._maximum * _MAX_LETTERS_OF_A_TOKEN:
            return None
        tokens = self._count(self._text[start:end])
        return tokens if tokens <= self._maximum else None

    def _letters(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Halve a word that is too long until each part fits. One letter always does."""
        waiting = [(start, end)]
        while waiting:
            first, after = waiting.pop()
            tokens = self._tokens(first, after)
            if tokens is not None or after - first <= 1:
                yield first, after, self._maximum if tokens is None else tokens
                continue
            middle = between_letters(self._text, (first + after) // 2, first)
            waiting += [(middle, after), (first, middle)]


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a model without a local tokenizer; the estimate is an upper bound for most texts."""
    return sum(_estimated(match) for match in _ESTIMATED.finditer(text))


def _estimated(match: re.Match[str]) -> int:
    length = match.end() - match.start()
    shares = {"latin": 4, "digits": 2, "other": 1, "mark": 1}
    return -(-length // shares[match.lastgroup or "mark"])


Run = Sequence[Segment]


class Room:
    """The maximum tokens of a chunk, by its section."""

    def __init__(self, by_section: Mapping[str, int]) -> None:
        self._by_section = by_section

    def of(self, section: str) -> int:
        return self._by_section[section]


@dataclass
class _Growing:
    """A chunk being packed. `level` is that of the heading it began under or with, `room` its maximum tokens."""

    level: int
    room: int
    segments: list[Segment] = field(default_factory=list)
    tokens: int = 0
    has_text: bool = False


class _Packing:
    def __init__(self, blocks: Sequence[Block], sections: Sequence[str], room: Room) -> None:
        self._blocks = blocks
        self._sections = sections
        self._room = room
        self._level = 0
        self._done: list[_Growing] = []
        self._growing = _Growing(0, 0)

    def pack(self, segments: Sequence[Segment]) -> list[_Growing]:
        for index, segment in enumerate(segments):
            block = self._blocks[segment.block]
            is_heading = self._is_heading(segment)
            if is_heading and segment.start == 0:
                self._level = block.level
            if (is_heading and self._is_full_of_headings(segment)) or (
                self._growing.has_text and not self._continues_chunk(segments, index, is_heading)
            ):
                leading = [] if is_heading else self._lead_ins()
                self._end()
                for lead_in in leading:
                    self._add(lead_in, False)
            self._add(segment, is_heading)
        self._end()
        return self._done

    def _is_full_of_headings(self, segment: Segment) -> bool:
        """Return whether headings without text, with this one, exceed the target of a chunk."""
        growing = self._growing
        return not growing.has_text and bool(growing.segments) and growing.tokens + segment.tokens > TARGET_TOKENS

    def _continues_chunk(self, segments: Sequence[Segment], position: int, is_heading: bool) -> bool:
        growing, segment = self._growing, segments[position]
        if is_heading:
            joined = growing.tokens + self._tokens_of_section(segments, position)
            together = PARTING_LEVEL < self._level >= growing.level and joined <= TARGET_TOKENS
            return together and not self._is_end_of_longer()
        tokens = growing.tokens + segment.tokens
        if self._begins_page(segment) and growing.tokens >= _HALF:
            return False
        return tokens <= min(TARGET_TOKENS, growing.room) or (growing.tokens < _HALF and tokens <= growing.room)

    def _is_end_of_longer(self) -> bool:
        """Return whether the chunk is the rest of a longer section: it must not mix with the next section."""
        growing = self._growing
        return growing.tokens >= _SHORT and not self._is_heading(growing.segments[0]) and bool(self._done)

    def _tokens_of_section(self, segments: Sequence[Segment], position: int) -> int:
        """Count the tokens of a heading and its text, up to the target."""
        tokens = 0
        has_text = False
        for segment in segments[position:]:
            is_heading = self._is_heading(segment)
            if (is_heading and has_text) or tokens > TARGET_TOKENS:
                break
            has_text = has_text or not is_heading
            tokens += segment.tokens
        return tokens

    def _begins_page(self, segment: Segment) -> bool:
        last = self._growing.segments[-1]
        before, block = self._blocks[last.block], self._blocks[segment.block]
        return segment.start == 0 and block.page != before.page and ends_a_sentence(before.text)

    def _add(self, segment: Segment, is_heading: bool) -> None:
        growing = self._growing
        growing.segments.append(segment)
        growing.tokens += segment.tokens
        if not growing.has_text:
            growing.room = self._room.of(self._sections[segment.block])
            growing.level = min(growing.level, self._level) if growing.segments[:-1] else self._level
            growing.has_text = not is_heading

    def _lead_ins(self) -> list[Segment]:
        """Remove and return trailing lead-ins ("as follows:"), which belong to the next chunk."""
        taken: list[Segment] = []
        segments = self._growing.segments
        while self._growing.tokens >= _HALF and self._leads(segments[-1]):
            taken.insert(0, segments.pop())
            self._growing.tokens -= taken[0].tokens
        return taken

    def _leads(self, segment: Segment) -> bool:
        block = self._blocks[segment.block]
        is_lead_in = block.kind is BlockKind.TEXT and block.text.rstrip().endswith((":", "："))
        return is_lead_in and segment.end == len(block.text) and segment.tokens < _SHORT

    def _end(self) -> None:
        if not self._growing.segments:
            return
        if self._done and self._belongs_to_last(self._growing):
            last = self._done[-1]
            last.segments += self._growing.segments
            last.tokens += self._growing.tokens
        else:
            self._share_with_short()
            self._done.append(self._growing)
        self._growing = _Growing(0, 0)

    def _share_with_short(self) -> None:
        """Move segments from the previous chunk to the last, short part of a split section."""
        short = self._growing
        if not self._done or short.tokens >= _SHORT or self._is_heading(short.segments[0]):
            return
        last = self._done[-1].segments
        while self._done[-1].tokens > _HALF and not self._is_heading(last[-1]):
            enough = short.tokens >= _SHORT and not self._leads(last[-1])
            if enough or short.tokens + last[-1].tokens > min(_HALF, short.room):
                break
            short.segments.insert(0, last.pop())
            short.tokens += short.segments[0].tokens
            self._done[-1].tokens -= short.segments[0].tokens

    def _is_heading(self, segment: Segment) -> bool:
        return self._blocks[segment.block].kind is BlockKind.HEADING

    def _belongs_to_last(self, short: _Growing) -> bool:
        """Return whether a short rest joins the previous chunk: under the same heading or a deeper one."""
        last = self._done[-1]
        levels = [self._blocks[segment.block].level for segment in short.segments if self._is_heading(segment)]
        is_parted = any(level <= max(PARTING_LEVEL, last.level - 1) for level in levels)
        return short.tokens < _SHORT and last.tokens + short.tokens <= last.room and not is_parted


def packed(
    segments: Sequence[Segment],
    blocks: Sequence[Block],
    sections: Sequence[str],
    room: Room,
    count: Callable[[Run], int],
) -> list[Run]:
    """Pack segments into runs. `count` counts the tokens of a joined run, which can exceed their sum."""
    runs: list[Run] = []
    for growing in _Packing(blocks, sections, room).pack(segments):
        waiting: list[Run] = [growing.segments]
        while waiting:
            run = waiting.pop()
            if len(run) > 1 and count(run) > growing.room:
                waiting += [run[len(run) // 2 :], run[: len(run) // 2]]
            else:
                runs.append(run)
    return runs


def ends_a_sentence(text: str) -> bool:
    return SENTENCE_END.search(text.rstrip()[-4:] + " ") is not None


@dataclass(frozen=True)
class _Place:
    """The headings above a block. `level` is that of the innermost, 0 without headings."""

    chapter: str = ""
    section: str = ""
    level: int = 0


def cut_into_chunks(
    source_id: str, title: str, blocks: Sequence[Block], count: TokenCount, topics: Sequence[str] = ()
) -> list[Chunk]:
    """Return chunks with the whole text of the blocks, in order, without overlap. `count` counts tokens."""
    places = _places(blocks)
    room = Room({place.section: _room(title, place.section, count) for place in places})
    sections = [place.section for place in places]
    segments = _segments(blocks, sections, room, count)
    runs = packed(segments, blocks, sections, room, lambda run: count(_content(blocks, run)))
    seen: Counter[str] = Counter()
    chunks = []
    for number, run in enumerate(runs):
        content = _content(blocks, run)
        id_ = chunk_id(source_id, content, seen[content])
        seen[content] += 1
        position = _position(blocks, places, run)
        chunks.append(Chunk(id_, source_id, number, content, position, count(content), tuple(topics)))
    return chunks


def chunk_text(source_title: str, chunk: Chunk) -> str:
    """Return the text to embed, with title and section: a chunk alone often does not name its subject."""
    return f"{_head(source_title, chunk.position.section, chunk.content)}{chunk.content}"


def chunk_terms(source_title: str, chunk: Chunk) -> dict[int, float]:
    """Return the sparse vector; the headings above the chunk weigh like a title."""
    above = dict.fromkeys((chunk.position.section, chunk.position.chapter, source_title))
    return terms_of_chunk(" ".join(heading for heading in above if heading), chunk.content)


def _head(title: str, section: str, content: str = "") -> str:
    """Return title and section, without one that the content begins with."""
    above = [
        _shortened(heading)
        for heading in dict.fromkeys((title, section))
        if heading and not content.startswith(heading)
    ]
    return "".join(f"{heading}\n" for heading in above)


def _shortened(text: str) -> str:
    return text[: _MAX_LETTERS if text[:_MAX_LETTERS].isascii() else _MAX_WIDE_LETTERS].rstrip()


def _room(title: str, section: str, count: TokenCount) -> int:
    """Return the maximum tokens of a chunk's own text; at least half, however long its title is."""
    return max(MAX_TOKENS // 2, MAX_TOKENS - _SPECIAL_TOKENS - count(_head(title, section)))


def _places(blocks: Sequence[Block]) -> list[_Place]:
    open_headings: list[tuple[int, str]] = []
    places = []
    for block in blocks:
        if block.kind is BlockKind.HEADING:
            open_headings = [open_heading for open_heading in open_headings if open_heading[0] < block.level]
            open_headings.append((block.level, " ".join(block.text.split())))
        if open_headings:
            level, section = open_headings[-1]
            places.append(_Place(open_headings[0][1], section, level))
        else:
            places.append(_Place())
    return places


def _segments(blocks: Sequence[Block], sections: Sequence[str], room: Room, count: TokenCount) -> list[Segment]:
    """Split all blocks; a block directly after headings leaves room for them."""
    segments: list[Segment] = []
    headings = 0
    for number, block in enumerate(blocks):
        if not block.text.strip():
            continue
        whole = room.of(sections[number])
        whole = max(whole // 2, whole - headings)
        cut = segments_of(number, block, whole, min(whole, TARGET_TOKENS), count)
        segments += cut
        headings = headings + sum(segment.tokens for segment in cut) if block.kind is BlockKind.HEADING else 0
    return segments


def _content(blocks: Sequence[Block], run: Run) -> str:
    parts: list[str] = []
    first = run[0]
    last = first
    for segment in run[1:]:
        if segment.block != last.block:
            parts += [
                blocks[first.block].text[first.start : last.end],
                _between(blocks, last.block, segment.block),
            ]
            first = segment
        last = segment
    parts.append(blocks[first.block].text[first.start : last.end])
    return "".join(parts).strip("\n")


def _between(blocks: Sequence[Block], before: int, after: int) -> str:
    block, other = blocks[before], blocks[after]
    if block.kind is other.kind is BlockKind.LIST:
        return "\n"
    if block.kind is other.kind is BlockKind.TEXT and block.page != other.page and not ends_a_sentence(block.text):
        return " "
    return "\n\n"


def _position(blocks: Sequence[Block], places: Sequence[_Place], run: Run) -> Position:
    first, last = run[0], run[-1]
    # Headings at the beginning of a chunk lead to the one above its text.
    body = next((segment for segment in run if blocks[segment.block].kind is not BlockKind.HEADING), run[-1])
    block, place = blocks[first.block], places[body.block]
    line = None if block.line is None else block.line + block.text.count("\n", 0, first.start)
    start, end = _offset(block, first.start), _offset(blocks[last.block], last.end)
    return Position(place.chapter, place.section, block.page, line, start, max(start, end))


def _offset(block: Block, position: int) -> int:
    """Return the offset in the source; approximate where the block omits markup."""
    span, length = block.end - block.start, len(block.text)
    if span <= 0 or span == length:
        return block.start + position
    return block.start + position * span // max(1, length)
