"""`toolscript eval`: how good the search is, on a set of queries whose answers are known."""

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from toolscript.cli.gateway_options import AsJson
from toolscript.cli.output import progress, show
from toolscript.errors import InvalidRequest, NotFound
from toolscript.model.judged import EvalRequest, EvalResult
from toolscript.model.queries import Strategy


class EngineName(StrEnum):
    GATEWAY = "gateway"
    SERVICE = "service"


Dataset = Annotated[
    Path | None,
    typer.Option(
        help="Folder with tools.jsonl or docs.jsonl, queries.jsonl and perhaps qrels.tsv.", show_default=False
    ),
]
Distractors = Annotated[Path | None, typer.Option(help="Folder whose tools.jsonl is mixed into the catalog.")]
EngineOption = Annotated[EngineName, typer.Option("--engine", help="Whose search is judged.")]
StrategyOption = Annotated[
    Strategy,
    typer.Option(
        "--strategy", help="How the service searches; unless direct, items are first classified by rules."
    ),
]
Compare = Annotated[Path | None, typer.Option(help="An earlier report (--out) to compare with.")]
Ablate = Annotated[bool, typer.Option("--ablate", help="Judge the engine with each of its parts off, too.")]
WithoutGold = Annotated[
    bool, typer.Option(help="Ask again with the right items taken out of the catalog, in five folds.")
]
Count = Annotated[int | None, typer.Option(min=1, help="So many queries, evenly spread; without it, all.")]
Model = Annotated[
    str | None, typer.Option(help="Embedding model: a name or a folder; without it, the engine's own setting.")
]
Out = Annotated[Path | None, typer.Option(help="Also write the report to this file, as JSON.")]
RecipeFile = Annotated[
    Path | None, typer.Option("--recipe", help="Weights of the ranking, as `eval fit` writes them.")
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same intervals and folds.")]


def evaluate_commands() -> typer.Typer:
    """Without a command of its own, it judges."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

    @app.callback(invoke_without_command=True)
    def judge(
        context: typer.Context,
        dataset: Dataset = None,
        distractors: Distractors = None,
        engine: EngineOption = EngineName.GATEWAY,
        strategy: StrategyOption = Strategy.DIRECT,
        compare: Compare = None,
        ablate: Ablate = False,
        without_gold: WithoutGold = True,
        count: Count = None,
        model: Model = None,
        recipe: RecipeFile = None,
        out: Out = None,
        seed: Seed = 0,
        as_json: AsJson = False,
    ) -> None:
        """Measure how good the search is, on queries whose answers are known, beside plain baselines."""
        if context.invoked_subcommand is not None:
            return
        if dataset is None:
            raise InvalidRequest("no judged set was given", hint="toolscript eval --dataset FOLDER")
        request = EvalRequest(
            dataset,
            distractors=distractors,
            model=model,
            count=count,
            without_gold=without_gold,
            ablate=ablate,
            seed=seed,
            before=None if compare is None else read_report(compare),
            recipe=None if recipe is None else read_report(recipe),
            strategy=strategy,
        )
        result = _judged(request, engine)
        show(result.data, result.text, as_json=as_json)
        if out is not None:
            write_report(out, result.data)

    return app


def _judged(request: EvalRequest, engine: EngineName) -> EvalResult:
    if engine is EngineName.GATEWAY and request.strategy is not Strategy.DIRECT:
        raise InvalidRequest("a gateway always searches all of its tools", hint="add --engine service")
    if engine is EngineName.SERVICE:
        from toolscript.service.evaluating import evaluate
    else:
        from toolscript.gateway.evaluating import evaluate
    with progress() as on_progress:
        return evaluate(request, on_progress=on_progress)


def read_report(path: Path) -> Mapping[str, object]:
    try:
        data = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}", hint="give a file that --out wrote") from None
    except ValueError as error:
        raise InvalidRequest(f"{path} is not JSON: {error}", hint="give a file that --out wrote") from None
    if not isinstance(data, dict):
        raise InvalidRequest(f"{path} holds no report", hint="give a file that --out wrote")
    return data


def write_report(path: Path, data: Mapping[str, object]) -> None:
    try:
        path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf-8")
    except OSError as error:
        raise InvalidRequest(
            f"cannot write {path}: {error.strerror}", hint="give a file in a folder that is there"
        ) from None
