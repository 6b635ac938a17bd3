"""Options of the commands that ask a service. What is not given is left to the service, whose default is in []."""

from typing import Annotated

import typer

from toolscript.model.items import ItemKind
from toolscript.model.queries import MAX_LIMIT, MAX_SKILLS, Preset, SearchType, Strategy

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
