"""Output of commands: the result on stdout; progress, questions and messages on stderr."""

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

from toolscript.core.errors import Forbidden, InvalidRequest
from toolscript.core.namespaces import DEFAULT_NAMESPACE
from toolscript.core.values import OnProgress, Progress

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


# Exit code of a search without a hit.
NOTHING_FOUND = 1
# Maximum number of messages of one kind.
MAX_MESSAGES = 20
MAX_STEP = 40
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"

# Progress lines stay in logs, so the pause between two of a task grows, unless a good part was done meanwhile.
MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 5.0, 60.0
GOOD_PART = 0.1
MIN_TASK_SECONDS = 1.0

T = TypeVar("T")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, colour: bool) -> str:
    """Format a table; the last column has no maximum width."""
    clean_rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(width(cell) for cell in column) for column in zip(head, *clean_rows, strict=True)]
    lines = [_table_line(row, widths) for row in [list(head), *clean_rows]]
    if colour:
        lines[0] = f"{BOLD}{lines[0]}{PLAIN}"
    return "\n".join(lines)


def table_by_namespace(
    head: Sequence[str], rows: Sequence[Sequence[str]], namespaces: Sequence[str | None]
) -> str:
    """Format a table with the namespace of each row in front, if any is not the default one."""
    if all(namespace in (None, DEFAULT_NAMESPACE) for namespace in namespaces):
        return table(head, rows, colour=colour_wanted())
    wide = [[namespace or "", *row] for namespace, row in zip(namespaces, rows, strict=True)]
    return table(["Namespace", *head], wide, colour=colour_wanted())


def table_by_step(head: Sequence[str], steps: Sequence[tuple[str, Sequence[Sequence[str]]]]) -> str:
    """Format a table with the words of each step in front of its first row; one without rows gets one."""
    nothing = [["-", *[""] * (len(head) - 2), "nothing fits"]]
    rows = []
    for words, rows_of_step in steps:
        shown = [words, *[""] * (len(rows_of_step) - 1)]
        rows += [
            [printable(cell)[:MAX_STEP], *row] for cell, row in zip(shown, rows_of_step or nothing, strict=True)
        ]
    return table(["Step", *head], rows, colour=colour_wanted())


def printable(text: str) -> str:
    """Return one line without characters that control the cursor, the colour or the text direction."""
    return " ".join(harmless(text).split())


def spelled_out(text: str) -> str:
    """Return one line that hides nothing: what would not be shown is written as its number, `[U+001B]`."""
    return "".join(char if is_harmless(char) else f"[U+{ord(char):04X}]" for char in text)


def harmless(text: str) -> str:
    """Remove these characters, but keep the lines."""
    return "".join(char if char == "\n" or is_harmless(char) else " " for char in text)


