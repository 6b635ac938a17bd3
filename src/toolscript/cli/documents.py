"""`toolscript documents`: a tenant's documents in a running service."""

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer

from toolscript.cli.document_filters import filters_of
from toolscript.cli.documents_put import Token, add_put
from toolscript.cli.documents_text import counted_lines, hits_text
from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import json_text, say, show
from toolscript.cli.tables import printable
from toolscript.cli.tools_options import Timeout, Url
from toolscript.errors import InvalidRequest
from toolscript.model.document_queries import FIRST_PAGE, MAX_SNIPPET, MAX_TOP_K, MOST_RANKED, Fusion, Rerank
from toolscript.model.queries import SearchType

NOTHING_FOUND = 1
PAGE_OF_ALL = 100

Json = dict[str, Any]

Query = Annotated[str | None, typer.Argument(help="What they are about, in plain words. None: filters alone.")]
Arms = Annotated[
    SearchType | None, typer.Option("--type", help="Compare meaning, words, or both. [what the service has set]")
]
Joined = Annotated[Fusion | None, typer.Option(help="How both are joined. [best]")]
Filter = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        help="What the metadata must say: 'year>=2020', 'lang=en', 'tags in law,sea', 'draft exists', or JSON; "
        "repeatable.",
    ),
]
TopK = Annotated[int | None, typer.Option(min=1, max=MAX_TOP_K, help="Most documents shown, or of a page. [10]")]
Offset = Annotated[int | None, typer.Option(min=0, max=MOST_RANKED, help="How many of the best are left out. [0]")]
Reranked = Annotated[Rerank | None, typer.Option(help="Who looks at the best once more. [off]")]
Snippet = Annotated[int | None, typer.Option(min=1, max=MAX_SNIPPET, help="Characters of a snippet. [240]")]
Field = Annotated[list[str] | None, typer.Option(help="Only this field of the metadata; repeatable.")]
All = Annotated[bool, typer.Option("--all", help="All that is found, page after page; with --json a line a page.")]
DocumentId = Annotated[str, typer.Argument(metavar="ID", help="Id of a document.")]
DocumentIds = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of documents.")]


def document_commands() -> typer.Typer:
    group = typer.Typer(
        help="Put and search documents of a tenant in a running service.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    add_put(group)
    _search(group)
    _get(group)
    _delete(group)
    return group


def _search(group: typer.Typer) -> None:
    @group.command()
    def search(
        query: Query = None,
        search_type: Arms = None,
        fusion: Joined = None,
        filters: Filter = None,
        top_k: TopK = None,
        offset: Offset = None,
        rerank: Reranked = None,
        field: Field = None,
        snippet_chars: Snippet = None,
        everything: All = False,
        url: Url = None,
        token: Token = None,
        timeout: Timeout = 30.0,
        as_json: AsJson = False,
    ) -> None:
        """Find documents by meaning, words and metadata. Exit code 1: nothing found."""
        asked = _given(
            query=query,
            search_type=search_type,
            fusion=fusion,
            filters=filters_of(filters or []),
            top_k=top_k,
            offset=offset,
            rerank=rerank,
            metadata_fields=field,
            snippet_max_chars=snippet_chars,
        )
        if everything and offset is not None:
            raise InvalidRequest("--offset and --all exclude each other", hint="leave one of them out")

        from toolscript.service.documents_asking import find_documents

        def ask(wanted: Mapping[str, object]) -> Json:
            return find_documents(wanted, url=url, token=token, seconds=timeout)

        pages = _walk(ask, {"top_k": PAGE_OF_ALL, **asked}) if everything else iter([ask(asked)])
        if not _show_pages(pages, as_json=as_json):
            raise typer.Exit(NOTHING_FOUND)


def _get(group: typer.Typer) -> None:
    @group.command()
    def get(
        document_id: DocumentId,
        url: Url = None,
        token: Token = None,
        timeout: Timeout = 30.0,
        as_json: AsJson = False,
    ) -> None:
        """Print a document's text; its metadata goes to stderr. With --json all of it."""
        from toolscript.service.documents_asking import show_document

        found = show_document(document_id, url=url, token=token, seconds=timeout)
        if not as_json:
            say(f"{printable(str(found['doc_id']))} {json_text(found['metadata'])}")
        show(found, str(found["text"]), as_json=as_json)


def _delete(group: typer.Typer) -> None:
    @group.command()
    def delete(
        document_ids: DocumentIds,
        url: Url = None,
        token: Token = None,
        timeout: Timeout = 30.0,
        as_json: AsJson = False,
    ) -> None:
        """Remove documents. Exit code 1: none of them was there."""
        from toolscript.service.documents_asking import remove_documents

        answer = remove_documents(document_ids, url=url, token=token, seconds=timeout)
        deleted, missing = answer["deleted"], answer["missing"]
        for one in missing:
            say(f"{printable(one)} was not there")
        show(answer, f"{len(deleted):,} deleted, {len(missing):,} not there", as_json=as_json)
        if not deleted:
            raise typer.Exit(NOTHING_FOUND)


def _walk(ask: Callable[[Mapping[str, object]], Json], asked: Mapping[str, object]) -> Iterator[Json]:
    cursor: object = FIRST_PAGE
    while cursor:
        page = ask({**asked, "cursor": cursor})
        yield page
        cursor = page["next_cursor"]


def _show_pages(pages: Iterator[Json], *, as_json: bool) -> bool:
    """Each as it comes: there may be many. Answers whether anything was found."""
    found = False
    for number, page in enumerate(pages):
        if as_json:
            sys.stdout.write(json_text(page) + "\n")
        elif page["hits"]:
            sys.stdout.write(hits_text(page["hits"]) + "\n")
        for line in counted_lines(page) if number == 0 else ():
            say(line)
        found = found or bool(page["hits"])
    return found


def _given(**options: object) -> dict[str, object]:
    """What was not said is left to the service."""
    return {name: value for name, value in options.items() if value is not None}
