"""Sinks of a queued log that accept entries or fail, and a count of what was lost."""

import asyncio
from collections.abc import Sequence

from toolscript.core.errors import Unavailable

SOON = 30.0


class RecordingSink:
    """Fails this many times, then accepts everything."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.tries = 0
        self.batches: list[list[object]] = []
        self.took = asyncio.Event()

    async def write(self, entries: Sequence[object]) -> None:
        self.tries += 1
        if self.tries <= self.failures:
            raise Unavailable("not now")
        self.batches.append(list(entries))
        self.took.set()

    @property
    def taken(self) -> list[object]:
        return [entry for batch in self.batches for entry in batch]


class GatedSink(RecordingSink):
    """Accepts nothing until it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()
        self.open = asyncio.Event()

    async def write(self, entries: Sequence[object]) -> None:
        self.began.set()
        await self.open.wait()
        await super().write(entries)


class BrokenSink:
    """Fails with an unexpected exception."""

    async def write(self, entries: Sequence[object]) -> None:
        raise UnicodeEncodeError("utf-8", str(entries[0]), 0, 1, "no such letter")


class Losses:
    def __init__(self) -> None:
        self.by_reason: dict[str, int] = {}
        self._more = asyncio.Event()

    def __call__(self, count: int, reason: str) -> None:
        self.by_reason[reason] = self.by_reason.get(reason, 0) + count
        self._more.set()

    async def until(self, failed: int) -> None:
        async with asyncio.timeout(SOON):
            while self.by_reason.get("failed", 0) < failed:
                self._more.clear()
                await self._more.wait()
