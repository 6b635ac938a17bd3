"""What a command prints: its result on stdout, everything else on stderr."""

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolscript.model.progress import OnProgress, Progress
from toolscript.surfaces.cli.tables import harmless, is_harmless

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

LINE_EVERY_SECONDS = 5.0
NOT_WORTH_SAYING_SECONDS = 1.0


class _Colour:
    """Set once, when the command line starts."""

    allowed = True


def allow_colour(allowed: bool) -> None:
    _Colour.allowed = allowed


def colour_wanted() -> bool:
    return _Colour.allowed and sys.stdout.isatty()


def show(result: Mapping[str, object], text: str, *, as_json: bool) -> None:
    sys.stdout.write((json_text(result) if as_json else harmless(text)) + "\n")


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
        if not record.name.startswith("toolscript.adapters.mcp_servers"):
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


class _Pace:
    """How fast one task goes, over all of its time."""

    def __init__(self, began: float) -> None:
        self._began = began

    def per_second(self, done: int) -> float:
        return done / max(1e-6, time.monotonic() - self._began)


class _Bars:
    """Drawn when there is something to draw: the library takes as long to import as all the rest."""

    def __init__(self) -> None:
        self._bar: Bar | None = None
        self._tasks: dict[str, tuple[TaskID, _Pace]] = {}
        self._heard_at = time.monotonic()

    def show(self, at: Progress) -> None:
        bar = self._bar = self._bar or _started_bar()
        if at.task not in self._tasks:
            self._tasks[at.task] = (bar.add_task(at.task, rate=""), _Pace(self._heard_at))
        self._heard_at = time.monotonic()
        task, pace = self._tasks[at.task]
        bar.update(task, completed=at.done, total=at.total, rate=f"{pace.per_second(at.done):,.0f}/s")

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


class _Lines:
    def __init__(self) -> None:
        self._paces: dict[str, _Pace] = {}
        self._began_at = self._said_at = self._heard_at = time.monotonic()

    def show(self, at: Progress) -> None:
        pace = self._paces.setdefault(at.task, _Pace(self._heard_at))
        self._heard_at = time.monotonic()
        finished = at.total is not None and at.done >= at.total
        if time.monotonic() - self._began_at < NOT_WORTH_SAYING_SECONDS:
            return
        if not finished and time.monotonic() - self._said_at < LINE_EVERY_SECONDS:
            return
        self._said_at = time.monotonic()
        say(_line(at, pace.per_second(at.done)))


def _line(at: Progress, rate: float) -> str:
    if at.total is None:
        return f"{at.task}: {at.done:,}"
    left = f", {(at.total - at.done) / rate:,.0f} s left" if rate > 0 and at.done < at.total else ""
    return f"{at.task}: {at.done:,} of {at.total:,}, {rate:,.0f}/s{left}"
