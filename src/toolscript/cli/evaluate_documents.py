"""`toolscript eval documents`: how good the search for documents is."""

from pathlib import Path
from typing import Annotated

import typer

from toolscript.cli.evaluate import (
    Compare,
    Count,
    Distractors,
    Model,
    Out,
    Seed,
    read_report,
    write_report,
)
from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import progress, show
from toolscript.model.judged import EvalRequest

Dataset = Annotated[
    Path,
    typer.Option(help="Folder with docs.jsonl or tools.jsonl, queries.jsonl and perhaps qrels.tsv."),
]


def add_documents(app: typer.Typer) -> None:
    @app.command()
    def documents(
        dataset: Dataset,
        distractors: Distractors = None,
        compare: Compare = None,
        count: Count = None,
        model: Model = None,
        out: Out = None,
        seed: Seed = 0,
        as_json: AsJson = False,
    ) -> None:
        """Put a judged set as one tenant's documents over the HTTP API, and ask in every way to search.

        Semantic, keyword, hybrid by ranks, hybrid by scores, and our own ranking, in a collection that is removed.
        """
        request = EvalRequest(
            dataset,
            distractors=distractors,
            model=model,
            count=count,
            seed=seed,
            before=None if compare is None else read_report(compare),
        )
        from toolscript.service.evaluating_documents import evaluate_documents

        with progress() as on_progress:
            result = evaluate_documents(request, on_progress=on_progress)
        show(result.data, result.text, as_json=as_json)
        if out is not None:
            write_report(out, result.data)
