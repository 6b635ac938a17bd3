"""What the commands about skills ask of the service, and the options they share."""

import getpass
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, TypeVar

import typer

from toolscript.cli.output import say
from toolscript.errors import InvalidRequest
from toolscript.model.items import LARGEST_ID
from toolscript.model.progress import OnProgress

if TYPE_CHECKING:
    from toolscript.model.skill_vectors import Rebuilt
    from toolscript.sync.skill_import import SkillImport
    from toolscript.sync.skill_management import Routing, SkillManagement

T = TypeVar("T")
WORKER_HINT = "hint: run `toolscript worker --drain`, unless a worker is running"


class AskSkills(Protocol):
    """Does one thing after another with skills, and waits for each."""

    def __call__(self, action: Callable[["SkillManagement"], Awaitable[T]]) -> T: ...


class SkillCommands(Protocol):
    def open_skills(self) -> AbstractContextManager[AskSkills]: ...
    def import_skills(
        self, path: Path, *, replace: bool, by: str, on_progress: OnProgress
    ) -> "tuple[SkillImport, Routing]": ...
    def export_skills(self, path: Path | None) -> tuple[int, str]: ...
    def reclassify(self, *, skill_id: str | None, source: str | None, on_progress: OnProgress) -> int: ...
    def rebuild_skills(self, only: Collection[str], *, on_progress: OnProgress) -> "Rebuilt": ...


Service = Callable[[], SkillCommands]
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
