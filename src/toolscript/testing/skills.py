"""In-memory skills: taxonomy, assignments, centroids and suggestions.

A view of some namespaces is a shallow copy: it shares the rows.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import count

from toolscript.core.items import MIN_CONFIDENCE, AssignedBy, Assignment, Item, StoredItem
from toolscript.core.namespaces import DEFAULT_NAMESPACE, Namespaces, seen_in
from toolscript.core.retrieval.model import Vector
from toolscript.core.taxonomy import (
    MAX_COUNTED,
    Actor,
    AuditEntry,
    Classification,
    Classified,
    DecidedBy,
    EnhancedDescription,
    Member,
    ProposalKind,
    Skill,
    SkillEntry,
    SuggestedSkill,
    Suggestion,
    SuggestionState,
    skill_point_id,
)
from toolscript.core.values import OnProgress, Progress, silent
from toolscript.testing.catalog import MemoryCatalog, MemoryDirtySet
from toolscript.tools.model.catalog import Claim
from toolscript.tools.model.centroids import (
    Centroid,
    Counted,
    Rebuilt,
    SkillKey,
    SkillState,
    differences,
    rebuilt,
    sum_by_namespace,
)
from toolscript.tools.model.proposals import Observed, Proposal, Submitted, not_accepted
from toolscript.tools.model.skills import (
    action_of,
    are_same,
    audit_action,
    by_classifier,
    by_hand,
    by_rule,
    changed_meanwhile,
    decided_already,
    difference,
    inactive_skill,
    is_outdated,
    moved,
    stored_suggestion,
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
    """`count_tools` returns the number of a skill's indexed items in a view; the double that counts sets it."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._catalog = catalog
        self._revisions = count(1)
        self._kept: dict[str, _Kept] = {}
        self._audit: list[AuditEntry] = []
        self._described: dict[tuple[str, str], EnhancedDescription] = {}
        self.namespaces: Namespaces = None
        self.count_tools: Callable[[str, Namespaces], int] = lambda _skill_id, _namespaces: 0

    def within(self, namespaces: Namespaces) -> "MemoryTaxonomy":
        view = copy(self)
        view.namespaces = namespaces
        return view

    async def revision(self) -> int:
        return max((entry.revision for entry in self._kept.values()), default=0)

    async def page(self, after: str, limit: int, *, active_only: bool = False) -> Sequence[SkillEntry]:
        ids = [entry.skill.id for entry in self._kept.values() if entry.skill.is_active or not active_only]
        return [self._entry(skill_id) for skill_id in sorted(ids) if skill_id > after][:limit]

    async def find(self, skill_id: str) -> SkillEntry:
        if skill_id not in self._kept:
            raise unknown_skill(skill_id)
        return self._entry(skill_id)

    async def add(self, skill: Skill, by: DecidedBy) -> SkillEntry:
        return self.add_now(skill, by)

    def add_now(self, skill: Skill, by: DecidedBy | None = None) -> SkillEntry:
        skill = valid_skill(skill)
        if skill.id in self._kept:
            raise taken_skill(skill.id)
        now = datetime.now(UTC)
        self._kept[skill.id] = _Kept(skill, next(self._revisions), now, now)
        if by is not None:
            self.write_audit(valid_actor(by), "skill.add", skill.id, {"after": asdict(skill)})
        return self._entry(skill.id)

    async def change(self, skill: Skill, by: DecidedBy, instead_of: Skill | None = None) -> SkillEntry:
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

    async def set_active(self, skill_id: str, by: DecidedBy, *, is_active: bool) -> None:
        await self.change(replace(self._kept[skill_id].skill, is_active=is_active), by)

    def set_active_now(self, skill_id: str, *, is_active: bool) -> None:
        """As a part of a decision, whose entry the audit has."""
        kept = self._kept[skill_id]
        self._kept[skill_id] = replace(
            kept,
            skill=replace(kept.skill, is_active=is_active),
            revision=next(self._revisions),
            updated_at=datetime.now(UTC),
        )

    async def members(self, skill_id: str, after: int, limit: int) -> Sequence[Member]:
        await self.find(skill_id)
        ids = [point.id for point in await self._catalog.scan(after, await self._catalog.count())]
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
            if seen_in(self.namespaces, stored.namespace)
            for assignment in stored.assignments
            if assignment.skill_id == skill_id
        ][:limit]

    async def last_member(self, skill_id: str) -> int:
        members = await self.members(skill_id, 0, await self._catalog.count())
        return max((member.item_id for member in members), default=0)

    async def undescribed(self, namespace: str, after: str, limit: int) -> Sequence[SkillEntry]:
        entries = await self.within(frozenset({namespace})).page(after, len(self._kept), active_only=True)
        return [
            entry
            for entry in entries
            if entry.tool_count
            and (
                (described := self._described.get((entry.skill.id, namespace))) is None
                or is_outdated(described, entry)
            )
        ][:limit]

    async def describe(self, descriptions: Sequence[EnhancedDescription]) -> None:
        self._described.update({(one.entry.skill.id, one.namespace): one for one in descriptions})

    async def audit(self, before: int | None, limit: int) -> Sequence[tuple[int, AuditEntry]]:
        seen = [
            (number, entry)
            for number, entry in enumerate(self._audit, 1)
            if (before is None or number < before)
            and (entry.namespace is None or seen_in(self.namespaces, entry.namespace))
        ]
        return seen[::-1][:limit]

    def write_audit(
        self,
        actor: Actor,
        action: str,
        subject: object,
        details: Mapping[str, object],
        namespace: str | None = None,
    ) -> None:
        kept = json.loads(json.dumps(details))
        entry = AuditEntry(
            datetime.now(UTC), actor.name, action, str(subject), kept, namespace, actor.on_behalf_of
        )
        self._audit.append(entry)

    async def skills(self) -> Sequence[Skill]:
        return [kept.skill for kept in self._kept.values()]

    def active(self) -> frozenset[str]:
        return frozenset(skill_id for skill_id, kept in self._kept.items() if kept.skill.is_active)

    def _entry(self, skill_id: str) -> SkillEntry:
        kept = self._kept[skill_id]
        described = [
            (namespace != DEFAULT_NAMESPACE, namespace, one.text)
            for (described_id, namespace), one in self._described.items()
            if described_id == skill_id
            and seen_in(self.namespaces, namespace)
            and self.count_tools(skill_id, frozenset({namespace}))
        ]
        return SkillEntry(
            kept.skill,
            self.count_tools(skill_id, self.namespaces),
            kept.created_at,
            kept.updated_at,
            min(described, default=(False, "", ""))[-1],
        )


