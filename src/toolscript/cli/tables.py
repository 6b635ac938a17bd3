"""Plain tables, the same on a terminal and in a pipe. What servers say is shown, never obeyed by the terminal."""

import unicodedata
from collections.abc import Sequence

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, colour: bool) -> str:
    """The last column is as wide as it likes."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(width(cell) for cell in column) for column in zip(head, *shown, strict=True)]
    lines = [_line(row, widths) for row in [list(head), *shown]]
    if colour:
        lines[0] = f"{BOLD}{lines[0]}{PLAIN}"
    return "\n".join(lines)


def printable(text: str) -> str:
    """One line without what moves a cursor, changes a colour or turns the direction of writing."""
    return " ".join(harmless(text).split())


def harmless(text: str) -> str:
    """The same lines, each as it is but for that."""
    return "".join(char if char == "\n" or is_harmless(char) else " " for char in text)


def is_harmless(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def width(text: str) -> int:
    """Columns of a terminal: two for a wide letter, none for a mark on the letter before it."""
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [cell + " " * (room - width(cell)) for cell, room in zip(row, widths, strict=True)]
    return "  ".join([*cells[:-1], row[-1]]).rstrip()
