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
    OnlyNamespace,
    PageCursor,
    PageLimit,
    SuggestionId,
    person,
    say_if_pending,
    seen_of,
    skill_fields,
)
from toolscript.cli.output import printable, say, show
from toolscript.cli.skills_text import evidence_text, suggestions_table
from toolscript.core.errors import Conflict, InvalidRequest, ToolscriptError
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


class SkillSession(Protocol):
    """Runs one action on the skills, and returns its result."""

    def __call__(self, action: Callable[["SkillManagement"], Awaitable[T]]) -> T: ...


@dataclass(frozen=True)
class Dialogue:
    """Input and output of a review. `read` raises EOFError at the end of the input."""

    read: Callable[[str], str] = input
    write: Callable[[str], None] = say


class ReviewQuit(Exception): ...


def review_all(ask: SkillSession, by: str, dialogue: Dialogue) -> Counter[str]:
    """Review all pending suggestions until the person quits; return the count of each outcome."""
    done: Counter[str] = Counter()
    try:
        for suggestion in _pending(ask):
            done[_Review(ask, by, dialogue, _evidence(ask, suggestion.id)).outcome()] += 1
        dialogue.write("no more suggestions to review" if done else "no suggestions to review")
    except (EOFError, KeyboardInterrupt, ReviewQuit):
        dialogue.write("")
    return done


def _pending(ask: SkillSession) -> Iterator[Suggestion]:
    after = 0
    while page := _page(ask, after):
        yield from page
        after = page[-1].id


def _evidence(ask: SkillSession, suggestion_id: int) -> Evidence:
    return ask(lambda skills: skills.evidence(suggestion_id, 0, ITEMS_IN_REVIEW))


def _page(ask: SkillSession, after: int) -> list[Suggestion]:
    return list(ask(lambda skills: skills.suggestions.page(after, PAGE)))


@dataclass
class _Review:
    """The review of one suggestion. Typed values become the defaults when a question is repeated."""

    ask: SkillSession
    by: str
    dialogue: Dialogue
    evidence: Evidence
    typed: dict[str, str] = field(default_factory=dict)

    def outcome(self) -> str:
        if self.evidence.suggestion.state is not SuggestionState.PENDING:
            return self._decided_elsewhere()
        self.dialogue.write(f"\n{evidence_text(self.evidence)}")
        while True:
            try:
                if outcome := self._answer():
                    return outcome
            except Conflict as error:
                self._report(error)
                if self._is_decided():
                    return self._decided_elsewhere()
            except ToolscriptError as error:
                self._report(error)

    def _answer(self) -> str:
        """Return the outcome; empty if the question must be repeated."""
        actions = {"a": self._approve, "m": self._merge, "r": self._reject, "s": lambda: "skipped", "q": _quit}
        action = actions.get(self.dialogue.read(KEYS).strip().lower()[:1])
        return action() if action else ""

    def _approve(self) -> str:
        suggested = self.evidence.suggestion.suggested
        if self.evidence.suggestion.change is not None:
            self.ask(lambda skills: skills.approve(self.evidence.suggestion.id, {}, self.by))
            return "approved"
        changes = {
            "id": self._read_field("id", skill_id_of(suggested.name)),
            "name": self._read_field("name", printable(suggested.name)[:MAX_NAME]),
            "description": self._read_field("description", printable(suggested.description)[:MAX_DESCRIPTION]),
        }
        self.ask(lambda skills: skills.approve(self.evidence.suggestion.id, changes, self.by))
        return "approved"

    def _merge(self) -> str:
        near = {str(place): skill.skill.id for place, skill in enumerate(self.evidence.nearest or (), 1)}
        which = f"1 to {len(near)}, or an id" if near else "an id"
        typed = self.dialogue.read(f"merge into ({which}; empty: back): ").strip()
        if not typed:
            return ""
        into = near.get(typed, typed)
        self.ask(lambda skills: skills.suggestions.merge(self.evidence.suggestion.id, into, self.by))
        self.dialogue.write(f"merged into {into}")
        return "merged"

    def _reject(self) -> str:
        self.ask(lambda skills: skills.suggestions.reject(self.evidence.suggestion.id, self.by))
        return "rejected"

    def _read_field(self, name: str, proposed: str) -> str:
        default = self.typed.get(name, proposed)
        self.typed[name] = self.dialogue.read(f"{name} [{default}]: ").strip() or default
        return self.typed[name]

    def _is_decided(self) -> bool:
        suggestion = self.ask(lambda skills: skills.suggestions.find(self.evidence.suggestion.id))
        return suggestion.state is not SuggestionState.PENDING

    def _decided_elsewhere(self) -> str:
        self.dialogue.write(f"suggestion {self.evidence.suggestion.id} is already decided")
        return "decided elsewhere"

    def _report(self, error: ToolscriptError) -> None:
        self.dialogue.write(error.message + (f"\nhint: {error.hint}" if error.hint else ""))


