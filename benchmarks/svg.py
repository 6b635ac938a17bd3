"""Parts of the SVG that benchmarks draw: a page with a title, texts, and colours for light and dark pages."""

from collections.abc import Iterable
from html import escape

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
