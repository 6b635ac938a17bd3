"""The expected state, in plain dictionaries."""

from dataclasses import dataclass, field

from tests.chaos.fire.topics import classified
from toolscript.core.items import MAX_ASSIGNMENTS, MIN_CONFIDENCE, AssignedBy, Item
from toolscript.core.taxonomy import SuggestionState

Assigned = tuple[str, float, str]


@dataclass
class Known:
    item: Item
    assigned: tuple[Assigned, ...] = ()
    asks: str | None = None
    by_hand: bool = False
    # Suggestions of the item that were decided.
    decided: set[str] = field(default_factory=set)


@dataclass
class Decided:
    state: SuggestionState
    skill: str | None


@dataclass
class Model:
    items: dict[str, Known] = field(default_factory=dict)
    gone: dict[str, Known] = field(default_factory=dict)
    active: dict[str, bool] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    decided: dict[str, Decided] = field(default_factory=dict)

    def store(self, item: Item) -> None:
        if item.key in self.items and self.items[item.key].item == item:
            return
        existing = self.items.get(item.key) or self.gone.pop(item.key, None) or Known(item)
        self.items[item.key] = existing
        existing.item, existing.decided = item, set()
        self.look_at(existing)

    def remove(self, key: str) -> None:
        """Remove an item but keep its record: manual decisions apply again when it returns."""
        existing = self.gone[key] = self.items.pop(key)
        existing.asks, existing.decided = None, set()

    def look_at(self, known: Known) -> None:
        """Classify an item; manual assignments stay."""
        if known.by_hand:
            return
        message = classified(known.item, frozenset(name for name, active in self.active.items() if active))
        known.assigned = tuple(
            (assignment.skill_id, assignment.confidence, assignment.source.value)
            for assignment in message.assignments
        )
        known.asks = None
        wishes = sorted(known.decided)
        if message.suggestion and message.suggestion.key in self.decided:
            wishes.append(message.suggestion.key)
        elif message.suggestion:
            known.asks = message.suggestion.key
        for name in wishes:
            self.grant(known, self.decided[name].skill)

    def grant(self, known: Known, skill: str | None) -> None:
        """Apply a decided suggestion, in addition to the classifier's result."""
        has = {name for name, _, _ in known.assigned}
        if skill is None or not self.active.get(skill) or skill in has or len(has) >= MAX_ASSIGNMENTS:
            return
        source = known.assigned[0][2] if known.assigned else AssignedBy.LLM.value
        value = (*known.assigned, (skill, MIN_CONFIDENCE, source))
        known.assigned = tuple(sorted(value, key=lambda item: (-item[1], item[0])))

    def set_by_hand(self, key: str, skills: list[str]) -> None:
        existing = self.items[key]
        existing.by_hand, existing.asks = True, None
        existing.assigned = tuple((skill, 1.0, AssignedBy.HUMAN.value) for skill in skills)

    def release(self, key: str) -> None:
        self.items[key].by_hand = False
        self.look_at(self.items[key])

    def decide(self, name: str, state: SuggestionState, skill: str | None) -> None:
        self.decided[name] = Decided(state, skill)
        if state is SuggestionState.APPROVED and skill:
            self.active[skill] = True
            self.descriptions[skill] = f"About {skill}"
        for existing in self.items.values():
            if existing.asks == name:
                existing.asks = None
                existing.decided.add(name)
                if state is not SuggestionState.REJECTED:
                    self.look_at(existing)

    def asked(self) -> dict[str, set[str]]:
        """Return the pending suggestions with their items."""
        request: dict[str, set[str]] = {}
        for key, existing in self.items.items():
            if existing.asks:
                request.setdefault(existing.asks, set()).add(key)
        return request
