"""`toolscript documents`: search, put, show and remove a tenant's documents in a running service."""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolscript.cli.options import AsJson, Timeout, Url, service_client
from toolscript.cli.output import (
    BOLD,
    MAX_MESSAGES,
    NOTHING_FOUND,
    PLAIN,
    colour_wanted,
    harmless,
    json_text,
    printable,
    progress,
    say,
    show,
    table,
)
from toolscript.core.errors import InvalidRequest
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.values import silent
from toolscript.documents.model.document import PutOutcome
from toolscript.documents.model.query import FIRST_PAGE, MAX_RANKED, MAX_SNIPPET, MAX_TOP_K, Rerank

if TYPE_CHECKING:
    from toolscript.client.answers.documents import DocumentHit, DocumentSearchAnswer, DocumentSearchMetadata
    from toolscript.client.clients import Client
    from toolscript.client.exchange import Pause
    from toolscript.documents.model.upload import UploadReport


KINDS = ("must", "should", "must_not")
HINT = (
    "write field op value, as in 'year>=2020', 'lang=en', 'title~whale', 'tags in law,sea', 'draft exists', or "
    '{"field": "year", "op": "gte", "value": 2020}, or all of {"must": [...], "should": [...], "must_not": [...]}'
)
_SIGNS = {"<=": "lte", ">=": "gte", "!=": "ne", "==": "eq", "=": "eq", "<": "lt", ">": "gt", "~": "contains"}
_COMPARED = re.compile(r"\s*(?P<field>[^\s<>=!~]+)\s*(?P<sign><=|>=|!=|==|=|<|>|~)\s*(?P<value>.*?)\s*", re.DOTALL)
_NAMED = re.compile(
    r"\s*(?P<field>\S+)\s+(?P<op>(?:not\s+)?(?:in|exists)|contains|eq|ne|lte?|gte?|nin)(?:\s+(?P<value>.*?))?\s*",
    re.DOTALL,
)

Json = dict[str, Any]

HEAD = ["Document", "Score", "Title"]
INDENT = "    "
WITHOUT = {
    "embedding": "the embedding model did not answer: keyword search only",
    "index": "the index did not answer every request",
    "rerank": "the top results were not reranked",
}
ABOUT = {"exact": "", "at_least": "at least ", "about": "about "}

SOME_REFUSED = 1
PAGE_OF_ALL = 100


def filters_of(texts: Sequence[str]) -> Json | None:
    """Combine the filters; all of them must hold."""
    gathered: dict[str, list[object]] = {kind: [] for kind in KINDS}
    for text in texts:
        for kind, conditions in _read(text).items():
            gathered[kind] += conditions
    return {kind: conditions for kind, conditions in gathered.items() if conditions} or None


def _read(text: str) -> dict[str, list[object]]:
    if text.lstrip().startswith("{"):
        return _from_json(text)
    if (compared := _COMPARED.fullmatch(text)) and compared["value"]:
        value = _value(compared["value"])
        return {"must": [{"field": compared["field"], "op": _SIGNS[compared["sign"]], "value": value}]}
    if named := _NAMED.fullmatch(text):
        return _named_condition(named["field"], " ".join(named["op"].split()), named["value"] or "", text)
    raise _invalid_filter(text)


def _named_condition(field: str, op: str, value: str, text: str) -> dict[str, list[object]]:
    if op.endswith("exists"):
        if value:
            raise _invalid_filter(text)
        return {"must": [{"field": field, "op": "exists", "value": op == "exists"}]}
    if not value:
        raise _invalid_filter(text)
    many = op in ("in", "not in", "nin")
    condition = {
        "field": field,
        "op": "nin" if op == "not in" else op,
        "value": _values(value) if many else _value(value),
    }
    return {"must": [condition]}


def _from_json(text: str) -> dict[str, list[object]]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise _invalid_filter(text) from None
    if "field" in data:
        return {"must": [data]}
    if not data.keys() <= set(KINDS) or not all(isinstance(conditions, list) for conditions in data.values()):
        raise _invalid_filter(text)
    return data  # type: ignore[no-any-return]


def _values(text: str) -> list[object]:
    """Parse a JSON list, or comma-separated values."""
    if text.startswith("["):
        listed = _value(text)
        return listed if isinstance(listed, list) else [listed]
    return [_value(item.strip()) for item in text.split(",") if item.strip()]


