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
    typer.Option(metavar="REVISION", help="Go back to this revision instead (`base`: nothing left). Asks first."),
]
NoSkills = Annotated[bool, typer.Option("--no-skills", help="Load no skills.")]
Show = Annotated[bool, typer.Option("--show", help="Only show the revisions, and which of them are applied.")]
Yes = Annotated[bool, typer.Option("--yes", help="With --down-to: do not ask.")]

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
        """Bring the catalog's database schema to this version; load the skills that ship if there are none.

        A schema that a later version has migrated is left as it is where it serves this one. --down-to deletes
        what the undone revisions hold.
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
    head = ["Revision", "State", "Serves code from", "What"]
    data = {**asdict(status), "is_newer": status.is_newer}
    text = f"{table(head, rows, colour=colour_wanted())}\n{_summary(status)}"
    show(data, text, as_json=as_json)
    if status.problem and not as_json:
        say(f"{status.problem}\nhint: {status.hint}")


def _summary(status: SchemaStatus) -> str:
    serves = f", which serves programs from {status.oldest_code} on" if status.oldest_code else ""
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
    confirm(f"Go back to {down_to}, and delete what these hold for good?", yes=yes)


def _say_done(status: SchemaStatus, down_to: str | None) -> None:
    if down_to is not None:
        say(f"the database schema is at {down_to}")
    elif status.is_newer:
        say(f"the database schema is at {status.current}, later than {status.needed}, and serves this version")
    else:
        say("the database schema is up to date")


def _say_loaded(loaded: "LoadedSkills | None") -> None:
    if loaded and loaded.count:
        say(f"{loaded.count} skills loaded: `toolscript skills list` shows them")
    if loaded and loaded.count and loaded.items:
        say("hint: `toolscript skills reclassify` has the items of the catalog put into them")


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
        help="Documents: a large tenant's own shards, so many; repeatable.",
    ),
]
Share = Annotated[
    float,
    typer.Option(
        min=0.05, max=1.0, help="Documents: share of the time it works at most; less while searches are slow."
    ),
]
Rollback = Annotated[
    bool, typer.Option("--rollback", help="Documents: make the previous index live, with all that was put since.")
]
Cancel = Annotated[bool, typer.Option("--cancel", help="Documents: give up an index that is being built.")]
DropPrevious = Annotated[
    bool,
    typer.Option("--drop-previous", help="Only remove what is no longer live (knowledge: build, then remove it)."),
]


def add_reindex(app: typer.Typer) -> None:
    @app.command()
    def reindex(
        product: Annotated[Product, typer.Argument(help="Whose index.")] = Product.TOOLS,
        model: Model = None,
        shards: Shards = None,
        own_shards: OwnShards = None,
        share: Share = 0.5,
        rollback: Rollback = False,
        cancel: Cancel = False,
        drop_previous: DropPrevious = False,
        as_json: AsJson = False,
    ) -> None:
        """Build an index with the model now configured beside the live one, then make it the live one.

        Searches and writes go on meanwhile. Ended at any moment, it goes on when it is run again.
        """
        if model or shards is not None or own_shards or rollback or cancel:
            _require_documents(product)
        from toolscript.server import indexing, library, reindex_documents

        with progress() as on_progress:
            if product is Product.TOOLS:
                result = indexing.reindex(drop_previous=drop_previous, on_progress=on_progress)
            elif product is Product.KNOWLEDGE:
                result = library.reindex_library(drop_previous=drop_previous, on_progress=on_progress)
            elif drop_previous or cancel:
                result = reindex_documents.drop_document_version(building=cancel)
            elif rollback:
                result = reindex_documents.roll_back_documents(share=share, on_progress=on_progress)
            else:
                result = reindex_documents.reindex_documents(
                    model=model,
                    shards=shards,
                    own_shards=_own_shards(own_shards or []),
                    share=share,
                    on_progress=on_progress,
                )
        show(result, _text(result), as_json=as_json)


def _require_documents(product: Product) -> None:
    if product is not Product.DOCUMENTS:
        raise InvalidRequest(
            f"these options are not for {product}", hint="`toolscript reindex documents` takes them"
        )


def _own_shards(given: Sequence[str]) -> dict[str, int]:
    numbers = dict[str, int]()
    for one in given:
        tenant, _, number = one.rpartition("=")
        if not tenant or not number.isdecimal() or not 1 <= int(number) <= MAX_OWN_SHARDS:
            raise InvalidRequest(
                f"--own-shards {one} is not a tenant and a number from 1 to {MAX_OWN_SHARDS}",
                hint="for example `--own-shards acme=4`",
            )
        numbers[tenant] = int(number)
    return numbers


def _text(result: Mapping[str, object]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in result.items())
