"""`toolscript eval fit`: weights of the ranking from judged sets."""

import json
from pathlib import Path
from typing import Annotated

import typer

from toolscript.cli.evaluate import Model
from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import progress, show

Datasets = Annotated[list[str], typer.Argument(help="Folders of judged sets; FOLDER:DISTRACTORS mixes more in.")]
Count = Annotated[int | None, typer.Option(min=1, help="So many queries of each set, evenly spread.")]
Out = Annotated[Path | None, typer.Option(help="Write the recipe to this file, for `eval --recipe`.")]
HeldOut = Annotated[
    Path | None, typer.Option(help="Also write, for each set, the recipe fitted without it into this folder.")
]


def add_fit(app: typer.Typer) -> None:
    @app.command()
    def fit(
        datasets: Datasets,
        count: Count = 150,
        model: Model = None,
        held_out: HeldOut = None,
        out: Out = None,
        as_json: AsJson = False,
    ) -> None:
        """Fit the weights of the ranking and its confidence, and try each set with weights fitted without it."""
        from toolscript.gateway.eval_fitting import fit_recipe

        with progress() as on_progress:
            fitted = fit_recipe(datasets, model=model, count=count, held_out=held_out, on_progress=on_progress)
        if out is not None:
            out.write_text(json.dumps(fitted.data, indent=2) + "\n", "utf-8")
        show(dict(fitted.data), fitted.text, as_json=as_json)