def _value(text: str) -> object:
    """Parse a JSON number, boolean or string; anything else is literal text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _invalid_filter(text: str) -> InvalidRequest:
    return InvalidRequest(f"{text[:80]!r} is not a filter", hint=HINT)


def results_text(results: "Sequence[DocumentHit]") -> str:
    """Return a table with each document's snippet below its row."""
    rows = [[result.id, f"{result.score:.3f}", _title(result.metadata)] for result in results]
    head, *lines = table(HEAD, rows, colour=colour_wanted()).split("\n")
    output = [head]
    for line, result in zip(lines, results, strict=True):
        snippet = [f"{INDENT}{snippet_text(result, colour=colour_wanted())}"] if result.snippet else []
        output += [line, *snippet]
    return "\n".join(output)


def snippet_text(result: "DocumentHit", *, colour: bool) -> str:
    """Return the snippet on one line, matches in bold. Highlights count characters, so none is dropped."""
    text, position, parts = result.snippet or "", 0, list[str]()
    for start, end in sorted((start, end) for start, end in result.highlights):
        if colour and position <= start < end <= len(text):
            parts += [_flat(text[position:start]), BOLD, _flat(text[start:end]), PLAIN]
            position = end
    return "".join([*parts, _flat(text[position:])])


def counted_lines(metadata: "DocumentSearchMetadata") -> Iterator[str]:
    """Yield the total, the reranker and degraded parts."""
    total = f"{ABOUT.get(metadata.total_is, '')}{metadata.total:,}"
    yield f"{total} {'document' if metadata.total == 1 else 'documents'}, {metadata.took_ms:.0f} ms"
    if metadata.reranked_by:
        yield f"reranked by {printable(metadata.reranked_by)}"
    for part in metadata.degraded:
        yield f"degraded: {WITHOUT.get(part, f'without {printable(part)}, which failed')}"


def _title(metadata: Mapping[str, Any]) -> str:
    title = metadata.get("title")
    return title if isinstance(title, str) else ""


def _flat(text: str) -> str:
    return "".join(" " if char.isspace() else char for char in harmless(text))


Token = Annotated[
    str | None, typer.Option(help="Token of the tenant; TOOLSCRIPT_TOKEN keeps it out of process lists.")
]
Paths = Annotated[
    list[str],
    typer.Argument(
        help="Files and folders: one document per .txt and .md file, one per line of .jsonl and .ndjson, "
        "{id, text, title?, metadata?}. `-`: JSON lines on stdin."
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Record the progress in this file, and resume from it; `default`: a file in TOOLSCRIPT_DATA_DIR.",
    ),
]
WithProgress = Annotated[bool, typer.Option("--progress/--no-progress", help="Show progress on stderr.")]


def add_put(group: typer.Typer) -> None:
    @group.command()
    def put(
        paths: Paths,
        resume: Resume = None,
        with_progress: WithProgress = True,
        url: Url = None,
        token: Token = None,
        timeout: Timeout = 300.0,
        as_json: AsJson = False,
    ) -> None:
        """Put documents, replacing those of the same id; unchanged ones cost nothing. Exit code 1: some refused.

        A file's id is its path relative to the current folder. Waits for a busy or unreachable service.
        """
        from toolscript.documents.client.bulk_upload import MAX_TRIES, MAX_WAIT, put_documents
        from toolscript.gateway.settings import load_gateway_settings

        client = service_client(
            url, token, timeout, retries=MAX_TRIES - 1, max_wait=MAX_WAIT, on_retry=_report_wait
        )
        with progress() as on_progress, client:
            report = put_documents(
                client,
                paths,
                resume=resume,
                states=load_gateway_settings().data_folder / "sending",
                on_progress=on_progress if with_progress else silent,
            )
        _show(report, as_json=as_json)
        if report.refused:
            raise typer.Exit(SOME_REFUSED)


def _report_wait(pause: "Pause") -> None:
    say(f"{printable(pause.error.message)}: trying again in {pause.seconds:.1f} s")


def _show(report: "UploadReport", *, as_json: bool) -> None:
    for where, reason in report.named[:MAX_MESSAGES]:
        say(f"{printable(where)}: {printable(reason)}")
    unlisted = report.refused + report.skipped - len(report.named[:MAX_MESSAGES])
    if unlisted:
        say(f"and {unlisted:,} more")
    counts = ", ".join(f"{report.outcomes[outcome]:,} {outcome}" for outcome in PutOutcome)
    skipped = (
        f"; {report.skipped:,} {'file' if report.skipped == 1 else 'files'} skipped" if report.skipped else ""
    )
    before = f"; {report.sent_before:,} of them in an earlier run" if report.sent_before else ""
    show(report.as_json(), f"{counts}{skipped}{before}", as_json=as_json)


