"""`toolscript documents put`: sends files to a running service."""

from typing import TYPE_CHECKING, Annotated

import typer

from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import progress, say, show
from toolscript.cli.tables import printable
from toolscript.cli.tools_options import Timeout, Url
from toolscript.errors import ToolscriptError
from toolscript.model.documents import PutOutcome
from toolscript.model.progress import silent

if TYPE_CHECKING:
    from toolscript.model.document_sending import SendingReport

SOME_REFUSED = 1
MOST_SAID = 20

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
        from toolscript.service.documents_asking import put_documents

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


def _show(report: "SendingReport", *, as_json: bool) -> None:
    for where, reason in report.named[:MOST_SAID]:
        say(f"{printable(where)}: {printable(reason)}")
    unsaid = report.refused + report.skipped - len(report.named[:MOST_SAID])
    if unsaid:
        say(f"and {unsaid:,} more")
    counts = ", ".join(f"{report.outcomes[outcome]:,} {outcome}" for outcome in PutOutcome)
    skipped = (
        f"; {report.skipped:,} {'file' if report.skipped == 1 else 'files'} skipped" if report.skipped else ""
    )
    before = f"; {report.sent_before:,} of them before" if report.sent_before else ""
    show(report.as_json(), f"{counts}{skipped}{before}", as_json=as_json)
