"""What must be there, in plain dictionaries."""

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
    # What it asked for, as it is, and people then decided about.
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
        known = self.items.get(item.key) or self.gone.pop(item.key, None) or Known(item)
        self.items[item.key] = known
        known.item, known.decided = item, set()
        self.look_at(known)

    def remove(self, key: str) -> None:
        """Who leaves is remembered: what a person said of it holds when it comes back."""
        known = self.gone[key] = self.items.pop(key)
        known.asks, known.decided = None, set()

    def look_at(self, known: Known) -> None:
        """As a classifier does; a person's word stays."""
        if known.by_hand:
            return
        said = classified(known.item, frozenset(name for name, active in self.active.items() if active))
        known.assigned = tuple((one.skill_id, one.confidence, one.source.value) for one in said.assignments)
        known.asks = None
        wishes = sorted(known.decided)
        if said.suggestion and said.suggestion.key in self.decided:
            wishes.append(said.suggestion.key)
        elif said.suggestion:
            known.asks = said.suggestion.key
        for name in wishes:
            self.grant(known, self.decided[name].skill)

    def grant(self, known: Known, skill: str | None) -> None:
        """What was decided about a wish counts beside what the classifier says."""
        has = {name for name, _, _ in known.assigned}
        if skill is None or not self.active.get(skill) or skill in has or len(has) >= MAX_ASSIGNMENTS:
            return
        source = known.assigned[0][2] if known.assigned else AssignedBy.LLM.value
        given = (*known.assigned, (skill, MIN_CONFIDENCE, source))
        known.assigned = tuple(sorted(given, key=lambda one: (-one[1], one[0])))

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
                known.decided.add(name)
                if state is not SuggestionState.REJECTED:
                    self.look_at(known)

    def asked(self) -> dict[str, set[str]]:
        """Who asks for what nobody has decided about."""
        asked: dict[str, set[str]] = {}
        for key, known in self.items.items():
            if known.asks:
                asked.setdefault(known.asks, set()).add(key)
        return asked
