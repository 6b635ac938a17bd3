"""Options shared by several commands. An option beats its environment variable, which beats the default."""

import getpass
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.output import say
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import MAX_ID, ItemKind
from toolscript.core.namespaces import Namespaces, valid_namespace
from toolscript.core.retrieval.query import MAX_LIMIT, SearchType
from toolscript.tools.model.query import MAX_SKILLS, Preset, Strategy

if TYPE_CHECKING:
    from toolscript.client.clients import Client
    from toolscript.client.exchange import Pause
    from toolscript.tools.skills.management import Routing


AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", help="Config file to use instead of ~/.toolscript.json and the project's."),
]
DataDir = Annotated[Path | None, typer.Option(help="Folder for models and caches (TOOLSCRIPT_DATA_DIR).")]
Model = Annotated[
    str | None,
    typer.Option(help="Embedding model: a name, a folder, `builtin` or `none` (TOOLSCRIPT_SEARCH_MODEL)."),
]
Refresh = Annotated[bool, typer.Option("--refresh", help="Query the servers again instead of using the cache.")]
Alone = Annotated[
    bool,
    typer.Option(
        "--alone", help="Neither join nor start the gateway: work in this process (TOOLSCRIPT_GATEWAY_ALONE)."
    ),
]
Port = Annotated[
    int | None,
    typer.Option(help="Port to listen on, 0 for a free one (TOOLSCRIPT_GATEWAY_PORT).", min=0, max=65535),
]

WORKER_HINT = "hint: run `toolscript worker --drain`, unless `toolscript serve` is running"

Query = Annotated[str, typer.Argument(help="What the tool should do, in plain words.")]
RoutingStrategy = Annotated[
    Strategy | None, typer.Option(help="Search the items of matching skills, all items, or both. [hierarchical]")
]
ThresholdPreset = Annotated[Preset | None, typer.Option(help="Both thresholds at once. [balanced]")]
Limit = Annotated[int | None, typer.Option(min=1, max=MAX_LIMIT, help="Maximum number of items. [5]")]
Kind = Annotated[ItemKind | None, typer.Option("--kind", help="Only items of this kind.")]
Threshold = Annotated[float | None, typer.Option(min=0, max=1, help="Minimum score of an item. [the preset's]")]
SkillLimit = Annotated[
    int | None, typer.Option(min=1, max=MAX_SKILLS, help="Maximum number of skills matched by vector. [3]")
]
SkillThreshold = Annotated[
    float | None, typer.Option(min=0, max=1, help="Minimum score of a skill matched by vector. [the preset's]")
]
SearchTypeOption = Annotated[
    SearchType | None,
    typer.Option(help="`hybrid`: dense and BM25; `keyword`: BM25 only; `semantic`: cosine only. [hybrid]"),
]
WithSchemas = Annotated[bool, typer.Option("--schemas", help="Show the schemas of the hits.")]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show the score contributions of each hit, and the timings.")
]
WhyNot = Annotated[
    str | None, typer.Option(metavar="TOOL", help="Explain why this item, server__name or id, is not found.")
]
SkillsShown = Annotated[int | None, typer.Option(min=1, max=MAX_SKILLS, help="Maximum number of skills. [5]")]
MinSkillScore = Annotated[
    float | None, typer.Option(min=0, max=1, help="Minimum score of a skill matched by vector. [0.4]")
]
SearchedNamespaces = Annotated[
    list[str] | None,
    typer.Option("--namespace", metavar="NAME", help="Only items of this namespace; repeatable. [all seen]"),
]
OnlyNamespace = Annotated[
    str | None, typer.Option("--namespace", metavar="NAME", help="Only those of this namespace. [all]")
]
OneNamespace = Annotated[
    str, typer.Option("--namespace", metavar="NAME", help="Namespace of the source. Its items belong to it, too.")
]
Url = Annotated[str | None, typer.Option(help="Address of the service (TOOLSCRIPT_SERVICE_URL).")]
Token = Annotated[
    str | None,
    typer.Option(help="Token, unless the catalog is public; TOOLSCRIPT_TOKEN keeps it out of process lists."),
]
Timeout = Annotated[float, typer.Option(min=0.1, max=600, help="Seconds to wait for the service.")]