Query = Annotated[
    str | None, typer.Argument(help="What the documents are about, in plain words. None: filters only.")
]
SearchTypeOption = Annotated[
    SearchType | None, typer.Option("--search-type", help="Retrievers to use. [the service's setting]")
]
FusionOption = Annotated[Fusion | None, typer.Option(help="Fusion of both retrievers. [best]")]
Filter = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        help="Condition on the metadata: 'year>=2020', 'lang=en', 'tags in law,sea', 'draft exists', or JSON; "
        "repeatable.",
    ),
]
Limit = Annotated[
    int | None, typer.Option(min=1, max=MAX_TOP_K, help="Maximum number of documents, or per page. [10]")
]
Offset = Annotated[int | None, typer.Option(min=0, max=MAX_RANKED, help="Number of top documents to skip. [0]")]
RerankOption = Annotated[
    Rerank | None, typer.Option(help="Rerank the top results with a cross-encoder or an LLM. [off]")
]
Snippet = Annotated[
    int | None, typer.Option(min=1, max=MAX_SNIPPET, help="Maximum characters of a snippet. [240]")
]
Field = Annotated[list[str] | None, typer.Option(help="Only this field of the metadata; repeatable.")]
All = Annotated[bool, typer.Option("--all", help="All results, page by page; with --json one line per page.")]
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
        search_type: SearchTypeOption = None,
        fusion: FusionOption = None,
        filters: Filter = None,
        limit: Limit = None,
        offset: Offset = None,
        rerank: RerankOption = None,
        field: Field = None,
        snippet_chars: Snippet = None,
        everything: All = False,
        url: Url = None,
        token: Token = None,
        timeout: Timeout = 30.0,
        as_json: AsJson = False,
    ) -> None:
        """Search documents by text and metadata. Exit code 1: nothing found."""
        request = _given_options(
            query=query,
            search_type=search_type,
            fusion=fusion,
            filters=filters_of(filters or []),
            limit=limit,
            offset=offset,
            rerank=rerank,
            metadata_fields=field,
            snippet_max_chars=snippet_chars,
        )
        if everything and offset is not None:
            raise InvalidRequest("--offset and --all exclude each other", hint="leave one of them out")

        with service_client(url, token, timeout) as client:
            pages = _walk(client, request) if everything else iter([client.documents.search(**request)])
            found = _show_pages(pages, as_json=as_json)
        if not found:
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
        """Print a document's text, and its metadata to stderr. With --json both are printed as JSON."""
        with service_client(url, token, timeout) as client:
            document = client.documents.get(document_id)
        if not as_json:
            say(f"{printable(document.id)} {json_text(document.metadata)}")
        show(document.to_json(), document.text, as_json=as_json)


def _delete(group: typer.Typer) -> None:
    @group.command()
    def delete(
        document_ids: DocumentIds,
        url: Url = None,
        token: Token = None,
        timeout: Timeout = 30.0,
        as_json: AsJson = False,
    ) -> None:
        """Remove documents. Exit code 1: none of them existed."""
        with service_client(url, token, timeout) as client:
            answer = client.documents.delete(document_ids)
        for document_id in answer.missing:
            say(f"{printable(document_id)} does not exist")
        text = f"{len(answer.deleted):,} deleted, {len(answer.missing):,} missing"
        show(answer.to_json(), text, as_json=as_json)
        if not answer.deleted:
            raise typer.Exit(NOTHING_FOUND)


def _walk(client: "Client", request: Mapping[str, Any]) -> "Iterator[DocumentSearchAnswer]":
    cursor: str | None = FIRST_PAGE
    while cursor:
        page = client.documents.search(**{"limit": PAGE_OF_ALL, **request, "cursor": cursor})
        yield page
        cursor = page.metadata.next_cursor


def _show_pages(pages: "Iterator[DocumentSearchAnswer]", *, as_json: bool) -> bool:
    """Print each page as it arrives; return whether there was a result."""
    has_results = False
    for number, page in enumerate(pages):
        if as_json:
            sys.stdout.write(json_text(page.to_json()) + "\n")
        elif page.results:
            sys.stdout.write(results_text(page.results) + "\n")
        if number == 0 and page.results and page.metadata.good_match is False:
            say("no good match: the best of these is a guess")
        for line in counted_lines(page.metadata) if number == 0 else ():
            say(line)
        has_results = has_results or bool(page.results)
    return has_results


def _given_options(**options: Any) -> dict[str, Any]:
    """Return the given options; the service has defaults for the others."""
    return {name: value for name, value in options.items() if value is not None}
