"""Chunking: the blocks of a file, packed into chunks that fit one vector and are about one thing.

A chunk never has text from both sides of a heading of the first or second level. Smaller sections that belong
together are joined while they are short.
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
# A text as long as this is cut before it is counted: whoever counts takes a while for it.
_MAX_LETTERS_OF_A_TOKEN = 60

_ESTIMATED = re.compile(r"(?P<latin>[A-Za-z]+)|(?P<digits>\d+)|(?P<other>[^\W\d_]+)|(?P<mark>[^\s\w]|_)")

# A chunk is ended at the first good place after half of it, and before a piece that would make it larger.
TARGET_TOKENS = 200
_HALF, _SHORT = TARGET_TOKENS // 2, TARGET_TOKENS // 4
# A heading up to this level begins something else.
PARTING_LEVEL = 2

# Part of what a library is known to be made by: raise it whenever a file is read, cut or embedded otherwise.
CHUNKS_VERSION = 1

# What all-MiniLM-L6-v2 reads; larger models are no better with more of a text in one vector.
MAX_TOKENS = 256
# Marks of the model's own around each text, and what some want to see before it.
_OWN_TOKENS = 6
# Of a title and a heading, before a chunk; a letter of a script without spaces is a token of its own.
_MAX_LETTERS, _MAX_WIDE_LETTERS = 100, 30


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
    if len(text) <= kept * _MAX_LETTERS_OF_A_TOKEN:
        tokens = count(text)
        if tokens <= kept:
            return [Piece(number, 0, len(text), tokens)]
    borders = [_LINE_END, SENTENCE_END, WORD_END] if block.kind is not BlockKind.TEXT else [SENTENCE_END, WORD_END]
    cut = _Cutting(text, whole, count)
    return [Piece(number, start, end, tokens) for start, end, tokens in cut.apart(0, len(text), borders)]


class _Cutting:
    def __init__(self, text: str, maximum: int, count: TokenCount) -> None:
        self._text = text
        self._maximum = maximum
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
        for match in border.finditer(self._text, start, end):
            after = match.start() + len(match.group().rstrip())
            if self._text[start:after].strip():
                yield start, after
                start = match.end()
        if self._text[start:end].strip():
            yield start, end

    def _tokens(self, start: int, end: int) -> int | None:
        """None where they are too many."""
        if end - start > self._maximum * _MAX_LETTERS_OF_A_TOKEN:
            return None
        tokens = self._count(self._text[start:end])
        return tokens if tokens <= self._maximum else None

    def _letters(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """A word that is too long: in halves, until each of them fits. One letter always does."""
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
    """For a model whose tokens nobody can count here: rather too many than too few."""
    return sum(_estimated(match) for match in _ESTIMATED.finditer(text))


def _estimated(match: re.Match[str]) -> int:
    length = match.end() - match.start()
    shares = {"latin": 4, "digits": 2, "other": 1, "mark": 1}
    return -(-length // shares[match.lastgroup or "mark"])


Run = Sequence[Piece]


class Room:
    """How many tokens a chunk may have, by the section it stands in."""

    def __init__(self, by_section: Mapping[str, int]) -> None:
        self._by_section = by_section

    def of(self, section: str) -> int:
        return self._by_section[section]


@dataclass
class _Growing:
    """`level` is that of the heading it began under or with, `room` what it may have at most."""

    level: int
    room: int
    pieces: list[Piece] = field(default_factory=list)
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

    def pack(self, pieces: Sequence[Piece]) -> list[_Growing]:
        for index, piece in enumerate(pieces):
            block = self._blocks[piece.block]
            is_heading = self._is_heading(piece)
            if is_heading and piece.start == 0:
                self._level = block.level
            if (is_heading and self._is_full_of_headings(piece)) or (
                self._growing.has_text and not self._goes_on(pieces, index, is_heading)
            ):
                leading = [] if is_heading else self._lead_ins()
                self._end()
                for one in leading:
                    self._add(one, False)
            self._add(piece, is_heading)
        self._end()
        return self._done

    def _is_full_of_headings(self, piece: Piece) -> bool:
        """So many without a text that with this one they are more than a chunk."""
        growing = self._growing
        return not growing.has_text and bool(growing.pieces) and growing.tokens + piece.tokens > TARGET_TOKENS

    def _goes_on(self, pieces: Sequence[Piece], position: int, is_heading: bool) -> bool:
        growing, piece = self._growing, pieces[position]
        if is_heading:
            joined = growing.tokens + self._tokens_of_section(pieces, position)
            together = PARTING_LEVEL < self._level >= growing.level and joined <= TARGET_TOKENS
            return together and not self._is_end_of_longer()
        tokens = growing.tokens + piece.tokens
        if self._begins_page(piece) and growing.tokens >= _HALF:
            return False
        return tokens <= min(TARGET_TOKENS, growing.room) or (growing.tokens < _HALF and tokens <= growing.room)

    def _is_end_of_longer(self) -> bool:
        """What is left of a section that did not fit is about that section, and not about the next one as well."""
        growing = self._growing
        return growing.tokens >= _SHORT and not self._is_heading(growing.pieces[0]) and bool(self._done)

    def _tokens_of_section(self, pieces: Sequence[Piece], position: int) -> int:
        """Of a heading and its text, as far as it matters."""
        tokens = 0
        has_text = False
        for piece in pieces[position:]:
            is_heading = self._is_heading(piece)
            if (is_heading and has_text) or tokens > TARGET_TOKENS:
                break
            has_text = has_text or not is_heading
            tokens += piece.tokens
        return tokens

    def _begins_page(self, piece: Piece) -> bool:
        last = self._growing.pieces[-1]
        before, block = self._blocks[last.block], self._blocks[piece.block]
        return piece.start == 0 and block.page != before.page and ends_a_sentence(before.text)

    def _add(self, piece: Piece, is_heading: bool) -> None:
        growing = self._growing
        growing.pieces.append(piece)
        growing.tokens += piece.tokens
        if not growing.has_text:
            growing.room = self._room.of(self._sections[piece.block])
            growing.level = min(growing.level, self._level) if growing.pieces[:-1] else self._level
            growing.has_text = not is_heading

    def _lead_ins(self) -> list[Piece]:
        """What only says that something follows is taken off, to go with what does."""
        taken: list[Piece] = []
        pieces = self._growing.pieces
        while self._growing.tokens >= _HALF and self._leads(pieces[-1]):
            taken.insert(0, pieces.pop())
            self._growing.tokens -= taken[0].tokens
        return taken

    def _leads(self, piece: Piece) -> bool:
        block = self._blocks[piece.block]
        is_lead_in = block.kind is BlockKind.TEXT and block.text.rstrip().endswith((":", "："))
        return is_lead_in and piece.end == len(block.text) and piece.tokens < _SHORT

    def _end(self) -> None:
        if not self._growing.pieces:
            return
        if self._done and self._belongs_to_last(self._growing):
            last = self._done[-1]
            last.pieces += self._growing.pieces
            last.tokens += self._growing.tokens
        else:
            self._share_with_short()
            self._done.append(self._growing)
        self._growing = _Growing(0, 0)

    def _share_with_short(self) -> None:
        """The end of something that does not fit into one chunk is not left with a line or two."""
        short = self._growing
        if not self._done or short.tokens >= _SHORT or self._is_heading(short.pieces[0]):
            return
        last = self._done[-1].pieces
        while self._done[-1].tokens > _HALF and not self._is_heading(last[-1]):
            enough = short.tokens >= _SHORT and not self._leads(last[-1])
            if enough or short.tokens + last[-1].tokens > min(_HALF, short.room):
                break
            short.pieces.insert(0, last.pop())
            short.tokens += short.pieces[0].tokens
            self._done[-1].tokens -= short.pieces[0].tokens

    def _is_heading(self, piece: Piece) -> bool:
        return self._blocks[piece.block].kind is BlockKind.HEADING

    def _belongs_to_last(self, short: _Growing) -> bool:
        """What is left over joins what it follows, if it stands under the same heading or a lesser one."""
        last = self._done[-1]
        levels = [self._blocks[piece.block].level for piece in short.pieces if self._is_heading(piece)]
        is_parted = any(level <= max(PARTING_LEVEL, last.level - 1) for level in levels)
        return short.tokens < _SHORT and last.tokens + short.tokens <= last.room and not is_parted


def packed(
    pieces: Sequence[Piece],
    blocks: Sequence[Block],
    sections: Sequence[str],
    room: Room,
    count: Callable[[Run], int],
) -> list[Run]:
    """`count` says how many tokens a run has as it is: put together, they may be more than the pieces had."""
    runs: list[Run] = []
    for growing in _Packing(blocks, sections, room).pack(pieces):
        waiting: list[Run] = [growing.pieces]
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
    """Under which headings a block stands. `level` is that of the innermost, 0 where there is none."""

    chapter: str = ""
    section: str = ""
    level: int = 0


def cut_into_chunks(
    source_id: str, title: str, blocks: Sequence[Block], count: TokenCount, topics: Sequence[str] = ()
) -> list[Chunk]:
    """All that the blocks say, in order, and nothing twice. `count` says how many tokens a text has."""
    places = _places(blocks)
    room = Room({place.section: _room(title, place.section, count) for place in places})
    sections = [place.section for place in places]
    pieces = _pieces(blocks, sections, room, count)
    runs = packed(pieces, blocks, sections, room, lambda run: count(_content(blocks, run)))
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
    """What is embedded: a chunk alone often does not say what it is about."""
    return f"{_head(source_title, chunk.position.section, chunk.content)}{chunk.content}"


def chunk_terms(source_title: str, chunk: Chunk) -> dict[int, float]:
    """As a sparse vector: what stands above it counts like a title."""
    above = dict.fromkeys((chunk.position.section, chunk.position.chapter, source_title))
    return terms_of_chunk(" ".join(one for one in above if one), chunk.content)


def _head(title: str, section: str, content: str = "") -> str:
    """Without the heading that the chunk itself begins with."""
    above = [_shortened(one) for one in dict.fromkeys((title, section)) if one and not content.startswith(one)]
    return "".join(f"{one}\n" for one in above)


def _shortened(text: str) -> str:
    return text[: _MAX_LETTERS if text[:_MAX_LETTERS].isascii() else _MAX_WIDE_LETTERS].rstrip()


def _room(title: str, section: str, count: TokenCount) -> int:
    """What a chunk's own text may have; never less than half, however many tokens its title has."""
    return max(MAX_TOKENS // 2, MAX_TOKENS - _OWN_TOKENS - count(_head(title, section)))


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


def _pieces(blocks: Sequence[Block], sections: Sequence[str], room: Room, count: TokenCount) -> list[Piece]:
    """What follows headings at once leaves room for them."""
    pieces: list[Piece] = []
    headings = 0
    for number, block in enumerate(blocks):
        if not block.text.strip():
            continue
        whole = room.of(sections[number])
        whole = max(whole // 2, whole - headings)
        cut = pieces_of(number, block, whole, min(whole, TARGET_TOKENS), count)
        pieces += cut
        headings = headings + sum(piece.tokens for piece in cut) if block.kind is BlockKind.HEADING else 0
    return pieces


def _content(blocks: Sequence[Block], run: Run) -> str:
    parts: list[str] = []
    first = run[0]
    last = first
    for piece in run[1:]:
        if piece.block != last.block:
            parts += [blocks[first.block].text[first.start : last.end], _between(blocks, last.block, piece.block)]
            first = piece
        last = piece
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
    # Headings at its beginning lead to the one that the text stands under.
    body = next((piece for piece in run if blocks[piece.block].kind is not BlockKind.HEADING), run[-1])
    block, place = blocks[first.block], places[body.block]
    line = None if block.line is None else block.line + block.text.count("\n", 0, first.start)
    start, end = _offset(block, first.start), _offset(blocks[last.block], last.end)
    return Position(place.chapter, place.section, block.page, line, start, max(start, end))


def _offset(block: Block, position: int) -> int:
    """Where marks were left out, a place within a block is about where it is."""
    span, length = block.end - block.start, len(block.text)
    if span <= 0 or span == length:
        return block.start + position
    return block.start + position * span // max(1, length)
