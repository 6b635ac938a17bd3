"""`toolscript bench`: speed against the bare engines, in the same run."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from toolscript.cli.bench_documents import add_bench_documents
from toolscript.cli.bench_knowledge import add_bench_knowledge
from toolscript.cli.bench_search import add_bench_search
from toolscript.cli.bench_tables import comparison_table
from toolscript.cli.gateway_options import AsJson, Model
from toolscript.cli.output import progress, show


def bench_commands() -> typer.Typer:
    app = typer.Typer(
        help="Measure speed against the bare engines, in the same run.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.callback()(lambda: None)

    add_bench_search(app)
    add_bench_documents(app)
    add_bench_knowledge(app)

    @app.command()
    def index(
        items: Annotated[int, typer.Option(min=1000, help="Points of the large index.")] = 1_000_000,
        few: Annotated[int, typer.Option(min=1000, help="Points of the small one beside it.")] = 10_000,
        questions: Annotated[int, typer.Option(min=10, help="How many queries to ask of both.")] = 200,
        real: Annotated[
            int, typer.Option(min=100, help="Items of the catalog the points are made from.")
        ] = 20_000,
        queries: Annotated[
            Path | None, typer.Option(help="JSON lines with a `text` each; without it, names from the catalog.")
        ] = None,
        keep: Annotated[
            bool,
            typer.Option(
                "--keep",
                help="Leave the indexes there: the next run of as many points uses them as they are. They are to "
                "be dropped when the catalog changes: a run without it does so at its end.",
            ),
        ] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    ) -> None:
        """A large index against a small one: time of a search's stages and of every kind of query, and recall."""
        from toolscript.service.bench_index import bench_index

        with progress() as on_progress:
            tables = bench_index(
                items=items,
                few=few,
                questions=questions,
                real=real,
                queries=queries,
                keep=keep,
                on_progress=on_progress,
            )
        show(tables, "\n\n".join(map(_table, tables.values())), as_json=as_json)

    _gateway_benches(app)
    return app


Tools = Annotated[Path, typer.Argument(help="JSON lines: {server, name, description, input_schema}")]
Queries = Annotated[Path, typer.Argument(help="JSON lines with a `text` each.")]
Count = Annotated[int, typer.Option("--count", min=20, help="How many queries to run.")]


def _gateway_benches(app: typer.Typer) -> None:
    @app.command()
    def tokens(
        tools: Tools, queries: Queries, count: Count = 1000, model: Model = None, as_json: AsJson = False
    ) -> None:
        """What an agent pays: all tools in its context, against three tools that find the others."""
        from toolscript.gateway.benches import bench_tokens

        with progress() as on_progress:
            report = bench_tokens(tools, queries, limit=count, model=model, on_progress=on_progress)
        show(report, "\n".join(f"{name}: {value}" for name, value in report.items()), as_json=as_json)

    @app.command("gateway")
    def gateway_(
        tools: Tools, queries: Queries, count: Count = 500, model: Model = None, as_json: AsJson = False
    ) -> None:
        """A gateway's whole search against the one query embedding in it, turn by turn."""
        from toolscript.gateway.benches import bench_gateway

        with progress() as on_progress:
            compared = bench_gateway(tools, queries, limit=count, model=model, on_progress=on_progress)
        beyond = {"p95_beyond_ms": round(compared.ours.p95_ms - compared.bare.p95_ms, 3)}
        show({**asdict(compared), **beyond}, comparison_table(compared), as_json=as_json)


def _table(rows: list[dict[str, object]]) -> str:
    first, *titles = rows[0]
    lines = [f"{first:36}" + "".join(f"{title:>12}" for title in titles)]
    lines += [f"{row[first]!s:36}" + "".join(f"{row[title]!s:>12}" for title in titles) for row in rows]
    return "\n".join(lines)