@dataclass
class _Skill:
    skill: Skill
    version: int
    point_version: int = 0


class MemorySkillVectors:
    """`skills` lists the skills, whatever their origin."""

    def __init__(self, dirty: MemoryDirtySet, skills: ListSkills) -> None:
        self._dirty = dirty
        self._list_skills = skills
        self._counted: dict[int, dict[int, Counted]] = {}
        self.sums: dict[int, dict[SkillKey, Centroid]] = {}
        self._skills: dict[int, dict[SkillKey, _Skill]] = {}

    def members(self, index_version: int, skill_id: str, namespaces: Namespaces) -> int:
        """Return the number of items of a skill in these namespaces."""
        return sum(
            centroid.members
            for key, centroid in self.sums.get(index_version, {}).items()
            if key.skill_id == skill_id and seen_in(namespaces, key.namespace)
        )

    async def recall(self, index_version: int, text_hashes: Mapping[int, str]) -> Mapping[int, Vector]:
        counted = self._counted.get(index_version, {})
        return {
            id_: counted[id_].vector
            for id_, text_hash in text_hashes.items()
            if id_ in counted and counted[id_].text_hash == text_hash
        }

    async def count(self, index_version: int, claim: Claim, counted: Sequence[Counted]) -> None:
        held = self._dirty.held_at_version(index_version, claim)
        stored = self._counted.setdefault(index_version, {})
        before = [stored.pop(id_) for id_ in held if id_ in stored]
        now = [item for item in counted if item.item_id in held]
        stored.update((item.item_id, item) for item in now)
        await self._move(index_version, differences(sum_by_namespace(before), sum_by_namespace(now)))

    async def has_counted(self, index_version: int) -> bool:
        return bool(self._counted.get(index_version))

    async def behind(self, index_version: int, limit: int, only: Collection[str] = ()) -> Sequence[SkillState]:
        rows = await self._rows(index_version)
        sums = self.sums.get(index_version, {})
        waiting = sorted(
            (row.point_version, key)
            for key, row in rows.items()
            if row.point_version < row.version and (not only or key.skill_id in only)
        )
        return [
            SkillState(rows[key].skill, sums.get(key, Centroid.nothing()), rows[key].version, key.namespace)
            for _, key in waiting[:limit]
        ]

    async def mark_indexed(self, index_version: int, states: Sequence[SkillState]) -> None:
        rows = await self._rows(index_version)
        for state in states:
            row = rows[SkillKey(state.skill.id, state.namespace)]
            row.point_version = max(row.point_version, state.version)

    async def written(self, index_version: int, namespace: str | None = None) -> Mapping[int, tuple[int, int]]:
        rows = await self._rows(index_version)
        return {
            skill_point_id(*key): (row.point_version, row.version)
            for key, row in rows.items()
            if namespace in (None, key.namespace)
        }

    async def all_behind(self, index_version: int) -> None:
        for row in (await self._rows(index_version)).values():
            row.point_version, row.version = 0, self._dirty.next_version()

    async def observed(
        self, index_version: int, after: int, limit: int, namespace: str = DEFAULT_NAMESPACE
    ) -> Sequence[Observed]:
        items = sorted(self._counted.get(index_version, {}).items())
        pairs = [(self._dirty.stored(id_), item) for id_, item in items if id_ > after]
        return [
            Observed(
                stored.id,
                _without_schemas(stored.item),
                item.vector,
                stored.assignments,
                stored.id in self._dirty.by_hand,
            )
            for stored, item in pairs
            if stored is not None and item.namespace == namespace
        ][:limit]

    async def rebuild(
        self, index_version: int, only: Collection[str] = (), on_progress: OnProgress = silent
    ) -> Rebuilt:
        items = [
            item
            for item in self._counted.get(index_version, {}).values()
            if not only or not item.weights.keys().isdisjoint(only)
        ]
        rows = await self._rows(index_version)
        sums = self.sums.get(index_version, {})
        kept = {key: sums.get(key, Centroid.nothing()) for key in rows if not only or key.skill_id in only}
        exact = {key: centroid for key, centroid in sum_by_namespace(items).items() if key in kept}
        on_progress(Progress("add up", len(items)))
        await self._move(index_version, differences(kept, exact))
        return rebuilt(kept, exact, len(items))

    async def _move(self, index_version: int, moves: Mapping[SkillKey, Centroid]) -> None:
        rows = await self._rows(index_version)
        sums = self.sums.setdefault(index_version, {})
        for key, move in moves.items():
            sums[key] = sums.get(key, Centroid.nothing()) + move
            skill, version = rows[SkillKey(key.skill_id, DEFAULT_NAMESPACE)].skill, self._dirty.next_version()
            rows.setdefault(key, _Skill(skill, version)).version = version

    async def _rows(self, index_version: int) -> dict[SkillKey, _Skill]:
        """Return the current rows: of each skill in the default namespace, and where it has, or had, items."""
        rows = self._skills.setdefault(index_version, {})
        for skill in await self._list_skills():
            places = {key for key in rows if key.skill_id == skill.id} | {SkillKey(skill.id, DEFAULT_NAMESPACE)}
            for key in sorted(places):
                if key not in rows or rows[key].skill != skill:
                    written = rows[key].point_version if key in rows else 0
                    rows[key] = _Skill(skill, self._dirty.next_version(), written)
        return rows


