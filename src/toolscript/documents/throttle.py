"""Limits the speed of a long job beside searches: a share of the time, and less while searches are slow.

The throttle times a probe search of the live index periodically, while the job works and while it rests. It
measures the baseline while the job rests, and again every few minutes, because traffic changes during a day.
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
# Probes per window. The second slowest of them counts.
PROBES = 12
LOOK_AGAIN_SECONDS = 300.0
# Factor and absolute slack over the baseline before rests become longer.
SLOW = 1.5
SLACK_SECONDS = 0.005
LONGER_FACTOR = 2.0
SHORTER_FACTOR = 1.25
MAX_TIMES = 100.0
MAX_REST_SECONDS = 5.0


class Throttle:
    """Rests after each batch for `rest` times as long as it took, and longer while `probe` is slow."""

    def __init__(self, rest: float = 1.0, probe: Probe | None = None) -> None:
        self._rest = rest
        self._probe = probe or _nothing
        self._baseline = 0.0
        self._measured_at = 0.0
        self._seen = deque[float](maxlen=PROBES)
        self.times_longer = 1.0

    async def pause(self, began: float) -> None:
        raise_if_cancelled()
        worked = time.monotonic() - began
        if self._baseline and time.monotonic() - self._measured_at > LOOK_AGAIN_SECONDS:
            await self._measure_baseline()
        longest = max(MAX_REST_SECONDS, worked * self._rest)
        await asyncio.sleep(min(worked * self._rest * self.times_longer, longest))

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Time searches until the block ends."""
        if self._probe is _nothing or not self._rest:
            yield
            return
        await self._measure_baseline()
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching

    def record_duration(self, seconds: float) -> None:
        """Record the duration of a search. Rests get longer at once and shorter gradually."""
        self._seen.append(seconds)
        if len(self._seen) < PROBES:
            return
        if _second_slowest(self._seen) > max(SLOW * self._baseline, self._baseline + SLACK_SECONDS):
            self.times_longer = min(self.times_longer * LONGER_FACTOR, MAX_TIMES)
            # Durations before the change do not reflect it.
            self._seen.clear()
        else:
            self.times_longer = max(self.times_longer / SHORTER_FACTOR, 1.0)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(PROBE_EVERY_SECONDS)
            self.record_duration(await self._time_probe())

    async def _measure_baseline(self) -> None:
        """Measure the baseline while this job rests."""
        seen = list[float]()
        for _ in range(PROBES):
            await asyncio.sleep(PROBE_EVERY_SECONDS)
            seen.append(await self._time_probe())
        self._baseline = _second_slowest(seen)
        self._measured_at = time.monotonic()

    async def _time_probe(self) -> float:
        """Return the duration of a probe; infinity if the engine does not respond."""
        began = time.perf_counter()
        try:
            await self._probe()
        except ToolscriptError:
            return float("inf")
        return time.perf_counter() - began


async def _nothing() -> None: ...


def _second_slowest(seconds: "deque[float] | list[float]") -> float:
    return sorted(seconds)[-2]
