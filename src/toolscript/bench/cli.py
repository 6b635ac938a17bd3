"""`toolscript bench search`: one at a time, at rising load, or at one rate for a while."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from toolscript.cli.bench_tables import comparison_table, load_table, sustained_table
from toolscript.cli.output import progress, show
from toolscript.errors import InvalidRequest, SetupError
from toolscript.model.measurements import LoadComparison, LoadCurve
from toolscript.model.queries import Strategy

USUAL_COUNT = 500

QueriesOption = Annotated[
    Path | None,
    typer.Option("--queries", help="JSON lines with a `text` each; without it, names from the catalog."),
]
CountOption = Annotated[
    int | None,
    typer.Option(
        "--count",
        min=20,
        help="How many queries to run, 500 without it; under load, how many different ones are asked in turn.",
    ),
]
Most = Annotated[
    float | None, typer.Option("--most", help="Fail when p95 is more than so many times the bare pipeline's.")
]
Load = Annotated[
    bool,
    typer.Option("--load", help="Send at rising rates until neither the server nor the bare pipeline keeps up."),
]
Rates = Annotated[
    str,
    typer.Option(
        "--rates", help="With --load: rates in a second, comma-separated; without it 10, 20, 40, 60, ..."
    ),
]
StepSeconds = Annotated[float, typer.Option("--step-seconds", min=0.5, help="With --load: how long each rate is.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="With --load: draw both latency curves, as SVG.")]
Least = Annotated[
    float | None,
    typer.Option("--least", help="With --load: fail when throughput is less than so much of the bare pipeline's."),
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", min=0.1, max=10_000, help="Send so many in a second for a while, to the server alone."),
]
Seconds = Annotated[float, typer.Option("--seconds", min=1, help="With --rate: for how long.")]
Cached = Annotated[
    bool,
    typer.Option("--cached", help="Let both remember the vectors of queries; without it, each is embedded."),
]


def add_bench_search(app: typer.Typer) -> None:
    @app.command()
    def search(
        queries: QueriesOption = None,
        count: CountOption = None,
        strategy: Annotated[Strategy, typer.Option(help="Which items are searched.")] = Strategy.HIERARCHICAL,
        most: Most = None,
        load: Load = False,
        rates: Rates = "",
        step_seconds: StepSeconds = 10.0,
        plot: Plot = None,
        least: Least = None,
        rate: Rate = None,
        seconds: Seconds = 60.0,
        cached: Cached = False,
        as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    ) -> None:
        """Search over HTTP against the same embedding, engine queries and SQL, stage by stage.

        One at a time; with --load, at rising rates; with --rate, the server alone at one rate. Under load,
        requests are sent when they are due, whatever became of those before, and latency counts from then.
        """
        _require_one_kind(load, rate, {"--rates": bool(rates), "--plot": plot, "--least": least}, most)
        asked = _Asked(queries, count, strategy, cached, as_json)
        if rate is not None:
            asked.sustained(rate, seconds)
        elif load:
            asked.load(_numbers(rates), step_seconds, plot, least)
        else:
            asked.one_at_a_time(most)


class _Asked:
    """What all three ways have in common."""

    def __init__(
        self,
        queries: Path | None,
        count: int | None,
        strategy: Strategy,
        cached: bool,
        as_json: bool,
    ) -> None:
        self._queries, self._count, self._strategy, self._cached = queries, count, strategy, cached
        self._as_json = as_json

    def one_at_a_time(self, most: float | None) -> None:
        from toolscript.service.bench_search import bench_search

        with progress() as on_progress:
            compared = bench_search(
                queries=self._queries,
                count=self._count or USUAL_COUNT,
                strategy=self._strategy,
                cached=self._cached,
                on_progress=on_progress,
            )
        ratios = {"p50_ratio": compared.p50_ratio, "p95_ratio": compared.p95_ratio}
        self._show({"strategy": self._strategy, **asdict(compared), **ratios}, comparison_table(compared))
        if most is not None and compared.p95_ratio > most:
            raise typer.Exit(2)

    def load(self, rates: list[float], step_seconds: float, plot: Path | None, least: float | None) -> None:
        from toolscript.service.bench_load import bench_load

        with progress() as on_progress:
            compared = bench_load(
                queries=self._queries,
                count=self._count,
                strategy=self._strategy,
                rates=rates,
                step_seconds=step_seconds,
                cached=self._cached,
                plot=plot,
                on_progress=on_progress,
            )
        curves = {"bare": _curve(compared.bare), "ours": _curve(compared.ours)}
        ratio = {"throughput_ratio": compared.throughput_ratio}
        self._show({**asdict(compared), **curves, **ratio}, load_table(compared))
        if least is not None:
            _require_throughput(compared, least)

    def sustained(self, rate: float, seconds: float) -> None:
        from toolscript.service.bench_load import bench_sustained

        with progress() as on_progress:
            done = bench_sustained(
                queries=self._queries,
                count=self._count,
                strategy=self._strategy,
                rate=rate,
                seconds=seconds,
                cached=self._cached,
                on_progress=on_progress,
            )
        self._show(asdict(done), sustained_table(done))

    def _show(self, result: Mapping[str, object], text: str) -> None:
        show(result, text, as_json=self._as_json)


def _require_throughput(compared: LoadComparison, least: float) -> None:
    """Where a curve has no end, its throughput is only what was asked of it, and a ratio says nothing."""
    endless = [
        name for name, curve in (("search", compared.ours), ("bare", compared.bare)) if not curve.is_complete
    ]
    if endless:
        raise SetupError(
            f"no rate was too much for {' and '.join(endless)}: --least has nothing to compare",
            hint="give higher --rates",
        )
    if compared.throughput_ratio < least:
        raise typer.Exit(2)


def _curve(curve: LoadCurve) -> dict[str, object]:
    told = {"throughput": curve.throughput, "carried": curve.carried, "is_complete": curve.is_complete}
    return {**asdict(curve), **told}


def _require_one_kind(load: bool, rate: float | None, of_load: Mapping[str, object], most: float | None) -> None:
    if load and rate is not None:
        raise InvalidRequest("--load and --rate are two benches", hint="run one after the other")
    misplaced = [option for option, value in of_load.items() if value not in (None, False) and not load]
    if misplaced:
        raise InvalidRequest(f"{misplaced[0]} needs --load", hint="add --load, or leave it out")
    if most is not None and (load or rate is not None):
        raise InvalidRequest("--most is about one search at a time", hint="with --load, use --least")


def _numbers(rates: str) -> list[float]:
    try:
        numbers = [float(one) for one in rates.split(",") if one.strip()]
    except ValueError:
        numbers = [0.0]
    if any(not 0.1 <= number <= 10_000 for number in numbers):
        raise InvalidRequest(f"--rates {rates[:80]!r} is no list of rates", hint="for example --rates 10,20,40")
    return sorted(set(numbers))
