"""What our pictures share: their size, letters and colours, on a light page and on a dark one."""

from collections.abc import Iterable
from html import escape

WIDTH, MARGIN = 900, 20
SMALL_LETTER = 6.8

# Who, what of it, and its colour on a light page and on a dark one.
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


def picture(name: str, title: str, description: str, style: str, height: int, drawn: Iterable[str]) -> str:
    """SVG that needs nothing from elsewhere; the description is for whoever cannot see it."""
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
    light = "".join(f"{who}{{{what}:{colour}}}" for who, what, colour, _ in paint)
    dark = "".join(f"{who}{{{what}:{colour}}}" for who, what, _, colour in paint)
    return f"{fixed}{light}@media (prefers-color-scheme:dark){{{dark}}}"
