"""`toolscript sync`: imports items into the catalog, from a file or from MCP servers."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import AsJson, ConfigFile
from toolscript.cli.output import colour_wanted, json_text, printable, progress, say, show, table
from toolscript.core.errors import InvalidRequest
from toolscript.core.items import StoreReport
from toolscript.core.namespaces import DEFAULT_NAMESPACE, valid_namespace

if TYPE_CHECKING:
    from toolscript.tools.catalog.items import ImportReport, ServerReport

WAIT_SECONDS = 30.0
HELD_HINT = "hint: `toolscript changes list --state held` lists the changes that need a decision"

SyncedFile = Annotated[
    Path | None,
    typer.Argument(help="JSON lines: {id, server, name, description, input_schema, ...}. None: the MCP servers."),
]
Server = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this server; repeatable.")]
Source = Annotated[
    str | None, typer.Option(help="Source name of the file's items; files without one share `file`.")
]
Namespace = Annotated[
    str, typer.Option("--namespace", metavar="NAME", help="Namespace of the catalog that gets the items.")
]
Prune = Annotated[
    bool | None,
    typer.Option(
        "--prune/--no-prune",
        help="Remove items that the source no longer has. Default: yes for servers, no for a file.",
    ),
]
Watch = Annotated[bool, typer.Option("--watch", help="Keep running, and follow changes of the servers.")]
Timeout = Annotated[float, typer.Option(min=0, max=3600, help="Seconds to wait for a server.")]


def add_sync(app: typer.Typer) -> None:
    @app.command()
    def sync(
        file: SyncedFile = None,
        config: ConfigFile = None,
        server: Server = None,
        source: Source = None,
        namespace: Namespace = DEFAULT_NAMESPACE,
        prune: Prune = None,
        watch: Watch = False,
        timeout: Timeout = WAIT_SECONDS,
        as_json: AsJson = False,
    ) -> None:
        """Import tools, prompts and resources of MCP servers or a file; unchanged items cost nothing.

        A server that does not answer keeps its items. Exit code 2: a server failed, or a line is not an item.
        """
        if file is not None:
            _refuse(config=config, server=server, watch=watch)
            _sync_file(file, source or "file", valid_namespace(namespace), prune=bool(prune), as_json=as_json)
            return
        if source is not None:
            raise InvalidRequest("--source is for a file", hint="the source of a server's items is mcp:<its name>")
        place = "" if config is None else str(config)
        chosen = _Chosen(place, server or [], prune is None or prune, valid_namespace(namespace))
        if watch:
            _watch(chosen, as_json=as_json)
        else:
            _sync_servers(chosen, timeout, as_json=as_json)


@dataclass(frozen=True)
class _Chosen:
    config: str
    only: Sequence[str]
    prune: bool
    namespace: str


def _sync_servers(chosen: _Chosen, wait_seconds: float, *, as_json: bool) -> None:
    from toolscript.server.sync import sync_servers

    with progress() as on_progress:
        reports = sync_servers(
            config=chosen.config,
            only=chosen.only,
            prune=chosen.prune,
            namespace=chosen.namespace,
            wait_seconds=wait_seconds,
            on_progress=on_progress,
        )
    _show_servers(reports, as_json=as_json)


def _watch(chosen: _Chosen, *, as_json: bool) -> None:
    """Print one line per event, flushed at once, for readers of a pipe."""
    from toolscript.server.sync import watch_servers

    def print_report(report: "ServerReport") -> None:
        text = f"failed: {report.failed}" if report.taken is None else _counts(report.taken)
        line = f"{printable(report.server)}: {printable(text)}"
        sys.stdout.write((json_text(report.as_json()) if as_json else line) + "\n")
        sys.stdout.flush()
        if report.taken is not None:
            _hint_at_held(report.taken.stored)

    watch_servers(
        config=chosen.config,
        only=chosen.only,
        prune=chosen.prune,
        namespace=chosen.namespace,
        on_report=print_report,
    )


def _refuse(**options: object) -> None:
    """Refuse options that select servers when a file is given."""
    if named := [f"--{name}" for name, value in options.items() if value]:
        raise InvalidRequest(f"{', '.join(named)}: not with a file", hint="leave the file out to sync MCP servers")


def _sync_file(file: Path, source: str, namespace: str, *, prune: bool, as_json: bool) -> None:
    from toolscript.server.sync import sync_file

    with progress() as on_progress:
        report = sync_file(file, source=source, prune=prune, namespace=namespace, on_progress=on_progress)
    for refused in report.refused:
        say(f"{refused.where}: {refused.reason}")
    show({"source": source, **asdict(report)}, f"source {source}: {_counts(report)}", as_json=as_json)
    _hint_at_held(report.stored)
    if report.refused_count:
        raise typer.Exit(2)


def _counts(report: "ImportReport") -> str:
    stored = report.stored
    held = f"{stored.held:,} held, " if stored.held else ""
    return (
        f"{stored.added:,} added, {stored.changed:,} changed, {stored.unchanged:,} unchanged, {held}"
        f"{report.removed:,} removed, {report.refused_count:,} refused"
    )


def _show_servers(reports: "Sequence[ServerReport]", *, as_json: bool) -> None:
    if as_json:
        data = {"servers": [report.as_json() for report in reports]}
        sys.stdout.write(json_text(data) + "\n")
    else:
        _say_refused(reports)
        head = ["Server", "Added", "Changed", "Unchanged", "Held", "Removed", "Failed"]
        sys.stdout.write(table(head, [_row(report) for report in reports], colour=colour_wanted()) + "\n")
    _hint_at_held(sum((report.taken.stored for report in reports if report.taken), StoreReport()))
    if any(report.failed for report in reports):
        raise typer.Exit(2)


def _row(report: "ServerReport") -> list[str]:
    if report.taken is None:
        return [report.server, "", "", "", "", "", report.failed]
    stored = report.taken.stored
    counts = (stored.added, stored.changed, stored.unchanged, stored.held, report.taken.removed)
    return [report.server, *(f"{count:,}" for count in counts), ""]


def _say_refused(reports: "Sequence[ServerReport]") -> None:
    for taken in (report.taken for report in reports if report.taken):
        for refused in taken.refused:
            say(f"{printable(refused.where)}: {printable(refused.reason)}")


def _hint_at_held(stored: StoreReport) -> None:
    if stored.held:
        say(HELD_HINT)
