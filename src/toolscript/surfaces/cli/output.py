"""What a command prints: its result on stdout, everything else on stderr."""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from toolscript.model.progress import OnProgress, Progress

LINE_EVERY_SECONDS = 5.0


def show(result: Mapping[str, object], text: str, *, as_json: bool) -> None:
    sys.stdout.write((json.dumps(result, ensure_ascii=False, default=str) if as_json else text) + "\n")


def say(message: str) -> None:
    sys.stderr.write(message + "\n")


@contextmanager
def progress() -> Iterator[OnProgress]:
    """A moving bar on a terminal, a plain line now and then elsewhere; both with rate and time left."""
    if not sys.stderr.isatty():
        yield _Lines().show
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        yield _Bars(bar).show


class _Pace:
    """How fast one task goes, over all of its time."""

    def __init__(self, began: float) -> None:
        self._began = began

    def per_second(self, done: int) -> float:
        return done / max(1e-6, time.monotonic() - self._began)


class _Bars:
    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._tasks: dict[str, tuple[object, _Pace]] = {}
        self._heard_at = time.monotonic()

    def show(self, at: Progress) -> None:
        if at.task not in self._tasks:
            self._tasks[at.task] = (self._bar.add_task(at.task, rate=""), _Pace(self._heard_at))
        self._heard_at = time.monotonic()
        task, pace = self._tasks[at.task]
        rate = f"{pace.per_second(at.done):,.0f}/s"
        self._bar.update(task, completed=at.done, total=at.total, rate=rate)  # type: ignore[arg-type]


class _Lines:
    def __init__(self) -> None:
        self._paces: dict[str, _Pace] = {}
        self._said_at = self._heard_at = time.monotonic()

    def show(self, at: Progress) -> None:
        pace = self._paces.setdefault(at.task, _Pace(self._heard_at))
        self._heard_at = time.monotonic()
        finished = at.total is not None and at.done >= at.total
        if not finished and time.monotonic() - self._said_at < LINE_EVERY_SECONDS:
            return
        self._said_at = time.monotonic()
        say(_line(at, pace.per_second(at.done)))


def _line(at: Progress, rate: float) -> str:
    if at.total is None:
        return f"{at.task}: {at.done:,}"
    left = f", {(at.total - at.done) / rate:,.0f} s left" if rate > 0 and at.done < at.total else ""
    return f"{at.task}: {at.done:,} of {at.total:,}, {rate:,.0f}/s{left}"