SkillId = Annotated[str, typer.Argument(metavar="ID", help="Id of a skill.")]
ItemId = Annotated[int, typer.Argument(metavar="ITEM_ID", min=1, max=MAX_ID, help="Number of an item.")]
SuggestionId = Annotated[int, typer.Argument(metavar="ID", min=1, max=MAX_ID, help="Number of a suggestion.")]
By = Annotated[
    str | None,
    typer.Option("--by", metavar="NAME", help="Name recorded with the decision. Default: the logged-in user."),
]
PageCursor = Annotated[str, typer.Option(metavar="CURSOR", help="`next_cursor` of the previous page.")]
PageLimit = Annotated[int, typer.Option(min=1, max=200, help="Maximum number of entries.")]
Name = Annotated[str | None, typer.Option(help="Display name.")]
Description = Annotated[str | None, typer.Option(help="Description of what it covers.")]
Keywords = Annotated[
    list[str] | None,
    typer.Option("--keyword", help="A word that marks an item as part of the skill; repeatable, '' for none."),
]
Examples = Annotated[
    list[str] | None,
    typer.Option("--example", help="Name of an item of the skill; repeatable, '' for none."),
]
Domain = Annotated[str | None, typer.Option(help="Id of its group of skills; '' for none.")]


def flags(
    *,
    config: Path | None = None,
    data_dir: Path | None = None,
    model: str | None = None,
    port: int | None = None,
    alone: bool = False,
) -> dict[str, object]:
    """Return the options under the names of their settings; None if not given."""
    return {
        "config": None if config is None else str(config),
        "data_dir": None if data_dir is None else str(data_dir),
        "search_model": model,
        "gateway_port": port,
        "gateway_alone": alone or None,
    }


def seen_of(namespace: str | None) -> Namespaces:
    """Return the namespaces of a list: the one that the option names, or all."""
    return None if namespace is None else frozenset({valid_namespace(namespace)})


def service_client(
    url: str | None,
    token: str | None,
    seconds: float,
    *,
    retries: int = 0,
    max_wait: float = 0.0,
    on_retry: "Callable[[Pause], None] | None" = None,
) -> "Client":
    """Return a client of the service of these options, else of the settings. By default it does not retry."""
    from toolscript.client.clients import Client
    from toolscript.client.exchange import Peer
    from toolscript.client.settings import load_client_settings

    settings = load_client_settings({"service_url": url, "token": token})
    hint = "`toolscript serve` starts one; --url or TOOLSCRIPT_SERVICE_URL is the address of one"
    return Client(
        settings.address,
        token=settings.token,
        timeout=seconds,
        connect_timeout=seconds,
        retries=retries,
        max_wait=max_wait,
        on_retry=on_retry,
        peer=Peer("service", "http://127.0.0.1:8080", hint),
    )


def person(by: str | None) -> str:
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise InvalidRequest(
            "the name of the logged-in user is unknown", hint="give a name with --by NAME"
        ) from None


def skill_fields(
    name: str | None,
    description: str | None,
    keywords: list[str] | None,
    examples: list[str] | None,
    domain: str | None,
) -> dict[str, object]:
    """Return the given options under the JSON names of a skill."""
    values = {
        "name": name,
        "description": description,
        "keywords": None if keywords is None else [word for word in keywords if word],
        "examples": None if examples is None else [word for word in examples if word],
    }
    fields: dict[str, object] = {field: value for field, value in values.items() if value is not None}
    return fields if domain is None else {**fields, "parent_domain": domain or None}


def say_if_pending(routing: "Routing") -> None:
    if routing == "pending":
        say(f"searches are not routed by this yet\n{WORKER_HINT}")
