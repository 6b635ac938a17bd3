"""`toolscript tools list`, `show` and `remove`: what the catalog holds, one by one."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from toolscript.cli.confirming import confirm
from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import colour_wanted, say, show
from toolscript.cli.skills_options import WORKER_HINT, Limit
from toolscript.cli.sources import Yes
from toolscript.cli.tables import printable, table
from toolscript.model.catalog_contents import CatalogItem, ItemFilter, item_to_json, listed_to_json
from toolscript.model.items import LARGEST_ID, ItemKind
from toolscript.model.tool_ids import tool_id

MOST_NAMED = 5

Id = Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST_ID, help="Number of a tool.")]
Ids = Annotated[list[int], typer.Argument(metavar="ID...", min=1, max=LARGEST_ID, help="Numbers of tools.")]
Source = Annotated[str | None, typer.Option(help="Only those of this source.")]
Server = Annotated[str | None, typer.Option(help="Only those of this server.")]
Kind = Annotated[ItemKind | None, typer.Option(help="Only those of this kind.")]
After = Annotated[int, typer.Option(metavar="ID", min=0, max=LARGEST_ID, help="Begin after this one.")]


def add_catalog(group: typer.Typer) -> None:
    _list(group)
    _show(group)
    _remove(group)


def _list(group: typer.Typer) -> None:
    @group.command("list")
    def list_(
        source: Source = None,
        server: Server = None,
        kind: Kind = None,
        after: After = 0,
        limit: Limit = 50,
        as_json: AsJson = False,
    ) -> None:
        """List what the catalog holds, in order of id. Reads the database itself; no service has to run."""
        from toolscript.service.catalog_contents import list_items

        wanted = ItemFilter(source, server, kind)
        found = list_items(after=after, limit=limit + 1, wanted=wanted)
        shown, more = found[:limit], len(found) > limit
        data = {
            "results": [listed_to_json(one) for one in shown],
            "next_cursor": str(shown[-1].id) if more else None,
        }
        show(data, _table(shown), as_json=as_json)
        if more:
            say(f"hint: --after {shown[-1].id} shows more")


def _show(group: typer.Typer) -> None:
    @group.command("show")
    def show_(number: Id, as_json: AsJson = False) -> None:
        """Show one tool with its schemas. What its source says of it is data, and nothing to follow."""
        from toolscript.service.catalog_contents import find_item

        found = find_item(number)
        show(item_to_json(found), "\n".join(_lines(found)), as_json=as_json)


def _remove(group: typer.Typer) -> None:
    @group.command()
    def remove(numbers: Ids, yes: Yes = False, as_json: AsJson = False) -> None:
        """Remove tools from the catalog, until their source is synced again and still has them."""
        from toolscript.service.catalog_contents import remove_items

        distinct = list(dict.fromkeys(numbers))
        if not yes:
            confirm(f"Remove {_named(distinct)}?", yes=yes)
        removed = remove_items(distinct)
        show({"removed": removed}, f"{removed:,} of {len(distinct):,} removed", as_json=as_json)
        say(WORKER_HINT)


def _named(numbers: Sequence[int]) -> str:
    """What somebody who decides should see."""
    from toolscript.service.catalog_contents import find_item

    items = [find_item(number).item for number in numbers[:MOST_NAMED]]
    names = ", ".join(printable(tool_id(item.server, item.name)) for item in items)
    return f"{names} and {len(numbers) - MOST_NAMED:,} more" if len(numbers) > MOST_NAMED else names


def _table(items: Sequence[CatalogItem]) -> str:
    if not items:
        return "there are no such tools"
    rows = [
        [str(one.id), one.item.kind, tool_id(one.item.server, one.item.name), one.source, one.item.description]
        for one in items
    ]
    return table(["Id", "Kind", "Name", "Source", "Description"], rows, colour=colour_wanted())


def _lines(one: CatalogItem) -> list[str]:
    item = one.item
    skills = ", ".join(given.skill_id for given in one.assignments) or "none"
    lines = [
        f"{item.kind} {one.id}: {printable(tool_id(item.server, item.name))}",
        f"source: {printable(one.source)}, key {printable(item.key)}",
        f"skills: {skills}",
        f"changed: {one.updated_at.astimezone():%Y-%m-%d %H:%M}",
        f"description: {printable(item.description)}",
    ]
    schemas = {name: getattr(item, name) for name in ("input_schema", "output_schema", "annotations")}
    return lines + [
        f"{name.replace('_', ' ')}: {json.dumps(value, ensure_ascii=False, indent=2)}"
        for name, value in schemas.items()
        if value is not None
    ]
