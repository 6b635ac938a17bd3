"""What a file says, cut into chunks: small enough for one vector, and each about one thing.

A chunk never has text from both sides of a heading of the first or second level. Smaller sections that belong
together are joined while they are short.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from toolscript.model.ingest import Block, BlockKind
from toolscript.model.library import Chunk, Position, chunk_id
from toolscript.model.passages import passage_terms
from toolscript.sync.chunk_packing import TARGET_TOKENS, Room, Run, ends_a_sentence, packed
from toolscript.sync.chunk_pieces import Piece, TokenCount, estimated_tokens, pieces_of

__all__ = [
    "CHUNKS_VERSION", "MOST_TOKENS", "TARGET_TOKENS", "TokenCount", "chunk_terms", "chunk_text", "cut_into_chunks",
    "estimated_tokens",
]  # fmt: skip

# Part of what a library is known to be made by: raise it whenever a file is read, cut or embedded otherwise.
CHUNKS_VERSION = 1

# What all-MiniLM-L6-v2 reads; larger models are no better with more of a text in one vector.
MOST_TOKENS = 256
# Marks of the model's own around each text, and what some want to see before it.
_OWN_TOKENS = 6
# Of a title and a heading, before a chunk; a letter of a script without spaces is a token of its own.
_MOST_LETTERS, _MOST_WIDE_LETTERS = 100, 30


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
    return passage_terms(" ".join(one for one in above if one), chunk.content)


def _head(title: str, section: str, content: str = "") -> str:
    """Without the heading that the chunk itself begins with."""
    above = [_shortened(one) for one in dict.fromkeys((title, section)) if one and not content.startswith(one)]
    return "".join(f"{one}\n" for one in above)


def _shortened(text: str) -> str:
    return text[: _MOST_LETTERS if text[:_MOST_LETTERS].isascii() else _MOST_WIDE_LETTERS].rstrip()


def _room(title: str, section: str, count: TokenCount) -> int:
    """What a chunk's own text may have; never less than half, however many tokens its title has."""
    return max(MOST_TOKENS // 2, MOST_TOKENS - _OWN_TOKENS - count(_head(title, section)))


def _places(blocks: Sequence[Block]) -> list[_Place]:
    open_headings: list[tuple[int, str]] = []
    places = []
    for block in blocks:
        if block.kind is BlockKind.HEADING:
            open_headings = [one for one in open_headings if one[0] < block.level]
            open_headings.append((block.level, _one_line(block.text)))
        if open_headings:
            level, section = open_headings[-1]
            places.append(_Place(open_headings[0][1], section, level))
        else:
            places.append(_Place())
    return places


def _one_line(text: str) -> str:
    return " ".join(text.split())


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
        headings = headings + sum(one.tokens for one in cut) if block.kind is BlockKind.HEADING else 0
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
    one, other = blocks[before], blocks[after]
    if one.kind is other.kind is BlockKind.LIST:
        return "\n"
    if one.kind is other.kind is BlockKind.TEXT and one.page != other.page and not ends_a_sentence(one.text):
        return " "
    return "\n\n"


def _position(blocks: Sequence[Block], places: Sequence[_Place], run: Run) -> Position:
    first, last = run[0], run[-1]
    # Headings at its beginning lead to the one that the text stands under.
    body = next((one for one in run if blocks[one.block].kind is not BlockKind.HEADING), run[-1])
    block, place = blocks[first.block], places[body.block]
    line = None if block.line is None else block.line + block.text.count("\n", 0, first.start)
    start, end = _offset(block, first.start), _offset(blocks[last.block], last.end)
    return Position(place.chapter, place.section, block.page, line, start, max(start, end))


def _offset(block: Block, at: int) -> int:
    """Where marks were left out, a place within a block is about where it is."""
    span, length = block.end - block.start, len(block.text)
    if span <= 0 or span == length:
        return block.start + at
    return block.start + at * span // max(1, length)
