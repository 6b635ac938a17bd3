"""A review in a terminal: one suggestion at a time, the evidence, a key, the next one."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from toolscript.cli.output import say
from toolscript.cli.skills_text import evidence_card
from toolscript.cli.tables import printable
from toolscript.errors import Conflict, ToolscriptError
from toolscript.model.skill_evidence import Evidence
from toolscript.model.skill_json import MAX_DESCRIPTION, MAX_NAME
from toolscript.model.skills import Suggestion, SuggestionState, skill_id_of

if TYPE_CHECKING:
    from toolscript.sync.skill_management import SkillManagement

T = TypeVar("T")
PAGE = 20
ITEMS_SHOWN = 5
KEYS = "[a]pprove, [m]erge into, [r]eject, [s]kip, [q]uit: "


class AskSkills(Protocol):
    """Does one thing after another with skills, and waits for each."""

    def __call__(self, action: Callable[["SkillManagement"], Awaitable[T]]) -> T: ...


@dataclass(frozen=True)
class Dialogue:
    """Where questions are asked and answered. A reader that has no more answers raises EOFError."""

    read: Callable[[str], str] = input
    write: Callable[[str], None] = say


class Enough(Exception): ...


def review_all(ask: AskSkills, by: str, dialogue: Dialogue) -> Counter[str]:
    """How many suggestions went which way, until there are none or the person has had enough."""
    done: Counter[str] = Counter()
    try:
        for suggestion in _pending(ask):
            done[_Review(ask, by, dialogue, _evidence(ask, suggestion.id)).outcome()] += 1
        dialogue.write("nothing else waits for review" if done else "nothing waits for review")
    except (EOFError, KeyboardInterrupt, Enough):
        dialogue.write("")
    return done


def _pending(ask: AskSkills) -> Iterator[Suggestion]:
    after = 0
    while page := _page(ask, after):
        yield from page
        after = page[-1].id


def _evidence(ask: AskSkills, suggestion_id: int) -> Evidence:
    return ask(lambda skills: skills.evidence(suggestion_id, 0, ITEMS_SHOWN))


def _page(ask: AskSkills, after: int) -> list[Suggestion]:
    return list(ask(lambda skills: skills.suggestions.page(after, PAGE)))


@dataclass
class _Review:
    """One suggestion. What was typed once is proposed when it has to be asked again."""

    ask: AskSkills
    by: str
    dialogue: Dialogue
    evidence: Evidence
    typed: dict[str, str] = field(default_factory=dict)

    def outcome(self) -> str:
        if self.evidence.suggestion.state is not SuggestionState.PENDING:
            return self._elsewhere()
        self.dialogue.write(f"\n{evidence_card(self.evidence)}")
        while True:
            try:
                if outcome := self._answer():
                    return outcome
            except Conflict as error:
                self._complain(error)
                if self._is_decided():
                    return self._elsewhere()
            except ToolscriptError as error:
                self._complain(error)

    def _answer(self) -> str:
        """Empty when the question has to be asked again."""
        actions = {"a": self._approve, "m": self._merge, "r": self._reject, "s": lambda: "skipped", "q": _quit}
        action = actions.get(self.dialogue.read(KEYS).strip().lower()[:1])
        return action() if action else ""

    def _approve(self) -> str:
        suggested = self.evidence.suggestion.suggested
        changes = {
            "id": self._asked("id", skill_id_of(suggested.name)),
            "name": self._asked("name", printable(suggested.name)[:MAX_NAME]),
            "description": self._asked("description", printable(suggested.description)[:MAX_DESCRIPTION]),
        }
        self.ask(lambda skills: skills.approve(self.evidence.suggestion.id, changes, self.by))
        return "approved"

    def _merge(self) -> str:
        near = {str(place): one.skill.id for place, one in enumerate(self.evidence.nearest or (), 1)}
        which = f"1 to {len(near)}, or an id" if near else "an id"
        typed = self.dialogue.read(f"merge into ({which}; nothing: back): ").strip()
        if not typed:
            return ""
        into = near.get(typed, typed)
        self.ask(lambda skills: skills.suggestions.merge(self.evidence.suggestion.id, into, self.by))
        self.dialogue.write(f"merged into {into}")
        return "merged"

    def _reject(self) -> str:
        self.ask(lambda skills: skills.suggestions.reject(self.evidence.suggestion.id, self.by))
        return "rejected"

    def _asked(self, name: str, proposed: str) -> str:
        shown = self.typed.get(name, proposed)
        self.typed[name] = self.dialogue.read(f"{name} [{shown}]: ").strip() or shown
        return self.typed[name]

    def _is_decided(self) -> bool:
        found = self.ask(lambda skills: skills.suggestions.find(self.evidence.suggestion.id))
        return found.state is not SuggestionState.PENDING

    def _elsewhere(self) -> str:
        self.dialogue.write(f"somebody has decided about suggestion {self.evidence.suggestion.id} already")
        return "decided elsewhere"

    def _complain(self, error: ToolscriptError) -> None:
        self.dialogue.write(error.message + (f"\nhint: {error.hint}" if error.hint else ""))


def _quit() -> str:
    raise Enough
