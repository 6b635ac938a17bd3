"""The plot of the good-match verdict: false answers against false refusals as its threshold moves, as SVG."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from toolscript.core.errors import InvalidRequest
from toolscript.eval.dataset import EvalReport, TradeOff, Verdict
from toolscript.eval.page import measured, one_line, rows_of
from toolscript.eval.plot import (
    LETTER,
    LETTERS,
    MARGIN,
    PAGE_PAINT,
    SMALL_LETTER,
    WIDTH,
    draw,
    shortened,
    style_of,
    text_at,
)

TITLE = "The good-match verdict, as its threshold moves"
FOOTNOTE = "Lower and further left is better. Dots: the threshold in use."
ACROSS, DOWN = "false refusals: queries with an answer, refused", "false answers: queries nothing fits, answered"

HEAD, FOOT, PANEL_HEIGHT, PANEL_GAP = 56, 40, 300, 40
PLOT_TOP, PLOT_BOTTOM, PLOT_LEFT = 44, 44, 44
LINE = 17
# The widest part of the scale is the least interesting one: no person wants every second answer refused.
LIMITS = (0.1, 0.2, 0.3, 0.5, 1.0)
FEW_FALSE_ANSWERS = 0.1

# Stroke of each curve of a panel in turn, on a light and on a dark page.
COLOURS = (("#0757ba", "#58a6ff"), ("#b83d00", "#f0883e"), ("#6639ba", "#bc8cff"), ("#1a7f37", "#3fb950"))
PAINT = (
    *PAGE_PAINT,
    *((f".c{index}", "stroke", light, dark) for index, (light, dark) in enumerate(COLOURS)),
    *((f"circle.c{index}", "fill", light, dark) for index, (light, dark) in enumerate(COLOURS)),
)
FIXED = f"{LETTERS}path{{fill:none;stroke-width:2.2;stroke-linejoin:round}}"


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


@dataclass(frozen=True)
class Frame:
    """The axes of a panel: false refusals to the right up to `limit`, false answers upward."""

    left: float
    top: float
    right: float
    bottom: float
    limit: float

    def x(self, false_refusals: float) -> float:
        return self.left + (self.right - self.left) * false_refusals / self.limit

    def y(self, false_answers: float) -> float:
        return self.bottom - (self.bottom - self.top) * false_answers


def verdict_plot(reports: Sequence[EvalReport]) -> str:
    """Return the plot as a self-contained SVG, with a panel for each set that has unanswerable queries."""
    panels = _panels(reports)
    if not panels:
        raise InvalidRequest(
            "there is no trade-off to plot: every query has an answer",
            hint="add queries that nothing fits, with empty gold_groups",
        )
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    height = HEAD + lines * PANEL_HEIGHT + (lines - 1) * PANEL_GAP + FOOT
    limit = _limit([curve for panel in panels for curve in panel.curves])
    drawn = [line for index, panel in enumerate(panels) for line in _panel(panel, _frame(index, columns, limit))]
    foot = text_at(WIDTH / 2, height - 14, FOOTNOTE, "small quiet", anchor="middle")
    return draw("verdict", TITLE, _description(panels), style_of(FIXED, PAINT), height, [*drawn, foot])


def has_verdicts(reports: Sequence[EvalReport]) -> bool:
    return bool(_panels(reports))


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
    points = tuple((point.false_refusals, point.false_answers) for point in verdict.curve if _is_drawable(point))
    both = [verdict.measures.get(measure) for measure in ("false_refusals", "false_answers")]
    used = tuple(measure.value for measure in both if measure is not None and 0 <= measure.value <= 1)
    return Curve(f"{one_line(name)} ({verdict.queries:,})", verdict, points, used if len(used) == 2 else None)


def _is_drawable(point: TradeOff) -> bool:
    """Return whether both shares are between 0 and 1; a file can contain others."""
    return 0 <= point.false_refusals <= 1 and 0 <= point.false_answers <= 1


def _limit(curves: Sequence[Curve]) -> float:
    """Return the smallest scale on which every curve comes down to few false answers, and every dot is."""
    needed = [
        min((across for across, down in curve.points if down <= FEW_FALSE_ANSWERS), default=1.0)
        for curve in curves
    ] + [curve.used[0] for curve in curves if curve.used]
    return next(limit for limit in LIMITS if limit >= min(max(needed), 1.0))


def _frame(index: int, columns: int, limit: float) -> Frame:
    width = (WIDTH - 2 * MARGIN - (columns - 1) * PANEL_GAP) / columns
    left = MARGIN + (index % columns) * (width + PANEL_GAP)
    top = HEAD + (index // columns) * (PANEL_HEIGHT + PANEL_GAP)
    return Frame(left + PLOT_LEFT, top + PLOT_TOP, left + width, top + PANEL_HEIGHT - PLOT_BOTTOM, limit)


def _panel(panel: Panel, frame: Frame) -> Iterable[str]:
    maximum = int((frame.right - frame.left) / LETTER)
    yield text_at(frame.left, frame.top - 24, shortened(panel.title, maximum), title=panel.title)
    yield text_at(frame.left, frame.top - 8, DOWN, "small quiet")
    yield from _grid(frame)
    for index, curve in enumerate(panel.curves):
        yield from _draw_curve(curve, frame, index)
    yield text_at((frame.left + frame.right) / 2, frame.bottom + 35, ACROSS, "small quiet", anchor="middle")


def _grid(frame: Frame) -> Iterable[str]:
    for step in range(6):
        share = step / 5
        x, y = frame.x(share * frame.limit), frame.y(share)
        yield f'<line class="grid" x1="{x:.1f}" y1="{frame.top:.1f}" x2="{x:.1f}" y2="{frame.bottom:.1f}"/>'
        yield f'<line class="grid" x1="{frame.left:.1f}" y1="{y:.1f}" x2="{frame.right:.1f}" y2="{y:.1f}"/>'
        yield text_at(x, frame.bottom + 17, f"{share * frame.limit:.0%}", "small quiet tick", anchor="middle")
        yield text_at(frame.left - 7, y + 4, f"{share:.0%}", "small quiet tick", anchor="end")


def _draw_curve(curve: Curve, frame: Frame, index: int) -> Iterable[str]:
    colour = f"c{index % len(COLOURS)}"
    inside = _inside(curve.points, frame.limit)
    path = "L".join(f"{frame.x(across):.1f} {frame.y(down):.1f}" for across, down in inside)
    yield f'<path class="{colour}" d="M{path}"><title>{escape(curve.name)}</title></path>'
    if curve.used:
        across, down = curve.used
        title = f"{curve.name}, in use: {across:.1%} false refusals, {down:.1%} false answers"
        at = f'cx="{frame.x(across):.1f}" cy="{frame.y(down):.1f}" r="5"'
        yield f'<circle class="{colour}" {at}><title>{escape(title)}</title></circle>'
    y = frame.top + 14 + LINE * index
    name = shortened(curve.name, int((frame.right - frame.left) / SMALL_LETTER) - 6)
    yield text_at(frame.right - 34, y, name, "small", anchor="end")
    yield f'<path class="{colour}" d="M{frame.right - 28:.1f} {y - 4:.1f}h22"/>'


def _inside(points: Sequence[tuple[float, float]], limit: float) -> list[tuple[float, float]]:
    """Return the curve up to the end of the scale, where it is cut between two points."""
    inside = [point for point in points if point[0] <= limit]
    beyond = [point for point in points if point[0] > limit]
    if not inside or not beyond:
        return inside or list(points[:1])
    (left, high), (right, low) = inside[-1], beyond[0]
    return [*inside, (limit, high + (low - high) * (limit - left) / (right - left))]


def _description(panels: Sequence[Panel]) -> str:
    """Describe the plot for screen readers: the thresholds in use, and the AUROC of each curve."""
    parts = []
    for panel in panels:
        for curve in panel.curves:
            used = f", in use {curve.used[0]:.3f} and {curve.used[1]:.3f}" if curve.used else ""
            auroc = measured(curve.verdict.measures, "nothing_fits_auroc")
            parts.append(f"{panel.title}, {curve.name}{used}" + (f", AUROC {auroc.value:.3f}" if auroc else ""))
    return "; ".join(["False answers over false refusals, a panel for each set", *parts]) + "."
