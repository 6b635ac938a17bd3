"""`toolscript migrate` and `toolscript reindex`: the database schema, and indexes for another model."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import AsJson
from toolscript.cli.output import colour_wanted, confirm, progress, say, show, table
from toolscript.core.errors import InvalidRequest
from toolscript.core.values import SchemaStatus

if TYPE_CHECKING:
    from toolscript.tools.skills.importing import LoadedSkills


DownTo = Annotated[
    str | None,
    typer.Option(
        metavar="REVISION",
        help="Migrate down to this revision (`base`: remove everything). Asks for confirmation.",
    ),
]
NoSkills = Annotated[bool, typer.Option("--no-skills", help="Load no skills.")]
Show = Annotated[bool, typer.Option("--show", help="Only show the revisions and whether they are applied.")]
Yes = Annotated[bool, typer.Option("--yes", help="With --down-to: do not ask for confirmation.")]

MAX_OWN_SHARDS = 64


def add_migrate(app: typer.Typer) -> None:
    @app.command()
    def migrate(
        down_to: DownTo = None,
        no_skills: NoSkills = False,
        show: Show = False,
        yes: Yes = False,
        as_json: AsJson = False,
    ) -> None:
        """Migrate the catalog's database schema to this version; load the default skills if there are none.

        A newer schema is kept if it is compatible with this version. --down-to deletes the data of the undone
        revisions.
        """
        if show and down_to is not None:
            raise InvalidRequest("--show and --down-to: one or the other", hint="leave one of them out")
        from toolscript.server import indexing

        if show:
            _show(indexing.schema_status(), as_json=as_json)
            return
        if down_to is not None:
            _confirm_down(indexing.schema_status(down_to=down_to), down_to, yes=yes)
        status, loaded = indexing.migrate(down_to=down_to, skills=not no_skills)
        _say_done(status, down_to)
        _say_loaded(loaded)
        if as_json:
            _show(status, as_json=True)


def _show(status: SchemaStatus, *, as_json: bool) -> None:
    rows = [
        [
            revision.id,
            "applied" if status.is_applied(revision) else "pending",
            revision.oldest_code,
            revision.title,
        ]
        for revision in status.revisions
    ]
    head = ["Revision", "State", "Minimum version", "Description"]
    data = {**asdict(status), "is_newer": status.is_newer}
    text = f"{table(head, rows, colour=colour_wanted())}\n{_summary(status)}"
    show(data, text, as_json=as_json)
    if status.problem and not as_json:
        say(f"{status.problem}\nhint: {status.hint}")


def _summary(status: SchemaStatus) -> str:
    serves = f", compatible with versions from {status.oldest_code} on" if status.oldest_code else ""
    return f"database: {status.current or 'no schema yet'}{serves}; this version: {status.needed}"


def _confirm_down(status: SchemaStatus, down_to: str, *, yes: bool) -> None:
    undone = [
        revision
        for revision in status.revisions
        if status.is_applied(revision) and (down_to == "base" or revision.id > down_to)
    ]
    if not undone:
        return
    for revision in reversed(undone):
        say(f"undoes {revision.id}: {revision.title}")
    confirm(f"Migrate down to {down_to}, and delete the data of these revisions permanently?", yes=yes)


def _say_done(status: SchemaStatus, down_to: str | None) -> None:
    if down_to is not None:
        say(f"the database schema is at {down_to}")
    elif status.is_newer:
        say(f"the database schema is at {status.current}, newer than {status.needed} and compatible with it")
    else:
        say("the database schema is up to date")


def _say_loaded(loaded: "LoadedSkills | None") -> None:
    if loaded and loaded.count:
        say(f"{loaded.count} skills loaded: `toolscript skills list` shows them")
    if loaded and loaded.count and loaded.items:
        say("hint: `toolscript skills reclassify` assigns the items of the catalog to them")


class Product(StrEnum):
    TOOLS = "tools"
    DOCUMENTS = "documents"
    KNOWLEDGE = "knowledge"


Model = Annotated[str | None, typer.Option(help="Documents: the new model (default: TOOLSCRIPT_EMBEDDING_MODEL).")]
Shards = Annotated[int | None, typer.Option(min=0, max=1024, help="Documents: the new number of shared shards.")]
OwnShards = Annotated[
    list[str] | None,
    typer.Option(
        "--own-shards",
        metavar="TENANT=N",
        help="Documents: number of own shards of a large tenant; repeatable.",
    ),
]
Share = Annotated[
    float,
    typer.Option(
        min=0.05, max=1.0, help="Documents: maximum share of time to work; less while searches are slow."
    ),
]
Rollback = Annotated[
    bool, typer.Option("--rollback", help="Documents: make the previous index live again, including later writes.")
]
Anew = Annotated[
    bool,
    typer.Option("--anew", help="Documents: build it also if nothing changes, to leave behind what was erased."),
]
Cancel = Annotated[bool, typer.Option("--cancel", help="Documents: discard the index that is being built.")]
BeginEmpty = Annotated[
    bool,
    typer.Option(
        "--begin-empty",
        help="Documents: their index is lost, without a backup: begin with an empty one. Asks for confirmation.",
    ),
]
YesEmpty = Annotated[bool, typer.Option("--yes", help="With --begin-empty: do not ask for confirmation.")]
DropPrevious = Annotated[
    bool,
    typer.Option("--drop-previous", help="Only remove the previous index (knowledge: after the build)."),
]


def add_reindex(app: typer.Typer) -> None:
    @app.command()
    def reindex(
        product: Annotated[Product, typer.Argument(help="The index to build.")] = Product.TOOLS,
        model: Model = None,
        shards: Shards = None,
        own_shards: OwnShards = None,
        share: Share = 0.5,
        rollback: Rollback = False,
        anew: Anew = False,
        cancel: Cancel = False,
        begin_empty: BeginEmpty = False,
        yes: YesEmpty = False,
        drop_previous: DropPrevious = False,
        as_json: AsJson = False,
    ) -> None:
        """Build an index with the configured model beside the live one, then switch to it.

        Searches and writes continue meanwhile. Resumable: run it again after an interruption.
        """
        if model or shards is not None or own_shards or rollback or anew or cancel or begin_empty:
            _require_documents(product)
        from toolscript.server import indexing, library, reindex_documents

        with progress() as on_progress:
            if product is Product.TOOLS:
                result = indexing.reindex(drop_previous=drop_previous, on_progress=on_progress)
            elif product is Product.KNOWLEDGE:
                result = library.reindex_library(drop_previous=drop_previous, on_progress=on_progress)
            elif drop_previous or cancel:
                result = reindex_documents.drop_document_version(building=cancel)
            elif begin_empty:
                result = reindex_documents.begin_empty_documents(lambda question: confirm(question, yes=yes))
            elif rollback:
                result = reindex_documents.roll_back_documents(share=share, on_progress=on_progress)
            else:
                result = reindex_documents.reindex_documents(
                    model=model,
                    shards=shards,
                    own_shards=_own_shards(own_shards or []),
                    share=share,
                    anew=anew,
                    on_progress=on_progress,
                )
        show(result, _text(result), as_json=as_json)


def _require_documents(product: Product) -> None:
    if product is not Product.DOCUMENTS:
        raise InvalidRequest(
            f"these options are not for {product}", hint="`toolscript reindex documents` takes them"
        )


def _own_shards(options: Sequence[str]) -> dict[str, int]:
    numbers = dict[str, int]()
    for option in options:
        tenant, _, number = option.rpartition("=")
        if not tenant or not number.isdecimal() or not 1 <= int(number) <= MAX_OWN_SHARDS:
            raise InvalidRequest(
                f"--own-shards {option} is not a tenant and a number from 1 to {MAX_OWN_SHARDS}",
                hint="for example `--own-shards acme=4`",
            )
        numbers[tenant] = int(number)
    return numbers


def _text(result: Mapping[str, object]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in result.items())
