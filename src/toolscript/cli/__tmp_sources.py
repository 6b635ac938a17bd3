"""`toolscript sources`: where the tools of the catalog come from, and how a whole source leaves."""

from collections.abc import Sequence
from typing import Annotated

import typer

from toolscript.cli.confirming import confirm
from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import colour_wanted, progress, say, show
from toolscript.cli.skills_options import WORKER_HINT, Limit
from toolscript.cli.tables import printable, table
from toolscript.model.catalog_contents import ItemSource, source_to_json

Name = Annotated[str, typer.Argument(metavar="SOURCE", help="Name of the source, as `sources list` has it.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def source_commands() -> typer.Typer:
    group = typer.Typer(
        help="Sources of the catalog's tools: files, callers of the API, MCP servers. List and remove them.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    _list(group)
    _remove(group)
    return group


def _list(group: typer.Typer) -> None:
    @group.command("list")
    def list_(
        after: Annotated[str, typer.Option(metavar="SOURCE", help="Begin after this one.")] = "",
        limit: Limit = 50,
        as_json: AsJson = False,
    ) -> None:
        """List sources in order of name: how many tools each has, and when it was last synced."""
        from toolscript.service.catalog_contents import list_item_sources

        found = list_item_sources(after=after, limit=limit + 1)
        shown, more = found[:limit], len(found) > limit
        data = {
            "results": [source_to_json(one) for one in shown],
            "next_cursor": shown[-1].name if more else None,
        }
        show(data, _table(shown), as_json=as_json)
        if more:
            say(f"hint: --after {printable(shown[-1].name)} shows more")


def _remove(group: typer.Typer) -> None:
    @group.command()
    def remove(name: Name, yes: Yes = False, as_json: AsJson = False) -> None:
        """Remove a source with all of its tools. Stopped at any time, the same command goes on.

        What people decided about the tools is kept for a while, and holds again if the source comes back.
        """
        from toolscript.service.catalog_contents import find_item_source, remove_item_source

        known = find_item_source(name)
        if known is None:
            show({"source": name, "removed": 0}, f"there is no source {printable(name)}", as_json=as_json)
            say("hint: `toolscript sources list` shows those there are")
            return
        confirm(f"Remove source {printable(name)} with its {known.items:,} tools?", yes=yes)
        with progress() as on_progress:
            removed = remove_item_source(name, on_progress)
        text = f"{removed:,} tools of source {printable(name)} removed"
        show({"source": name, "removed": removed}, text, as_json=as_json)
        say(WORKER_HINT)


def _table(sources: Sequence[ItemSource]) -> str:
    if not sources:
        return "there are no sources"
    rows = [[one.name, f"{one.items:,}", f"{one.synced_at.astimezone():%Y-%m-%d %H:%M}"] for one in sources]
    return table(["Source", "Tools", "Last sync"], rows, colour=colour_wanted())
