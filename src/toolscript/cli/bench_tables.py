"""What the benches of speed print for people."""

from collections.abc import Mapping, Sequence

from toolscript.model.measurements import Comparison, Latency, LoadComparison, LoadCurve, LoadFigures, Sustained


def comparison_table(compared: Comparison) -> str:
    """Stage by stage where the product tells its stages."""
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
    """Each under its name, as wide as what is in it; what a row does not have is left empty."""
    return "\n\n".join(f"{name}\n{_aligned(rows)}" for name, rows in tables.items() if rows)


def _aligned(rows: Sequence[Mapping[str, object]]) -> str:
    titles = list(dict.fromkeys(title for row in rows for title in row))
    cells = [titles, *([str(row.get(title, "")) for title in titles] for row in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(titles))]
    texts = [isinstance(next(row[title] for row in rows if title in row), str) for title in titles]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if is_text else cell.rjust(width)
            for cell, width, is_text in zip(line, widths, texts, strict=True)
        ).rstrip()
        for line in cells
    )


def load_table(compared: LoadComparison) -> str:
    lines = [_asked_about(compared), "", _LOAD_HEAD]
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
    minutes = [_load_row(f"minute {number}", figures) for number, figures in enumerate(done.minutes, 1)]
    return "\n".join([_asked_about(done), "", _LOAD_HEAD, *minutes, _load_row("whole", done.whole)])


_LOAD_HEAD = (
    f"{'':12} {'rate':>7} {'answered':>9} {'p50 ms':>9} {'p95 ms':>9} {'p99 ms':>9} {'max ms':>9} {'errors':>7}"
    "  CPU ms each, what ran, what was wrong"
)
_STAGE_HEAD = (
    f"{'':12} {'bare p50':>9} {'p95 ms':>9} {'search p50':>11} {'p95 ms':>9} {'ratio p50':>10} {'p95':>6}"
)


def _asked_about(bench: LoadComparison | Sustained) -> str:
    kept = "their vectors are remembered" if bench.cached else "each is embedded each time"
    return f"strategy {bench.strategy}, {bench.queries:,} different queries in turn, {kept}"


def _load_row(name: str, step: LoadFigures) -> str:
    figures = f"{step.p50_ms:9.1f} {step.p95_ms:9.1f} {step.p99_ms:9.1f} {step.max_ms:9.1f}"
    errors = sum(step.errors.values())
    notes = [
        " ".join(f"{who} {spent:.2f}" for who, spent in step.cpu_ms.items()),
        " ".join(f"{strategy}: {count}" for strategy, count in step.strategies.items()),
        "more than it carries" if step.saturated else "",
        ", ".join(f"{fault}: {count}" for fault, count in step.errors.items()),
    ]
    noted = "  ".join(filter(None, notes))
    return f"{name:12} {step.offered:7.1f} {step.achieved:9.1f} {figures} {errors:7}  {noted}".rstrip()


def _stages_at(compared: LoadComparison) -> Sequence[str]:
    """At the highest rate that both carried, or else at the lowest."""
    ours = {step.offered: step for step in compared.ours.steps}
    both = [(ours[step.offered], step) for step in compared.bare.steps if step.offered in ours]
    carried = [pair for pair in both if not (pair[0].saturated or pair[1].saturated)] or both[:1]
    if not carried:
        return ()
    search, bare = carried[-1]
    return [f"stages at {search.offered:g} a second", *_stage_rows(bare.stages, search.stages)]


def _stage_rows(bare: Sequence[Latency], ours: Sequence[Latency]) -> list[str]:
    counterparts: Mapping[str, Latency] = {one.name: one for one in bare}
    return [_STAGE_HEAD, *(_pair(one.name, counterparts.get(one.name), one) for one in ours)]


def _pair(name: str, bare: Latency | None, ours: Latency) -> str:
    if bare is None:
        return f"{name:12} {'':9} {'':9} {ours.p50_ms:11.2f} {ours.p95_ms:9.2f}"
    ratios = f"{_ratio(ours.p50_ms, bare.p50_ms):>10} {_ratio(ours.p95_ms, bare.p95_ms):>6}"
    return f"{name:12} {bare.p50_ms:9.2f} {bare.p95_ms:9.2f} {ours.p50_ms:11.2f} {ours.p95_ms:9.2f} {ratios}"


def _ratio(ours: float, bare: float) -> str:
    return f"{ours / bare:.2f}" if bare else ""


def _throughput(name: str, curve: LoadCurve) -> str:
    at_least = "" if curve.is_complete else " or more: no rate was too much for it"
    return f"{name:12} {curve.throughput:9.1f} answered a second at most{at_least}; carried {curve.carried:g}"
