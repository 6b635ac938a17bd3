"""Skills that classifiers missed, in memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count

from toolscript.model.decisions import (
    audit_action,
    decided_already,
    inactive_skill,
    unknown_suggestion,
    valid_actor,
)
from toolscript.model.skills import MOST_COUNTED, Skill, SuggestedSkill, Suggestion, SuggestionState
from toolscript.testing.catalog import MemoryCatalog
from toolscript.testing.taxonomy import MemoryTaxonomy


@dataclass
class _Asked:
    suggestion: Suggestion
    items: set[int] = field(default_factory=set)


class MemorySuggestions:
    def __init__(self, catalog: MemoryCatalog, taxonomy: MemoryTaxonomy) -> None:
        self._catalog = catalog
        self._taxonomy = taxonomy
        self._ids = count(1)
        self._by_key: dict[str, _Asked] = {}
        catalog.forget_asks = self._forget_all_asks

    async def page(
        self, after: int, limit: int, state: SuggestionState | None = SuggestionState.PENDING
    ) -> Sequence[Suggestion]:
        ids = sorted(one.suggestion.id for one in self._by_key.values() if one.suggestion.id > after)
        found = [await self.find(id_) for id_ in ids]
        asked = [one for one in found if one.asked_by or one.state is not SuggestionState.PENDING]
        return [one for one in asked if state is None or one.state is state][:limit]

    async def find(self, suggestion_id: int) -> Suggestion:
        asked = self._asked(suggestion_id)
        return replace(asked.suggestion, asked_by=min(len(self._asking(asked)), MOST_COUNTED))

    async def asked_by(self, suggestion_id: int, after: int, limit: int) -> Sequence[int]:
        return [id_ for id_ in self._asking(self._asked(suggestion_id)) if id_ > after][:limit]

    async def approve(self, suggestion_id: int, skill: Skill, by: str) -> Suggestion:
        actor, asked = valid_actor(by), self._pending(suggestion_id)
        self._taxonomy.add_now(skill, actor)
        self._decide(asked, SuggestionState.APPROVED, actor, skill.id)
        self._catalog.classify_again(asked.items)
        return await self.find(suggestion_id)

    async def reject(self, suggestion_id: int, by: str) -> Suggestion:
        actor, asked = valid_actor(by), self._pending(suggestion_id)
        self._decide(asked, SuggestionState.REJECTED, actor)
        return await self.find(suggestion_id)

    async def merge(self, suggestion_id: int, into: str, by: str) -> Suggestion:
        actor, asked = valid_actor(by), self._pending(suggestion_id)
        if not (await self._taxonomy.find(into)).skill.is_active:
            raise inactive_skill(into)
        self._decide(asked, SuggestionState.MERGED, actor, into)
        self._catalog.classify_again(asked.items)
        return await self.find(suggestion_id)

    async def call_more(self) -> int:
        """All who asked are called by the decision itself."""
        return 0

    def granted(self, item_id: int) -> list[tuple[SuggestedSkill, str]]:
        """What a person decided about what this item had asked for, as it is."""
        found = [(key, asked.suggestion) for key, asked in sorted(self._by_key.items()) if item_id in asked.items]
        return [(one.suggested, one.skill_id) for _, one in found if one.skill_id is not None]

    def ask(self, item_id: int, key: str, suggested: SuggestedSkill) -> Suggestion:
        """Gathers on the pending one of its key; what was decided is answered as it is."""
        asked = self._by_key.get(key)
        if asked is None:
            new = Suggestion(next(self._ids), suggested, SuggestionState.PENDING, 0, datetime.now(UTC))
            asked = self._by_key[key] = _Asked(new)
        if asked.suggestion.state is SuggestionState.PENDING:
            asked.items.add(item_id)
        return asked.suggestion

    def forget_asks(self, item_id: int) -> None:
        """What a decided suggestion was asked by stays: it is what the decision rests on."""
        for asked in self._by_key.values():
            if asked.suggestion.state is SuggestionState.PENDING:
                asked.items.discard(item_id)

    def _forget_all_asks(self, item_id: int) -> None:
        for asked in self._by_key.values():
            asked.items.discard(item_id)

    def _asked(self, suggestion_id: int) -> _Asked:
        for asked in self._by_key.values():
            if asked.suggestion.id == suggestion_id:
                return asked
        raise unknown_suggestion(suggestion_id)

    def _asking(self, asked: _Asked) -> list[int]:
        """Items that left the catalog ask for nothing."""
        return sorted(id_ for id_ in asked.items if self._catalog.stored(id_) is not None)

    def _pending(self, suggestion_id: int) -> _Asked:
        asked = self._asked(suggestion_id)
        if asked.suggestion.state is not SuggestionState.PENDING:
            raise decided_already(asked.suggestion)
        return asked

    def _decide(self, asked: _Asked, state: SuggestionState, actor: str, skill_id: str | None = None) -> None:
        before = asked.suggestion
        asked.suggestion = replace(
            before, state=state, reviewed_by=actor, reviewed_at=datetime.now(UTC), skill_id=skill_id
        )
        details = {"name": before.suggested.name, "asked_by": len(self._asking(asked)), "skill_id": skill_id}
        self._taxonomy.write_audit(actor, audit_action(state), before.id, details)
