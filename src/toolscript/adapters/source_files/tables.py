"""A table as lines of text, one for each row."""

from collections.abc import Sequence


def table_text(rows: Sequence[Sequence[str]], headed: bool) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    if headed and rows:
        lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)
