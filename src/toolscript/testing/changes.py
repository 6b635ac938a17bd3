"""Definitions that changed after they were seen, in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count

from toolscript.model.changes import (
    MOST_KEPT_PER_ITEM,
    ChangeDetails,
    ChangeState,
    ItemChange,
    difference,
    not_held,
    outdated_change,
    unknown_change,
)
from toolscript.model.decisions import valid_actor
from toolscript.model.items import Item, StoredItem
from toolscript.model.skills import AuditEntry


@dataclass(frozen=True)
class _Row:
    details: ChangeDetails
    definition: Item


class MemoryItemChanges:
    """A catalog in memory makes one and writes to it: `catalog.changes`."""

    def __init__(self, stored: Callable[[int], StoredItem | None], put: Callable[[int, Item], None]) -> None:
        self._stored = stored
        self._put = put
        self._ids = count(1)
        self._rows: dict[int, _Row] = {}
        self.audited: list[AuditEntry] = []

    async def page(self, before: int | None, limit: int, state: ChangeState | None = None) -> Sequence[ItemChange]:
        wanted = [id_ for id_ in sorted(self._rows, reverse=True) if before is None or id_ < before]
        found = [self._change(id_) for id_ in wanted]
        return [one for one in found if state in (None, one.state)][:limit]

    async def find(self, change_id: int) -> ChangeDetails:
        return replace(self._row(change_id).details, change=self._change(change_id))

    async def approve(self, change_id: int, by: str) -> ItemChange:
        actor = valid_actor(by)
        held = self._held(change_id)
        stored = self._stored(held.item_id)
        if stored is None or stored.item.fingerprint != held.old_fingerprint:
            raise outdated_change(held)
        self._put(held.item_id, self._rows[change_id].definition)
        return self._decide(held, ChangeState.APPROVED, actor, "change.approve")

    async def reject(self, change_id: int, by: str) -> ItemChange:
        actor = valid_actor(by)
        return self._decide(self._held(change_id), ChangeState.REJECTED, actor, "change.reject")

    def record(self, source: str, known: StoredItem, new: Item, state: ChangeState) -> None:
        seen = difference(known.item, new)
        change = ItemChange(
            next(self._ids),
            known.id,
            source,
            new.key,
            known.item.server,
            known.item.name,
            known.item.fingerprint,
            new.fingerprint,
            seen.fields,
            state,
            datetime.now(UTC),
        )
        self._rows[change.id] = _Row(ChangeDetails(change, seen.old, seen.new), new)
        for id_ in sorted(self._of(known.id), reverse=True)[MOST_KEPT_PER_ITEM:]:
            del self._rows[id_]

    def hold(self, source: str, known: StoredItem, new: Item) -> bool:
        """Whether it waits for a person; one that was rejected does not."""
        decided = {
            self._rows[id_].details.change.state
            for id_ in self._of(known.id)
            if self._rows[id_].details.change.new_fingerprint == new.fingerprint
        }
        if not decided & {ChangeState.HELD, ChangeState.REJECTED}:
            self.record(source, known, new, ChangeState.HELD)
        return ChangeState.REJECTED not in decided

    def withdraw(self, item_id: int, but: str = "") -> None:
        """Its held changes end, but for those to this fingerprint."""
        for id_ in self._of(item_id):
            change = self._rows[id_].details.change
            if change.state is ChangeState.HELD and change.new_fingerprint != but:
                self._become(id_, replace(change, state=ChangeState.WITHDRAWN))

    def _of(self, item_id: int) -> list[int]:
        return [id_ for id_, row in self._rows.items() if row.details.change.item_id == item_id]

    def _row(self, change_id: int) -> _Row:
        if change_id not in self._rows:
            raise unknown_change(change_id)
        return self._rows[change_id]

    def _change(self, change_id: int) -> ItemChange:
        change = self._row(change_id).details.change
        stored = self._stored(change.item_id)
        return replace(change, server=stored.item.server, name=stored.item.name) if stored else change

    def _held(self, change_id: int) -> ItemChange:
        change = self._change(change_id)
        if change.state is not ChangeState.HELD:
            raise not_held(change)
        return change

    def _decide(self, held: ItemChange, state: ChangeState, actor: str, action: str) -> ItemChange:
        now = datetime.now(UTC)
        self._become(held.id, replace(held, state=state, reviewed_by=actor, reviewed_at=now))
        self.audited.append(AuditEntry(now, actor, action, str(held.id), {"item_id": held.item_id}))
        return self._change(held.id)

    def _become(self, change_id: int, change: ItemChange) -> None:
        row = self._rows[change_id]
        self._rows[change_id] = replace(row, details=replace(row.details, change=change))
