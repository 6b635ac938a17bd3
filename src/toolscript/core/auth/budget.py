"""Requests of a minute, counted by all processes together.

A process takes them in portions, a tenth of the plan and at most half of what is left, and hands them out itself.
So most requests wait for nobody, and portions are small when little is left for anyone.

A stranger's first request is told to nobody before it asks again: addresses cost nothing, and a flood of them that
ask once each is not to become a flood of writes. Those that a minute is too full for are counted in crowds.
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
# How long nobody asks again after PostgreSQL did not answer.
ALONE_SECONDS = 5.0
CLOSE_SECONDS = 1.0
WINDOW_SECONDS = 60
SHARE = 10
# Of strangers in a minute that a process tells apart.
MAX_ANONYMOUS = 100_000
CROWDS = 1_000
# Clocks of other machines may be behind.
KEPT_MINUTES = 2
BATCH, MAX_BATCHES = 1_000, 500

_TAKE = """
INSERT INTO documents.requests AS known (tenant, minute, taken) VALUES (%s, %s, %s)
ON CONFLICT (tenant, minute) DO UPDATE SET taken = known.taken + excluded.taken RETURNING taken
"""
_FORGET = """
DELETE FROM documents.requests WHERE (tenant, minute) IN (
    SELECT tenant, minute FROM documents.requests WHERE minute < %s ORDER BY minute LIMIT %s FOR UPDATE SKIP LOCKED
)
"""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Window:
    """One's minute. `taken` by all, as far as is known; `left` of our portions; `used` by this process.

    `untold` are those of our portions that the others do not know of.
    """

    minute: int
    taken: int = 0
    left: int = 0
    used: int = 0
    untold: int = 0
    alone: bool = False
    refilling: asyncio.Lock = field(default_factory=asyncio.Lock)


class PostgresRequestBudget:
    """Never fails a request: while PostgreSQL is away, each process counts for itself.

    `now` is the time of day, which all processes share.
    """

    def __init__(
        self, pool: Pool, now: Callable[[], float] = time.time, wait_seconds: float = WAIT_SECONDS
    ) -> None:
        self._pool = pool
        self._now = now
        self._wait_seconds = wait_seconds
        self._minute = -1
        self._windows: dict[str, _Window] = {}
        self._strangers = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._late: set[asyncio.Task[int]] = set()
        self._alone_since: float | None = None

    async def take(self, who: Tenant | Anonymous, plan: Plan) -> Budget:
        limit = plan.requests_per_minute
        if limit is None:
            return Budget()
        name, window = self._window(who)
        if not window.left:
            async with window.refilling:
                if not window.left and window.taken < limit:
                    await self._refill(name, window, limit, is_new_anonymous=_is_new(who, window))
        allowed = window.left > 0 and window.used < limit
        if allowed:
            window.left -= 1
            window.used += 1
        remaining = min(max(0, limit - window.taken) + window.left, limit - window.used)
        resets_in = WINDOW_SECONDS - int(self._now() % WINDOW_SECONDS)
        return Budget(limit, max(0, remaining), resets_in, allowed)

    async def close(self) -> None:
        """Ends what still runs. A database that hangs is not waited for."""
        running = [*self._tasks, *self._late]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=CLOSE_SECONDS)

    def _window(self, who: Tenant | Anonymous) -> tuple[str, _Window]:
        """Those of the minute that is over are dropped all at once."""
        minute = int(self._now() // WINDOW_SECONDS)
        # A clock that was set back a little does not begin the minute anew.
        if not self._minute - KEPT_MINUTES <= minute <= self._minute:
            self._minute, self._windows, self._strangers = minute, {}, 0
            if not self._is_alone():
                self._in_background(self._forget_before(minute - KEPT_MINUTES))
        name = who.name
        if isinstance(who, Anonymous) and name not in self._windows:
            self._strangers += 1
            if self._strangers > MAX_ANONYMOUS:
                name = Anonymous(f"*{crc32(name.encode()) % CROWDS}").name
        return name, self._windows.setdefault(name, _Window(self._minute))

    async def _refill(self, name: str, window: _Window, limit: int, *, is_new_anonymous: bool) -> None:
        if is_new_anonymous:
            window.left = window.untold = 1
            return
        portion = max(1, min(limit // SHARE, (limit - window.taken) // 2))
        told, window.untold = portion + window.untold, 0
        taken = None if window.alone else await self._take_portion(name, window.minute, told)
        if taken is None:
            # What is not known to be taken by others is ours until the minute ends.
            window.alone, window.left, window.taken = True, limit - window.taken, limit
            return
        window.left = max(0, min(portion, limit - (taken - portion)))
        window.taken = taken

    async def _take_portion(self, name: str, minute: int, portion: int) -> int | None:
        """How many all have taken with this portion; None when PostgreSQL does not answer soon.

        The question is not called off when it is late: that would take as long as the answer.
        """
        if self._is_alone():
            return None
        task = asyncio.create_task(self._ask(name, minute, portion))
        await asyncio.wait([task], timeout=self._wait_seconds)
        if not task.done():
            self._late.add(task)
            task.add_done_callback(self._arrived_late)
            self._go_alone("no answer in time")
            return None
        try:
            taken = task.result()
        except ToolscriptError as error:
            self._go_alone(error.message)
            return None
        if self._alone_since is not None:
            self._alone_since = None
            logger.info("requests are counted by all processes again", extra={"part": "request_budget"})
        return taken

    async def _ask(self, name: str, minute: int, portion: int) -> int:
        async with connection(self._pool) as conn:
            row = await (await conn.execute(_TAKE, (name, minute, portion))).fetchone()
        return cast("int", row[0]) if row else portion

    def _arrived_late(self, task: asyncio.Task[int]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()

    def _is_alone(self) -> bool:
        since = self._alone_since
        return bool(self._late) or (since is not None and 0 <= self._now() - since < ALONE_SECONDS)

    def _go_alone(self, reason: str) -> None:
        if self._alone_since is None:
            facts = {"part": "request_budget", "reason": reason}
            logger.warning("each process counts requests for itself", extra=facts)
        self._alone_since = self._now()

    async def _forget_before(self, minute: int) -> None:
        try:
            for _ in range(MAX_BATCHES):
                async with connection(self._pool) as conn:
                    if (await conn.execute(_FORGET, (minute, BATCH))).rowcount < BATCH:
                        return
        except ToolscriptError as error:
            logger.debug("old minutes stay for now", extra={"part": "request_budget", "reason": error.message})

    def _in_background(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _is_new(who: Tenant | Anonymous, window: _Window) -> bool:
    return isinstance(who, Anonymous) and not window.used and not window.taken
