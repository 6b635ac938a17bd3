"""Which pieces go into one chunk together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from toolscript.model.ingest import Block, BlockKind
from toolscript.model.passages import SENTENCE_END
from toolscript.sync.chunk_pieces import Piece

# A chunk is ended at the first good place after half of it, and before a piece that would make it larger.
TARGET_TOKENS = 200
_HALF, _SHORT = TARGET_TOKENS // 2, TARGET_TOKENS // 4
# A heading up to this level begins something else.
PARTING_LEVEL = 2

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
        for at, piece in enumerate(pieces):
            block = self._blocks[piece.block]
            is_heading = self._is_heading(piece)
            if is_heading and piece.start == 0:
                self._level = block.level
            if (is_heading and self._is_full_of_headings(piece)) or (
                self._growing.has_text and not self._goes_on(pieces, at, is_heading)
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

    def _goes_on(self, pieces: Sequence[Piece], at: int, is_heading: bool) -> bool:
        growing, piece = self._growing, pieces[at]
        if is_heading:
            joined = growing.tokens + self._tokens_of_section(pieces, at)
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

    def _tokens_of_section(self, pieces: Sequence[Piece], at: int) -> int:
        """Of a heading and its text, as far as it matters."""
        tokens = 0
        has_text = False
        for piece in pieces[at:]:
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
        levels = [self._blocks[one.block].level for one in short.pieces if self._is_heading(one)]
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
