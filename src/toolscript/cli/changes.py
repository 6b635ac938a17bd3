"""changes: definitions that changed after they were seen, and decisions about those that are held."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.diffs import field_diff
from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import colour_wanted, json_text, say, show
from toolscript.cli.skills_options import By, Limit, person
from toolscript.cli.tables import printable, table
from toolscript.model.change_json import change_to_json, details_to_json
from toolscript.model.changes import ChangeState, ItemChange
from toolscript.model.items import LARGEST_ID
from toolscript.model.tool_ids import tool_id

if TYPE_CHECKING:
    from toolscript.model.changes import ChangeDetails

ChangeId = Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST_ID, help="Number of a change.")]


def change_commands() -> typer.Typer:
    group = typer.Typer(
        help="Definitions that changed after they were seen. TOOLSCRIPT_HOLD_CHANGES has them wait for a person.",
        no_args_is_help=True,
    )
    _look(group)
    _decide(group)
    return group


def _look(group: typer.Typer) -> None:
    @group.command("list")
    def list_(
        state: Annotated[ChangeState | None, typer.Option(help="Only those in this state.")] = None,
        before: Annotated[
            int | None, typer.Option(metavar="ID", min=1, max=LARGEST_ID, help="Only those before this one.")
        ] = None,
        limit: Limit = 50,
        as_json: AsJson = False,
    ) -> None:
        """List changes, the latest first."""
        from toolscript.service.changing import list_changes

        found = list_changes(before=before, limit=limit + 1, state=state)
        shown, more = found[:limit], len(found) > limit
        if as_json:
            data = {"changes": [change_to_json(one) for one in shown], "next": shown[-1].id if more else None}
            sys.stdout.write(json_text(data) + "\n")
            return
        _show_table(shown)
        if more:
            say(f"hint: --before {shown[-1].id} shows older ones")

    @group.command("show")
    def show_(change_id: ChangeId, as_json: AsJson = False) -> None:
        """Show what changed, field by field. Characters that are not seen are written out as \\u codes."""
        from toolscript.service.changing import find_change

        details = find_change(change_id)
        show(details_to_json(details), "\n".join(_compared(details)), as_json=as_json)
        if details.change.state is ChangeState.HELD and not as_json:
            say(f"hint: `toolscript changes approve {change_id}` or `toolscript changes reject {change_id}`")


def _decide(group: typer.Typer) -> None:
    @group.command()
    def approve(change_id: ChangeId, by: By = None, as_json: AsJson = False) -> None:
        """Let a held definition come into force."""
        from toolscript.service.changing import decide_change

        _decided(decide_change(change_id, approve=True, by=person(by)), as_json=as_json)

    @group.command()
    def reject(change_id: ChangeId, by: By = None, as_json: AsJson = False) -> None:
        """Keep the definition in force, and do not ask about the held one again."""
        from toolscript.service.changing import decide_change

        _decided(decide_change(change_id, approve=False, by=person(by)), as_json=as_json)


def _decided(change: ItemChange, *, as_json: bool) -> None:
    text = f"change {change.id} of {_name(change)} is {change.state}"
    show(change_to_json(change), text, as_json=as_json)


def _show_table(changes: Sequence[ItemChange]) -> None:
    if not changes:
        say("there are no such changes")
        return
    rows = [
        [
            str(one.id),
            one.state,
            f"{one.seen_at.astimezone():%Y-%m-%d %H:%M}",
            _name(one),
            ", ".join(one.changed_fields),
            one.reviewed_by or "",
        ]
        for one in changes
    ]
    head = ["Id", "State", "Seen", "Item", "Changed", "Reviewed by"]
    sys.stdout.write(table(head, rows, colour=colour_wanted()) + "\n")


def _compared(details: "ChangeDetails") -> list[str]:
    change = details.change
    reviewed = f" by {printable(change.reviewed_by)}" if change.reviewed_by else ""
    lines = [
        f"change {change.id} of {_name(change)}, from {printable(change.source)}",
        f"{change.state}{reviewed}, seen {change.seen_at.astimezone():%Y-%m-%d %H:%M}",
    ]
    for field in change.changed_fields:
        lines += ["", *field_diff(field, details.old.get(field), details.new.get(field))]
    return lines


def _name(change: ItemChange) -> str:
    return printable(tool_id(change.server, change.name))