def _quit() -> str:
    raise ReviewQuit


class State(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    MERGED = "merged"
    UNDONE = "undone"
    ALL = "all"


def suggestion_commands(group: typer.Typer) -> None:
    _review(group)
    _read(group)
    _approve(group)
    _decide(group)


def _review(group: typer.Typer) -> None:
    @group.command()
    def review(by: By = None) -> None:
        """Review suggested skills one by one, with the evidence."""
        if not sys.stdin.isatty():
            raise InvalidRequest(
                "a review needs a terminal",
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
        state: Annotated[State, typer.Option(help="Only suggestions in this state.")] = State.PENDING,
        namespace: OnlyNamespace = None,
        cursor: PageCursor = "",
        limit: PageLimit = 50,
        as_json: AsJson = False,
    ) -> None:
        """List skills that classifiers suggest, and proposals from the catalog."""
        only = None if state is State.ALL else SuggestionState(state.value)
        from toolscript.core.web.cursors import decode_cursor
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SuggestionPage

        after, seen = decode_cursor(cursor, 0), seen_of(namespace)
        with open_skills() as ask:
            suggestions = list(ask(lambda skills: skills.suggestions.within(seen).page(after, limit + 1, only)))
        page = SuggestionPage.of_suggestions(suggestions, limit)
        show(
            page,
            suggestions_table(suggestions[:limit]) if suggestions else "there are no such suggestions",
            as_json=as_json,
        )
        if page.next_cursor and not as_json:
            say(f"hint: `toolscript skills suggestions --cursor {page.next_cursor}` shows the next ones")

    @group.command()
    def suggestion(suggestion_id: SuggestionId, as_json: AsJson = False) -> None:
        """Show one suggestion with its evidence: the items that need it, and the nearest skills."""
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SuggestionEvidence

        with open_skills() as ask:
            evidence = ask(lambda skills: skills.evidence(suggestion_id, 0, ITEMS_IN_DETAILS))
        show(SuggestionEvidence.of_evidence(evidence), evidence_text(evidence), as_json=as_json)


def _approve(group: typer.Typer) -> None:
    @group.command()
    def approve(
        suggestion_id: SuggestionId,
        skill_id: Annotated[
            str | None, typer.Option("--id", help="Id of the new skill. Default: derived from its name.")
        ] = None,
        name: Name = None,
        description: Description = None,
        keyword: Keywords = None,
        example: Examples = None,
        domain: Domain = None,
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Create the suggested skill, and classify the items that need it again.

        All namespaces share skills: the name and the description become visible in all of them.
        """
        changes = skill_fields(name, description, keyword, example, domain)
        if skill_id is not None:
            changes["id"] = skill_id
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SuggestionDecided

        with open_skills() as ask:
            decided = ask(lambda skills: skills.approve(suggestion_id, changes, person(by)))
        data = SuggestionDecided.of(decided.suggestion, routing=str(decided.routing))
        show(data, f"skill {decided.suggestion.skill_id} created", as_json=as_json)
        say_if_pending(decided.routing)
        say(WORKER_HINT)


def _decide(group: typer.Typer) -> None:
    @group.command()
    def undo(suggestion_id: SuggestionId, by: By = None, as_json: AsJson = False) -> None:
        """Undo an approved proposal: its skill is deactivated, and its items are classified again."""
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SuggestionDecided

        with open_skills() as ask:
            undone = ask(lambda skills: skills.undo(suggestion_id, person(by)))
        data = SuggestionDecided.of(undone.suggestion, routing=str(undone.routing))
        show(data, f"proposal {suggestion_id} is undone; its items are classified again", as_json=as_json)
        say_if_pending(undone.routing)
        say(WORKER_HINT)

    @group.command()
    def reject(suggestion_id: SuggestionId, by: By = None, as_json: AsJson = False) -> None:
        """Reject a suggestion, now and whenever it is suggested again."""
        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SuggestionShown

        with open_skills() as ask:
            decided = ask(lambda skills: skills.suggestions.reject(suggestion_id, person(by)))
        show(SuggestionShown.of(decided), f"suggestion {decided.id} is rejected", as_json=as_json)

    @group.command()
    def merge(
        suggestion_id: SuggestionId,
        into: Annotated[
            str, typer.Argument(metavar="SKILL", help="Existing skill for the items that need the suggested one.")
        ],
        by: By = None,
        as_json: AsJson = False,
    ) -> None:
        """Assign the items that need a suggested skill to an existing one, now and later."""

        async def merged(skills: "SkillManagement") -> Suggestion:
            return await skills.suggestions.merge(suggestion_id, into, person(by))

        from toolscript.server.skills import open_skills
        from toolscript.tools.schemas.skills import SuggestionShown

        with open_skills() as ask:
            decided = ask(merged)
        show(SuggestionShown.of(decided), f"suggestion {decided.id} is merged into {into}", as_json=as_json)
        say(WORKER_HINT)