def _without_schemas(item: Item) -> Item:
    return replace(item, input_schema=None, output_schema=None, annotations=None)


@dataclass
class _Suggested:
    suggestion: Suggestion
    items: set[int] = field(default_factory=set)
    confidences: dict[int, float] = field(default_factory=dict)


class MemorySuggestions:
    def __init__(self, catalog: MemoryCatalog, taxonomy: MemoryTaxonomy) -> None:
        self._catalog = catalog
        self._taxonomy = taxonomy
        self._ids = count(1)
        # By key and namespace.
        self._by_key: dict[tuple[str, str], _Suggested] = {}
        self.namespaces: Namespaces = None
        catalog.detach_suggestions = self._remove_from_all

    def within(self, namespaces: Namespaces) -> "MemorySuggestions":
        view = copy(self)
        view.namespaces = namespaces
        return view

    async def page(
        self, after: int, limit: int, state: SuggestionState | None = SuggestionState.PENDING
    ) -> Sequence[Suggestion]:
        seen = [entry.suggestion for entry in self._by_key.values() if self._is_seen(entry)]
        ids = sorted(suggestion.id for suggestion in seen if suggestion.id > after)
        suggestions = [await self.find(id_) for id_ in ids]
        listed = [
            suggestion
            for suggestion in suggestions
            if suggestion.asked_by or suggestion.change or suggestion.state is not SuggestionState.PENDING
        ]
        return [suggestion for suggestion in listed if state is None or suggestion.state is state][:limit]

    async def find(self, suggestion_id: int) -> Suggestion:
        suggested = self._find(suggestion_id)
        asked_by = min(len(self._active_items(suggested)), MAX_COUNTED)
        return replace(suggested.suggestion, asked_by=asked_by)

    async def asked_by(self, suggestion_id: int, after: int, limit: int) -> Sequence[int]:
        return [id_ for id_ in self._active_items(self._find(suggestion_id)) if id_ > after][:limit]

    async def approve(self, suggestion_id: int, skill: Skill, by: DecidedBy) -> Suggestion:
        actor, suggested = valid_actor(by), self._pending(suggestion_id)
        self._taxonomy.add_now(skill)
        self._decide(suggested, SuggestionState.APPROVED, actor, skill.id)
        self._catalog.classify_again(suggested.items)
        return await self.find(suggestion_id)

    async def reject(self, suggestion_id: int, by: DecidedBy) -> Suggestion:
        actor, suggested = valid_actor(by), self._pending(suggestion_id)
        self._decide(suggested, SuggestionState.REJECTED, actor)
        return await self.find(suggestion_id)

    async def merge(self, suggestion_id: int, into: str, by: DecidedBy) -> Suggestion:
        actor, suggested = valid_actor(by), self._pending(suggestion_id)
        if not (await self._taxonomy.find(into)).skill.is_active:
            raise inactive_skill(into)
        self._decide(suggested, SuggestionState.MERGED, actor, into)
        self._catalog.classify_again(suggested.items)
        return await self.find(suggestion_id)

    async def reclassify_more(self) -> int:
        """The decision about a suggestion reclassifies all its items."""
        return 0

    async def submit(self, proposals: Sequence[Proposal], namespace: str = DEFAULT_NAMESPACE) -> Submitted:
        known = {
            key: one
            for (key, place), one in self._by_key.items()
            if place == namespace and one.suggestion.change is not None
        }
        pending = {key for key, one in known.items() if one.suggestion.state is SuggestionState.PENDING}
        wanted = {proposal.key: proposal for proposal in proposals}
        added = changed = 0
        for key, proposal in wanted.items():
            if key not in known or key in pending:
                is_changed = self._put_proposal(proposal, namespace, known.get(key))
                added, changed = added + (key not in known), changed + (key in known and is_changed)
        for key in pending - wanted.keys():
            del self._by_key[key, namespace]
        return Submitted(added, changed, len(pending - wanted.keys()))

    def _put_proposal(self, proposal: Proposal, namespace: str, known: _Suggested | None) -> bool:
        """Store a proposal; return whether it is not what was stored before."""
        skill = proposal.skill
        change = replace(proposal.change, evidence=json.loads(json.dumps(proposal.change.evidence)))
        if known is None:
            now, suggested = datetime.now(UTC), SuggestedSkill(skill.name, skill.description)
            new = Suggestion(next(self._ids), suggested, SuggestionState.PENDING, 0, now, namespace=namespace)
            known = self._by_key[proposal.key, namespace] = _Suggested(new)
        before = known.suggestion
        suggested = SuggestedSkill(skill.name, skill.description)
        known.suggestion = replace(before, suggested=suggested, kind=ProposalKind.NEW, change=change)
        stored = {item_id: self._catalog.stored(item_id) for item_id in proposal.members}
        known.items = {id_ for id_, item in stored.items() if item is not None and item.namespace == namespace}
        known.confidences = {item_id: proposal.members[item_id] for item_id in known.items}
        return before.change != change

    async def undo(self, suggestion_id: int, by: DecidedBy) -> Suggestion:
        actor, suggested = valid_actor(by), self._find(suggestion_id)
        suggestion = suggested.suggestion
        if suggestion.change is None or suggestion.state is not SuggestionState.APPROVED:
            raise not_accepted(suggestion)
        if suggestion.skill_id is not None:
            self._taxonomy.set_active_now(suggestion.skill_id, is_active=False)
        suggested.suggestion = replace(suggestion, state=SuggestionState.UNDONE)
        self._catalog.classify_again(suggested.items)
        details = {"name": suggestion.suggested.name, "asked_by": len(self._active_items(suggested))}
        self._taxonomy.write_audit(actor, "suggestion.undo", suggestion.id, details, suggestion.namespace)
        return await self.find(suggestion_id)

    def granted(self, item_id: int) -> list[tuple[SuggestedSkill, str, float]]:
        """Return the decided suggestions of this item, with the skills of each and their confidences."""
        decided = [one for _, one in sorted(self._by_key.items()) if item_id in one.items]
        granting = (SuggestionState.APPROVED, SuggestionState.MERGED)
        return [
            (one.suggestion.suggested, one.suggestion.skill_id, one.confidences.get(item_id, MIN_CONFIDENCE))
            for one in decided
            if one.suggestion.state in granting and one.suggestion.skill_id is not None
        ]

    def ask(self, item: StoredItem, key: str, suggested: SuggestedSkill) -> Suggestion:
        """Add the item to the pending suggestion of this key; return a decided one unchanged."""
        entry = self._by_key.get((key, item.namespace))
        if entry is None:
            now, state = datetime.now(UTC), SuggestionState.PENDING
            new = Suggestion(next(self._ids), suggested, state, 0, now, namespace=item.namespace)
            entry = self._by_key[key, item.namespace] = _Suggested(new)
        if entry.suggestion.state is SuggestionState.PENDING:
            entry.items.add(item.id)
        return entry.suggestion

    def detach_suggestions(self, item_id: int) -> None:
        """Remove the item from pending suggestions. Decided ones keep their items as evidence."""
        for suggested in self._by_key.values():
            if suggested.suggestion.state is SuggestionState.PENDING and suggested.suggestion.change is None:
                suggested.items.discard(item_id)

    def _remove_from_all(self, item_id: int) -> None:
        for suggested in self._by_key.values():
            suggested.items.discard(item_id)

    def _is_seen(self, suggested: _Suggested) -> bool:
        return seen_in(self.namespaces, suggested.suggestion.namespace)

    def _find(self, suggestion_id: int) -> _Suggested:
        for suggested in self._by_key.values():
            if suggested.suggestion.id == suggestion_id and self._is_seen(suggested):
                return suggested
        raise unknown_suggestion(suggestion_id)

    def _active_items(self, suggested: _Suggested) -> list[int]:
        """Return the items of a suggestion that are still in the catalog."""
        return sorted(id_ for id_ in suggested.items if self._catalog.stored(id_) is not None)

    def _pending(self, suggestion_id: int) -> _Suggested:
        suggested = self._find(suggestion_id)
        if suggested.suggestion.state is not SuggestionState.PENDING:
            raise decided_already(suggested.suggestion)
        return suggested

    def _decide(
        self, suggested: _Suggested, state: SuggestionState, actor: Actor, skill_id: str | None = None
    ) -> None:
        before = suggested.suggestion
        suggested.suggestion = replace(
            before,
            state=state,
            reviewed_by=actor.name,
            on_behalf_of=actor.on_behalf_of,
            reviewed_at=datetime.now(UTC),
            skill_id=skill_id,
        )
        details = {
            "name": before.suggested.name,
            "asked_by": len(self._active_items(suggested)),
            "skill_id": skill_id,
        }
        self._taxonomy.write_audit(actor, audit_action(state), before.id, details, before.namespace)


