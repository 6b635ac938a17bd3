"""A flame graph as SVG, without scripts: each function under its caller, as wide as its CPU time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from benchmarks import svg
from benchmarks.sampler import Stack
from benchmarks.svg import MARGIN, SMALL_LETTER, WIDTH, shortened, text_at

TOP, ROW, FOOT = 92, 17, 40
LEFT, RIGHT = MARGIN, WIDTH - MARGIN
# Narrower boxes than these, in pixels, are not drawn, or have no name.
MIN_BOX, MIN_NAME = 1.2, 34
# Colours of the stages on a light and on a dark page, in turn.
COLOURS = (
    ("#b6d7ff", "#1f4b80"),
    ("#ffd1a8", "#7a4212"),
    ("#bfe8c4", "#1f5c2a"),
    ("#e3ccff", "#54308a"),
    ("#ffc9cf", "#7d2b36"),
    ("#f5e6a3", "#665611"),
    ("#bdeaea", "#17595b"),
    ("#dfe3e8", "#3b434c"),
    ("#f3c4e4", "#6b2a58"),
    ("#d5e3a0", "#4c5a17"),
    ("#c9c3f7", "#3d3685"),
)
FIXED = f"{svg.LETTERS}.small{{font-size:11px}}rect.box{{stroke-width:.6}}"


@dataclass
class Box:
    """A function in the place of a stack, with the time of all stacks through it."""

    name: str
    spent: float = 0.0
    callees: "dict[str, Box]" = field(default_factory=dict)

    def depth(self, minimum: float) -> int:
        """Return the rows below this box that have a box of at least this time."""
        drawn = [callee.depth(minimum) for callee in self.callees.values() if callee.spent >= minimum]
        return 1 + max(drawn) if drawn else 0


def folded(stacks: Mapping[Stack, float]) -> Box:
    """Merge stacks that begin alike."""
    whole = Box("all")
    for stack, spent in stacks.items():
        whole.spent += spent
        box = whole
        for name in stack:
            box = box.callees.setdefault(name, Box(name))
            box.spent += spent
    return whole


def flame_graph(stacks: Mapping[Stack, float], title: str, requests: int) -> str:
    """Draw CPU milliseconds per request. A stack begins with its stage; the largest stage is at the left."""
    whole = folded(stacks)
    stages = _by_size(whole)
    drawn = [*_legend(stages, requests), *_boxes(whole, requests)]
    height = TOP + ROW * whole.depth(MIN_BOX * whole.spent / (RIGHT - LEFT)) + FOOT
    description = "; ".join(f"{box.name} {box.spent / requests:.2f} ms" for box in stages) + "."
    return svg.draw("flame", title, description, svg.style_of(FIXED, _paint(len(stages))), height, drawn)


def _by_size(box: Box) -> list[Box]:
    return sorted(box.callees.values(), key=lambda callee: (-callee.spent, callee.name))


def _paint(stages: int) -> Iterator[svg.Paint]:
    yield from svg.PAGE_PAINT
    yield ("rect.box", "stroke", "#ffffff", "#0d1117")
    for place in range(stages):
        yield (f"rect.s{place}", "fill", *COLOURS[place % len(COLOURS)])


def _legend(stages: Sequence[Box], requests: int) -> Iterator[str]:
    x, y = float(MARGIN), 52
    for place, box in enumerate(stages):
        label = f"{box.name} {box.spent / requests:.2f}"
        if x + 18 + len(label) * SMALL_LETTER > WIDTH - MARGIN:
            x, y = float(MARGIN), y + 18
        yield f'<rect class="s{place}" x="{x:.1f}" y="{y - 10}" width="12" height="12"/>'
        yield text_at(x + 17, y, label, "small")
        x += 17 + len(label) * SMALL_LETTER + 12


def _boxes(whole: Box, requests: int) -> Iterator[str]:
    scale = (RIGHT - LEFT) / whole.spent if whole.spent else 0.0
    outermost = enumerate(_side_by_side(whole, float(LEFT), scale))
    waiting = [(box, x, 0, f"s{place}") for place, (box, x) in outermost]
    while waiting:
        box, x, row, kind = waiting.pop()
        width = box.spent * scale
        if width < MIN_BOX:
            continue
        yield _drawn(box, x, TOP + ROW * row, width, kind, box.spent / requests)
        waiting += [(callee, left, row + 1, kind) for callee, left in _side_by_side(box, x, scale)]


def _side_by_side(box: Box, left: float, scale: float) -> Iterator[tuple[Box, float]]:
    for callee in _by_size(box):
        yield callee, left
        left += callee.spent * scale


def _drawn(box: Box, x: float, y: float, width: float, kind: str, milliseconds: float) -> str:
    tooltip = f"<title>{escape(box.name)}: {milliseconds:.3f} ms</title>"
    place = f'x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{ROW - 1}"'
    rectangle = f'<rect class="box {kind}" {place}>{tooltip}</rect>'
    if width < MIN_NAME:
        return rectangle
    path, _, function = box.name.rpartition(":")
    label = f"{function} {path.rpartition('/')[2]}".strip()
    name = shortened(label, int((width - 6) / SMALL_LETTER))
    return rectangle + text_at(x + 3, y + 12, name, "small", title=f"{box.name}: {milliseconds:.3f} ms")
