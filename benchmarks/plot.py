"""Plot of latency at rising load: search and baseline, up to saturation."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks import svg
from benchmarks.measurements import LoadComparison, LoadCurve, LoadStats
from benchmarks.svg import MARGIN, SMALL_LETTER, WIDTH, text_at

TOP, BOTTOM, HEIGHT = 84, 400, 470
LEFT, RIGHT = MARGIN + 56, WIDTH - MARGIN - 20
DOT = 4.2
NAMES = {"ours": "search over HTTP", "bare": "bare pipeline"}
FOOTNOTE = "Requests sent per second (open loop). Hollow: saturated."
PAINT = (
    *svg.PAGE_PAINT,
    (".ours", "stroke", "#0757ba", "#58a6ff"),
    (".bare", "stroke", "#59636e", "#9198a1"),
    ("circle.ours", "fill", "#0757ba", "#58a6ff"),
    ("circle.bare", "fill", "#59636e", "#9198a1"),
    ("circle.hollow", "fill", "#ffffff", "#0d1117"),
)
FIXED = (
    f"{svg.LETTERS}path{{fill:none;stroke-width:2.2}}path.p50{{stroke-width:1.6;stroke-dasharray:5 4}}"
    "circle{stroke-width:1.8}"
)


@dataclass(frozen=True)
class Scales:
    """Linear scale for rates, logarithmic scale for milliseconds."""

    max_rate: float
    low: int
    high: int

    def x(self, rate: float) -> float:
        return LEFT + (RIGHT - LEFT) * rate / self.max_rate

    def y(self, milliseconds: float) -> float:
        share = (math.log10(max(milliseconds, 10**self.low)) - self.low) / (self.high - self.low)
        return BOTTOM - (BOTTOM - TOP) * share

    @property
    def rates(self) -> list[float]:
        step = next(size for size in _round_steps() if self.max_rate / size <= 12)
        return [step * number for number in range(int(self.max_rate / step) + 1)]

    @property
    def milliseconds(self) -> list[float]:
        every = [part * 10**power for power in range(self.low, self.high) for part in (1, 2, 5)]
        return [float(value) for value in (*every, 10**self.high)]


def latency_plot(compared: LoadComparison) -> str:
    curves = {"ours": compared.ours, "bare": compared.bare}
    scales = _scales([step for curve in curves.values() for step in curve.steps])
    title = f"Latency at rising load, strategy {compared.strategy}"
    drawn = [
        *_legend(),
        *_grid(scales),
        *(line for name, curve in curves.items() for line in _curve(scales, name, curve)),
    ]
    return svg.draw("load", title, _description(curves), svg.style_of(FIXED, PAINT), HEIGHT, drawn)


def _scales(steps: Sequence[LoadStats]) -> Scales:
    values = [value for step in steps for value in (step.p50_ms, step.p95_ms) if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Scales(max((step.offered for step in steps), default=1.0) * 1.03, low, max(high, low + 1))


def _round_steps() -> Iterable[float]:
    return (part * 10.0**power for power in range(-2, 6) for part in (1, 2, 5))


def _legend() -> Iterable[str]:
    x = float(MARGIN)
    for name, title in NAMES.items():
        for line in ("p95", "p50"):
            yield f'<path class="{name} {line}" d="M{x:.1f} 54h30"/>'
            label = f"{title}, {line}"
            yield text_at(x + 37, 58, label, "small")
            x += 37 + len(label) * SMALL_LETTER + 14


def _grid(scales: Scales) -> Iterable[str]:
    for value in scales.milliseconds:
        y = scales.y(value)
        yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{RIGHT}" y2="{y:.1f}"/>'
        yield text_at(LEFT - 8, y + 4, f"{value:g}", "small quiet figure tick", anchor="end")
    for rate in scales.rates:
        yield text_at(scales.x(rate), BOTTOM + 20, f"{rate:g}", "small quiet figure tick", anchor="middle")
    yield text_at(LEFT - 8, TOP - 10, "ms", "small quiet", anchor="end")
    yield text_at((LEFT + RIGHT) / 2, BOTTOM + 44, FOOTNOTE, "small quiet", anchor="middle")


def _curve(scales: Scales, name: str, curve: LoadCurve) -> Iterable[str]:
    for line in ("p50", "p95"):
        points = [(scales.x(step.offered), scales.y(_value(step, line))) for step in curve.steps]
        line_path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        if line_path:
            yield f'<path class="{name} {line}" d="M{line_path}"/>'
    for step in curve.steps:
        kind = f"{name} hollow" if step.saturated else name
        position = f'cx="{scales.x(step.offered):.1f}" cy="{scales.y(step.p95_ms):.1f}" r="{DOT}"'
        yield f'<circle class="{kind}" {position}><title>{_caption(name, step)}</title></circle>'


def _value(step: LoadStats, line: str) -> float:
    return step.p95_ms if line == "p95" else step.p50_ms


def _caption(name: str, step: LoadStats) -> str:
    times = f"p50 {step.p50_ms:.1f} ms, p95 {step.p95_ms:.1f} ms"
    return f"{NAMES[name]} at {step.offered:g} a second: {step.achieved:.1f} answered, {times}"


def _description(curves: dict[str, LoadCurve]) -> str:
    """Return a text description of the plot, for screen readers."""
    return "; ".join(_caption(name, step) for name, curve in curves.items() for step in curve.steps) + "."
