"""How fast a long job may go beside searches: a share of the time, and less while searches have become slow.

A search of the live index is timed again and again, while the job works and while it rests. What is usual is timed
while it rests, and anew every few minutes, for the traffic of a day changes.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from toolscript.core.cancellation import raise_if_cancelled
from toolscript.core.errors import ToolscriptError

Probe = Callable[[], Awaitable[object]]

PROBE_EVERY_SECONDS = 0.25
# So many searches are looked at together, and the slowest but one of them counts.
PROBES = 12
LOOK_AGAIN_SECONDS = 300.0
# A search of the engine may take so many times as long as usual, or so much longer, before rests become longer.
SLOW = 1.5
UNNOTICED_SECONDS = 0.005
LONGER = 2.0
SHORTER = 1.25
MAX_TIMES = 100.0
MAX_REST_SECONDS = 5.0


class Throttle:
    """Rests after each batch for `rest` times as long as it took, and longer while `probe` is slow."""

    def __init__(self, rest: float = 1.0, probe: Probe | None = None) -> None:
        self._rest = rest
        self._probe = probe or _nothing
        self._usual = 0.0
        self._looked_at = 0.0
        self._seen = deque[float](maxlen=PROBES)
        self.times_longer = 1.0

    async def pause(self, began: float) -> None:
        raise_if_cancelled()
        worked = time.monotonic() - began
        if self._usual and time.monotonic() - self._looked_at > LOOK_AGAIN_SECONDS:
            await self._look()
        longest = max(MAX_REST_SECONDS, worked * self._rest)
        await asyncio.sleep(min(worked * self._rest * self.times_longer, longest))

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Searches are timed until the block ends."""
        if self._probe is _nothing or not self._rest:
            yield
            return
        await self._look()
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    def heard(self, seconds: float) -> None:
        """How long a search took. Rests become longer at once and shorter bit by bit."""
        self._seen.append(seconds)
        if len(self._seen) < PROBES:
            return
        if _slowest_but_one(self._seen) > max(SLOW * self._usual, self._usual + UNNOTICED_SECONDS):
            self.times_longer = min(self.times_longer * LONGER, MAX_TIMES)
            # Those before the change say nothing of it.
            self._seen.clear()
        else:
            self.times_longer = max(self.times_longer / SHORTER, 1.0)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(PROBE_EVERY_SECONDS)
            self.heard(await self._timed())

    async def _look(self) -> None:
        """What is usual, while this job does nothing."""
        seen = list[float]()
        for _ in range(PROBES):
            await asyncio.sleep(PROBE_EVERY_SECONDS)
            seen.append(await self._timed())
        self._usual = _slowest_but_one(seen)
        self._looked_at = time.monotonic()

    async def _timed(self) -> float:
        """An engine that does not answer is as slow as can be."""
        began = time.perf_counter()
        try:
            await self._probe()
        except ToolscriptError:
            return float("inf")
        return time.perf_counter() - began


async def _nothing() -> None: ...


def _slowest_but_one(seconds: "deque[float] | list[float]") -> float:
    return sorted(seconds)[-2]
