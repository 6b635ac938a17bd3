"""Turns of servers that start: as many at once as the machine has cores, so that none starves the others.

A turn is held for a few seconds at most: a server that hangs uses no core. Servers that failed before start one by
one, and take no turn from the others.
"""

import asyncio
import os
from collections import deque

HELD_SECONDS = 3.0
MIN_AT_ONCE = 2


class Turn:
    """The right to start; released when the server is ready or has failed, by itself after a while."""

    def __init__(self, lane: "_Lane", seconds: float) -> None:
        self._lane = lane
        self._is_held = True
        self._timer = asyncio.get_running_loop().call_later(seconds, self.release)

    def release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._timer.cancel()
            self._lane.release()


class Turns:
    def __init__(self, at_once: int | None = None, held_seconds: float = HELD_SECONDS) -> None:
        self._seconds = held_seconds
        self._usual, self._of_failed = _Lane(at_once or max(MIN_AT_ONCE, _cores())), _Lane(1)

    async def take(self, *, urgent: bool, failed_before: bool) -> Turn:
        """Wait for a turn. `urgent`: a call waits for this server, which goes before those only listed."""
        lane = self._of_failed if failed_before else self._usual
        await lane.acquire(first=urgent)
        return Turn(lane, self._seconds)


class _Lane:
    """A semaphore with two queues."""

    def __init__(self, free: int) -> None:
        self._free = free
        self._urgent: deque[asyncio.Future[None]] = deque()
        self._patient: deque[asyncio.Future[None]] = deque()

    async def acquire(self, *, first: bool) -> None:
        if self._free:
            self._free -= 1
            return
        waiting = asyncio.get_running_loop().create_future()
        (self._urgent if first else self._patient).append(waiting)
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():
                # It was handed over in the moment of the cancellation.
                self.release()
            raise

    def release(self) -> None:
        for queue in (self._urgent, self._patient):
            while queue:
                waiting = queue.popleft()
                if not waiting.done():
                    waiting.set_result(None)
                    return
        self._free += 1


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
