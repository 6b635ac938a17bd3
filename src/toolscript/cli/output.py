"""What a command prints: its result on stdout; progress, questions and everything else on stderr."""

import json
import logging
import sys
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import typer

from toolscript.core.errors import InvalidRequest
from toolscript.core.values import OnProgress, Progress

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


# Exit code of a search without a hit.
NOTHING_FOUND = 1
# Of many messages of one kind so many are said.
MAX_SAID = 20
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"

# Logs keep every line: between two of a task is a while, and ever longer, unless a good part was done meanwhile.
MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 5.0, 60.0
GOOD_PART = 0.1
NOT_WORTH_SAYING_SECONDS = 1.0

T = TypeVar("T")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, colour: bool) -> str:
    """The last column is as wide as it likes."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(width(cell) for cell in column) for column in zip(head, *shown, strict=True)]
    lines = [_table_line(row, widths) for row in [list(head), *shown]]
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


def _table_line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [cell + " " * (room - width(cell)) for cell, room in zip(row, widths, strict=True)]
    return "  ".join([*cells[:-1], row[-1]]).rstrip()


class _Colour:
    """Set once, when the command line starts."""

    allowed = True


def allow_colour(allowed: bool) -> None:
    _Colour.allowed = allowed


def colour_wanted() -> bool:
    return _Colour.allowed and sys.stdout.isatty()


def show(result: "Mapping[str, object] | BaseModel", text: str, *, as_json: bool) -> None:
    """A model is written as HTTP answers with it."""
    if not as_json:
        sys.stdout.write(harmless(text) + "\n")
        return
    data = result if isinstance(result, Mapping) else result.model_dump(mode="json", exclude_unset=True)
    sys.stdout.write(json_text(data) + "\n")


def show_page(page: "Mapping[str, object] | BaseModel", text: str, next_cursor: object, *, as_json: bool) -> None:
    """One page of a list, and how to see the next where there is one."""
    show(page, text, as_json=as_json)
    if next_cursor is not None:
        say(f"hint: --after {printable(str(next_cursor))} shows more")


def json_text(data: object) -> str:
    """JSON on one line; what a terminal would obey is written as an escape."""
    text = json.dumps(data, ensure_ascii=False, default=str)
    return "".join(char if is_harmless(char) else json.dumps(char)[1:-1] for char in text)


def say(message: str) -> None:
    """Messages hold what servers said, and a terminal obeys what it is shown."""
    sys.stderr.write(harmless(message) + "\n")


class _Warnings(logging.Handler):
    """What the parts of the program warn of, a line each. How servers are doing is told by the commands."""

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("toolscript.core.mcp_client"):
            facts = [str(vars(record)[name]) for name in ("server", "file", "reason") if name in vars(record)]
            say(f"{record.levelname.lower()}: {': '.join([record.getMessage(), *facts])}")


def show_warnings() -> None:
    """Until a command that serves sets up logs of its own."""
    logging.getLogger().handlers[:] = [_Warnings(logging.WARNING)]


@contextmanager
def progress() -> Iterator[OnProgress]:
    """A moving bar on a terminal, a plain line now and then elsewhere; both with rate and time left."""
    if not sys.stderr.isatty():
        yield _Lines().show
        return
    bars = _Bars()
    try:
        yield bars.show
    finally:
        bars.close()


class _Rate:
    """How fast one task goes, over all of its time."""

    def __init__(self, began: float) -> None:
        self._began = began

    def per_second(self, done: int) -> float:
        return done / max(1e-6, time.monotonic() - self._began)


class _Bars:
    """Drawn when there is something to draw: the library takes as long to import as all the rest."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._tasks: dict[str, tuple[TaskID, _Rate]] = {}
        self._heard_at = time.monotonic()

    def show(self, at: Progress) -> None:
        bar = self._bar = self._bar or _started_bar()
        if at.task not in self._tasks:
            self._tasks[at.task] = (bar.add_task(at.task, rate=""), _Rate(self._heard_at))
        self._heard_at = time.monotonic()
        task, pace = self._tasks[at.task]
        bar.update(task, completed=at.done, total=at.total, rate=rate_text(pace.per_second(at.done)))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _started_bar() -> "Bar":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    # What a command prints meanwhile is its own: the library would take it for part of the drawing.
    bar = Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False)
    bar.start()
    return bar


@dataclass
class _LineTask:
    """What was last written of a task, and after how long the next line may follow."""

    pace: _Rate
    pause: float = MIN_PAUSE_SECONDS
    share: float = 0.0
    was_finished: bool = False


class _Lines:
    def __init__(self) -> None:
        self._tasks: dict[str, _LineTask] = {}
        self._began_at = self._said_at = self._heard_at = time.monotonic()

    def show(self, at: Progress) -> None:
        task = self._tasks.setdefault(at.task, _LineTask(_Rate(self._heard_at)))
        now = self._heard_at = time.monotonic()
        if now - self._began_at < NOT_WORTH_SAYING_SECONDS or not self._is_due(task, at, now - self._said_at):
            return
        self._said_at = now
        task.pause = min(2 * task.pause, MAX_PAUSE_SECONDS)
        task.share, task.was_finished = _share(at), _share(at) >= 1
        say(_progress_line(at, task.pace.per_second(at.done)))

    def _is_due(self, task: _LineTask, progress: Progress, silent_seconds: float) -> bool:
        if _share(progress) >= 1 and not task.was_finished:
            return True
        is_good_part = _share(progress) - task.share >= GOOD_PART
        return silent_seconds >= (MIN_PAUSE_SECONDS if is_good_part else task.pause)


def _share(progress: Progress) -> float:
    return 0.0 if not progress.total else progress.done / progress.total


def _progress_line(progress: Progress, rate: float) -> str:
    if progress.total is None:
        return f"{progress.task}: {progress.done:,}"
    # More than was expected may come, such as files that were added meanwhile.
    total = max(progress.total, progress.done)
    facts = [f"{progress.done:,} of {total:,}"]
    if progress.done:
        facts.append(rate_text(rate))
        facts += [f"{(total - progress.done) / rate:,.0f} s left"] if progress.done < total else []
    return f"{progress.task}: {', '.join(facts)}"


def rate_text(rate: float) -> str:
    """What takes longer than a second is counted by the minute or the hour: `0/s` says nothing."""
    for seconds, unit in ((1, "/s"), (60, "/min")):
        if rate * seconds >= 1:
            return f"{rate * seconds:,.0f}{unit}"
    return f"{rate * 3600:,.0f}/h"


def confirm(question: str, *, yes: bool) -> None:
    """`yes` answers for whoever cannot be asked, such as a script."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidRequest(f"{question} Nobody can be asked: this is no terminal.", hint="add --yes to do it")
    typer.confirm(question, abort=True, err=True)
