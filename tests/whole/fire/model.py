"""What must be there, in plain dictionaries."""

from dataclasses import dataclass, field

from tests.whole.fire.topics import classified
from toolscript.model.assignments import LEAST_CONFIDENCE, AssignedBy
from toolscript.model.items import Item
from toolscript.model.skills import SuggestionState

Assigned = tuple[str, float, str]


@dataclass
class Known:
    item: Item
    assigned: tuple[Assigned, ...] = ()
    asks: str | None = None
    by_hand: bool = False


@dataclass
class Decided:
    state: SuggestionState
    skill: str | None


@dataclass
class Model:
    items: dict[str, Known] = field(default_factory=dict)
    active: dict[str, bool] = field(default_factory=dict)
    descriptions: dict[str, str] = field(default_factory=dict)
    decided: dict[str, Decided] = field(default_factory=dict)

    def store(self, item: Item) -> None:
        known = self.items.setdefault(item.key, Known(item))
        known.item = item
        self.look_at(known)

    def look_at(self, known: Known) -> None:
        """As a classifier does; a person's word stays."""
        if known.by_hand:
            return
        said = classified(known.item, frozenset(name for name, active in self.active.items() if active))
        known.assigned = tuple((one.skill_id, one.confidence, one.source.value) for one in said.assignments)
        known.asks = None
        if said.suggestion:
            decided = self.decided.get(said.suggestion.key)
            if decided is None:
                known.asks = said.suggestion.key
            elif decided.skill is not None and self.active.get(decided.skill):
                known.assigned = ((decided.skill, LEAST_CONFIDENCE, AssignedBy.LLM.value),)

    def set_by_hand(self, key: str, skills: list[str]) -> None:
        known = self.items[key]
        known.by_hand, known.asks = True, None
        known.assigned = tuple((skill, 1.0, AssignedBy.HUMAN.value) for skill in skills)

    def release(self, key: str) -> None:
        self.items[key].by_hand = False
        self.look_at(self.items[key])

    def decide(self, name: str, state: SuggestionState, skill: str | None) -> None:
        self.decided[name] = Decided(state, skill)
        if state is SuggestionState.APPROVED and skill:
            self.active[skill] = True
            self.descriptions[skill] = f"About {skill}"
        for known in self.items.values():
            if known.asks == name:
                known.asks = None
                if state is not SuggestionState.REJECTED:
                    self.look_at(known)

    def asked(self) -> dict[str, set[str]]:
        """Who asks for what nobody has decided about."""
        asked: dict[str, set[str]] = {}
        for key, known in self.items.items():
            if known.asks:
                asked.setdefault(known.asks, set()).add(key)
        return asked
