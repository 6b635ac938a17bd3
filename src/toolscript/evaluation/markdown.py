"""Text and tables of Markdown. Whatever a name holds, it is shown and does nothing."""

import re
from collections.abc import Sequence

from toolscript.evaluation.quality_rows import one_line

UNKNOWN = "–"
_SPECIAL = re.compile(r"([\\`*\[\]|~#!$])")
# An underscore within a word is no markup, and most names of sets have one.
_UNDERSCORE = re.compile(r"(?<!\w)_|_(?!\w)|(?<=_)_|_(?=_)")
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def plain(text: str) -> str:
    """The text itself, in a line, a heading or a cell."""
    escaped = _UNDERSCORE.sub(r"\\_", _SPECIAL.sub(r"\\\1", one_line(text)))
    return "".join(_HTML.get(char, char) for char in escaped)


def code(text: str) -> str:
    """Between more backticks than stand together in it."""
    shown = one_line(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    space = " " if "`" in shown else ""
    return f"{fence}{space}{shown}{space}{fence}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> str:
    """Cells are Markdown already. The first `words` columns hold words, the others figures."""
    marks = ["---" if at < words else "---:" for at in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, marks, *rows))
