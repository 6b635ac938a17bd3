"""Skills in memory: taxonomy, assignments, centroids and suggestions."""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import count

from toolscript.core.items import AssignedBy, Assignment, StoredItem
from toolscript.core.retrieval.model import Vector
from toolscript.core.taxonomy import (
    MAX_COUNTED,
    AuditEntry,
    Classification,
    Classified,
    Member,
    Skill,
    SkillEntry,
    SuggestedSkill,
    Suggestion,
    SuggestionState,
)
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.testing.catalog import MemoryCatalog, MemoryDirtySet
from toolscript.tools.model.catalog import Claim
from toolscript.tools.model.centroids import Centroid, Counted, Rebuilt, SkillState, added_up, differences, rebuilt
from toolscript.tools.model.skills import (
    action_of,
    are_same,
    asked_skill,
    audit_action,
    by_classifier,
    by_hand,
    by_rule,
    changed_meanwhile,
    decided_already,
    difference,
    inactive_skill,
    moved,
    taken_skill,
    unknown_item,
    unknown_skill,
    unknown_suggestion,
    valid_actor,
    valid_skill,
)

ListSkills = Callable[[], Awaitable[Sequence[Skill]]]


@dataclass(frozen=True)
class _Kept:
    skill: Skill
    revision: int
    created_at: datetime
    updated_at: datetime


