"""The plots of the judge, as SVG: nDCG@10 of every system on every set, and the good-match verdict."""

import io
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolscript.core.errors import InvalidRequest
from toolscript_eval.dataset import EvalReport, Measure, SystemReport, Verdict
from toolscript_eval.page import ENGINES, NDCG, QualityRow, measured, one_line, rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 9.0
MARKERS = "^svDPX*"
FOOTNOTE = "nDCG@10, higher is better; lines are 95 % intervals"
ACROSS, DOWN = "false refusals: queries with an answer, refused", "false answers: queries nothing fits, answered"
# The widest part of the scale is the least interesting one: nobody wants every second answer refused.
LIMITS = (0.1, 0.2, 0.3, 0.5, 1.0)
FEW_FALSE_ANSWERS = 0.1


@dataclass(frozen=True)
class Curve:
    """One kind of unanswerable queries as one engine judged it; `used` is the threshold in use."""

    name: str
    verdict: Verdict
    points: tuple[tuple[float, float], ...]
    used: tuple[float, float] | None


@dataclass(frozen=True)
class Panel:
    title: str
    curves: Sequence[Curve]


def quality_plot(reports: Sequence[EvalReport]) -> str:
    """Return nDCG@10 of engines, baselines and peers on every set, as SVG."""
    rows = rows_of(reports)
    figure = _figure(1.8 + 0.55 * len(rows))
    axes = figure.subplots()
    names = list(dict.fromkeys(name for row in rows for name in _measures(row)))
    for position, name in enumerate(names):
        _draw_system(axes, name, position, len(names), rows)
    axes.set_yticks(range(len(rows)), [_label(row.name) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x", alpha=0.4)
    axes.set_xlabel(FOOTNOTE)
    if names:
        figure.legend(loc="outside lower center", ncols=6, frameon=False)
    described = [
        f"{row.name}: " + ", ".join(f"{name} {measure.value:.3f}" for name, measure in _measures(row).items())
        for row in rows
    ]
    return _svg(figure, "nDCG@10 on every set", described)


def _draw_system(axes: "Axes", name: str, position: int, count: int, rows: Sequence[QualityRow]) -> None:
    """Draw one system as a row of marks, beside those of the others; only engines have intervals."""
    drawn = [(place, measure) for place, row in enumerate(rows) if (measure := _measures(row).get(name))]
    across = [measure.value for _, measure in drawn]
    down = [place + 0.6 * ((position + 0.5) / count - 0.5) for place, _ in drawn]
    is_engine = name in ENGINES
    (line,) = axes.plot(
        across,
        down,
        "o" if is_engine else MARKERS[position % len(MARKERS)],
        fillstyle="full" if is_engine else "none",
        markersize=7 if is_engine else 5,
        label=_label(name),
        gid=f"system-{position}",
    )
    if is_engine:
        lows, highs = [measure.low for _, measure in drawn], [measure.high for _, measure in drawn]
        axes.hlines(down, lows, highs, color=line.get_color(), linewidth=4, alpha=0.4)


def _measures(row: QualityRow) -> Mapping[str, Measure]:
    systems: Mapping[str, SystemReport] = {**row.engines, **row.baselines, **row.peers}
    return {name: measure for name, system in systems.items() if (measure := _drawable(system))}


def _drawable(system: SystemReport) -> Measure | None:
    """Return the nDCG of a system; None outside 0 to 1, which a file can contain."""
    measure = measured(system.measures, NDCG)
    if measure is None or not 0 <= measure.low <= measure.value <= measure.high <= 1:
        return None
    return measure


def verdict_plot(reports: Sequence[EvalReport]) -> str:
    """Return false answers over false refusals as SVG, with a panel for each set with unanswerable queries."""
    panels = _panels(reports)
    if not panels:
        raise InvalidRequest(
            "there is no trade-off to plot: every query has an answer",
            hint="add queries that nothing fits, with empty gold_groups",
        )
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    figure = _figure(1 + 3.2 * lines)
    grid = figure.subplots(lines, columns, squeeze=False).flatten()
    limit = _limit([curve for panel in panels for curve in panel.curves])
    for axes, panel in zip(grid, panels, strict=False):
        _draw_panel(axes, panel, limit)
    for axes in grid[len(panels) :]:
        axes.remove()
    described = [f"{panel.title}, {_described(curve)}" for panel in panels for curve in panel.curves]
    return _svg(figure, "The good-match verdict, as its threshold moves. Dots: the threshold in use", described)


def has_verdicts(reports: Sequence[EvalReport]) -> bool:
    return bool(_panels(reports))


def _draw_panel(axes: "Axes", panel: Panel, limit: float) -> None:
    for number, curve in enumerate(panel.curves):
        (line,) = axes.plot(*zip(*curve.points, strict=True), label=_label(curve.name), gid=f"curve-{number}")
        if curve.used:
            axes.plot(*curve.used, "o", color=line.get_color(), gid=f"used-{number}")
    axes.set(title=_label(panel.title), xlabel=ACROSS, ylabel=DOWN, xlim=(0, limit), ylim=(0, 1))
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.grid(alpha=0.4)
    axes.legend(frameon=False)


def _panels(reports: Sequence[EvalReport]) -> list[Panel]:
    panels = []
    for row in rows_of(reports):
        of_engine = {name: row.reports[name].verdicts for name in row.engines}
        several = sum(map(bool, of_engine.values())) > 1
        curves = [
            _curve(f"{name}, {verdict.kind}" if several else verdict.kind, verdict)
            for name, verdicts in of_engine.items()
            for verdict in verdicts
        ]
        drawable = [curve for curve in curves if curve.points]
        panels += [Panel(row.name, drawable)] if drawable else []
    return panels


def _curve(name: str, verdict: Verdict) -> Curve:
    """Return what can be drawn of a verdict: a file can contain shares outside 0 to 1."""
    pairs = [(point.false_refusals, point.false_answers) for point in verdict.curve]
    points = tuple(pair for pair in pairs if all(0 <= share <= 1 for share in pair))
    both = [verdict.measures.get(measure) for measure in ("false_refusals", "false_answers")]
    used = tuple(measure.value for measure in both if measure is not None and 0 <= measure.value <= 1)
    return Curve(f"{one_line(name)} ({verdict.queries:,})", verdict, points, used if len(used) == 2 else None)


def _limit(curves: Sequence[Curve]) -> float:
    """Return the smallest scale on which every curve comes down to few false answers, and every dot is."""
    needed = [
        min((across for across, down in curve.points if down <= FEW_FALSE_ANSWERS), default=1.0)
        for curve in curves
    ] + [curve.used[0] for curve in curves if curve.used]
    return next(limit for limit in LIMITS if limit >= min(max(needed), 1.0))


def _described(curve: Curve) -> str:
    used = f", in use {curve.used[0]:.3f} and {curve.used[1]:.3f}" if curve.used else ""
    auroc = measured(curve.verdict.measures, "nothing_fits_auroc")
    return f"{curve.name}{used}" + (f", AUROC {auroc.value:.3f}" if auroc else "")


def _figure(height: float) -> "Figure":
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height), layout="constrained")


def _label(name: str) -> str:
    """Return a name for a plot: matplotlib reads `$` as mathematics, and hides labels that begin with `_`."""
    line = one_line(name)
    short = line if len(line) <= 40 else f"{line[:39].rstrip()}…"
    return short.replace("$", r"\$") if not short.startswith("_") else f" {short}"


def _svg(figure: "Figure", title: str, described: Iterable[str]) -> str:
    """Return a self-contained SVG that is the same each time; the description is for screen readers."""
    from matplotlib import rc_context

    figure.suptitle(title)
    text = io.StringIO()
    described_lines = "; ".join(one_line(line) for line in described)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "toolscript-eval"}), warnings.catch_warnings():
        # A letter that matplotlib's own font lacks is drawn by that of the viewer.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        figure.savefig(text, format="svg", metadata={"Date": None, "Title": title, "Description": described_lines})
    return text.getvalue()
