"""`toolscript audit`: who changed what, as a list and as lines for another system."""

import json
import sys
from typing import Annotated

import typer

from toolscript.cli.output import say
from toolscript.core.taxonomy import AuditEntry


def audit_commands() -> typer.Typer:
    group = typer.Typer(
        help="Who changed what over HTTP, by jobs and by commands: export it.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    # A group with one command would be that command.
    group.callback()(lambda: None)
    _export(group)
    return group


def _export(group: typer.Typer) -> None:
    @group.command()
    def export(
        after: Annotated[
            int,
            typer.Option(min=0, metavar="ID", help="Only entries after this: where the last one ended."),
        ] = 0,
    ) -> None:
        """Write the audit to standard output, a JSON object in each line, the earliest entry first."""
        from toolscript.server.audit import each_entry

        count = each_entry(after, _write)
        sys.stdout.flush()
        say(f"{count:,} entries")


def _write(number: int, entry: AuditEntry) -> None:
    from toolscript.tools.schemas.skills import AuditShown

    shown = AuditShown.of((number, entry)).model_dump(mode="json")
    sys.stdout.write(f"{json.dumps(shown, ensure_ascii=False)}\n")
