"""Query log entries, and sinks that accept them or fail."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from toolscript.core.errors import Unavailable
from toolscript.documents.model.query import LoggedQuery

SOON = 30.0


# Current, because old entries expire.
NOW = datetime.now(UTC).replace(microsecond=123456).isoformat()


def search(number: int = 0, **more: object) -> LoggedQuery:
    values: dict[str, object] = {
        "at": NOW,
        "query_id": f"query-{number}",
        "tenant": "ann",
        "plan": "default",
        "search_type": "hybrid",
        "fusion": "rrf",
        "filters": 2,
        "top_k": 10,
        "hits": 3,
        "total": 41,
        "took_ms": 12.5,
    }
    return LoggedQuery(**{**values, **more})  # type: ignore[arg-type]


class RecordingSink:
    """Fails this many times, then accepts everything."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.tries = 0
        self.batches: list[list[LoggedQuery]] = []
        self.took = asyncio.Event()

    async def write(self, queries: Sequence[LoggedQuery]) -> None:
        self.tries += 1
        if self.tries <= self.failures:
            raise Unavailable("not now")
        self.batches.append(list(queries))
        self.took.set()

    @property
    def taken(self) -> list[LoggedQuery]:
        return [query for batch in self.batches for query in batch]


class GatedSink(RecordingSink):
    """Accepts nothing until it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.began = asyncio.Event()
        self.open = asyncio.Event()

    async def write(self, queries: Sequence[LoggedQuery]) -> None:
        self.began.set()
        await self.open.wait()
        await super().write(queries)


class BrokenSink:
    """Fails with an unexpected exception."""

    async def write(self, queries: Sequence[LoggedQuery]) -> None:
        raise UnicodeEncodeError("utf-8", queries[0].text, 0, 1, "no such letter")


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
