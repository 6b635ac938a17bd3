"""`toolscript sources` and `toolscript changes`: sources of items, and changed definitions."""

import json
import sys
import unicodedata
from collections.abc import Sequence
from difflib import unified_diff
from itertools import takewhile
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import (
    WORKER_HINT,
    AsJson,
    By,
    OneNamespace,
    OnlyNamespace,
    PageCursor,
    PageLimit,
    Yes,
    person,
    seen_of,
)
from toolscript.cli.output import confirm, printable, progress, say, show, show_page, table_by_namespace
from toolscript.core.items import MAX_ID, tool_id
from toolscript.core.namespaces import DEFAULT_NAMESPACE, valid_namespace
from toolscript.tools.model.catalog import ChangeState, ItemChange, ItemSource

if TYPE_CHECKING:
    from toolscript.tools.model.catalog import ChangeDetails


Name = Annotated[str, typer.Argument(metavar="SOURCE", help="Name of the source, from `sources list`.")]

WIDTH = 100
AROUND = 3
# Matching more lines takes long, and the server of an item chooses their number.
MAX_LINES_MATCHED = 2_000

# Marks a continuation of the line above.
CONTINUED = "\u21aa "
# Letters and marks by category, but invisible: fillers, joiners, variation selectors.
_UNSEEN = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}).union(
    range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0), map(ord, CONTINUED.strip())
)

_WRAPPED = TextWrapper(
    WIDTH,
    subsequent_indent=CONTINUED,
    expand_tabs=False,
    replace_whitespace=False,
    drop_whitespace=False,
    break_on_hyphens=False,
)


def source_commands() -> typer.Typer:
    group = typer.Typer(
        help="Sources of the catalog's tools: files, API clients, MCP servers. List and remove them.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    _list(group)
    _remove(group)
    return group


def _list(group: typer.Typer) -> None:
    @group.command("list")
    def list_(
        namespace: OnlyNamespace = None,
        cursor: PageCursor = "",
        limit: PageLimit = 50,
        as_json: AsJson = False,
    ) -> None:
        """List sources in order of name: how many tools each has, and when it was last synced."""
        from toolscript.server.sync import list_item_sources
        from toolscript.tools.schemas.catalog import ToolSourcePage, source_after

        seen = seen_of(namespace)
        sources = list_item_sources(after=source_after(cursor), limit=limit + 1, namespaces=seen)
        page = ToolSourcePage.of_sources(sources, limit)
        show_page(page, _table(sources[:limit]), page.next_cursor, as_json=as_json, option="--cursor")


def _remove(group: typer.Typer) -> None:
    @group.command()
    def remove(
        name: Name, namespace: OneNamespace = DEFAULT_NAMESPACE, yes: Yes = False, as_json: AsJson = False
    ) -> None:
        """Remove a source with all of its tools. Resumable: run the same command again.

        Decisions about the tools are kept for a while, and apply again if the source returns.
        """
        from toolscript.server.sync import find_item_source, remove_item_source

        item_source = find_item_source(name, valid_namespace(namespace))
        if item_source is None:
            show(
                {"source": name, "namespace": namespace, "removed": 0},
                f"there is no source {printable(name)}",
                as_json=as_json,
            )
            say("hint: `toolscript sources list` lists the sources")
            return
        confirm(f"Remove source {printable(name)} with its {item_source.items:,} tools?", yes=yes)
        with progress() as on_progress:
            removed = remove_item_source(name, namespace, on_progress)
        text = f"{removed:,} tools of source {printable(name)} removed"
        show({"source": name, "namespace": namespace, "removed": removed}, text, as_json=as_json)
        say(WORKER_HINT)


def _table(sources: Sequence[ItemSource]) -> str:
    if not sources:
        return "there are no sources"
    rows = [
        [source.name, f"{source.items:,}", f"{source.synced_at.astimezone():%Y-%m-%d %H:%M}"] for source in sources
    ]
    return table_by_namespace(["Source", "Tools", "Last sync"], rows, [source.namespace for source in sources])


def field_diff(field: str, old: object, new: object) -> list[str]:
    """Return a diff of both values as lines of text; every difference is included."""
    was, now = _lines(old), _lines(new)
    names = f"{field} in force", f"{field} as offered now"
    if max(len(was), len(now)) <= MAX_LINES_MATCHED:
        return [*unified_diff(was, now, *names, lineterm="", n=AROUND)]
    return [f"--- {names[0]}", f"+++ {names[1]}", *_without_matching(was, now)]


def visible(text: str) -> str:
    """Escape characters that are invisible or that move other text.

    A backslash is doubled, so that an escape cannot be confused with literal text.
    """
    return _written_out(text.replace("\\", "\\\\"))


def _written_out(text: str) -> str:
    return "".join(char if _is_seen(char) else _code(char) for char in text)


def _is_seen(char: str) -> bool:
    return char == " " or (unicodedata.category(char)[0] not in ("C", "Z") and ord(char) not in _UNSEEN)


def _code(char: str) -> str:
    number = ord(char)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def _lines(value: object) -> list[str]:
    """Broken at words, so that a change of one word in a long text is a change of one line."""
    if value is None:
        return []
    if isinstance(value, str):
        paragraphs = [visible(line) for line in value.split("\n")]
    else:
        # JSON has written its own backslashes twice.
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, indent=2)
        paragraphs = [_written_out(line) for line in text.split("\n")]
    return [line for paragraph in paragraphs for line in _WRAPPED.wrap(paragraph) or [""]]


