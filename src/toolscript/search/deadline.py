"""One deadline for a whole request, shared out among its stages."""

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Deadline:
    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(0.0, self._ends_at - time.monotonic())

    async def spend(self, share: float, work: Awaitable[T]) -> T:
        """Awaits the work for at most this share of what is left; TimeoutError after that."""
        async with asyncio.timeout(self.left * share):
            return await work
