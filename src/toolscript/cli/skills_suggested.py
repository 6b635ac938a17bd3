"""`toolscript skills`: suggestions of classifiers, and what people decide about them."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import say, show
from toolscript.cli.skills_options import (
    WORKER_HINT,
    By,
    Description,
    Domain,
    Examples,
    Keywords,
    Limit,
    Name,
    SuggestionId,
    fields_given,
    person,
    say_if_pending,
)
from toolscript.cli.skills_review import Dialogue, review_all
from toolscript.cli.skills_text import evidence_card, suggestions_table
from toolscript.errors import InvalidRequest
from toolscript.model.items import LARGEST_ID
from toolscript.model.skill_json import evidence_to_json, suggestion_to_json
from toolscript.model.skills import Suggestion, SuggestionState

if TYPE_CHECKING:
    from toolscript.sync.skill_management import SkillManagement

ITEMS_SHOWN = 20


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
        from toolscript.service.skills import open_skills

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
        after: Annotated[int, typer.Option(min=0, max=LARGEST_ID, help="Only those after this number.")] = 0,
        limit: Limit = 50,
        as_json: AsJson = False,
    ) -> None:
        """List skills that classifiers missed."""
        state = None if status is Status.ALL else SuggestionState(status.value)
        from toolscript.service.skills import open_skills

        with open_skills() as ask:
            found = list(ask(lambda skills: skills.suggestions.page(after, limit + 1, state)))
        shown, more = found[:limit], len(found) > limit
        data = {"suggestions": [suggestion_to_json(one) for one in shown], "next": shown[-1].id if more else None}
        show(data, suggestions_table(shown) if shown else "nothing waits for review", as_json=as_json)
        if more and not as_json:
            say(f"hint: `toolscript skills suggestions --after {shown[-1].id}` shows the next ones")

    @group.command()
    def suggestion(suggestion_id: SuggestionId, as_json: AsJson = False) -> None:
        """Show one suggestion with the evidence: who asks for it, and which skills are nearest."""
        from toolscript.service.skills import open_skills

        with open_skills() as ask:
            evidence = ask(lambda skills: skills.evidence(suggestion_id, 0, ITEMS_SHOWN))
        show(evidence_to_json(evidence), evidence_card(evidence), as_json=as_json)


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
        from toolscript.service.skills import open_skills

        with open_skills() as ask:
            decided = ask(lambda skills: skills.approve(suggestion_id, changes, person(by)))
        data = {**suggestion_to_json(decided.suggestion), "routing": str(decided.routing)}
        show(data, f"{decided.suggestion.skill_id} is a skill now", as_json=as_json)
        say_if_pending(decided.routing)
        say(WORKER_HINT)


def _decide(group: typer.Typer) -> None:
    @group.command()
    def reject(suggestion_id: SuggestionId, by: By = None, as_json: AsJson = False) -> None:
        """Turn a suggestion down, now and whenever it comes again."""
        from toolscript.service.skills import open_skills

        with open_skills() as ask:
            decided = ask(lambda skills: skills.suggestions.reject(suggestion_id, person(by)))
        show(suggestion_to_json(decided), f"suggestion {decided.id} is rejected", as_json=as_json)

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

        from toolscript.service.skills import open_skills

        with open_skills() as ask:
            decided = ask(merged)
        show(suggestion_to_json(decided), f"suggestion {decided.id} is merged into {into}", as_json=as_json)
        say(WORKER_HINT)
