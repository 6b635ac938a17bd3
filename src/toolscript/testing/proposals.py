"""In-memory proposals: the accepted moves of items, and their undoing. They share the queue of suggestions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from toolscript.core.items import Assignment, StoredItem
from toolscript.core.taxonomy import ProposedChange
from toolscript.testing.catalog import MemoryCatalog, MemoryDirtySet
from toolscript.tools.model.proposals import Move, moved_assignments, restored_assignments
from toolscript.tools.model.skills import are_same

MOVED_AT_ONCE = 1_000


@dataclass
class MemoryMoves:
    """The moves of one proposal. `position` is None while nothing is to be done."""

    moves: dict[int, Move] = field(default_factory=dict)
    previous: dict[int, tuple[Assignment, ...]] = field(default_factory=dict)
    position: float | None = None

    def next_ids(self) -> list[int]:
        after = self.position or 0
        return sorted(item_id for item_id in self.moves if item_id > after)[:MOVED_AT_ONCE]


@dataclass(frozen=True)
class MemoryMover:
    """Moves items a page at a time, as a worker does."""

    catalog: MemoryCatalog
    dirty: MemoryDirtySet
    active: frozenset[str]

    def move(self, moves: MemoryMoves, change: ProposedChange, reason: str, ids: Sequence[int]) -> int:
        moved = 0
        for item_id in ids:
            stored, move = self._movable(item_id), moves.moves[item_id].within(self.active)
            if stored is not None and move.skill_ids:
                moves.previous.setdefault(item_id, stored.assignments)
                self._put(stored, moved_assignments(stored.assignments, move, change.retires, reason))
                moved += 1
        return moved

    def restore(self, moves: MemoryMoves, change: ProposedChange, ids: Sequence[int]) -> None:
        for item_id in ids:
            stored, old = self._movable(item_id), moves.previous.get(item_id)
            if stored is None or old is None:
                continue
            kept = restored_assignments(stored.assignments, old, moves.moves[item_id], change, self.active)
            if old and not kept:
                self.catalog.classify_again([item_id])
            else:
                self._put(stored, kept)

    def has_dirty(self, moves: MemoryMoves) -> bool:
        return not self.dirty.live_dirty().isdisjoint(moves.moves)

    def in_skill(self, skill_id: str, namespace: str) -> tuple[list[int], bool]:
        """Return the items that can move out of a skill, and whether others stay: those that a person put there,
        and those of other namespaces."""
        members = [
            stored for _, stored in self.catalog.entries() if stored.is_active and skill_id in stored.skill_ids
        ]
        loose = [
            stored.id
            for stored in members
            if stored.id not in self.catalog.by_hand and stored.namespace == namespace
        ]
        return loose, len(loose) < len(members)

    def _movable(self, item_id: int) -> StoredItem | None:
        return None if item_id in self.catalog.by_hand else self.catalog.stored(item_id)

    def _put(self, stored: StoredItem, now: tuple[Assignment, ...]) -> None:
        if not are_same(stored.assignments, now):
            self.catalog.put_anew(replace(stored, assignments=now))


def renamed(moves: Mapping[int, Move], old: str, new: str) -> dict[int, Move]:
    return {
        item_id: move._replace(
            skill_ids=tuple(new if skill_id == old else skill_id for skill_id in move.skill_ids)
        )
        for item_id, move in moves.items()
    }
