"""The plot of the quality page: nDCG@10 of engines, baselines and peers on every dataset, as SVG."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from toolscript.eval.dataset import EvalReport, Measure, SystemReport
from toolscript.eval.page import BASELINES, ENGINES, NDCG, QualityRow, measured, one_line, peer_names, rows_of

WIDTH, MARGIN = 900, 20
SMALL_LETTER = 6.8

# Selector, property, and its colours on a light and on a dark page.
Paint = tuple[str, str, str, str]

PAGE_PAINT: tuple[Paint, ...] = (
    (".back", "fill", "#ffffff", "#0d1117"),
    (".band", "fill", "#f3f5f8", "#161b22"),
    (".grid", "stroke", "#d1d9e0", "#30363d"),
    ("text", "fill", "#1f2328", "#f0f6fc"),
    (".quiet", "fill", "#59636e", "#9198a1"),
)
LETTERS = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,'DejaVu Sans',sans-serif}"
    ".small{font-size:12px}.head{font-size:16px;font-weight:600}.figure{font-variant-numeric:tabular-nums}"
)

HEAD, FOOT = 96, 56
LANE, ROW_GAP = 19, 16
LETTER = 7.6
MIN_NAME, MAX_NAME, FIGURES = 90, 300, 150
LEGEND, LEGEND_LINE = 58, 18
BASELINE, PEER = "baseline", "peer"
FOOTNOTE = "nDCG@10, higher is better. At the right: the engines, and in grey the best baseline and the best peer."

# Drawn around the origin; engines are filled, baselines are lines.
SHAPES: Mapping[str, str] = {
    "gateway": "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0z",
    "service": "M-5.2 -5.2h10.4v10.4h-10.4z",
    "BM25": "M0 -4.6L4.8 3.8H-4.8z",
    "dense": "M-3.7 -3.7h7.4v7.4h-7.4z",
    "RRF": "M-3.7 -3.7L3.7 3.7M3.7 -3.7L-3.7 3.7",
    "z-score": "M0 -5.2L5.2 0L0 5.2L-5.2 0z",
    "native-bm25": "M0 4.6L4.8 -3.8H-4.8z",
    "native-regex": "M-4.6 0H4.6M0 -4.6V4.6",
}
# Of the peers in turn: their names come from reports.
PEER_SHAPES = ("M0 -5.2L5.2 0L0 5.2L-5.2 0z", "M0 -4.6L4.8 3.8H-4.8z", "M-3.7 -3.7h7.4v7.4h-7.4z")

# Colours on a light and on a dark page.
PAINT = (
    *PAGE_PAINT,
    (".gateway", "fill", "#0757ba", "#58a6ff"),
    ("line.gateway", "stroke", "#0757ba", "#58a6ff"),
    (".service", "fill", "#b83d00", "#f0883e"),
    ("line.service", "stroke", "#b83d00", "#f0883e"),
    ("path.baseline", "stroke", "#59636e", "#9198a1"),
    ("path.peer", "stroke", "#6639ba", "#bc8cff"),
)
FIXED = (
    f"{LETTERS}path.baseline,path.peer{{fill:none;stroke-width:1.6}}.interval{{stroke-width:7;stroke-opacity:.42}}"
)
TITLE = "nDCG@10 on every set"


def draw(name: str, title: str, description: str, style: str, height: int, drawn: Iterable[str]) -> str:
    """Return a self-contained SVG; the description is for screen readers."""
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="{name}-title {name}-desc">',
        f'<title id="{name}-title">{escape(title)}</title>',
        f'<desc id="{name}-desc">{escape(description)}</desc>',
        f"<style>{style}</style>",
        f'<rect class="back" width="{WIDTH}" height="{height}" rx="8"/>',
        text_at(MARGIN, 30, title, "head"),
        *drawn,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def text_at(x: float, y: float, text: str, kind: str = "", *, anchor: str = "start", title: str = "") -> str:
    inner = f"<title>{escape(title)}</title>" if title else ""
    styled = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{styled}>{inner}{escape(text)}</text>'


def style_of(fixed: str, paint: Iterable[Paint]) -> str:
    paint = tuple(paint)
    light = "".join(f"{selector}{{{name}:{colour}}}" for selector, name, colour, _ in paint)
    dark = "".join(f"{selector}{{{name}:{colour}}}" for selector, name, _, colour in paint)
    return f"{fixed}{light}@media (prefers-color-scheme:dark){{{dark}}}"


@dataclass(frozen=True)
class Scale:
    """A scale from `low` to `high` twentieths, between two x positions."""

    low: int
    high: int
    left: float
    right: float

    def x(self, value: float) -> float:
        return self.left + (self.right - self.left) * (value * 20 - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> list[float]:
        step = 1 if self.high - self.low <= 6 else 2
        return [index / 20 for index in range(self.low, self.high + 1, step)]


@dataclass(frozen=True)
class Picture:
    """The rows, their scale, and the systems in them: an engine has a lane, baselines and peers share one each."""

    rows: Sequence[QualityRow]
    scale: Scale
    engines: Sequence[str]
    baselines: Sequence[str]
    peers: Sequence[str]

    @property
    def row_height(self) -> int:
        return LANE * max(1, len(self.engines) + bool(self.baselines) + bool(self.peers)) + ROW_GAP

    @property
    def head(self) -> int:
        """Return where the rows begin, below the legend."""
        return HEAD + LEGEND_LINE * max(line for *_, line in _legend_places(self))

    @property
    def bottom(self) -> int:
        return self.head + self.row_height * len(self.rows)

    def lane(self, row: int, lane: int) -> float:
        return self.head + self.row_height * row + (ROW_GAP + LANE) / 2 + LANE * lane

    def mark(self, name: str, x: float, y: float, title: str = "") -> str:
        is_peer = name in self.peers
        kind = PEER if is_peer else name if name in ENGINES else BASELINE
        shape = PEER_SHAPES[self.peers.index(name) % len(PEER_SHAPES)] if is_peer else SHAPES[name]
        inner = f"><title>{escape(title)}</title></path>" if title else "/>"
        return f'<path class="{kind}" transform="translate({x:.1f} {y:.1f})" d="{shape}"{inner}'


def quality_plot(reports: Sequence[EvalReport]) -> str:
    """Return the plot as a self-contained SVG."""
    picture = _picture(rows_of(reports))
    height = picture.bottom + FOOT
    drawn = [
        *_legend(picture),
        *_grid(picture),
        *(line for index, row in enumerate(picture.rows) for line in _row(picture, index, row)),
    ]
    return draw("quality", TITLE, _description(picture), style_of(FIXED, PAINT), height, drawn)


def _picture(rows: Sequence[QualityRow]) -> Picture:
    longest = max((_length(row.name) for row in rows), default=0)
    left = MARGIN + min(MAX_NAME, max(MIN_NAME, longest * LETTER)) + 16
    measures = [(name, measure) for row in rows for name, measure in _drawn(row)]
    low, high = _limits([value for name, measure in measures for value in _places(name, measure)])
    names = {name for name, _ in measures}
    return Picture(
        rows,
        Scale(low, high, left, WIDTH - MARGIN - FIGURES),
        [name for name in ENGINES if name in names],
        [name for name in BASELINES if name in names],
        [name for name in peer_names(rows) if name in names],
    )


def _places(name: str, measure: Measure) -> Sequence[float]:
    """Return the drawn values: only engines have intervals."""
    return (measure.low, measure.value, measure.high) if name in ENGINES else (measure.value,)


def _limits(values: Sequence[float]) -> tuple[int, int]:
    """Return whole tenths around all values, in twentieths."""
    if not values:
        return 0, 20
    low, high = math.floor(min(values) * 10 + 1e-9), math.ceil(max(values) * 10 - 1e-9)
    return (2 * low, 2 * high) if high > low else (2 * low - 2, 2 * high) if low else (0, 2)


def _drawn(row: QualityRow) -> Iterable[tuple[str, Measure]]:
    for name, system in {**row.peers, **row.engines, **row.baselines}.items():
        if measure := _drawable(system):
            yield name, measure


def _drawable(system: SystemReport | None) -> Measure | None:
    """Return the nDCG of a system; None outside 0 to 1, which a file can contain."""
    measure = None if system is None else measured(system.measures, NDCG)
    return (
        measure
        if measure and all(0 <= value <= 1 for value in (measure.low, measure.value, measure.high))
        else None
    )


INTERVAL = "95 % interval"


def _legend_places(picture: Picture) -> list[tuple[str, float, int]]:
    """Return each name with its place and its line; a name that does not fit begins the next line."""
    places = []
    x, line = float(MARGIN), 0
    for name in (*picture.engines, *picture.baselines, *picture.peers, INTERVAL):
        width = (32 if name == INTERVAL else 18) + len(_legend_name(name)) * SMALL_LETTER + 18
        if x + width > WIDTH and x > MARGIN:
            x, line = float(MARGIN), line + 1
        places.append((name, x, line))
        x += width
    return places


def _legend_name(name: str) -> str:
    return shortened(one_line(name), 40)


def _legend(picture: Picture) -> Iterable[str]:
    for name, x, line in _legend_places(picture):
        y = LEGEND + LEGEND_LINE * line
        if name != INTERVAL:
            yield picture.mark(name, x + 6, y - 4)
            yield text_at(x + 18, y, _legend_name(name), "small")
        elif picture.engines:
            place = f'x1="{x:.1f}" y1="{y - 4}" x2="{x + 26:.1f}" y2="{y - 4}"'
            yield f'<line class="interval {picture.engines[0]}" {place}/>'
            yield text_at(x + 32, y, name, "small")


def _grid(picture: Picture) -> Iterable[str]:
    for index in range(0, len(picture.rows), 2):
        top = picture.head + picture.row_height * index
        yield f'<rect class="band" y="{top}" width="{WIDTH}" height="{picture.row_height}"/>'
    for value in picture.scale.ticks:
        x = picture.scale.x(value)
        yield f'<line class="grid" x1="{x:.1f}" y1="{picture.head - 6}" x2="{x:.1f}" y2="{picture.bottom + 6}"/>'
        yield from (
            text_at(x, y, f"{value:g}", "small quiet tick", anchor="middle")
            for y in (picture.head - 11, picture.bottom + 21)
        )
    middle = (picture.scale.left + picture.scale.right) / 2
    yield text_at(middle, picture.bottom + 43, FOOTNOTE, "small quiet", anchor="middle")


def _row(picture: Picture, position: int, row: QualityRow) -> Iterable[str]:
    middle = picture.head + picture.row_height * (position + 0.5) + 4.5
    maximum = round((picture.scale.left - MARGIN - 16) / LETTER)
    yield text_at(picture.scale.left - 16, middle, shortened(row.name, maximum), anchor="end", title=row.name)
    for lane, name in enumerate(picture.engines):
        if measure := _drawable(row.engines.get(name)):
            yield from _engine(picture, row, name, measure, picture.lane(position, lane))
    y = picture.lane(position, len(picture.engines))
    yield from _plain_marks(picture, row, row.baselines, y)
    yield from _plain_marks(picture, row, row.peers, y + LANE * bool(picture.baselines))


def _plain_marks(
    picture: Picture, row: QualityRow, systems: Mapping[str, SystemReport], y: float
) -> Iterable[str]:
    """Draw the baselines or the peers in their lane, and name the best of them at the right."""
    drawable = {name: measure for name, system in systems.items() if (measure := _drawable(system))}
    for name, measure in drawable.items():
        yield picture.mark(name, picture.scale.x(measure.value), y, _tooltip(row, name, measure))
    if drawable:
        best = max(drawable, key=lambda name: drawable[name].value)
        label = f"{shortened(one_line(best), 16)} {drawable[best].value:.3f}"
        yield text_at(WIDTH - MARGIN, y + 4.5, label, "small quiet figure", anchor="end")


def _engine(picture: Picture, row: QualityRow, name: str, measure: Measure, y: float) -> Iterable[str]:
    low, x, high = (picture.scale.x(value) for value in (measure.low, measure.value, measure.high))
    yield f'<line class="interval {name}" x1="{low:.1f}" y1="{y:.1f}" x2="{high:.1f}" y2="{y:.1f}"/>'
    yield picture.mark(name, x, y, _tooltip(row, name, measure))
    yield text_at(WIDTH - MARGIN, y + 4.5, f"{measure.value:.3f}", f"small figure {name}", anchor="end")


def _tooltip(row: QualityRow, name: str, measure: Measure) -> str:
    return f"{row.name}, {one_line(name)}: {measure.value:.3f} ({measure.low:.3f} to {measure.high:.3f})"


def _description(picture: Picture) -> str:
    """Describe the plot for screen readers."""
    low, high = picture.scale.ticks[0], picture.scale.ticks[-1]
    rows = [
        f"{row.name}: " + ", ".join(f"{one_line(name)} {measure.value:.3f}" for name, measure in _drawn(row))
        for row in picture.rows
    ]
    return "; ".join([f"A scale from {low:g} to {high:g}, a row for each set", *rows]) + "."


def shortened(name: str, maximum: int) -> str:
    if _length(name) <= maximum:
        return name
    kept = name
    while _length(kept) > maximum - 1:
        kept = kept[:-1]
    return f"{kept.rstrip()}…"


def _length(text: str) -> int:
    """Return the width in Latin letters; wide scripts count double."""
    return sum(1 if ord(char) < 0x1100 else 2 for char in text)