class MemoryAssignments:
    def __init__(self, catalog: MemoryCatalog, taxonomy: MemoryTaxonomy, suggestions: MemorySuggestions) -> None:
        self._catalog = catalog
        self._taxonomy = taxonomy
        self._suggestions = suggestions
        self.namespaces: Namespaces = None

    def within(self, namespaces: Namespaces) -> "MemoryAssignments":
        view = copy(self)
        view.namespaces = namespaces
        return view

    async def of(self, item_id: int) -> tuple[Assignment, ...]:
        return self._stored(item_id).assignments

    async def record(self, classified: Sequence[Classified]) -> Mapping[int, tuple[int, tuple[Assignment, ...]]]:
        taken = {}
        for result in classified:
            stored = self._catalog.stored(result.item_id)
            if stored and self._matches(stored, result):
                now = self._put(stored, self._resolved(stored, result.classification))
                taken[now.id] = (now.version, now.assignments)
        return taken

    async def set_by_hand(self, item_id: int, skill_ids: Sequence[str], by: DecidedBy) -> tuple[Assignment, ...]:
        actor = valid_actor(by)
        assignments = by_hand(skill_ids, self._taxonomy.active(), actor)
        before = self._stored(item_id)
        self._catalog.by_hand.add(item_id)
        self._suggestions.detach_suggestions(item_id)
        now = self._put(before, _in_order(assignments))
        details = moved(before.assignments, assignments)
        self._taxonomy.write_audit(actor, "item.assign", item_id, details, before.namespace)
        return now.assignments

    async def release(self, item_id: int, by: DecidedBy) -> None:
        actor = valid_actor(by)
        stored = self._stored(item_id)
        if item_id in self._catalog.by_hand:
            self._catalog.by_hand.discard(item_id)
            self._catalog.classify_again([item_id])
            self._taxonomy.write_audit(actor, "item.release", item_id, {}, stored.namespace)

    async def reclassify(
        self, after: int, limit: int, *, skill_id: str | None = None, source: AssignedBy | None = None
    ) -> Sequence[int]:
        if skill_id is not None:
            await self._taxonomy.find(skill_id)
        later = [point.id for point in await self._catalog.scan(after, await self._catalog.count())]
        ids = [
            item.id
            for item in await self._catalog.items(later)
            if seen_in(self.namespaces, item.namespace)
            and item.id not in self._catalog.by_hand
            and _is_assigned(item, skill_id, source)
        ]
        return self._catalog.classify_again(ids[:limit])

    def _stored(self, item_id: int) -> StoredItem:
        stored = self._catalog.stored(item_id)
        if stored is None or not seen_in(self.namespaces, stored.namespace):
            raise unknown_item(item_id)
        return stored

    def _matches(self, stored: StoredItem, result: Classified) -> bool:
        """Return whether the item is as it was when it was classified."""
        is_same = (stored.version, stored.namespace) == (result.version, result.namespace)
        return stored.needs_skills and is_same and seen_in(self.namespaces, stored.namespace)

    def _resolved(self, stored: StoredItem, classification: Classification) -> tuple[Assignment, ...]:
        grants: list[tuple[SuggestedSkill, str | None, float]] = [*self._suggestions.granted(stored.id)]
        self._suggestions.detach_suggestions(stored.id)
        if requested := stored_suggestion(classification.suggestion):
            grants.append((requested[1], self._suggestions.ask(stored, *requested).skill_id, MIN_CONFIDENCE))
        assignments = by_classifier(classification.assignments, self._taxonomy.active())
        for suggested, skill_id, confidence in grants:
            if skill_id in self._taxonomy.active():
                assignments = by_rule(assignments, suggested, skill_id, confidence)
        return assignments

    def _put(self, before: StoredItem, now: tuple[Assignment, ...]) -> StoredItem:
        if not are_same(before.assignments, now):
            return self._catalog.put_anew(replace(before, assignments=now, needs_skills=False))
        same = replace(before, needs_skills=False)
        self._catalog.put_back(same)
        return same


def _is_assigned(item: StoredItem, skill_id: str | None, source: AssignedBy | None) -> bool:
    if skill_id is None and source is None:
        return True
    return any(
        skill_id in (None, assignment.skill_id) and source in (None, assignment.source)
        for assignment in item.assignments
    )


def _in_order(assignments: tuple[Assignment, ...]) -> tuple[Assignment, ...]:
    """Return the primary first, the others by id, as a catalog returns them."""
    return (*assignments[:1], *sorted(assignments[1:], key=lambda assignment: assignment.skill_id))
