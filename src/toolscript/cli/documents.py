"""`toolscript documents`: search, put, show and remove a tenant's documents in a running service."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolscript.cli.options import AsJson, Timeout, Url
from toolscript.cli.output import (
    BOLD,
    MAX_SAID,
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
from toolscript.core.errors import InvalidRequest, ToolscriptError
from toolscript.core.retrieval.query import Fusion, SearchType
from toolscript.core.values import silent
from toolscript.documents.model.document import PutOutcome
from toolscript.documents.model.query import FIRST_PAGE, MAX_RANKED, MAX_SNIPPET, MAX_TOP_K, Rerank

if TYPE_CHECKING:
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
    "embedding": "the embedding model did not answer: words alone were compared",
    "index": "the index did not answer every question",
    "rerank": "the best were not looked at once more",
}
ABOUT = {"exact": "", "at_least": "at least ", "about": "about "}

SOME_REFUSED = 1
PAGE_OF_ALL = 100


def filters_of(texts: Sequence[str]) -> Json | None:
    """All of them have to hold."""
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
        return _by_name(named["field"], " ".join(named["op"].split()), named["value"] or "", text)
    raise _refused(text)


def _by_name(field: str, op: str, value: str, text: str) -> dict[str, list[object]]:
    if op.endswith("exists"):
        if value:
            raise _refused(text)
        return {"must": [{"field": field, "op": "exists", "value": op == "exists"}]}
    if not value:
        raise _refused(text)
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
        raise _refused(text) from None
    if "field" in data:
        return {"must": [data]}
    if not data.keys() <= set(KINDS) or not all(isinstance(one, list) for one in data.values()):
        raise _refused(text)
    return data  # type: ignore[no-any-return]


def _values(text: str) -> list[object]:
    """A list of JSON, or values with commas between them."""
    if text.startswith("["):
        listed = _value(text)
        return listed if isinstance(listed, list) else [listed]
    return [_value(one.strip()) for one in text.split(",") if one.strip()]


def _value(text: str) -> object:
    """A number, true, false or a text in quotes, as JSON has them; anything else is a text as it stands."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _refused(text: str) -> InvalidRequest:
    return InvalidRequest(f"{text[:80]!r} is no filter", hint=HINT)


def hits_text(hits: Sequence[Mapping[str, Any]]) -> str:
    """A table with each document's snippet below its row."""
    rows = [[str(hit["doc_id"]), f"{hit['score']:.3f}", _title(hit["metadata"])] for hit in hits]
    head, *lines = table(HEAD, rows, colour=colour_wanted()).split("\n")
    shown = [head]
    for line, hit in zip(lines, hits, strict=True):
        shown += [line, *([f"{INDENT}{snippet_text(hit, colour=colour_wanted())}"] if hit.get("snippet") else [])]
    return "\n".join(shown)


def snippet_text(hit: Mapping[str, Any], *, colour: bool) -> str:
    """On one line, what matched in bold where there is colour. Places count characters, so none is dropped."""
    text, at, parts = str(hit["snippet"]), 0, list[str]()
    for start, end in sorted((int(start), int(end)) for start, end in hit["highlights"]):
        if colour and at <= start < end <= len(text):
            parts += [_flat(text[at:start]), BOLD, _flat(text[start:end]), PLAIN]
            at = end
    return "".join([*parts, _flat(text[at:])])


def counted_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """How many there are, and what went wrong."""
    total = f"{ABOUT.get(answer['total_is'], '')}{answer['total']:,}"
    yield f"{total} {'document' if answer['total'] == 1 else 'documents'}, {answer['took_ms']:.0f} ms"
    if answer["reranked_by"]:
        yield f"the best were put in order by {printable(str(answer['reranked_by']))}"
    for part in answer["degraded"]:
        yield f"degraded: {WITHOUT.get(part, f'without {printable(str(part))}, which failed')}"


def _title(metadata: Mapping[str, Any]) -> str:
    title = metadata.get("title")
    return title if isinstance(title, str) else ""


def _flat(text: str) -> str:
    return "".join(" " if char.isspace() else char for char in harmless(text))


Token = Annotated[str | None, typer.Option(help="Token of the tenant; better in TOOLSCRIPT_TOKEN, unseen.")]
Paths = Annotated[
    list[str],
    typer.Argument(
        help="Files and folders: .txt and .md are a document each, .jsonl and .ndjson a document a line, "
        "{id, text, title?, metadata?}. `-`: such lines on stdin."
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Remember in this file how far it has come, and go on from there; `default`: in TOOLSCRIPT_DATA_DIR.",
    ),
]
WithProgress = Annotated[bool, typer.Option("--progress/--no-progress", help="Show how far it is, on stderr.")]


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
        """Put documents, or replace those of the same ids; the unchanged cost nothing. Exit code 1: some refused.

        A file's id is its path from here. A service that is busy or away is waited for.
        """
        from toolscript.client.bulk_upload import put_documents

        with progress() as on_progress:
            report = put_documents(
                paths,
                url=url,
                token=token,
                seconds=timeout,
                resume=resume,
                on_progress=on_progress if with_progress else silent,
                on_wait=_say_why,
            )
        _show(report, as_json=as_json)
        if report.refused:
            raise typer.Exit(SOME_REFUSED)


def _say_why(problem: ToolscriptError, seconds: float) -> None:
    say(f"{printable(problem.message)}: trying again in {seconds:.1f} s")


def _show(report: "UploadReport", *, as_json: bool) -> None:
    for where, reason in report.named[:MAX_SAID]:
        say(f"{printable(where)}: {printable(reason)}")
    unsaid = report.refused + report.skipped - len(report.named[:MAX_SAID])
    if unsaid:
        say(f"and {unsaid:,} more")
    counts = ", ".join(f"{report.outcomes[outcome]:,} {outcome}" for outcome in PutOutcome)
    skipped = (
        f"; {report.skipped:,} {'file' if report.skipped == 1 else 'files'} skipped" if report.skipped else ""
    )
    before = f"; {report.sent_before:,} of them before" if report.sent_before else ""
    show(report.as_json(), f"{counts}{skipped}{before}", as_json=as_json)


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
Offset = Annotated[int | None, typer.Option(min=0, max=MAX_RANKED, help="How many of the best are left out. [0]")]
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

        from toolscript.client.bulk_upload import find_documents

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
        from toolscript.client.bulk_upload import show_document

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
        from toolscript.client.bulk_upload import remove_documents

        answer = remove_documents(document_ids, url=url, token=token, seconds=timeout)
        deleted, missing = answer["deleted"], answer["missing"]
        for one in missing:
            say(f"{printable(one)} was not there")
        show(answer, f"{len(deleted):,} deleted, {len(missing):,} not there", as_json=as_json)
        if not deleted:
            raise typer.Exit(NOTHING_FOUND)


def _walk(ask: Callable[[Mapping[str, object]], Json], data: Mapping[str, object]) -> Iterator[Json]:
    cursor: object = FIRST_PAGE
    while cursor:
        page = ask({**data, "cursor": cursor})
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
