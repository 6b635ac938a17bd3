"""`toolscript bench`: speed against the bare engines, in the same run."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Protocol

import typer

from toolscript.model.measurements import Comparison
from toolscript.model.progress import OnProgress
from toolscript.surfaces.cli.gateway_commands import GatewayCommands
from toolscript.surfaces.cli.gateway_options import AsJson, Model
from toolscript.surfaces.cli.output import progress, show


class BenchCommands(Protocol):
    def bench_index(
        self, *, items: int, few: int, questions: int, real: int, queries: Path | None, on_progress: OnProgress
    ) -> list[dict[str, object]]: ...
    def bench_search(self, *, queries: Path | None, count: int, on_progress: OnProgress) -> Comparison: ...


def bench_commands(service: Callable[[], BenchCommands], gateway: Callable[[], GatewayCommands]) -> typer.Typer:
    app = typer.Typer(
        help="Measure speed against the bare engines, in the same run.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.callback()(lambda: None)

    @app.command()
    def search(
        queries: Annotated[
            Path | None,
            typer.Option(help="JSON lines with a `text` each; without it, names from the catalog."),
        ] = None,
        count: Annotated[int, typer.Option(min=20, help="How many queries to run.")] = 500,
        most: Annotated[
            float | None, typer.Option(help="Fail when p95 is more than so many times the bare pipeline's.")
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    ) -> None:
        """Search over HTTP against the same embedding, engine query and SQL in a tight loop."""
        with progress() as on_progress:
            compared = service().bench_search(queries=queries, count=count, on_progress=on_progress)
        ratios = {"p50_ratio": compared.p50_ratio, "p95_ratio": compared.p95_ratio}
        show({**asdict(compared), **ratios}, _table(compared), as_json=as_json)
        if most is not None and compared.p95_ratio > most:
            raise typer.Exit(2)

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
        as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    ) -> None:
        """A large index against a small one: time of every kind of query, and recall against exact search."""
        with progress() as on_progress:
            rows = service().bench_index(
                items=items, few=few, questions=questions, real=real, queries=queries, on_progress=on_progress
            )
        show({"shapes": rows}, _shapes(rows), as_json=as_json)

    _gateway_benches(app, gateway)
    return app


Tools = Annotated[Path, typer.Argument(help="JSON lines: {server, name, description, input_schema}")]
Queries = Annotated[Path, typer.Argument(help="JSON lines with a `text` each.")]
Count = Annotated[int, typer.Option("--count", min=20, help="How many queries to run.")]


def _gateway_benches(app: typer.Typer, gateway: Callable[[], GatewayCommands]) -> None:
    @app.command()
    def tokens(
        tools: Tools, queries: Queries, count: Count = 1000, model: Model = None, as_json: AsJson = False
    ) -> None:
        """What an agent pays: all tools in its context, against three tools that find the others."""
        with progress() as on_progress:
            report = gateway().bench_tokens(tools, queries, limit=count, model=model, on_progress=on_progress)
        show(report, "\n".join(f"{name}: {value}" for name, value in report.items()), as_json=as_json)

    @app.command("gateway")
    def gateway_(
        tools: Tools, queries: Queries, count: Count = 500, model: Model = None, as_json: AsJson = False
    ) -> None:
        """A gateway's whole search against the one query embedding in it, turn by turn."""
        with progress() as on_progress:
            compared = gateway().bench_gateway(tools, queries, limit=count, model=model, on_progress=on_progress)
        beyond = {"p95_beyond_ms": round(compared.ours.p95_ms - compared.bare.p95_ms, 3)}
        show({**asdict(compared), **beyond}, _table(compared), as_json=as_json)


def _shapes(rows: list[dict[str, object]]) -> str:
    titles = list(rows[0])
    lines = [f"{titles[0]:36}" + "".join(f"{title:>12}" for title in titles[1:])]
    lines += ["{:36}".format(row["shape"]) + "".join(f"{row[title]:>12}" for title in titles[1:]) for row in rows]
    return "\n".join(lines)


def _table(compared: Comparison) -> str:
    rows = [*compared.parts, compared.bare, compared.ours]
    lines = [f"{'':12} {'p50 ms':>9} {'p95 ms':>9}"]
    lines += [f"{row.name:12} {row.p50_ms:9.2f} {row.p95_ms:9.2f}" for row in rows]
    lines.append(
        f"{'ratio':12} {compared.p50_ratio:9.2f} {compared.p95_ratio:9.2f}   over {compared.ours.count} queries"
    )
    return "\n".join(lines)
