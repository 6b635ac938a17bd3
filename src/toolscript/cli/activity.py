"""activity: what the gateway did."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import AsJson, DataDir, Yes, flags
from toolscript.cli.output import (
    NOTHING_FOUND,
    colour_wanted,
    confirm,
    json_text,
    printable,
    say,
    show,
    show_page,
    table,
)
from toolscript.core.items import MAX_ID, tool_id
from toolscript.core.web.cursors import decode_cursor, encode_cursor
from toolscript.gateway.activity import Action, ActivityFilter, Outcome, Record, record_shown

if TYPE_CHECKING:
    from toolscript.gateway.history import History

DEFAULT_LIMIT, MAX_LIMIT = 20, 1_000
LOOK_SECONDS = 0.5
HEAD = ("Time", "Client", "What", "Outcome", "Took", "Sent", "Received")
NOTHING = "nothing is logged"


def activity_commands(app: typer.Typer) -> None:
    @app.command()
    def activity(
        follow: Annotated[
            bool, typer.Option("--follow", "-f", help="Go on with what happens, until Ctrl-C.")
        ] = False,
        limit: Annotated[
            int, typer.Option(min=1, max=MAX_LIMIT, help="Maximum number of entries.")
        ] = DEFAULT_LIMIT,
        server: Annotated[str, typer.Option(help="Only calls of this server.")] = "",
        tool: Annotated[str, typer.Option(help="Only calls of this tool: its name, or server__tool.")] = "",
        client: Annotated[str, typer.Option(help="Only of this client: its name, cli, http or python.")] = "",
        outcome: Annotated[Outcome | None, typer.Option(help="Only with this outcome.")] = None,
        after: Annotated[str, typer.Option(help="Cursor of the next page, which the previous one names.")] = "",
        clear: Annotated[bool, typer.Option("--clear", help="Delete the log, but for calls that run.")] = False,
        yes: Yes = False,
        data_dir: DataDir = None,
        as_json: AsJson = False,
    ) -> None:
        """Show what was searched and called, the newest first: by whom, when, how it ended, how long it took.

        Exit code 1: nothing is logged.
        """
        from toolscript.gateway.history import history

        log = history(flags(data_dir=data_dir))
        where = ActivityFilter(server, tool, client, outcome.value if outcome else "")
        if clear:
            confirm(f"delete all entries of {log.path}?", yes=yes)
            deleted = log.clear()
            show({"deleted": deleted}, f"{deleted:,} entries deleted", as_json=as_json)
        elif follow:
            _follow(log, where, limit, as_json=as_json)
        else:
            _show_page(log.page(where, decode_cursor(after, MAX_ID), limit + 1), limit, as_json=as_json)


def _show_page(records: Sequence[Record], limit: int, *, as_json: bool) -> None:
    shown = records[:limit]
    next_cursor = encode_cursor(shown[-1].id) if len(records) > limit else None
    page: Mapping[str, object] = {"results": [*map(record_shown, shown)], "next_cursor": next_cursor}
    if shown or as_json:
        text = table(HEAD, [_row(record) for record in shown], colour=colour_wanted())
        show_page(page, text, next_cursor, as_json=as_json)
    else:
        say(NOTHING)
    if not shown:
        raise typer.Exit(NOTHING_FOUND)


def _follow(log: "History", where: ActivityFilter, limit: int, *, as_json: bool) -> None:
    """Print the last entries, then each that begins or ends. One that runs is printed again when it has ended."""
    try:
        for records in _changes(log, where, limit):
            for record in records:
                line = json_text(record_shown(record)) if as_json else _line(record)
                sys.stdout.write(line + "\n")
            sys.stdout.flush()
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        return


def _changes(log: "History", where: ActivityFilter, limit: int) -> Iterator[Sequence[Record]]:
    yield [*reversed(log.page(where, None, limit))]
    # Those that run have any outcome still.
    of_any = replace(where, outcome="")
    [newest, running] = [log.page(of_any, None, 1), log.page(replace(where, outcome="running"), None, MAX_LIMIT)]
    last, ids = newest[0].id if newest else 0, {record.id for record in running}
    while True:
        found = log.after(of_any, last, sorted(ids), MAX_LIMIT)
        changed = [record for record in found if record.id > last or record.outcome is not Outcome.RUNNING]
        last = max([last, *(record.id for record in found)])
        ids = {record.id for record in found if record.outcome is Outcome.RUNNING}
        yield [record for record in changed if where.outcome in ("", record.outcome)]


def _line(record: Record) -> str:
    """Return a row without a table around it, for lines that come one by one."""
    when, client, what, outcome, *figures = map(printable, _row(record))
    return "  ".join([when, client, what, outcome, *filter(None, figures)])


def _row(record: Record) -> list[str]:
    entry = record.entry
    return [
        datetime.fromtimestamp(entry.at).astimezone().strftime("%Y-%m-%d %H:%M:%S"),
        entry.client,
        "search" if entry.action is Action.SEARCH else tool_id(entry.server, entry.tool),
        record.outcome.value + (f" ({record.error})" if record.error else ""),
        "" if record.took_ms is None else f"{record.took_ms:,.0f} ms",
        size_text(entry.argument_bytes),
        "" if record.result_bytes is None else size_text(record.result_bytes),
    ]


def size_text(size: int) -> str:
    if size < 1_000:
        return f"{size} B"
    return f"{size / 1e3:,.1f} kB" if size < 1_000_000 else f"{size / 1e6:,.1f} MB"
