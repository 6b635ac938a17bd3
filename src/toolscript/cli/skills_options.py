"""Options that the commands about skills share, and what they say."""

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.output import say
from toolscript.errors import InvalidRequest
from toolscript.model.items import LARGEST_ID

if TYPE_CHECKING:
    from toolscript.sync.skill_management import Routing

WORKER_HINT = "hint: run `toolscript worker --drain`, unless a worker is running"

SkillId = Annotated[str, typer.Argument(metavar="ID", help="Id of a skill.")]
ItemId = Annotated[int, typer.Argument(metavar="ITEM_ID", min=1, max=LARGEST_ID, help="Number of an item.")]
SuggestionId = Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST_ID, help="Number of a suggestion.")]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who decides; recorded. Default: who is logged in.")
]
Limit = Annotated[int, typer.Option(min=1, max=200, help="Most of them.")]
Name = Annotated[str | None, typer.Option(help="What it is called.")]
Description = Annotated[str | None, typer.Option(help="What it covers.")]
Keywords = Annotated[
    list[str] | None,
    typer.Option("--keyword", help="A word that tells that an item belongs here; repeatable, '' for none."),
]
Examples = Annotated[
    list[str] | None,
    typer.Option("--example", help="Name of an item that belongs here; repeatable, '' for none."),
]
Domain = Annotated[str | None, typer.Option(help="Group of skills it is in, named like an id; '' for none.")]


def person(by: str | None) -> str:
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise InvalidRequest("nobody is logged in by a name", hint="say who decides with --by NAME") from None


def fields_given(
    name: str | None,
    description: str | None,
    keywords: list[str] | None,
    examples: list[str] | None,
    domain: str | None,
) -> dict[str, object]:
    """What was given, as the JSON of a skill has it."""
    given = {
        "name": name,
        "description": description,
        "keywords": None if keywords is None else [word for word in keywords if word],
        "examples": None if examples is None else [word for word in examples if word],
    }
    found: dict[str, object] = {field: value for field, value in given.items() if value is not None}
    return found if domain is None else {**found, "parent_domain": domain or None}


def say_if_pending(routing: "Routing") -> None:
    if routing == "pending":
        say(f"searches are not routed by this yet\n{WORKER_HINT}")