class MemoryTaxonomy:
    """`count_tools` tells how many items of a skill are indexed: whoever counts them says so here."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog
        self._revisions = count(1)
        self._kept: dict[str, _Kept] = {}
        self._audit: list[AuditEntry] = []
        self.count_tools: Callable[[str], int] = lambda _skill_id: 0

    async def revision(self) -> int:
        return max((one.revision for one in self._kept.values()), default=0)

    async def page(self, after: str, limit: int, *, active_only: bool = False) -> Sequence[SkillEntry]:
        shown = [one.skill.id for one in self._kept.values() if one.skill.is_active or not active_only]
        return [self._entry(skill_id) for skill_id in sorted(shown) if skill_id > after][:limit]

    async def find(self, skill_id: str) -> SkillEntry:
        if skill_id not in self._kept:
            raise unknown_skill(skill_id)
        return self._entry(skill_id)

    async def add(self, skill: Skill, by: str) -> SkillEntry:
        return self.add_now(skill, by)

    def add_now(self, skill: Skill, by: str) -> SkillEntry:
        actor, skill = valid_actor(by), valid_skill(skill)
        if skill.id in self._kept:
            raise taken_skill(skill.id)
        now = datetime.now(UTC)
        self._kept[skill.id] = _Kept(skill, next(self._revisions), now, now)
        self.write_audit(actor, "skill.add", skill.id, {"after": asdict(skill)})
        return self._entry(skill.id)

    async def change(self, skill: Skill, by: str, instead_of: Skill | None = None) -> SkillEntry:
        actor, skill = valid_actor(by), valid_skill(skill)
        before = (await self.find(skill.id)).skill
        if instead_of not in (None, before):
            raise changed_meanwhile(skill.id)
        if skill != before:
            kept = self._kept[skill.id]
            self._kept[skill.id] = replace(
                kept, skill=skill, revision=next(self._revisions), updated_at=datetime.now(UTC)
            )
            self.write_audit(actor, action_of(before, skill), skill.id, difference(before, skill))
        return self._entry(skill.id)

    async def members(self, skill_id: str, after: int, limit: int) -> Sequence[Member]:
        await self.find(skill_id)
        ids = [seen.id for seen in await self._catalog.scan(after, await self._catalog.count())]
        return [
            Member(
                stored.id,
                stored.item.kind,
                stored.item.server,
                stored.item.name,
                stored.item.description,
                assignment,
                is_primary=assignment.skill_id == stored.primary_skill_id,
            )
            for stored in await self._catalog.items(ids)
            for assignment in stored.assignments
            if assignment.skill_id == skill_id
        ][:limit]

    async def audit(self, before: int | None, limit: int) -> Sequence[tuple[int, AuditEntry]]:
        numbered = list(enumerate(self._audit, 1))
        return [(number, entry) for number, entry in reversed(numbered) if before is None or number < before][
            :limit
        ]

    def write_audit(self, actor: str, action: str, subject: object, details: Mapping[str, object]) -> None:
        kept = json.loads(json.dumps(details))
        self._audit.append(AuditEntry(datetime.now(UTC), actor, action, str(subject), kept))

    async def skills(self) -> Sequence[Skill]:
        return [kept.skill for kept in self._kept.values()]

    def active(self) -> frozenset[str]:
        return frozenset(skill_id for skill_id, kept in self._kept.items() if kept.skill.is_active)

    def _entry(self, skill_id: str) -> SkillEntry:
        kept = self._kept[skill_id]
        return SkillEntry(kept.skill, self.count_tools(skill_id), kept.created_at, kept.updated_at)


@dataclass
class _Skill:
    skill: Skill
    version: int
    point_version: int = 0


class MemorySkillVectors:
    """`skills` tells which there are, however they got there."""

    def __init__(self, dirty: MemoryDirtySet, skills: ListSkills) -> None:
        self._dirty = dirty
        self._list_skills = skills
        self._counted: dict[int, dict[int, Counted]] = {}
        self.sums: dict[int, dict[str, Centroid]] = {}
        self._skills: dict[int, dict[str, _Skill]] = {}

    async def recall(self, generation: int, text_hashes: Mapping[int, str]) -> Mapping[int, Vector]:
        counted = self._counted.get(generation, {})
        return {
            id_: counted[id_].vector
            for id_, text_hash in text_hashes.items()
            if id_ in counted and counted[id_].text_hash == text_hash
        }

    async def count(self, generation: int, claim: Claim, counted: Sequence[Counted]) -> None:
        ours = self._dirty.held_at_version(generation, claim)
        known = self._counted.setdefault(generation, {})
        before = [known.pop(id_) for id_ in ours if id_ in known]
        now = [one for one in counted if one.item_id in ours]
        known.update((one.item_id, one) for one in now)
        await self._move(generation, differences(added_up(before), added_up(now)))

    async def has_counted(self, generation: int) -> bool:
        return bool(self._counted.get(generation))

    async def behind(self, generation: int, limit: int, only: Collection[str] = ()) -> Sequence[SkillState]:
        rows = await self._rows(generation)
        sums = self.sums.get(generation, {})
        waiting = sorted(
            (row.point_version, id_)
            for id_, row in rows.items()
            if row.point_version < row.version and (not only or id_ in only)
        )
        return [
            SkillState(rows[id_].skill, sums.get(id_, Centroid.nothing()), rows[id_].version)
            for _, id_ in waiting[:limit]
        ]

    async def followed(self, generation: int, versions: Mapping[str, int]) -> None:
        rows = await self._rows(generation)
        for id_, version in versions.items():
            rows[id_].point_version = max(rows[id_].point_version, version)

    async def written(self, generation: int) -> Mapping[int, tuple[int, int]]:
        rows = await self._rows(generation)
        return {row.skill.point_id: (row.point_version, row.version) for row in rows.values()}

    async def all_behind(self, generation: int) -> None:
        for row in (await self._rows(generation)).values():
            row.point_version, row.version = 0, self._dirty.next_version()

    async def rebuild(
        self, generation: int, only: Collection[str] = (), on_progress: OnProgress = silent
    ) -> Rebuilt:
        items = [
            one
            for one in self._counted.get(generation, {}).values()
            if not only or not one.weights.keys().isdisjoint(only)
        ]
        rows = await self._rows(generation)
        wanted = set(only) or set(rows)
        exact = {skill: one for skill, one in added_up(items).items() if skill in wanted}
        sums = self.sums.get(generation, {})
        kept = {skill: sums.get(skill, Centroid.nothing()) for skill in wanted}
        on_progress(Progress("add up", len(items)))
        await self._move(generation, differences(kept, exact))
        return rebuilt(kept, exact, len(items))

    async def _move(self, generation: int, moves: Mapping[str, Centroid]) -> None:
        rows = await self._rows(generation)
        sums = self.sums.setdefault(generation, {})
        for skill, move in moves.items():
            sums[skill] = sums.get(skill, Centroid.nothing()) + move
            rows[skill].version = self._dirty.next_version()

    async def _rows(self, generation: int) -> dict[str, _Skill]:
        rows = self._skills.setdefault(generation, {})
        for skill in await self._list_skills():
            if skill.id not in rows or rows[skill.id].skill != skill:
                written = rows[skill.id].point_version if skill.id in rows else 0
                rows[skill.id] = _Skill(skill, self._dirty.next_version(), written)
        return rows


@dataclass
class _Suggested:
    suggestion: Suggestion
    items: set[int] = field(default_factory=set)


class MemorySuggestions:
    def __init__(self, catalog: MemoryCatalog, taxonomy: MemoryTaxonomy) -> None:
        self._catalog = catalog
        self._taxonomy = taxonomy
        self._ids = count(1)
        self._by_key: dict[str, _Suggested] = {}
        catalog.forget_asks = self._forget_all_asks

    async def page(
        self, after: int, limit: int, state: SuggestionState | None = SuggestionState.PENDING
    ) -> Sequence[Suggestion]:
        ids = sorted(one.suggestion.id for one in self._by_key.values() if one.suggestion.id > after)
        suggestions = [await self.find(id_) for id_ in ids]
        asked = [one for one in suggestions if one.asked_by or one.state is not SuggestionState.PENDING]
        return [one for one in asked if state is None or one.state is state][:limit]

    async def find(self, suggestion_id: int) -> Suggestion:
        suggested = self._asked(suggestion_id)
        return replace(suggested.suggestion, asked_by=min(len(self._asking(suggested)), MAX_COUNTED))

    async def asked_by(self, suggestion_id: int, after: int, limit: int) -> Sequence[int]:
        return [id_ for id_ in self._asking(self._asked(suggestion_id)) if id_ > after][:limit]

    async def approve(self, suggestion_id: int, skill: Skill, by: str) -> Suggestion:
        actor, suggested = valid_actor(by), self._pending(suggestion_id)
        self._taxonomy.add_now(skill, actor)
        self._decide(suggested, SuggestionState.APPROVED, actor, skill.id)
        self._catalog.classify_again(suggested.items)
        return await self.find(suggestion_id)

    async def reject(self, suggestion_id: int, by: str) -> Suggestion:
        actor, suggested = valid_actor(by), self._pending(suggestion_id)
        self._decide(suggested, SuggestionState.REJECTED, actor)
        return await self.find(suggestion_id)

    async def merge(self, suggestion_id: int, into: str, by: str) -> Suggestion:
        actor, suggested = valid_actor(by), self._pending(suggestion_id)
        if not (await self._taxonomy.find(into)).skill.is_active:
            raise inactive_skill(into)
        self._decide(suggested, SuggestionState.MERGED, actor, into)
        self._catalog.classify_again(suggested.items)
        return await self.find(suggestion_id)

    async def call_more(self) -> int:
        """All who asked are called by the decision itself."""
        return 0

    def granted(self, item_id: int) -> list[tuple[SuggestedSkill, str]]:
        """What a person decided about what this item had asked for, as it is."""
        found = [
            (key, suggested.suggestion)
            for key, suggested in sorted(self._by_key.items())
            if item_id in suggested.items
        ]
        return [
            (suggestion.suggested, suggestion.skill_id)
            for _, suggestion in found
            if suggestion.skill_id is not None
        ]

    def ask(self, item_id: int, key: str, suggested: SuggestedSkill) -> Suggestion:
        """Gathers on the pending one of its key; what was decided is answered as it is."""
        asked = self._by_key.get(key)
        if asked is None:
            new = Suggestion(next(self._ids), suggested, SuggestionState.PENDING, 0, datetime.now(UTC))
            asked = self._by_key[key] = _Suggested(new)
        if asked.suggestion.state is SuggestionState.PENDING:
            asked.items.add(item_id)
        return asked.suggestion

    def forget_asks(self, item_id: int) -> None:
        """What a decided suggestion was asked by stays: it is what the decision rests on."""
        for suggested in self._by_key.values():
            if suggested.suggestion.state is SuggestionState.PENDING:
                suggested.items.discard(item_id)

    def _forget_all_asks(self, item_id: int) -> None:
        for suggested in self._by_key.values():
            suggested.items.discard(item_id)

    def _asked(self, suggestion_id: int) -> _Suggested:
        for suggested in self._by_key.values():
            if suggested.suggestion.id == suggestion_id:
                return suggested
        raise unknown_suggestion(suggestion_id)

    def _asking(self, suggested: _Suggested) -> list[int]:
        """Items that left the catalog ask for nothing."""
        return sorted(id_ for id_ in suggested.items if self._catalog.stored(id_) is not None)

    def _pending(self, suggestion_id: int) -> _Suggested:
        suggested = self._asked(suggestion_id)
        if suggested.suggestion.state is not SuggestionState.PENDING:
            raise decided_already(suggested.suggestion)
        return suggested

    def _decide(
        self, suggested: _Suggested, state: SuggestionState, actor: str, skill_id: str | None = None
    ) -> None:
        before = suggested.suggestion
        suggested.suggestion = replace(
            before, state=state, reviewed_by=actor, reviewed_at=datetime.now(UTC), skill_id=skill_id
        )
        details = {"name": before.suggested.name, "asked_by": len(self._asking(suggested)), "skill_id": skill_id}
        self._taxonomy.write_audit(actor, audit_action(state), before.id, details)


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
            item.id
            for item in await self._catalog.items(later)
            if item.id not in self._catalog.by_hand and _is_meant(item, skill_id, source)
        ]
        return self._catalog.classify_again(wanted[:limit])

    def _stored(self, item_id: int) -> StoredItem:
        stored = self._catalog.stored(item_id)
        if stored is None:
            raise unknown_item(item_id)
        return stored

    def _resolved(self, item_id: int, classification: Classification) -> tuple[Assignment, ...]:
        grants: list[tuple[SuggestedSkill, str | None]] = [*self._suggestions.granted(item_id)]
        self._suggestions.forget_asks(item_id)
        if asked := asked_skill(classification.suggestion):
            grants.append((asked[1], self._suggestions.ask(item_id, *asked).skill_id))
        assignments = by_classifier(classification.assignments, self._taxonomy.active())
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


def _is_meant(item: StoredItem, skill_id: str | None, source: AssignedBy | None) -> bool:
    if skill_id is None and source is None:
        return True
    return any(
        skill_id in (None, assignment.skill_id) and source in (None, assignment.source)
        for assignment in item.assignments
    )


def _in_order(wanted: tuple[Assignment, ...]) -> tuple[Assignment, ...]:
    """The primary first, the others by id, as a catalog gives them back."""
    return (*wanted[:1], *sorted(wanted[1:], key=lambda assignment: assignment.skill_id))
