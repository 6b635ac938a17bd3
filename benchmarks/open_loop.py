"""Open-loop load generator: requests are sent when they are due, without waiting for earlier responses.

A closed loop sends less to a slow server, and so hides its latency (coordinated omission). Here the latency of a
request includes the time that it could not be sent because the server was stalled.
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
    """`fault` describes an invalid response; empty for a valid one.

    `strategy` and `stages` (in milliseconds) are as reported by the server.
    """

    fault: str = ""
    strategy: str = ""
    stages: Mapping[str, float] = field(default_factory=dict)


class Line(Protocol):
    """One connection, for one request at a time."""

    def send(self, request: bytes, answered: Callable[[Answer], None]) -> None:
        """Send a request. `answered` is called once, later, also if the connection breaks."""

    def give_up(self) -> None:
        """Abandon the pending request: `answered` is not called any more."""


@dataclass(slots=True)
class ScheduledRequest:
    """A scheduled request.

    `had_to_wait`: no connection was free when it was due. `done`: time of the response, or of abandoning it.
    """

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
    """Evenly spaced requests: `rate` a second, for `seconds`."""

    rate: float
    seconds: float

    @property
    def offsets(self) -> list[float]:
        return [number / self.rate for number in range(max(1, round(self.rate * self.seconds)))]


@dataclass(frozen=True)
class Run:
    """Result of a schedule. `began` is a time of the event loop's clock."""

    began: float
    schedule: Schedule
    requests: Sequence[ScheduledRequest]


class OpenLoop:
    def __init__(
        self,
        lines: Sequence[Line],
        requests: Sequence[bytes],
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        on_progress: OnProgress = silent,
    ) -> None:
        """`requests` are sent round-robin."""
        self._lines = lines
        self._requests = requests
        self._patience_seconds = patience_seconds
        self._on_progress = on_progress

    async def run(self, schedule: Schedule, task: str = "load") -> Run:
        loop = asyncio.get_running_loop()
        began = loop.time() + HEAD_START_SECONDS
        scheduled = [ScheduledRequest(began + offset) for offset in schedule.offsets]
        sending = _Sending(self._lines, self._requests, scheduled, lambda n: self._report(task, n, len(scheduled)))
        await sending.finish(schedule.seconds + self._patience_seconds)
        return Run(began, schedule, scheduled)

    def _report(self, task: str, done: int, total: int) -> None:
        self._on_progress(Progress(task, done, total))


class _Sending:
    """State of one run, driven by timers and responses."""

    def __init__(
        self,
        lines: Sequence[Line],
        requests: Sequence[bytes],
        scheduled: Sequence[ScheduledRequest],
        report: Callable[[int], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._requests = requests
        self._scheduled = scheduled
        self._report = report
        # Round-robin, so that each process of a server gets requests.
        self._idle = deque(lines)
        self._busy: dict[int, Line] = {}
        self._waiting: deque[int] = deque()
        self._next = self._answers = 0
        self._finished = asyncio.Event()

    async def finish(self, max_seconds: float) -> None:
        timer = self._loop.call_at(self._scheduled[0].due, self._send_due)
        try:
            async with asyncio.timeout(max_seconds):
                await self._finished.wait()
        except TimeoutError:
            pass
        finally:
            timer.cancel()
            self._give_up()

    def _send_due(self) -> None:
        now = self._loop.time()
        while self._next < len(self._scheduled) and self._scheduled[self._next].due <= now:
            self._scheduled[self._next].had_to_wait = not self._idle or bool(self._waiting)
            self._waiting.append(self._next)
            self._next += 1
            self._dispatch()
        if self._next < len(self._scheduled):
            self._loop.call_at(self._scheduled[self._next].due, self._send_due)

    def _dispatch(self) -> None:
        while self._waiting and self._idle:
            position, line = self._waiting.popleft(), self._idle.popleft()
            self._scheduled[position].sent = self._loop.time()
            self._busy[position] = line
            line.send(self._requests[position % len(self._requests)], partial(self._answered, position))

    def _answered(self, position: int, answer: Answer) -> None:
        request = self._scheduled[position]
        request.done, request.answer = self._loop.time(), answer
        self._idle.append(self._busy.pop(position))
        self._answers += 1
        self._report(self._answers)
        self._dispatch()
        if self._answers == len(self._scheduled):
            self._finished.set()

    def _give_up(self) -> None:
        """Abandon pending requests, and record the time that they waited."""
        now = self._loop.time()
        for position, line in self._busy.items():
            self._scheduled[position].answer = Answer(UNANSWERED)
            line.give_up()
        for request in self._scheduled:
            request.done = request.done or now
        self._next = len(self._scheduled)
