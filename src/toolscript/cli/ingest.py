"""`toolscript ingest`: adds files to the library that `search_knowledge` searches."""

import sys
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.options import AsJson
from toolscript.cli.output import MAX_MESSAGES, json_text, printable, progress, say, show
from toolscript.core.errors import InvalidRequest
from toolscript.core.values import silent
from toolscript.knowledge.model.ingest import IngestOptions, IngestOutcome, IngestResult

if TYPE_CHECKING:
    from toolscript.knowledge.ingest.report import IngestReport


SOME_SKIPPED = 2


def result_line(result: IngestResult) -> str:
    line = f"{printable(result.path)}: {result.outcome}"
    if result.problem:
        return f"{line}: {printable(result.problem)}"
    return f"{line}, {_many(result.chunks, 'chunk')}" if result.chunks else line


def json_line(result: IngestResult) -> str:
    data = {"path": result.path, "outcome": result.outcome.value}
    if result.problem:
        return json_text({**data, "problem": result.problem})
    return json_text({**data, "chunks": result.chunks, "extractions": result.extractions})


def say_skipped(report: "IngestReport") -> None:
    for result in report.skipped[:MAX_MESSAGES]:
        say(f"skipped {printable(result.path)}: {printable(result.problem)}")
    unlisted = report.outcomes[IngestOutcome.SKIPPED] - len(report.skipped[:MAX_MESSAGES])
    if unlisted:
        say(f"and {unlisted:,} more; --json names them all")


def say_kept(report: "IngestReport") -> None:
    for folder, count in report.kept.items():
        say(f"{printable(folder)} is empty, maybe because its disk is not mounted: none of its files was removed")
        remove = f"toolscript library remove {printable(quote(folder))}"
        say(f"hint: `{remove}` removes its {_many(count, 'file')} from the library")


def closing_text(report: "IngestReport", *, dry: bool = False) -> str:
    counts = ", ".join(f"{report.outcomes[outcome]:,} {outcome}" for outcome in IngestOutcome)
    if dry:
        return f"would be: {counts}; {_many(report.chunks, 'chunk')} in them"
    chunks, extractions = _many(report.chunks, "chunk"), _many(report.extractions, "extraction")
    lines = [f"files: {counts}", f"written: {chunks}, {extractions}"]
    if usage := report.text_usage:
        spent = f"{usage.prompt_tokens:,} prompt tokens, {usage.completion_tokens:,} completion tokens"
        lines.append(f"language model: {_many(usage.calls, 'call')}, {usage.failed:,} failed, {spent}")
    if report.unextracted:
        why = f": {printable(report.problem)}" if report.problem else ""
        lines.append(f"{_many(report.unextracted, 'chunk')} left for another run to extract{why}")
    return "\n".join(lines)


def _many(count: int, name: str) -> str:
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"


Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH...",
        help="Files and folders: Markdown, plain text, HTML and PDF. Skips hidden files, links and other types of "
        "files in folders.",
    ),
]
Watch = Annotated[bool, typer.Option("--watch", help="Keep running, and follow added, changed and removed files.")]
Prune = Annotated[
    bool,
    typer.Option(
        "--prune",
        help="Remove sources in these folders whose files were deleted; not if a folder is empty, as its disk may "
        "not be mounted.",
    ),
]
Type = Annotated[
    str | None,
    typer.Option("--type", metavar="T", help="Type of the sources: book, paper, note ... Default: from the file."),
]
Topic = Annotated[list[str] | None, typer.Option("--topic", metavar="X", help="Topic of the sources; repeatable.")]
Author = Annotated[
    list[str] | None,
    typer.Option("--author", metavar="A", help="Author of the sources; repeatable. Default: from the file."),
]
Extract = Annotated[
    bool | None,
    typer.Option(
        "--extract/--no-extract",
        help="Have a language model extract decisions, warnings, methods ... from every new chunk. "
        "Default: if TOOLSCRIPT_TEXT_URL is set.",
    ),
]
TokenBudget = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Maximum tokens for extraction; the rest is left for another run."),
]
Base = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Identify sources by their path relative to this folder, so that the same files can be ingested from "
        "another place. Default: by their full path.",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the outcome for each file.")]
Reindex = Annotated[
    bool,
    typer.Option(
        "--reindex",
        help="Rebuild the indexes from the library, without files: for another embedding model, or after a loss. "
        "Searches use the old ones until the new ones are complete.",
    ),
]
DropPrevious = Annotated[
    bool, typer.Option("--drop-previous", help="With --reindex: remove the previous indexes.")
]


