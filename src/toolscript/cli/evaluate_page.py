"""`toolscript eval page`: a page of results made of reports."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import show
from toolscript.model.judged import WrittenPage

Reports = Annotated[list[Path], typer.Argument(help="Reports (--out) of any sets and engines, in this order.")]
Out = Annotated[Path, typer.Option(help="The page, in Markdown; its plot is written beside it, as SVG.")]


def add_page(app: typer.Typer) -> None:
    @app.command()
    def page(reports: Reports, out: Out = Path("docs/quality.md"), as_json: AsJson = False) -> None:
        """Write the reports of several sets and both engines as one page with a plot."""
        from toolscript.gateway.eval_pages import make_page

        written = make_page(reports, out=out)
        show(asdict(written), _summary(written), as_json=as_json)


def _summary(written: WrittenPage) -> str:
    return f"{_of(written.reports, 'report')} on {_of(written.sets, 'set')}: {written.page} and {written.plot}"


def _of(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
