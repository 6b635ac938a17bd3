"""`toolscript migrate`: the catalog's database schema, up, down and shown."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.confirming import confirm
from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import colour_wanted, say, show
from toolscript.cli.tables import table
from toolscript.errors import InvalidRequest
from toolscript.model.schema_status import SchemaStatus

if TYPE_CHECKING:
    from toolscript.sync.skill_import import LoadedSkills


DownTo = Annotated[
    str | None,
    typer.Option(metavar="REVISION", help="Go back to this revision instead (`base`: nothing left). Asks first."),
]
NoSkills = Annotated[bool, typer.Option("--no-skills", help="Load no skills.")]
Show = Annotated[bool, typer.Option("--show", help="Only show the revisions, and which of them are applied.")]
Yes = Annotated[bool, typer.Option("--yes", help="With --down-to: do not ask.")]


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
        from toolscript.service import writing

        if show:
            _show(writing.schema_status(), as_json=as_json)
            return
        if down_to is not None:
            _confirm_down(writing.schema_status(down_to=down_to), down_to, yes=yes)
        status, loaded = writing.migrate(down_to=down_to, skills=not no_skills)
        _say_done(status, down_to)
        _say_loaded(loaded)
        if as_json:
            _show(status, as_json=True)


def _show(status: SchemaStatus, *, as_json: bool) -> None:
    rows = [
        [one.id, "applied" if status.is_applied(one) else "pending", one.oldest_code, one.title]
        for one in status.revisions
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
        one for one in status.revisions if status.is_applied(one) and (down_to == "base" or one.id > down_to)
    ]
    if not undone:
        return
    for one in reversed(undone):
        say(f"undoes {one.id}: {one.title}")
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