def is_harmless(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def width(text: str) -> int:
    """Return the terminal columns: two for a wide character, none for a combining mark."""
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


def is_watched() -> bool:
    """Return whether a person sees what is printed: some of it goes to a terminal, which agents' shells lack."""
    return sys.stdout.isatty() or sys.stderr.isatty()


def require_person(what: str, command: str, *, asks: bool = False) -> None:
    """Refuse what a person decides where none is: agents' shells have no terminal, and no option takes its place.

    `asks`: the decision is typed. The message is for an agent, which is to ask its user.
    """
    if sys.stderr.isatty() and (sys.stdin.isatty() or not asks):
        return
    raise Forbidden(
        f"{what} is decided by a person, and there is no terminal to ask in",
        hint=f"ask the user to run `{command}` in a terminal",
    )


def colour_wanted() -> bool:
    return _Colour.allowed and sys.stdout.isatty()


def show(result: "Mapping[str, object] | BaseModel", text: str, *, as_json: bool) -> None:
    """Print the text, or the result as JSON; a model is serialised as in the HTTP response."""
    if not as_json:
        sys.stdout.write(harmless(text) + "\n")
        return
    data = result if isinstance(result, Mapping) else result.model_dump(mode="json", exclude_unset=True)
    sys.stdout.write(json_text(data) + "\n")


def show_page(
    page: "Mapping[str, object] | BaseModel",
    text: str,
    next_cursor: object,
    *,
    as_json: bool,
    option: str = "--after",
) -> None:
    """Print one page of a list, and a hint if there is a next one; `option` takes its cursor."""
    show(page, text, as_json=as_json)
    if next_cursor is not None:
        say(f"hint: {option} {printable(str(next_cursor))} shows more")


def json_text(data: object) -> str:
    """Return JSON on one line, with terminal control characters escaped."""
    text = json.dumps(data, ensure_ascii=False, default=str)
    return "".join(char if is_harmless(char) else json.dumps(char)[1:-1] for char in text)


def say(message: str) -> None:
    """Print a message to stderr, without control characters: it may contain text of servers."""
    sys.stderr.write(harmless(message) + "\n")


class _Warnings(logging.Handler):
    """Prints warnings, one line each, but not the client's: commands report the state of servers."""

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith("toolscript.core.mcp_client"):
            facts = [str(vars(record)[name]) for name in ("server", "file", "reason") if name in vars(record)]
            say(f"{record.levelname.lower()}: {': '.join([record.getMessage(), *facts])}")


def show_warnings() -> None:
    """Print warnings to stderr, until a serving command configures its logs."""
    logging.getLogger().handlers[:] = [_Warnings(logging.WARNING)]


@contextmanager
def progress() -> Iterator[OnProgress]:
    """Show a progress bar on a terminal, else occasional lines; both with rate and remaining time."""
    if not sys.stderr.isatty():
        yield _Lines().show
        return
    bars = _Bars()
    try:
        yield bars.show
    finally:
        bars.close()


class _Rate:
    """The average rate of a task."""

    def __init__(self, began: float) -> None:
        self._began = began

    def per_second(self, done: int) -> float:
        return done / max(1e-6, time.monotonic() - self._began)


class _Bars:
    """Created on the first update: the library takes as long to import as everything else."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._tasks: dict[str, tuple[TaskID, _Rate]] = {}
        self._updated_at = time.monotonic()

    def show(self, state: Progress) -> None:
        bar = self._bar = self._bar or _start_bar()
        if state.task not in self._tasks:
            self._tasks[state.task] = (bar.add_task(state.task, rate=""), _Rate(self._updated_at))
        self._updated_at = time.monotonic()
        task, rate = self._tasks[state.task]
        bar.update(task, completed=state.done, total=state.total, rate=rate_text(rate.per_second(state.done)))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _start_bar() -> "Bar":
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
    # No redirection: the library would treat the command's own output as part of the bar.
    bar = Bar(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False)
    bar.start()
    return bar


@dataclass
class _LineTask:
    """The last written state of a task, and the pause before the next line."""

    pace: _Rate
    pause: float = MIN_PAUSE_SECONDS
    share: float = 0.0
    was_finished: bool = False


class _Lines:
    def __init__(self) -> None:
        self._tasks: dict[str, _LineTask] = {}
        self._began_at = self._written_at = self._updated_at = time.monotonic()

    def show(self, state: Progress) -> None:
        task = self._tasks.setdefault(state.task, _LineTask(_Rate(self._updated_at)))
        now = self._updated_at = time.monotonic()
        if now - self._began_at < MIN_TASK_SECONDS or not self._is_due(task, state, now - self._written_at):
            return
        self._written_at = now
        task.pause = min(2 * task.pause, MAX_PAUSE_SECONDS)
        task.share, task.was_finished = _share(state), _share(state) >= 1
        say(_progress_line(state, task.pace.per_second(state.done)))

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
    # The total may be exceeded, for example by files that were added meanwhile.
    total = max(progress.total, progress.done)
    facts = [f"{progress.done:,} of {total:,}"]
    if progress.done:
        facts.append(rate_text(rate))
        facts += [f"{(total - progress.done) / rate:,.0f} s left"] if progress.done < total else []
    return f"{progress.task}: {', '.join(facts)}"


def rate_text(rate: float) -> str:
    """Return a rate per second, or per minute or hour if it is below one per second."""
    for seconds, unit in ((1, "/s"), (60, "/min")):
        if rate * seconds >= 1:
            return f"{rate * seconds:,.0f}{unit}"
    return f"{rate * 3600:,.0f}/h"


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation and abort if it is denied; `yes` skips the question, for scripts."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidRequest(f"{question} Cannot ask: stdin is not a terminal.", hint="add --yes to do it")
    typer.confirm(question, abort=True, err=True)
