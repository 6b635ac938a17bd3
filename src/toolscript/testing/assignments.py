"""Which items are in which skills, in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from toolscript.model.assignments import AssignedBy, Assignment
from toolscript.model.decisions import (
    are_same,
    asked_skill,
    by_classifier,
    by_hand,
    by_rule,
    moved,
    unknown_item,
    valid_actor,
)
from toolscript.model.items import StoredItem
from toolscript.model.skills import Classification, Classified, SuggestedSkill
from toolscript.testing.catalog import MemoryCatalog
from toolscript.testing.suggestions import MemorySuggestions
from toolscript.testing.taxonomy import MemoryTaxonomy


class MemoryAssignments:
    def __init__(self, catalog: MemoryCatalog, taxonomy: MemoryTaxonomy, suggestions: MemorySuggestions) -> None:
        self._catalog = catalog
        self._taxonomy = taxonomy
        self._suggestions = suggestions

    async def of(self, item_id: int) -> tuple[Assignment, ...]:
        return self._stored(item_id).assignments

    async def record(self, classified: Sequence[Classified]) -> Mapping[int, tuple[int, tuple[Assignment, ...]]]:
        taken = {}
        for one in classified:
            stored = self._catalog.stored(one.item_id)
            if stored and stored.needs_skills and stored.version == one.version:
                now = self._put(stored, self._resolved(stored.id, one.classification))
                taken[now.id] = (now.version, now.assignments)
        return taken

    async def set_by_hand(self, item_id: int, skill_ids: Sequence[str], by: str) -> tuple[Assignment, ...]:
        actor = valid_actor(by)
        wanted = by_hand(skill_ids, self._taxonomy.active(), actor)
        before = self._stored(item_id)
        self._catalog.by_hand.add(item_id)
        self._suggestions.forget_asks(item_id)
        now = self._put(before, _in_order(wanted))
        details = moved(before.assignments, wanted)
        self._taxonomy.write_audit(actor, "item.assign", item_id, details)
        return now.assignments

    async def release(self, item_id: int, by: str) -> None:
        actor = valid_actor(by)
        self._stored(item_id)
        if item_id in self._catalog.by_hand:
            self._catalog.by_hand.discard(item_id)
            self._catalog.classify_again([item_id])
            self._taxonomy.write_audit(actor, "item.release", item_id, {})

    async def reclassify(
        self, after: int, limit: int, *, skill_id: str | None = None, source: AssignedBy | None = None
    ) -> Sequence[int]:
        if skill_id is not None:
            await self._taxonomy.find(skill_id)
        later = [seen.id for seen in await self._catalog.scan(after, await self._catalog.count())]
        wanted = [
            one.id
            for one in await self._catalog.items(later)
            if one.id not in self._catalog.by_hand and _is_meant(one, skill_id, source)
        ]
        return self._catalog.classify_again(wanted[:limit])

    def _stored(self, item_id: int) -> StoredItem:
        stored = self._catalog.stored(item_id)
        if stored is None:
            raise unknown_item(item_id)
        return stored

    def _resolved(self, item_id: int, said: Classification) -> tuple[Assignment, ...]:
        grants: list[tuple[SuggestedSkill, str | None]] = [*self._suggestions.granted(item_id)]
        self._suggestions.forget_asks(item_id)
        if asked := asked_skill(said.suggestion):
            grants.append((asked[1], self._suggestions.ask(item_id, *asked).skill_id))
        assignments = by_classifier(said.assignments, self._taxonomy.active())
        for suggested, skill_id in grants:
            if skill_id in self._taxonomy.active():
                assignments = by_rule(assignments, suggested, skill_id)
        return assignments

    def _put(self, before: StoredItem, now: tuple[Assignment, ...]) -> StoredItem:
        if not are_same(before.assignments, now):
            return self._catalog.put_anew(replace(before, assignments=now, needs_skills=False))
        same = replace(before, needs_skills=False)
        self._catalog.put_back(same)
        return same


def _is_meant(one: StoredItem, skill_id: str | None, source: AssignedBy | None) -> bool:
    if skill_id is None and source is None:
        return True
    return any(
        skill_id in (None, assignment.skill_id) and source in (None, assignment.source)
        for assignment in one.assignments
    )


def _in_order(wanted: tuple[Assignment, ...]) -> tuple[Assignment, ...]:
    """The primary first, the others by id, as a catalog gives them back."""
    return (*wanted[:1], *sorted(wanted[1:], key=lambda one: one.skill_id))