def add_ingest(app: typer.Typer) -> None:
    @app.command()
    def ingest(
        paths: Paths = None,
        watch: Watch = False,
        prune: Prune = False,
        type_: Type = None,
        topic: Topic = None,
        author: Author = None,
        extract: Extract = None,
        token_budget: TokenBudget = None,
        base: Base = None,
        dry_run: DryRun = False,
        reindex: Reindex = False,
        drop_previous: DropPrevious = False,
        as_json: AsJson = False,
    ) -> None:
        """Ingest files into the library; unchanged ones cost nothing. Exit code 2: some skipped, or not pruned.

        Resumable: run the same command again after an interruption. An unreadable file keeps its content in the
        library. --type, --topic and --author are stored with each file; a later run without them removes them.
        With --json every skipped file is a line, and the last line is the report.
        """
        order = IngestOptions(
            paths=tuple(paths or ()),
            base=base or "",
            type=type_ or "",
            topics=tuple(topic or ()),
            authors=tuple(author or ()),
            extract=extract,
            token_budget=token_budget,
            prune=prune,
            dry=dry_run,
        )
        if reindex:
            _refuse(paths=paths, watch=watch, prune=prune, dry_run=dry_run)
            _reindex(drop_previous=drop_previous, as_json=as_json)
            return
        _require_possible(order, watch=watch, drop_previous=drop_previous)
        (_watch if watch else _ingest)(order, as_json=as_json)


def _ingest(order: IngestOptions, *, as_json: bool) -> None:
    from toolscript.server.ingest import ingest

    def on_result(result: IngestResult) -> None:
        if as_json and result.outcome is IngestOutcome.SKIPPED:
            _write(json_line(result))
        elif order.dry and not as_json and result.outcome is not IngestOutcome.UNCHANGED:
            _write(result_line(result))

    with progress() as on_progress:
        report = ingest(order, on_progress=silent if order.dry else on_progress, on_result=on_result)
    if not as_json and not order.dry:
        say_skipped(report)
    show(report.as_json(), closing_text(report, dry=order.dry), as_json=as_json)
    if report.was_stopped:
        say("stopped: run the same command again to resume")
    say_kept(report)
    if report.outcomes[IngestOutcome.SKIPPED] or report.was_stopped or report.kept:
        raise typer.Exit(SOME_SKIPPED)


def _watch(order: IngestOptions, *, as_json: bool) -> None:
    """Print one line per event, flushed at once, for readers of a pipe."""
    from toolscript.server.ingest import watch_ingest

    def on_result(result: IngestResult) -> None:
        if result.outcome is not IngestOutcome.UNCHANGED:
            _write(json_line(result) if as_json else result_line(result))

    def on_report(report: "IngestReport") -> None:
        if report.done > report.outcomes[IngestOutcome.UNCHANGED] or not reports:
            show(report.as_json(), closing_text(report), as_json=as_json)
            sys.stdout.flush()
        reports.append(report)

    reports: list[object] = []
    with progress() as on_progress:
        watch_ingest(order, on_progress=on_progress, on_result=on_result, on_report=on_report)


def _reindex(*, drop_previous: bool, as_json: bool) -> None:
    from toolscript.server.library import reindex_library

    with progress() as on_progress:
        done = reindex_library(drop_previous=drop_previous, on_progress=on_progress)
    show(done, "\n".join(f"{key}: {value}" for key, value in done.items()), as_json=as_json)
    if done["left"]:
        say("hint: other runs hold some sources; run it again when they have ended")
        raise typer.Exit(SOME_SKIPPED)


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _require_possible(order: IngestOptions, *, watch: bool, drop_previous: bool) -> None:
    if not order.paths:
        raise InvalidRequest("there is nothing to ingest", hint="name files or folders: toolscript ingest PATH...")
    if watch and order.dry:
        raise InvalidRequest("--watch and --dry-run exclude each other", hint="leave one of them out")
    if drop_previous:
        raise InvalidRequest("--drop-previous is for --reindex", hint="add --reindex, or leave it out")


def _refuse(**options: object) -> None:
    if named := [f"--{name.replace('_', '-')}" for name, value in options.items() if value]:
        names = ", ".join("PATH" if name == "--paths" else name for name in named)
        raise InvalidRequest(f"{names}: not with --reindex", hint="it reads the library, not files")
