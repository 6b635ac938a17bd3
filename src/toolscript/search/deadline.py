"""One deadline for a whole request, shared out among its stages."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

# Given up on, and not yet gone: a driver may take seconds to take back what it has sent.
_abandoned: set[asyncio.Task[Any]] = set()


class Deadline:
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends_at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._ends_at - time.monotonic())

    async def spend(self, share: float, work: Coroutine[Any, Any, T]) -> T:
        """Waits for the work for at most this share of what is left; then TimeoutError, at once."""
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task}, timeout=self.left * share)
        finally:
            if not task.done():
                _abandon(task)
        if not task.done():
            raise TimeoutError("no answer in time")
        try:
            return task.result()
        finally:
            # A failure holds its frames, and this frame the task: a circle, unless it is cut here.
            del task


def _abandon(task: asyncio.Task[Any]) -> None:
    task.cancel()
    _abandoned.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()
