"""The commands of `python -m benchmarks`: speed against the bare engines, in the same run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from benchmarks.features.cli import add_bench_features
from benchmarks.measurements import Comparison, Latency, LoadComparison, LoadCurve, LoadStats, Sustained
from toolscript.cli.options import AsJson, Model
from toolscript.cli.output import progress, show
from toolscript.core.errors import InvalidRequest, SetupError
from toolscript.tools.model.query import Strategy
from toolscript_eval.cli import ReportFile, SamplingSeed, WeightsInput, read_report, show_result
from toolscript_eval.dataset import EvalRequest

_LOAD_HEAD = (
    f"{'':12} {'rate':>7} {'answered':>9} {'p50 ms':>9} {'p95 ms':>9} {'p99 ms':>9} {'max ms':>9} {'errors':>7}"
    "  CPU ms per request, strategies, errors"
)
_STAGE_HEAD = (
    f"{'':12} {'bare p50':>9} {'p95 ms':>9} {'search p50':>11} {'p95 ms':>9} {'ratio p50':>10} {'p95':>6}"
)

DEFAULT_COUNT = 500


def comparison_table(compared: Comparison) -> str:
    """Render the comparison, by stage if the product reports stages."""
    if compared.stages:
        return "\n".join(
            [
                *_stage_rows(compared.parts, compared.stages),
                _pair("whole", compared.bare, compared.ours) + f"   over {compared.ours.count} queries",
            ]
        )
    rows = [*compared.parts, compared.bare, compared.ours]
    lines = [f"{'':12} {'p50 ms':>9} {'p95 ms':>9}"]
    lines += [f"{row.name:12} {row.p50_ms:9.2f} {row.p95_ms:9.2f}" for row in rows]
    lines.append(
        f"{'ratio':12} {compared.p50_ratio:9.2f} {compared.p95_ratio:9.2f}   over {compared.ours.count} queries"
    )
    return "\n".join(lines)


def titled_tables(tables: Mapping[str, Sequence[Mapping[str, object]]]) -> str:
    """Render each table under its name. Missing cells are empty."""
    return "\n\n".join(f"{name}\n{_aligned(rows)}" for name, rows in tables.items() if rows)


def _aligned(rows: Sequence[Mapping[str, object]]) -> str:
    titles = list(dict.fromkeys(title for row in rows for title in row))
    cells = [titles, *([str(row.get(title, "")) for title in titles] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(titles))]
    texts = [isinstance(next(row[title] for row in rows if title in row), str) for title in titles]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if is_text else cell.rjust(width)
            for cell, width, is_text in zip(line, widths, texts, strict=True)
        ).rstrip()
        for line in cells
    )


def load_table(compared: LoadComparison) -> str:
    lines = [_describe(compared), "", _LOAD_HEAD]
    rates = sorted({step.offered for curve in (compared.ours, compared.bare) for step in curve.steps})
    for rate in rates:
        lines += [
            _load_row(name, step)
            for name, curve in (("search", compared.ours), ("bare", compared.bare))
            for step in curve.steps
            if step.offered == rate
        ]
    lines += [
        "",
        *_stages_at(compared),
        "",
        _throughput("search", compared.ours),
        _throughput("bare", compared.bare),
    ]
    return "\n".join([*lines, f"{'ratio':12} {compared.throughput_ratio:9.2f}"])


def sustained_table(done: Sustained) -> str:
    minutes = [_load_row(f"minute {number}", stats) for number, stats in enumerate(done.minutes, 1)]
    return "\n".join([_describe(done), "", _LOAD_HEAD, *minutes, _load_row("whole", done.whole)])


def _describe(bench: LoadComparison | Sustained) -> str:
    caching = "with cached vectors" if bench.cached else "each embedded every time"
    return f"strategy {bench.strategy}, {bench.queries:,} different queries in turn, {caching}"


def _load_row(name: str, step: LoadStats) -> str:
    latencies = f"{step.p50_ms:9.1f} {step.p95_ms:9.1f} {step.p99_ms:9.1f} {step.max_ms:9.1f}"
    errors = sum(step.errors.values())
    notes = [
        " ".join(f"{process} {spent:.2f}" for process, spent in step.cpu_ms.items()),
        " ".join(f"{strategy}: {count}" for strategy, count in step.strategies.items()),
        "saturated" if step.saturated else "",
        ", ".join(f"{fault}: {count}" for fault, count in step.errors.items()),
    ]
    note_text = "  ".join(filter(None, notes))
    return f"{name:12} {step.offered:7.1f} {step.achieved:9.1f} {latencies} {errors:7}  {note_text}".rstrip()


def _stages_at(compared: LoadComparison) -> Sequence[str]:
    """Render the stages at the highest rate that both sustained, or else at the lowest."""
    ours = {step.offered: step for step in compared.ours.steps}
    both = [(ours[step.offered], step) for step in compared.bare.steps if step.offered in ours]
    carried = [pair for pair in both if not (pair[0].saturated or pair[1].saturated)] or both[:1]
    if not carried:
        return ()
    search, bare = carried[-1]
    return [f"stages at {search.offered:g} a second", *_stage_rows(bare.stages, search.stages)]


def _stage_rows(bare: Sequence[Latency], ours: Sequence[Latency]) -> list[str]:
    counterparts: Mapping[str, Latency] = {latency.name: latency for latency in bare}
    return [_STAGE_HEAD, *(_pair(latency.name, counterparts.get(latency.name), latency) for latency in ours)]


def _pair(name: str, bare: Latency | None, ours: Latency) -> str:
    if bare is None:
        return f"{name:12} {'':9} {'':9} {ours.p50_ms:11.2f} {ours.p95_ms:9.2f}"
    ratios = f"{_ratio(ours.p50_ms, bare.p50_ms):>10} {_ratio(ours.p95_ms, bare.p95_ms):>6}"
    return f"{name:12} {bare.p50_ms:9.2f} {bare.p95_ms:9.2f} {ours.p50_ms:11.2f} {ours.p95_ms:9.2f} {ratios}"


def _ratio(ours: float, bare: float) -> str:
    return f"{ours / bare:.2f}" if bare else ""


def _throughput(name: str, curve: LoadCurve) -> str:
    at_least = "" if curve.is_complete else " or more: no rate saturated it"
    return f"{name:12} {curve.throughput:9.1f} answers a second at most{at_least}; sustained {curve.carried:g}"


Passages = Annotated[int, typer.Option(min=1_000, help="Chunks of all tenants together.")]
Tenants = Annotated[int, typer.Option(min=10, help="Tenants: one has a fifth of all chunks, most have a few.")]
SearchesEach = Annotated[int, typer.Option("--count", min=2, help="How many searches of each kind.")]
Texts = Annotated[
    Path | None,
    typer.Option(help="JSON lines with a `text` each to derive documents from. Default: synthetic texts."),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same tenants, documents and queries.")]
KeepCollection = Annotated[bool, typer.Option("--keep", help="Keep the collection, for --use.")]
UseCollection = Annotated[
    str,
    typer.Option(help="Name of a kept collection, with the same --passages, --tenants, --texts and --seed."),
]


def add_bench_documents(app: typer.Typer) -> None:
    @app.command()
    def documents(
        passages: Passages = 1_000_000,
        tenants: Tenants = 10_000,
        count: SearchesEach = 200,
        texts: Texts = None,
        seed: Seed = 0,
        keep: KeepCollection = False,
        use: UseCollection = "",
        as_json: AsJson = False,
    ) -> None:
        """Tenants of very different sizes in one collection: searches against the bare engine, and recall."""
        from benchmarks.documents import bench_documents

        with progress() as on_progress:
            tables = bench_documents(
                passages=passages,
                tenants=tenants,
                count=count,
                texts=texts,
                seed=seed,
                keep=keep,
                use=use,
                on_progress=on_progress,
            )
        show(tables, titled_tables(tables), as_json=as_json)


Chunks = Annotated[int, typer.Option(min=1_000, help="Chunks of the library; a tenth of them has an extraction.")]
SearchCount = Annotated[int, typer.Option("--count", min=10, help="How many searches, one at a time.")]
SteadyRate = Annotated[float, typer.Option(min=0.1, max=1_000, help="Searches a second over HTTP.")]
SteadySeconds = Annotated[float, typer.Option(min=1, max=3_600, help="Duration of the steady rate.")]
KeepLibrary = Annotated[bool, typer.Option("--keep", help="Keep the library, for --use.")]
UseLibrary = Annotated[
    str, typer.Option(help="Name of a kept library, with the same --chunks, --texts and --seed.")
]


def add_bench_knowledge(app: typer.Typer) -> None:
    @app.command()
    def knowledge(
        chunks: Chunks = 1_000_000,
        count: SearchCount = 200,
        rate: SteadyRate = 100,
        seconds: SteadySeconds = 60,
        texts: Texts = None,
        seed: Seed = 0,
        keep: KeepLibrary = False,
        use: UseLibrary = "",
        as_json: AsJson = False,
    ) -> None:
        """A synthetic library: searches against the bare engines, recall, and a steady rate over HTTP."""
        from benchmarks.knowledge import bench_knowledge

        with progress() as on_progress:
            tables = bench_knowledge(
                chunks=chunks,
                count=count,
                rate=rate,
                seconds=seconds,
                texts=texts,
                seed=seed,
                keep=keep,
                use=use,
                on_progress=on_progress,
            )
        show(tables, titled_tables(tables), as_json=as_json)


QueriesOption = Annotated[
    Path | None,
    typer.Option("--queries", help="JSON lines with a `text` each; without it, names from the catalog."),
]
CountOption = Annotated[
    int | None,
    typer.Option(
        "--count",
        min=20,
        help="How many queries to run, 500 without it; under load, how many different ones are sent in turn.",
    ),
]
Most = Annotated[
    float | None, typer.Option("--most", help="Fail when p95 is more than this many times that of the baseline.")
]
Load = Annotated[
    bool,
    typer.Option("--load", help="Send at rising rates until the server and the baseline are both saturated."),
]
Rates = Annotated[
    str,
    typer.Option("--rates", help="With --load: rates per second, comma-separated. Default: 10, 20, 40, 60, ..."),
]
StepSeconds = Annotated[float, typer.Option("--step-seconds", min=0.5, help="With --load: duration of each rate.")]
Plot = Annotated[Path | None, typer.Option("--plot", help="With --load: draw both latency curves, as SVG.")]
Least = Annotated[
    float | None,
    typer.Option("--least", help="With --load: fail when throughput is below this share of the baseline's."),
]
SustainedRate = Annotated[
    float | None,
    typer.Option("--rate", min=0.1, max=10_000, help="Send this many requests a second to the server alone."),
]
SustainedSeconds = Annotated[float, typer.Option("--seconds", min=1, help="With --rate: for how long.")]
Cached = Annotated[
    bool,
    typer.Option("--cached", help="Let both cache the vectors of queries. Without it, each query is embedded."),
]


def add_bench_search(app: typer.Typer) -> None:
    @app.command()
    def search(
        queries: QueriesOption = None,
        count: CountOption = None,
        strategy: Annotated[Strategy, typer.Option(help="Which items are searched.")] = Strategy.HIERARCHICAL,
        maximum: Most = None,
        load: Load = False,
        rates: Rates = "",
        step_seconds: StepSeconds = 10.0,
        plot: Plot = None,
        minimum: Least = None,
        rate: SustainedRate = None,
        seconds: SustainedSeconds = 60.0,
        cached: Cached = False,
        as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    ) -> None:
        """Search over HTTP against the same embedding, engine queries and SQL, stage by stage.

        One at a time; with --load, at rising rates; with --rate, the server alone at one rate. Under load,
        requests are sent when they are due, without waiting for earlier responses, and latency counts from then.
        """
        _require_one_kind(load, rate, {"--rates": bool(rates), "--plot": plot, "--least": minimum}, maximum)
        options = _BenchOptions(queries, count, strategy, cached, as_json)
        if rate is not None:
            options.sustained(rate, seconds)
        elif load:
            options.load(_numbers(rates), step_seconds, plot, minimum)
        else:
            options.one_at_a_time(maximum)


class _BenchOptions:
    """Options that all three modes share."""

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

    def one_at_a_time(self, maximum: float | None) -> None:
        from benchmarks.search import bench_search

        with progress() as on_progress:
            compared = bench_search(
                queries=self._queries,
                count=self._count or DEFAULT_COUNT,
                strategy=self._strategy,
                cached=self._cached,
                on_progress=on_progress,
            )
        ratios = {"p50_ratio": compared.p50_ratio, "p95_ratio": compared.p95_ratio}
        self._show({"strategy": self._strategy, **asdict(compared), **ratios}, comparison_table(compared))
        if maximum is not None and compared.p95_ratio > maximum:
            raise typer.Exit(2)

    def load(self, rates: list[float], step_seconds: float, plot: Path | None, minimum: float | None) -> None:
        from benchmarks.search import bench_load

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
        if minimum is not None:
            _require_throughput(compared, minimum)

    def sustained(self, rate: float, seconds: float) -> None:
        from benchmarks.search import bench_sustained

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


def _require_throughput(compared: LoadComparison, minimum: float) -> None:
    """Fail below `minimum`. Without saturation, throughput is just the offered rate, and has no meaning here."""
    endless = [
        name for name, curve in (("search", compared.ours), ("bare", compared.bare)) if not curve.is_complete
    ]
    if endless:
        raise SetupError(
            f"no rate saturated {' and '.join(endless)}: --least has nothing to compare",
            hint="give higher --rates",
        )
    if compared.throughput_ratio < minimum:
        raise typer.Exit(2)


def _curve(curve: LoadCurve) -> dict[str, object]:
    totals = {"throughput": curve.throughput, "carried": curve.carried, "is_complete": curve.is_complete}
    return {**asdict(curve), **totals}


def _require_one_kind(
    load: bool, rate: float | None, of_load: Mapping[str, object], maximum: float | None
) -> None:
    if load and rate is not None:
        raise InvalidRequest("--load and --rate are two benchmarks", hint="run one after the other")
    misplaced = [option for option, value in of_load.items() if value not in (None, False) and not load]
    if misplaced:
        raise InvalidRequest(f"{misplaced[0]} needs --load", hint="add --load, or leave it out")
    if maximum is not None and (load or rate is not None):
        raise InvalidRequest("--most is for searches one at a time", hint="with --load, use --least")


def _numbers(rates: str) -> list[float]:
    try:
        numbers = [float(rate) for rate in rates.split(",") if rate.strip()]
    except ValueError:
        numbers = [0.0]
    if any(not 0.1 <= number <= 10_000 for number in numbers):
        raise InvalidRequest(f"--rates {rates[:80]!r} is not a list of rates", hint="for example --rates 10,20,40")
    return sorted(set(numbers))


DatasetFolders = Annotated[list[Path], typer.Argument(help="Folders of datasets, two or more.")]
ComparedModel = Annotated[str, typer.Option("--model", help="The model to compare with: a name or a folder.")]
MeasuredQueries = Annotated[
    int | None,
    typer.Option("--count", min=20, help="Queries to measure per dataset, evenly sampled. Default: all."),
]
FittedQueries = Annotated[
    int, typer.Option("--fitted-on", min=20, help="Queries of each other dataset that weights are fitted to.")
]


ItemsProposed = Annotated[int, typer.Option(min=100, help="Items of the synthetic catalog.")]


def add_bench_proposals(app: typer.Typer) -> None:
    @app.command()
    def proposals(items: ItemsProposed = 1_000_000, seed: Seed = 0, as_json: AsJson = False) -> None:
        """Propose skills from a large synthetic catalog: minutes, peak memory and balance. Needs no engine."""
        import asyncio

        from benchmarks.proposals import measure_proposals

        with progress() as on_progress:
            measured = asyncio.run(measure_proposals(items, seed, on_progress))
        show(measured, "\n".join(f"{name}: {value}" for name, value in measured.items()), as_json=as_json)


def add_bench_embedders(app: typer.Typer) -> None:
    @app.command()
    def embedders(
        datasets: DatasetFolders,
        model: ComparedModel,
        count: MeasuredQueries = None,
        fitted_on: FittedQueries = 150,
        seed: Seed = 0,
        as_json: AsJson = False,
    ) -> None:
        """Sparse retrieval alone, the built-in model and another model: quality, verdicts and cost.

        Each has weights of its own, fitted without the dataset they are measured on.
        """
        from benchmarks.embedders import bench_embedders

        with progress() as on_progress:
            tables = bench_embedders(
                datasets, model=model, count=count, fitted_on=fitted_on, seed=seed, on_progress=on_progress
            )
        show(tables, titled_tables(tables), as_json=as_json)


ProfiledCount = Annotated[int, typer.Option("--count", min=20, help="How many requests to profile.")]
Flame = Annotated[Path | None, typer.Option("--flame", help="Also draw a flame graph of the search, as SVG.")]
OfGateway = Annotated[
    Path | None,
    typer.Option("--gateway", help="Profile a gateway over the tools of this file instead; needs --queries."),
]


def add_bench_profile(app: typer.Typer) -> None:
    @app.command()
    def profile(
        queries: QueriesOption = None,
        count: ProfiledCount = 500,
        strategy: Annotated[Strategy, typer.Option(help="Which items are searched.")] = Strategy.HIERARCHICAL,
        gateway: OfGateway = None,
        model: Model = None,
        flame: Flame = None,
        as_json: AsJson = False,
    ) -> None:
        """Where the CPU time of a search goes: by stage, against the baseline, and by function.

        Stacks are sampled by CPU time, so waiting costs nothing; what C code takes counts for its caller.
        """
        from benchmarks.profile import profile_gateway, profile_service

        if gateway is not None and queries is None:
            raise InvalidRequest("--gateway needs --queries", hint="a catalog of a file has no names to ask for")
        with progress() as on_progress:
            tables = (
                profile_service(
                    queries=queries, count=count, strategy=strategy, flame=flame, on_progress=on_progress
                )
                if gateway is None or queries is None
                else profile_gateway(
                    gateway, queries, count=count, model=model, flame=flame, on_progress=on_progress
                )
            )
        show(tables, titled_tables(tables), as_json=as_json)


PassageTexts = Annotated[Path, typer.Argument(help="JSON lines with a `text` each, which is cut into passages.")]
EmbeddingModel = Annotated[str, typer.Option("--model", help="The embedding model: a name or a folder.")]
PassageCount = Annotated[int, typer.Option("--count", min=32, help="How many passages of 252 to 515 letters.")]
Rounds = Annotated[int, typer.Option(min=1, help="How often each way is measured, in turn.")]


def add_bench_passages(app: typer.Typer) -> None:
    @app.command()
    def passages(
        texts: PassageTexts,
        model: EmbeddingModel,
        count: PassageCount = 1_000,
        rounds: Rounds = 3,
        seed: Seed = 0,
        as_json: AsJson = False,
    ) -> None:
        """CPU time of embedding passages in bulk, against batches by count and one by one, on one thread.

        Needs no engine. The time is that of the process, so other processes disturb it little.
        """
        from benchmarks.passages import bench_passages

        with progress() as on_progress:
            tables = bench_passages(
                texts, model=model, count=count, rounds=rounds, seed=seed, on_progress=on_progress
            )
        show(tables, titled_tables(tables), as_json=as_json)


DayServers = Annotated[
    Path, typer.Argument(help="A client's config file with `mcpServers`, whose servers are on this disk.")
]
Victim = Annotated[str, typer.Option("--victim", help="The server that crashes and is upgraded.")]
NewerVictim = Annotated[str, typer.Option("--newer", help="Command of another version of that server.")]
RenamedServer = Annotated[str, typer.Option("--renamed", help="The server that gets another name in the config.")]
DaySteps = Annotated[int, typer.Option("--steps", min=40, help="Searches and calls, in turn.")]


def add_bench_day(app: typer.Typer) -> None:
    @app.command()
    def day(
        servers: DayServers,
        newer: NewerVictim,
        victim: Victim = "everything",
        renamed: RenamedServer = "time",
        steps: DaySteps = 200,
        as_json: AsJson = False,
    ) -> None:
        """A day of use of a gateway: import, connect, searches and calls while servers crash and all restarts.

        Ends with an error if a request got no answer.
        """
        from benchmarks.day import Plan, run_day

        with progress() as on_progress, TemporaryDirectory() as home:
            lived = run_day(Plan(servers, victim, newer, renamed, steps), Path(home), on_progress)
        show(lived.as_json(), json.dumps(lived.as_json(), indent=2, ensure_ascii=False), as_json=as_json)
        if lived.lost:
            raise typer.Exit(1)


UpdatedPackages = Annotated[
    list[str] | None, typer.Argument(help="Packages of npm or PyPI; none: the servers that were tried by hand.")
]
UpdatedVersions = Annotated[int, typer.Option("--versions", min=2, help="The last so many versions of each.")]


def add_bench_updates(app: typer.Typer) -> None:
    @app.command()
    def updates(packages: UpdatedPackages = None, versions: UpdatedVersions = 10, as_json: AsJson = False) -> None:
        """How many definitions the updates of published MCP servers change: what there is to approve.

        Installs each version by name, starts it, and compares what it lists with the version before.
        """
        from benchmarks.updates import PACKAGES, measure_updates
        from benchmarks.updates import as_json as as_data

        chosen = [package for package in PACKAGES if not packages or package.name in packages]
        if packages and len(chosen) != len(packages):
            raise InvalidRequest(f"known packages are {', '.join(package.name for package in PACKAGES)}")
        with progress() as on_progress:
            measured = measure_updates(chosen, versions, on_progress)
        table = titled_tables({"updates": [entry.as_row() for entry in measured]})
        show(as_data(measured), table, as_json=as_json)


PeerDataset = Annotated[Path, typer.Option("--dataset", help="Folder with tools.jsonl and queries.jsonl.")]
PeerNames = Annotated[
    list[str] | None,
    typer.Option("--peer", help="fastmcp, ratel-ai or ratel-ai-hybrid; repeatable. Default: all."),
]
PeerQueries = Annotated[
    int | None, typer.Option("--count", min=1, help="Number of queries, evenly sampled. Default: all.")
]


def add_bench_peers(app: typer.Typer) -> None:
    @app.command()
    def peers(
        dataset: PeerDataset,
        peer: PeerNames = None,
        count: PeerQueries = None,
        model: Model = None,
        weights: WeightsInput = None,
        out: ReportFile = None,
        seed: SamplingSeed = 0,
        as_json: AsJson = False,
    ) -> None:
        """Search quality of other projects' own code on a dataset, beside the gateway and plain baselines.

        Each runs in an environment of its own, installed from PyPI the first time. `toolscript-eval page` takes
        the report (--out).
        """
        from benchmarks.peers import bench_peers, named_peers

        request = EvalRequest(
            dataset,
            model=model,
            count=count,
            without_gold=False,
            seed=seed,
            weights=None if weights is None else read_report(weights),
        )
        chosen = named_peers(peer or [])
        with progress() as on_progress:
            result = bench_peers(request, chosen, on_progress=on_progress)
        show_result(result, out=out, plot=None, as_json=as_json)


def bench_commands() -> typer.Typer:
    app = typer.Typer(
        help="Measure speed against the bare engines, and search quality beside other projects.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.callback()(lambda: None)

    add_bench_search(app)
    add_bench_profile(app)
    add_bench_documents(app)
    add_bench_knowledge(app)
    add_bench_embedders(app)
    add_bench_passages(app)
    add_bench_proposals(app)
    add_bench_peers(app)
    add_bench_day(app)
    add_bench_updates(app)
    add_bench_features(app)

    @app.command()
    def index(
        items: Annotated[int, typer.Option(min=1000, help="Points of the large index.")] = 1_000_000,
        few: Annotated[int, typer.Option(min=1000, help="Points of the small one beside it.")] = 10_000,
        questions: Annotated[int, typer.Option(min=10, help="How many queries to send to both.")] = 200,
        real: Annotated[int, typer.Option(min=100, help="Items of the catalog to derive points from.")] = 20_000,
        queries: Annotated[
            Path | None, typer.Option(help="JSON lines with a `text` each; without it, names from the catalog.")
        ] = None,
        keep: Annotated[
            bool,
            typer.Option(
                "--keep",
                help="Keep the indexes: the next run with as many points uses them. Drop them when the catalog "
                "changes: a run without --keep does so at its end.",
            ),
        ] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    ) -> None:
        """A large index against a small one: latency by stage and by kind of query, and recall."""
        from benchmarks.index import bench_index

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

    _list_bench(app)
    _gateway_benches(app)
    return app


def _list_bench(app: typer.Typer) -> None:
    @app.command()
    def lists(
        rows: Annotated[int, typer.Option(min=1000, help="Rows of each list.")] = 1_000_000,
        most: Annotated[int, typer.Option(help="Fail when a page reads more blocks of 8 KiB than this.")] = 500,
        as_json: AsJson = False,
    ) -> None:
        """Blocks that PostgreSQL reads for the first, a middle and the last page of each list.

        In a database of its own, which is dropped at the end.
        """
        from benchmarks.lists import bench_lists

        with progress() as on_progress:
            table = bench_lists(rows, on_progress)
        show({"lists": table}, titled_tables({f"{rows:,} rows": table}), as_json=as_json)
        if any(int(str(row[page])) > most for row in table for page in ("first", "middle", "last")):
            raise typer.Exit(2)


Tools = Annotated[Path, typer.Argument(help="JSON lines: {server, name, description, input_schema}")]
Queries = Annotated[Path, typer.Argument(help="JSON lines with a `text` each.")]
QueryCount = Annotated[int, typer.Option("--count", min=20, help="How many queries to run.")]


def _gateway_benches(app: typer.Typer) -> None:
    @app.command()
    def tokens(
        tools: Tools, queries: Queries, count: QueryCount = 1000, model: Model = None, as_json: AsJson = False
    ) -> None:
        """Tokens that an agent pays: all tools in its context, against the meta-tools."""
        from benchmarks.gateway import bench_tokens

        with progress() as on_progress:
            report = bench_tokens(tools, queries, limit=count, model=model, on_progress=on_progress)
        show(report, "\n".join(f"{name}: {value}" for name, value in report.items()), as_json=as_json)

    @app.command()
    def descriptions(
        queries: Queries,
        text_url: Annotated[str, typer.Option("--text-url", help="Endpoint with OpenAI's chat protocol.")],
        text_model: Annotated[str, typer.Option("--text-model", help="The model that chooses a tool.")],
        servers: Annotated[
            str, typer.Option("--servers", help="Names of servers that the definitions say, comma-separated.")
        ] = "",
        count: QueryCount = 100,
        as_json: AsJson = False,
    ) -> None:
        """Which tool a model calls first with the gateway's definitions. Key: TOOLSCRIPT_TEXT_API_KEY.

        So far it was run with a scripted endpoint alone, and with no real model.
        """
        from benchmarks.descriptions import bench_descriptions
        from toolscript.gateway.settings import load_gateway_settings

        with progress() as on_progress:
            report = bench_descriptions(
                queries,
                url=text_url,
                model=text_model,
                api_key=load_gateway_settings({}).text_api_key,
                servers=[name for name in servers.split(",") if name],
                limit=count,
                on_progress=on_progress,
            )
        lines = [f"{tool}: {number} of {report.requests}" for tool, number in report.first.items()]
        lines.append(f"calls whose arguments are no JSON object: {report.wrong_arguments}")
        show(asdict(report), "\n".join(lines), as_json=as_json)

    @app.command("gateway")
    def gateway_(
        tools: Tools, queries: Queries, count: QueryCount = 500, model: Model = None, as_json: AsJson = False
    ) -> None:
        """A whole search of the gateway against the embedding of the texts it needs, in turn."""
        from benchmarks.gateway import bench_gateway

        with progress() as on_progress:
            compared = bench_gateway(tools, queries, limit=count, model=model, on_progress=on_progress)
        beyond = {"p95_beyond_ms": round(compared.ours.p95_ms - compared.bare.p95_ms, 3)}
        show({**asdict(compared), **beyond}, comparison_table(compared), as_json=as_json)

    @app.command()
    def daemon(
        config: Annotated[Path, typer.Argument(help="A config file; its servers are started.")],
        tool: Annotated[str, typer.Argument(help="A harmless tool to call, as server__tool.")],
        arguments: Annotated[str, typer.Argument(help="Its arguments as a JSON object.")] = "{}",
        repeats: Annotated[int, typer.Option(min=3, help="How often each command is timed.")] = 9,
        as_json: AsJson = False,
    ) -> None:
        """Memory of real servers at rest, for one client and for several, and what broken servers cost."""
        from benchmarks.daemon import daemon_json, daemon_text, measure_daemon

        with progress() as on_progress:
            figures = measure_daemon(config, tool, arguments, repeats, on_progress)
        show(daemon_json(figures), daemon_text(figures), as_json=as_json)

    @app.command("tool-index")
    def tool_index_(
        tools: Tools,
        queries: Queries,
        count: QueryCount = 500,
        tool_count: Annotated[int, typer.Option("--tools", min=1, help="How many tools to index.")] = 1000,
        model: Model = None,
        as_json: AsJson = False,
    ) -> None:
        """Tools given in code: indexing against the embedder alone, search, and answers against the gateway's."""
        from benchmarks.tool_index import bench_tool_index

        with progress() as on_progress:
            report = bench_tool_index(
                tools, queries, count=tool_count, limit=count, model=model, on_progress=on_progress
            )
        show(report, "\n".join(f"{name}: {value}" for name, value in report.items()), as_json=as_json)


def _table(rows: list[dict[str, object]]) -> str:
    first, *titles = rows[0]
    lines = [f"{first:36}" + "".join(f"{title:>12}" for title in titles)]
    lines += [f"{row[first]!s:36}" + "".join(f"{row[title]!s:>12}" for title in titles) for row in rows]
    return "\n".join(lines)