def _without_matching(was: Sequence[str], now: Sequence[str]) -> list[str]:
    """All that is between the lines with which both begin and those with which both end."""
    head = _in_common(was, now)
    tail = _in_common(was[head:][::-1], now[head:][::-1])
    removed, added = was[head : len(was) - tail], now[head : len(now) - tail]
    return [f"@@ after line {head} @@", *(f"-{line}" for line in removed), *(f"+{line}" for line in added)]


def _in_common(first: Sequence[str], second: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


ChangeId = Annotated[int, typer.Argument(metavar="ID", min=1, max=MAX_ID, help="Number of a change.")]


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
        state: Annotated[ChangeState | None, typer.Option(help="Only changes in this state.")] = None,
        namespace: OnlyNamespace = None,
        cursor: PageCursor = "",
        limit: PageLimit = 50,
        as_json: AsJson = False,
    ) -> None:
        """List changes, latest first."""
        from toolscript.core.web.cursors import decode_cursor
        from toolscript.server.sync import list_changes
        from toolscript.tools.schemas.catalog import ChangePage

        before, seen = decode_cursor(cursor, 0) or None, seen_of(namespace)
        changes = list_changes(before=before, limit=limit + 1, state=state, namespaces=seen)
        page = ChangePage.of_changes(changes, limit)
        if as_json:
            show(page, "", as_json=True)
            return
        _show_table(changes[:limit])
        if page.next_cursor:
            say(f"hint: --cursor {page.next_cursor} shows older ones")

    @group.command("show")
    def show_(change_id: ChangeId, as_json: AsJson = False) -> None:
        """Show a change field by field. Invisible characters are written as \\u escapes."""
        from toolscript.server.sync import find_change
        from toolscript.tools.schemas.catalog import ChangeCompared

        details = find_change(change_id)
        show(ChangeCompared.of_details(details), "\n".join(_compared(details)), as_json=as_json)
        if details.change.state is ChangeState.HELD and not as_json:
            say(f"hint: `toolscript changes approve {change_id}` or `toolscript changes reject {change_id}`")


def _decide(group: typer.Typer) -> None:
    @group.command()
    def approve(change_id: ChangeId, by: By = None, as_json: AsJson = False) -> None:
        """Approve a held definition, which becomes active."""
        from toolscript.server.sync import decide_change

        _decided(decide_change(change_id, approve=True, by=person(by)), as_json=as_json)

    @group.command()
    def reject(change_id: ChangeId, by: By = None, as_json: AsJson = False) -> None:
        """Reject a held definition for good; the active one stays."""
        from toolscript.server.sync import decide_change

        _decided(decide_change(change_id, approve=False, by=person(by)), as_json=as_json)


def _decided(change: ItemChange, *, as_json: bool) -> None:
    from toolscript.tools.schemas.catalog import ChangeShown

    text = f"change {change.id} of {_name(change)} is {change.state}"
    show(ChangeShown.of(change), text, as_json=as_json)


def _show_table(changes: Sequence[ItemChange]) -> None:
    if not changes:
        say("there are no such changes")
        return
    rows = [
        [
            str(change.id),
            change.state,
            f"{change.seen_at.astimezone():%Y-%m-%d %H:%M}",
            _name(change),
            ", ".join(change.changed_fields),
            change.reviewed_by or "",
        ]
        for change in changes
    ]
    head = ["Id", "State", "Seen", "Item", "Changed", "Reviewed by"]
    sys.stdout.write(table_by_namespace(head, rows, [change.namespace for change in changes]) + "\n")


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
