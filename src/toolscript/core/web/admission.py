"""A limit on how many requests are worked on at once, and a queue before it that is bounded by time.

So many requests are taken on in any case. One that arrives when there are more waits, if its turn is expected
to come soon enough. That depends on how many wait before it, and on how fast requests end, which is measured.
Otherwise it is refused at once: a client is better told so now than in ten seconds.

Of those that are taken on, few run at first. More do while some wait and the event loop is not late: searches that
wait for an engine may be many; those that keep this process busy may not, or nothing else has its turn, not even a
refusal.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

LEAST_CONCURRENT = 8
LATE_SECONDS = 0.02
FALLS, RISES = 0.8, 1.5
# Between the ends of two requests, as long as nothing is known.
FIRST_GUESS_SECONDS = 0.02
WEIGHT_OF_THE_LAST = 0.1
# What was expected may be wrong; nobody waits longer than so many times that.
LONGEST_WAIT = 4.0


class QueueTimeout(Exception):
    """A request's turn did not come in the time that it may wait."""


@dataclass(frozen=True)
class Limits:
    """`max_queue_seconds` 0: nothing waits."""

    concurrent: int
    max_queue_seconds: float = 0.0


class Gate:
    def __init__(self, limits: Limits, now: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._now = now
        self._least = min(LEAST_CONCURRENT, limits.concurrent)
        self._limit = float(self._least)
        self._running = 0
        # A dict keeps the order, and one that gives up is taken out at once.
        self._waiting: dict[Ticket, None] = {}
        # Between the ends of two requests, while as many run as may.
        self._seconds_each = FIRST_GUESS_SECONDS
        self._last_end: float | None = None
        self._full_at = float("-inf")

    @property
    def running(self) -> int:
        return self._running

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def limit(self) -> int:
        """How many may run at this moment."""
        return int(self._limit)

    @property
    def expected_wait(self) -> float:
        """Of one that arrives now."""
        return 0.0 if self._running < self.limit else (len(self._waiting) + 1) * self._seconds_each

    @property
    def is_full(self) -> bool:
        """Whether one that arrives now is refused."""
        taken_on = self._running + len(self._waiting)
        return taken_on >= self.limits.concurrent and self.expected_wait > self.limits.max_queue_seconds

    def was_full_within(self, seconds: float) -> bool:
        """Whether more came than fits, in the last so many seconds."""
        return self._now() - self._full_at <= seconds

    def adapt(self, late_seconds: float) -> None:
        """To be told, now and then, how late the event loop is."""
        if late_seconds > LATE_SECONDS or (not self._waiting and self._running < self._limit / 2):
            self._limit = max(self._least, self._limit * FALLS)
        elif self._waiting:
            self._limit = min(self.limits.concurrent, self._limit * RISES)
            self._let_in()

    def enter(self) -> "Ticket | None":
        """A place, or one in the queue; None: refused. The ticket must be released."""
        if self._running < self.limit:
            self._running += 1
            return Ticket(self, waits=False)
        if self.is_full:
            self._full_at = self._now()
            return None
        ticket = Ticket(self, waits=True)
        self._waiting[ticket] = None
        return ticket

    def hurry(self, ticket: "Ticket") -> None:
        """One that was taken on in any case does not wait longer because the event loop is late."""
        if ticket in self._waiting and self._running < self.limits.concurrent:
            del self._waiting[ticket]
            self._running += 1
            ticket.begin()

    def leave(self, ticket: "Ticket", *, has_begun: bool) -> None:
        if not has_begun:
            self._waiting.pop(ticket, None)
            return
        self._measure(self._now())
        self._running -= 1
        self._let_in()

    def _measure(self, now: float) -> None:
        if self._running < self.limit:
            self._last_end = None
            return
        if self._last_end is not None:
            self._seconds_each += WEIGHT_OF_THE_LAST * (now - self._last_end - self._seconds_each)
        self._last_end = now

    def _let_in(self) -> None:
        while self._waiting and self._running < self.limit:
            first = next(iter(self._waiting))
            del self._waiting[first]
            self._running += 1
            first.begin()


class Ticket:
    """One request's place. Released once, however often that is asked for."""

    __slots__ = ("_gate", "_released", "_turn", "waits")

    def __init__(self, gate: Gate, *, waits: bool) -> None:
        self._gate = gate
        self.waits = waits
        self._turn = asyncio.get_running_loop().create_future() if waits else None
        self._released = False

    def begin(self) -> None:
        self.waits = False
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)

    async def turn(self) -> None:
        """Raises QueueTimeout when it does not come in time: what was expected may have been wrong."""
        if self._turn is None or self._turn.done():
            return
        seconds = self._gate.limits.max_queue_seconds
        for part in (seconds, seconds * (LONGEST_WAIT - 1)):
            try:
                async with asyncio.timeout(part):
                    await asyncio.shield(self._turn)
            except TimeoutError:
                self._gate.hurry(self)
            if not self.waits:
                return
        self.release()
        raise QueueTimeout

    def release(self) -> None:
        if self._released:
            return
        self._released = True
        self._gate.leave(self, has_begun=not self.waits)
