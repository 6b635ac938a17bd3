"""`toolscript-eval`: measure search and classifiers, draft datasets, fit weights and write the quality page."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from toolscript.cli.options import AsJson, ConfigFile, DataDir, flags
from toolscript.cli.output import progress, say, show
from toolscript.core.errors import InvalidRequest, NotFound
from toolscript.tools.model.query import Strategy
from toolscript_eval.dataset import EvalRequest, EvalResult, SkillSet, WrittenDraft, WrittenPage
from toolscript_eval.labels import ClassifierName


class EngineName(StrEnum):
    GATEWAY = "gateway"
    SERVICE = "service"


ToolDataset = Annotated[
    Path | None,
    typer.Option(
        help="Folder with tools.jsonl or docs.jsonl, queries.jsonl and perhaps qrels.tsv.", show_default=False
    ),
]
Distractors = Annotated[Path | None, typer.Option(help="Folder whose tools.jsonl is mixed into the catalog.")]
EngineOption = Annotated[EngineName, typer.Option("--engine", help="The engine to evaluate.")]
StrategyOption = Annotated[
    Strategy,
    typer.Option("--strategy", help="Routing of the service; unless direct, items are first classified by rules."),
]
SkillsOption = Annotated[
    SkillSet,
    typer.Option(
        "--skills",
        help="Skills to route by: the default ones, those proposed from the catalog, or both, all approved.",
    ),
]
Compare = Annotated[Path | None, typer.Option(help="An earlier report (--out) to compare with.")]
Ablate = Annotated[bool, typer.Option("--ablate", help="Also evaluate the engine with each component disabled.")]
By = Annotated[
    str, typer.Option(help="Fields of the queries to report apart, such as kind,style,lang.", show_default=False)
]
WithoutGold = Annotated[
    bool, typer.Option(help="Also evaluate with the relevant items removed from the catalog, in five folds.")
]
QueryCount = Annotated[int | None, typer.Option(min=1, help="Number of queries, evenly sampled. Default: all.")]
Model = Annotated[
    str | None, typer.Option(help="Embedding model: a name or a folder. Default: the engine's setting.")
]
VerdictPlot = Annotated[
    Path | None,
    typer.Option(
        "--plot", help="Draw false answers over false refusals as the threshold of the verdict moves, as SVG."
    ),
]
ReportFile = Annotated[Path | None, typer.Option(help="Also write the report to this file, as JSON.")]
WeightsInput = Annotated[
    Path | None, typer.Option("--weights", help="File of ranking weights, as written by `eval fit`.")
]
SamplingSeed = Annotated[int, typer.Option(help="Random seed of intervals and folds.")]


def evaluate_commands() -> typer.Typer:
    """Build the group; without a subcommand it evaluates."""
    app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    _judge(app)
    _make(app)
    _fit(app)
    _page(app)
    _documents(app)
    _skills(app)
    return app


def _judge(app: typer.Typer) -> None:
    @app.callback(invoke_without_command=True)
    def judge(
        context: typer.Context,
        dataset: ToolDataset = None,
        distractors: Distractors = None,
        engine: EngineOption = EngineName.GATEWAY,
        strategy: StrategyOption = Strategy.DIRECT,
        skills: SkillsOption = SkillSet.DEFAULT,
        compare: Compare = None,
        ablate: Ablate = False,
        by: By = "",
        without_gold: WithoutGold = True,
        count: QueryCount = None,
        model: Model = None,
        weights: WeightsInput = None,
        out: ReportFile = None,
        plot: VerdictPlot = None,
        seed: SamplingSeed = 0,
        as_json: AsJson = False,
    ) -> None:
        """Measure search quality on a dataset with known answers, compared with simple baselines."""
        if context.invoked_subcommand is not None:
            return
        if dataset is None:
            raise InvalidRequest("no dataset was given", hint="toolscript-eval --dataset FOLDER")
        request = EvalRequest(
            dataset,
            distractors=distractors,
            model=model,
            count=count,
            without_gold=without_gold,
            ablate=ablate,
            seed=seed,
            before=None if compare is None else read_report(compare),
            weights=None if weights is None else read_report(weights),
            strategy=strategy,
            skills=skills,
            by=field_names(by),
        )
        show_result(_evaluate(request, engine), out=out, plot=plot, as_json=as_json)


def field_names(by: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in by.split(",") if name.strip()))


def show_result(result: EvalResult, *, out: Path | None, plot: Path | None, as_json: bool) -> None:
    """Print the report, then write what was requested: a file that cannot be written loses no measurement."""
    show(result.data, result.text, as_json=as_json)
    if out is not None:
        write_report(out, result.data)
    if plot is not None:
        _write_plot(plot, result)


def _write_plot(path: Path, result: EvalResult) -> None:
    from toolscript_eval.gateway import write_file
    from toolscript_eval.plot import verdict_plot
    from toolscript_eval.report import report_from_json

    write_file(path, verdict_plot([report_from_json(result.data)]))


def _evaluate(request: EvalRequest, engine: EngineName) -> EvalResult:
    if engine is EngineName.GATEWAY and request.strategy is not Strategy.DIRECT:
        raise InvalidRequest("a gateway always searches all of its tools", hint="add --engine service")
    if engine is EngineName.SERVICE:
        from toolscript_eval.service import evaluate
    else:
        from toolscript_eval.gateway import evaluate
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
            f"cannot write {path}: {error.strerror}", hint="give a file in an existing folder"
        ) from None


DocumentDataset = Annotated[
    Path,
    typer.Option(help="Folder with docs.jsonl or tools.jsonl, queries.jsonl and perhaps qrels.tsv."),
]


def _documents(app: typer.Typer) -> None:
    @app.command()
    def documents(
        dataset: DocumentDataset,
        distractors: Distractors = None,
        compare: Compare = None,
        count: QueryCount = None,
        model: Model = None,
        out: ReportFile = None,
        seed: SamplingSeed = 0,
        as_json: AsJson = False,
    ) -> None:
        """Index a dataset as one tenant's documents over the HTTP API, and evaluate every search type.

        Semantic, keyword, hybrid by RRF, hybrid by scores, and our own ranking, in a temporary collection.
        """
        request = EvalRequest(
            dataset,
            distractors=distractors,
            model=model,
            count=count,
            seed=seed,
            before=None if compare is None else read_report(compare),
        )
        from toolscript_eval.documents import evaluate_documents

        with progress() as on_progress:
            result = evaluate_documents(request, on_progress=on_progress)
        show(result.data, result.text, as_json=as_json)
        if out is not None:
            write_report(out, result.data)


Datasets = Annotated[list[str], typer.Argument(help="Folders of datasets; FOLDER:DISTRACTORS adds distractors.")]
QueriesPerSet = Annotated[int | None, typer.Option(min=1, help="Number of queries per dataset, evenly sampled.")]
WeightsOutput = Annotated[Path | None, typer.Option(help="Write the weights to this file, for `eval --weights`.")]
HeldOut = Annotated[
    Path | None, typer.Option(help="Also write, for each dataset, the weights fitted without it to this folder.")
]


def _fit(app: typer.Typer) -> None:
    @app.command()
    def fit(
        datasets: Datasets,
        count: QueriesPerSet = 150,
        model: Model = None,
        held_out: HeldOut = None,
        out: WeightsOutput = None,
        as_json: AsJson = False,
    ) -> None:
        """Fit ranking weights and confidence; evaluate each dataset with weights fitted without it."""
        from toolscript_eval.gateway import fit_ranking_weights

        with progress() as on_progress:
            fitted = fit_ranking_weights(
                datasets, model=model, count=count, held_out=held_out, on_progress=on_progress
            )
        if out is not None:
            out.write_text(json.dumps(fitted.data, indent=2) + "\n", "utf-8")
        show(dict(fitted.data), fitted.text, as_json=as_json)


Folder = Annotated[Path, typer.Argument(help="Folder for tools.jsonl and queries.jsonl.")]
PerKind = Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of queries of each kind.")]
DraftSeed = Annotated[int, typer.Option(help="Random seed of the draft.")]
TextModel = Annotated[
    str | None, typer.Option(help="Language model that also writes queries (TOOLSCRIPT_TEXT_MODEL).")
]
TextUrl = Annotated[str | None, typer.Option(help="Its OpenAI-compatible endpoint (TOOLSCRIPT_TEXT_URL).")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing draft, even an edited one.")]
Tools = Annotated[
    Path | None, typer.Option(help="Catalog of JSON lines to use instead of your servers.", show_default=False)
]


def _make(app: typer.Typer) -> None:
    @app.command()
    def make(
        folder: Folder,
        per_kind: PerKind = 20,
        seed: DraftSeed = 1,
        text_model: TextModel = None,
        text_url: TextUrl = None,
        tools: Tools = None,
        force: Force = False,
        config: ConfigFile = None,
        data_dir: DataDir = None,
        as_json: AsJson = False,
    ) -> None:
        """Draft a dataset from your servers: queries and their relevant tools, to be corrected by hand."""
        options = {**flags(config=config, data_dir=data_dir), "text_model": text_model, "text_url": text_url}
        from toolscript_eval.gateway import make_draft

        with progress() as on_progress:
            written = make_draft(
                folder,
                tools=tools,
                flags=options,
                per_kind=per_kind,
                seed=seed,
                force=force,
                on_progress=on_progress,
            )
        show(
            {**asdict(written), "queries": sum(written.counts.values())}, _draft_summary(written), as_json=as_json
        )
        say(_next_step(written))


def _draft_summary(written: WrittenDraft) -> str:
    lines = [f"{written.tools:,} tools and {sum(written.counts.values()):,} queries are in {written.folder}"]
    lines += [f"  {kind:18} {count:5,}" for kind, count in written.counts.items()]
    if written.refused_lines:
        lines.append(f"{written.refused_lines:,} lines of the catalog are not tools and were skipped")
    return "\n".join(lines)


def _next_step(written: WrittenDraft) -> str:
    return (
        "It is a draft: edit queries.jsonl, above all the unanswerable queries and other relevant tools."
        f"\nhint: then run `toolscript-eval --dataset {written.folder}`"
    )


Reports = Annotated[list[Path], typer.Argument(help="Reports (--out) of any datasets and engines, in this order.")]
PageFile = Annotated[Path, typer.Option(help="Markdown page to write; its SVG plots are written beside it.")]


def _page(app: typer.Typer) -> None:
    @app.command()
    def page(reports: Reports, out: PageFile = Path("docs/quality.md"), as_json: AsJson = False) -> None:
        """Write the reports of several datasets and both engines as one page with plots.

        Those of `python -m benchmarks peers`, which have other projects' searches in them, are taken, too.
        """
        from toolscript_eval.gateway import make_page

        written = make_page(reports, out=out)
        show(asdict(written), _page_summary(written), as_json=as_json)


def _page_summary(written: WrittenPage) -> str:
    reports, sets = _count_text(written.reports, "report"), _count_text(written.sets, "set")
    files = [written.page, written.plot, *([written.verdict_plot] if written.verdict_plot else [])]
    return f"{reports} on {sets}: {', '.join(files[:-1])} and {files[-1]}"


def _count_text(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


LabelFile = Annotated[
    Path, typer.Option(help="File of labelled items, one JSON object per line; docs/skills.md has the format.")
]
DataFolder = Annotated[
    Path, typer.Option(help="Folder with the datasets of the labels, each a folder with tools.jsonl.")
]
Classifiers = Annotated[
    list[ClassifierName], typer.Option("--classifier", help="Classifier to evaluate; give it again for both.")
]
SplitName = Annotated[str, typer.Option(help="Only the items of this split. Default: all.", show_default=False)]
Taxonomy = Annotated[
    Path | None, typer.Option(help="Skills, as `skills export` writes them. Default: the default taxonomy.")
]
CassetteFile = Annotated[
    Path | None,
    typer.Option(help="Recorded answers of the language model; without --record nothing else is asked."),
]
Record = Annotated[
    bool,
    typer.Option("--record", help="Ask TOOLSCRIPT_TEXT_URL what the cassette has no answer to, and record it."),
]


def _skills(app: typer.Typer) -> None:
    @app.command()
    def skills(
        labels: LabelFile,
        data: DataFolder,
        classifier: Classifiers = [ClassifierName.RULES],  # noqa: B006
        split: SplitName = "",
        taxonomy: Taxonomy = None,
        cassette: CassetteFile = None,
        record: Record = False,
        model: Model = None,
        out: ReportFile = None,
        as_json: AsJson = False,
    ) -> None:
        """Measure how often a classifier puts labelled items into the right skill.

        Also whether its confidence is calibrated, how many items get a skill, and how evenly they spread.
        """
        from toolscript_eval.classifiers import ClassifiersRequest, evaluate_classifiers

        request = ClassifiersRequest(labels, data, classifier, split, taxonomy, model, cassette, record)
        with progress() as on_progress:
            result = evaluate_classifiers(request, on_progress=on_progress)
        show(result.data, result.text, as_json=as_json)
        if out is not None:
            write_report(out, result.data)
