"""An open loop: requests are sent when they are due, whatever became of those before them.

A loop that waits for each answer asks less of a server that is slow, and then reports how well it did. Here a
request that was due while the server stood still counts the time it could not be sent.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from toolscript.core.values import OnProgress, Progress, silent

UNSENT, UNANSWERED = "not sent", "not answered"
PATIENCE_SECONDS = 15.0
HEAD_START_SECONDS = 0.01


@dataclass(frozen=True)
class Answer:
    """`fault` is what was wrong with it, empty when nothing was.

    `strategy` is what the server says it did, `stages` how many milliseconds each part of that took.
    """

    fault: str = ""
    strategy: str = ""
    stages: Mapping[str, float] = field(default_factory=dict)


class Line(Protocol):
    """One connection, for one request at a time."""

    def ask(self, request: bytes, answered: Callable[[Answer], None]) -> None:
        """`answered` is called once, after this has returned, also when the connection breaks."""

    def give_up(self) -> None:
        """The answer that is awaited is not wanted any more, and is not told."""


@dataclass(slots=True)
class Due:
    """`had_to_wait`: no connection was free when it was due. `done` is when it was answered, or given up."""

    due: float
    had_to_wait: bool = False
    sent: float | None = None
    done: float = 0.0
    answer: Answer = Answer(UNSENT)

    @property
    def fault(self) -> str:
        return self.answer.fault


@dataclass(frozen=True)
class Schedule:
    """Evenly spaced: `rate` a second for so long."""

    rate: float
    seconds: float

    @property
    def offsets(self) -> list[float]:
        return [number / self.rate for number in range(max(1, round(self.rate * self.seconds)))]


@dataclass(frozen=True)
class Run:
    """What became of a schedule that began at a moment of the loop's clock."""

    began: float
    schedule: Schedule
    asked: Sequence[Due]


class OpenLoop:
    def __init__(
        self,
        lines: Sequence[Line],
        requests: Sequence[bytes],
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        on_progress: OnProgress = silent,
    ) -> None:
        """`requests` are sent in turn, beginning again with the first."""
        self._lines = lines
        self._requests = requests
        self._patience_seconds = patience_seconds
        self._on_progress = on_progress

    async def run(self, schedule: Schedule, task: str = "load") -> Run:
        loop = asyncio.get_running_loop()
        began = loop.time() + HEAD_START_SECONDS
        asked = [Due(began + offset) for offset in schedule.offsets]
        sending = _Sending(self._lines, self._requests, asked, lambda n: self._told(task, n, len(asked)))
        await sending.finish(schedule.seconds + self._patience_seconds)
        return Run(began, schedule, asked)

    def _told(self, task: str, done: int, total: int) -> None:
        self._on_progress(Progress(task, done, total))


class _Sending:
    """One run on its way. Nothing here waits: timers and answers drive it."""

    def __init__(
        self,
        lines: Sequence[Line],
        requests: Sequence[bytes],
        asked: Sequence[Due],
        told: Callable[[int], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._requests = requests
        self._asked = asked
        self._told = told
        # In turn, as many callers would: a server of several processes has connections at each of them.
        self._idle = deque(lines)
        self._busy: dict[int, Line] = {}
        self._waiting: deque[int] = deque()
        self._next = self._answers = 0
        self._finished = asyncio.Event()

    async def finish(self, max_seconds: float) -> None:
        timer = self._loop.call_at(self._asked[0].due, self._send_what_is_due)
        try:
            async with asyncio.timeout(max_seconds):
                await self._finished.wait()
        except TimeoutError:
            pass
        finally:
            timer.cancel()
            self._give_up()

    def _send_what_is_due(self) -> None:
        now = self._loop.time()
        while self._next < len(self._asked) and self._asked[self._next].due <= now:
            self._asked[self._next].had_to_wait = not self._idle or bool(self._waiting)
            self._waiting.append(self._next)
            self._next += 1
            self._hand_out()
        if self._next < len(self._asked):
            self._loop.call_at(self._asked[self._next].due, self._send_what_is_due)

    def _hand_out(self) -> None:
        while self._waiting and self._idle:
            at, line = self._waiting.popleft(), self._idle.popleft()
            self._asked[at].sent = self._loop.time()
            self._busy[at] = line
            line.ask(self._requests[at % len(self._requests)], partial(self._answered, at))

    def _answered(self, at: int, answer: Answer) -> None:
        asked = self._asked[at]
        asked.done, asked.answer = self._loop.time(), answer
        self._idle.append(self._busy.pop(at))
        self._answers += 1
        self._told(self._answers)
        self._hand_out()
        if self._answers == len(self._asked):
            self._finished.set()

    def _give_up(self) -> None:
        """Whoever was not answered by now is counted, with the time that it waited."""
        now = self._loop.time()
        for at, line in self._busy.items():
            self._asked[at].answer = Answer(UNANSWERED)
            line.give_up()
        for asked in self._asked:
            asked.done = asked.done or now
        self._next = len(self._asked)
