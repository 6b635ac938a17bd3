"""Options that several groups of commands share. Each beats its environment variable, which beats the default."""

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.output import say
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import MAX_ID, ItemKind
from toolscript.core.retrieval.query import MAX_LIMIT, SearchType
from toolscript.tools.model.query import MAX_SKILLS, Preset, Strategy

if TYPE_CHECKING:
    from toolscript.tools.skills.management import Routing


AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="Config file to use instead of ~/.toolscript.json and the project's."),
]
DataDir = Annotated[Path | None, typer.Option(help="Folder for models and caches (TOOLSCRIPT_DATA_DIR).")]
Model = Annotated[str | None, typer.Option(help="Embedding model: a name or a folder (TOOLSCRIPT_SEARCH_MODEL).")]
Refresh = Annotated[bool, typer.Option("--refresh", help="Ask the servers again instead of remembering.")]
Port = Annotated[
    int | None,
    typer.Option(help="Port to listen on, 0 for a free one (TOOLSCRIPT_GATEWAY_PORT).", min=0, max=65535),
]

WORKER_HINT = "hint: run `toolscript worker --drain`, unless a worker is running"

Query = Annotated[str, typer.Argument(help="What the tool should do, in plain words.")]
HowRouted = Annotated[
    Strategy | None, typer.Option(help="Search items of matching skills, all items, or both. [hierarchical]")
]
Strictness = Annotated[Preset | None, typer.Option(help="Both thresholds at once. [balanced]")]
Limit = Annotated[int | None, typer.Option(min=1, max=MAX_LIMIT, help="Most items shown. [5]")]
Kind = Annotated[ItemKind | None, typer.Option("--type", help="Only items of this kind.")]
Threshold = Annotated[float | None, typer.Option(min=0, max=1, help="Least score of an item. [the preset's]")]
SkillLimit = Annotated[int | None, typer.Option(min=1, max=MAX_SKILLS, help="Most skills matched by vector. [3]")]
SkillThreshold = Annotated[
    float | None, typer.Option(min=0, max=1, help="Least score of a skill matched by vector. [the preset's]")
]
Arms = Annotated[
    SearchType | None,
    typer.Option(help="`hybrid`: meaning and words; `keyword`: words; `semantic`: the cosine alone. [hybrid]"),
]
WithSchemas = Annotated[bool, typer.Option("--schemas", help="Show the schemas of what is found.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show how each came to its place, and how long it took.")]
WhyNot = Annotated[
    str | None, typer.Option(metavar="TOOL", help="Say why this item, server__name or id, is not found.")
]
SkillsShown = Annotated[int | None, typer.Option(min=1, max=MAX_SKILLS, help="Most skills shown. [5]")]
LeastSkillScore = Annotated[
    float | None, typer.Option(min=0, max=1, help="Least score of a skill matched by vector. [0.4]")
]
Url = Annotated[str | None, typer.Option(help="Address of the service (TOOLSCRIPT_SERVICE_URL).")]
Token = Annotated[
    str | None, typer.Option(help="Token, where the catalog is not public; better in TOOLSCRIPT_TOKEN, unseen.")
]
Timeout = Annotated[float, typer.Option(min=0.1, max=600, help="Seconds to wait for the service.")]


SkillId = Annotated[str, typer.Argument(metavar="ID", help="Id of a skill.")]
ItemId = Annotated[int, typer.Argument(metavar="ITEM_ID", min=1, max=MAX_ID, help="Number of an item.")]
SuggestionId = Annotated[int, typer.Argument(metavar="ID", min=1, max=MAX_ID, help="Number of a suggestion.")]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who decides; recorded. Default: who is logged in.")
]
PageLimit = Annotated[int, typer.Option(min=1, max=200, help="Most of them.")]
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


def flags(
    *, config: Path | None = None, data_dir: Path | None = None, model: str | None = None, port: int | None = None
) -> dict[str, object]:
    """As settings have them; what was not given is None."""
    return {
        "config": None if config is None else str(config),
        "data_dir": None if data_dir is None else str(data_dir),
        "search_model": model,
        "gateway_port": port,
    }


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
