"""Rate limit per minute, shared by all processes through PostgreSQL.

A process reserves requests in portions, a tenth of the plan and at most half of the rest, and grants them locally.
So most requests need no query, and portions are small when little is left.

The first request of an anonymous client is counted in memory, and written to PostgreSQL together with its second.
A client can use many addresses for free: one request from each of them must not cause as many writes. Beyond
100,000 anonymous clients a minute, new ones share 1,000 hashed buckets.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import cast
from zlib import crc32

from toolscript.core.auth.model import Anonymous, Budget, Plan, Tenant
from toolscript.core.errors import ToolscriptError
from toolscript.core.postgres.pool import Pool, connection

WAIT_SECONDS = 0.2
# After PostgreSQL did not answer, a process counts locally for so long before it queries again.
LOCAL_SECONDS = 5.0
CLOSE_SECONDS = 1.0
WINDOW_SECONDS = 60
SHARE = 10
# Anonymous clients that a process counts separately in a minute.
MAX_ANONYMOUS = 100_000
ANONYMOUS_BUCKETS = 1_000
# Clocks of other hosts may be behind.
KEPT_MINUTES = 2
BATCH, MAX_BATCHES = 1_000, 500

_TAKE = """
INSERT INTO documents.requests AS known (tenant, minute, taken) VALUES (%s, %s, %s)
ON CONFLICT (tenant, minute) DO UPDATE SET taken = known.taken + excluded.taken RETURNING taken
"""
_DELETE = """
DELETE FROM documents.requests WHERE (tenant, minute) IN (
    SELECT tenant, minute FROM documents.requests WHERE minute < %s ORDER BY minute LIMIT %s FOR UPDATE SKIP LOCKED
)
"""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Window:
    """One client's minute. `taken` by all processes, as last read; `left` of local portions; `used` locally.

    `unwritten` are local requests that PostgreSQL does not count yet.
    """

    minute: int
    taken: int = 0
    left: int = 0
    used: int = 0
    unwritten: int = 0
    is_local: bool = False
    refilling: asyncio.Lock = field(default_factory=asyncio.Lock)


class PostgresRequestBudget:
    """Rate limit that never fails a request: while PostgreSQL is down, each process counts locally.

    `now` is the wall clock, which all processes share.
    """

    def __init__(
        self, pool: Pool, now: Callable[[], float] = time.time, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._pool = pool
        self._now = now
        self._wait_seconds = wait_seconds
        self._minute = -1
        self._windows: dict[str, _Window] = {}
        self._anonymous = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._late: set[asyncio.Task[int]] = set()
        self._local_since: float | None = None

    async def take(self, client: Tenant | Anonymous, plan: Plan) -> Budget:
        limit = plan.requests_per_minute
        if limit is None:
            return Budget()
        name, window = self._window(client)
        if not window.left:
            async with window.refilling:
                if not window.left and window.taken < limit:
                    await self._refill(name, window, limit, is_new_anonymous=_is_new(client, window))
        allowed = window.left > 0 and window.used < limit
        if allowed:
            window.left -= 1
            window.used += 1
        remaining = min(max(0, limit - window.taken) + window.left, limit - window.used)
        resets_in = WINDOW_SECONDS - int(self._now() % WINDOW_SECONDS)
        return Budget(limit, max(0, remaining), resets_in, allowed)

    async def close(self) -> None:
        """Cancel background tasks. The wait for a database that hangs is bounded."""
        running = [*self._tasks, *self._late]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=CLOSE_SECONDS)

    def _window(self, client: Tenant | Anonymous) -> tuple[str, _Window]:
        """Return the client's name and window; a new minute drops all windows of the last one."""
        minute = int(self._now() // WINDOW_SECONDS)
        # A clock that is set back a little does not restart the minute.
        if not self._minute - KEPT_MINUTES <= minute <= self._minute:
            self._minute, self._windows, self._anonymous = minute, {}, 0
            if not self._is_local():
                self._start(self._delete_before(minute - KEPT_MINUTES))
        name = client.name
        if isinstance(client, Anonymous) and name not in self._windows:
            self._anonymous += 1
            if self._anonymous > MAX_ANONYMOUS:
                name = Anonymous(f"*{crc32(name.encode()) % ANONYMOUS_BUCKETS}").name
        return name, self._windows.setdefault(name, _Window(self._minute))

    async def _refill(self, name: str, window: _Window, limit: int, *, is_new_anonymous: bool) -> None:
        if is_new_anonymous:
            window.left = window.unwritten = 1
            return
        portion = max(1, min(limit // SHARE, (limit - window.taken) // 2))
        written, window.unwritten = portion + window.unwritten, 0
        taken = None if window.is_local else await self._take_portion(name, window.minute, written)
        if taken is None:
            # Without PostgreSQL, the process grants the whole rest of the minute.
            window.is_local, window.left, window.taken = True, limit - window.taken, limit
            return
        window.left = max(0, min(portion, limit - (taken - portion)))
        window.taken = taken

    async def _take_portion(self, name: str, minute: int, portion: int) -> int | None:
        """Return how many requests all processes have taken, with this portion; None if PostgreSQL is late.

        A late query is not cancelled: that would take as long as its result.
        """
        if self._is_local():
            return None
        task = asyncio.create_task(self._write_portion(name, minute, portion))
        await asyncio.wait([task], timeout=self._wait_seconds)
        if not task.done():
            self._late.add(task)
            task.add_done_callback(self._discard_late)
            self._count_locally("no answer in time")
            return None
        try:
            taken = task.result()
        except ToolscriptError as error:
            self._count_locally(error.message)
            return None
        if self._local_since is not None:
            self._local_since = None
            logger.info("processes share the request count again", extra={"part": "request_budget"})
        return taken

    async def _write_portion(self, name: str, minute: int, portion: int) -> int:
        async with connection(self._pool) as conn:
            row = await (await conn.execute(_TAKE, (name, minute, portion))).fetchone()
        return cast("int", row[0]) if row else portion

    def _discard_late(self, task: asyncio.Task[int]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()

    def _is_local(self) -> bool:
        since = self._local_since
        return bool(self._late) or (since is not None and 0 <= self._now() - since < LOCAL_SECONDS)

    def _count_locally(self, reason: str) -> None:
        if self._local_since is None:
            facts = {"part": "request_budget", "reason": reason}
            logger.warning("each process counts requests on its own", extra=facts)
        self._local_since = self._now()

    async def _delete_before(self, minute: int) -> None:
        try:
            for _ in range(MAX_BATCHES):
                async with connection(self._pool) as conn:
                    if (await conn.execute(_DELETE, (minute, BATCH))).rowcount < BATCH:
                        return
        except ToolscriptError as error:
            logger.debug(
                "old minutes are not deleted yet", extra={"part": "request_budget", "reason": error.message}
            )

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _is_new(client: Tenant | Anonymous, window: _Window) -> bool:
    return isinstance(client, Anonymous) and not window.used and not window.taken
