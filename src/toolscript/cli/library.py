"""`toolscript library`: list and remove the files of the library."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import AsJson, PageLimit, Yes
from toolscript.cli.output import (
    MAX_MESSAGES,
    colour_wanted,
    confirm,
    printable,
    progress,
    say,
    show,
    show_page,
    table,
)
from toolscript.knowledge.model.ingest import IngestOutcome, IngestResult

if TYPE_CHECKING:
    from toolscript.knowledge.model.library import Source

SOME_LEFT = 2

Paths = Annotated[
    list[str], typer.Argument(metavar="PATH...", help="Files and folders, whether they still exist or not.")
]


def library_commands() -> typer.Typer:
    group = typer.Typer(
        help="Files of the library that `ingest` fills: list and remove them.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    _list(group)
    _remove(group)
    return group


def _list(group: typer.Typer) -> None:
    @group.command("list")
    def list_(
        folder: Annotated[str, typer.Argument(metavar="[FOLDER]", help="Only files in this folder.")] = "",
        after: Annotated[str, typer.Option(metavar="PATH", help="Start after this path.")] = "",
        limit: PageLimit = 50,
        as_json: AsJson = False,
    ) -> None:
        """List the files of the library in order of path."""
        from toolscript.knowledge.schemas import LibrarySource
        from toolscript.server.library import list_library

        sources = list_library(folder=folder, after=after, limit=limit + 1)
        listed = sources[:limit]
        page = {
            "results": [
                {"path": source.path, **LibrarySource.of(source).model_dump(mode="json")} for source in listed
            ],
            "next_cursor": listed[-1].path if len(sources) > limit else None,
        }
        show_page(page, _table(listed), page["next_cursor"], as_json=as_json)


def _remove(group: typer.Typer) -> None:
    @group.command()
    def remove(paths: Paths, yes: Yes = False, as_json: AsJson = False) -> None:
        """Remove files, or all files of folders, from the library and its indexes. The files themselves stay.

        Needs TOOLSCRIPT_MONGO_WRITER_URL, because the serving process can only read. Resumable: run the same
        command again. An existing file returns when its folder is ingested again. Exit code 2: some were left.
        """
        from toolscript.server.library import find_in_library, remove_from_library

        places = find_in_library(paths)
        there = [place for place in places if place.sources]
        for place in places:
            if not place.sources:
                say(f"the library has no file of {printable(place.name)}")
        if there:
            count = sum(place.sources for place in there)
            named = ", ".join(printable(place.name) for place in there[:MAX_MESSAGES])
            confirm(f"Remove {count:,} {'file' if count == 1 else 'files'} of {named} from the library?", yes=yes)
        with progress() as on_progress:
            names = [place.name for place in there]
            results = remove_from_library(names, on_progress) if names else []
        _show_removed(results, as_json=as_json)


def _show_removed(results: Sequence[IngestResult], *, as_json: bool) -> None:
    removed = sum(result.outcome is IngestOutcome.REMOVED for result in results)
    left = [result for result in results if result.outcome is not IngestOutcome.REMOVED]
    for result in left[:MAX_MESSAGES]:
        say(f"{printable(result.path)}: {printable(result.problem)}")
    show({"removed": removed, "left": len(left)}, f"{removed:,} removed, {len(left):,} left", as_json=as_json)
    if left:
        raise typer.Exit(SOME_LEFT)


def _table(sources: "Sequence[Source]") -> str:
    if not sources:
        return "the library has no such files"
    rows = [
        [source.path, source.type, source.title, f"{source.chunk_count:,}", source.ingested_at[:16]]
        for source in sources
    ]
    return table(["Path", "Type", "Title", "Chunks", "Ingested"], rows, colour=colour_wanted())
