"""`toolscript skills`: review the suggestions of classifiers."""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

import typer

from toolscript.cli.options import (
    WORKER_HINT,
    AsJson,
    By,
    Description,
    Domain,
    Examples,
    Keywords,
    Name,
    PageLimit,
    SuggestionId,
    fields_given,
    person,
    say_if_pending,
)
from toolscript.cli.output import printable, say, show
from toolscript.cli.skills_text import evidence_card, suggestions_table
from toolscript.core.errors import Conflict, InvalidRequest, ToolscriptError
from toolscript.core.items import MAX_ID
from toolscript.core.taxonomy import Suggestion, SuggestionState, skill_id_of
from toolscript.tools.model.skill_json import MAX_DESCRIPTION, MAX_NAME
from toolscript.tools.model.skills import Evidence

if TYPE_CHECKING:
    from toolscript.tools.skills.management import SkillManagement


T = TypeVar("T")
PAGE = 20
ITEMS_IN_REVIEW = 5
KEYS = "[a]pprove, [m]erge into, [r]eject, [s]kip, [q]uit: "
ITEMS_IN_DETAILS = 20


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
    return ask(lambda skills: skills.evidence(suggestion_id, 0, ITEMS_IN_REVIEW))


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
        near = {str(place): skill.skill.id for place, skill in enumerate(self.evidence.nearest or (), 1)}
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
        suggestion = self.ask(lambda skills: skills.suggestions.find(self.evidence.suggestion.id))
        return suggestion.state is not SuggestionState.PENDING

    def _elsewhere(self) -> str:
        self.dialogue.write(f"somebody has decided about suggestion {self.evidence.suggestion.id} already")
        return "decided elsewhere"

    def _complain(self, error: ToolscriptError) -> None:
        self.dialogue.write(error.message + (f"\nhint: {error.hint}" if error.hint else ""))


def _quit() -> str:
    raise Enough


class Status(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    MERGED = "merged"
    ALL = "all"


def suggestion_commands(group: typer.Typer) -> None:
    _review(group)
    _read(group)
    _approve(group)
    _decide(group)


def _review(group: typer.Typer) -> None:
    @group.command()
    def review(by: By = None) -> None:
        """Decide about suggested skills one by one, with the evidence."""
        if not sys.stdin.isatty():
            raise InvalidRequest(
                "a review asks questions, and there is no terminal to ask them in",
                hint="use `toolscript skills suggestions`, then `toolscript skills approve|reject|merge ID`",
            )
        from toolscript.server.skills import open_skills

        with open_skills() as ask:
            done = review_all(ask, person(by), Dialogue())
        counts = ", ".join(
            f"{done[outcome]} {outcome}" for outcome in ("approved", "merged", "rejected", "skipped")
        )
        say(counts)
        if done["approved"] or done["merged"]:
            say(WORKER_HINT)


def _read(group: typer.Typer) -> None:
    @group.command()
    def suggestions(
        status: Annotated[Status, typer.Option(help="Only those in this state.")] = Status.PENDING,
        after: Annotated[int, typer.Option(min=0, max=MAX_ID, help="Only those after this number.")] = 0,
        limit: PageLimit = 50,
        as_json: AsJson = False,
    ) -> None:
        """List skills that classifiers missed."""
        state = None if status is Status.ALL else SuggestionState(status.value)
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SuggestionPage

        with open_skills() as ask:
            suggestions = list(ask(lambda skills: skills.suggestions.page(after, limit + 1, state)))
        page = SuggestionPage.of(suggestions, limit)
        show(
            page,
            suggestions_table(suggestions[:limit]) if suggestions else "nothing waits for review",
            as_json=as_json,
        )
        if page.next and not as_json:
            say(f"hint: `toolscript skills suggestions --after {page.next}` shows the next ones")

    @group.command()
    def suggestion(suggestion_id: SuggestionId, as_json: AsJson = False) -> None:
        """Show one suggestion with the evidence: who asks for it, and which skills are nearest."""
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SuggestionEvidence

        with open_skills() as ask:
            evidence = ask(lambda skills: skills.evidence(suggestion_id, 0, ITEMS_IN_DETAILS))
        show(SuggestionEvidence.of_evidence(evidence), evidence_card(evidence), as_json=as_json)


def _approve(group: typer.Typer) -> None:
    @group.command()
    def approve(
        suggestion_id: SuggestionId,
        skill_id: Annotated[
            str | None, typer.Option("--id", help="Id of the new skill; otherwise made from its name.")
        ] = None,
        name: Name = None,
        description: Description = None,
        keyword: Keywords = None,
        example: Examples = None,
        domain: Domain = None,
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Make a suggestion a skill, and have the items that ask for it classified anew."""
        changes = fields_given(name, description, keyword, example, domain)
        if skill_id is not None:
            changes["id"] = skill_id
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SuggestionDecided

        with open_skills() as ask:
            decided = ask(lambda skills: skills.approve(suggestion_id, changes, person(by)))
        data = SuggestionDecided.of(decided.suggestion, routing=str(decided.routing))
        show(data, f"{decided.suggestion.skill_id} is a skill now", as_json=as_json)
        say_if_pending(decided.routing)
        say(WORKER_HINT)


def _decide(group: typer.Typer) -> None:
    @group.command()
    def reject(suggestion_id: SuggestionId, by: By = None, as_json: AsJson = False) -> None:
        """Turn a suggestion down, now and whenever it comes again."""
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SuggestionShown

        with open_skills() as ask:
            decided = ask(lambda skills: skills.suggestions.reject(suggestion_id, person(by)))
        show(SuggestionShown.of(decided), f"suggestion {decided.id} is rejected", as_json=as_json)

    @group.command()
    def merge(
        suggestion_id: SuggestionId,
        into: Annotated[str, typer.Argument(metavar="SKILL", help="The skill that those who ask for it get.")],
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Give those who ask for a suggested skill one that there is already, now and later."""

        async def merged(skills: "SkillManagement") -> Suggestion:
            return await skills.suggestions.merge(suggestion_id, into, person(by))

        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SuggestionShown

        with open_skills() as ask:
            decided = ask(merged)
        show(SuggestionShown.of(decided), f"suggestion {decided.id} is merged into {into}", as_json=as_json)
        say(WORKER_HINT)
