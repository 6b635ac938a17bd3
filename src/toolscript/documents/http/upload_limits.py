"""Limits of uploads: how slow a sender may be, and how many uploads run at once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from time import monotonic

from toolscript.core.auth.model import Tenant
from toolscript.core.errors import InvalidRequest, ToolscriptError, TooManyRequests, Unavailable

SLOW_HINT = "send the rest in another request"
WAIT_SECONDS = 30.0
RETRY_AFTER_SECONDS = 10
BUSY_HINT = "try again when one of them has ended"


@dataclass(frozen=True)
class UploadTimeouts:
    """What a sender is waited for. `min_bytes` a second count from `patience_seconds` on, all waits together."""

    idle_seconds: float = 60.0
    patience_seconds: float = 60.0
    min_bytes: int = 1024
    whole_seconds: float = 3600.0


DEFAULT_TIMEOUTS = UploadTimeouts()


class TimedBody:
    """A sender may be slow, but neither silent nor at it for ever. How slow we are is not held against it."""

    def __init__(self, received: AsyncIterator[bytes], pace: UploadTimeouts | None = None) -> None:
        self._received = received
        self._pace = pace or DEFAULT_TIMEOUTS
        self._began = monotonic()
        self._waited = 0.0
        self._bytes = 0
        self.gave_up = False

    async def pieces(self) -> AsyncIterator[bytes]:
        while (piece := await self._next()) is not None:
            self._bytes += len(piece)
            yield piece
            # A piece that is there already is no wait, and then others would never have their turn.
            await asyncio.sleep(0)

    async def _next(self) -> bytes | None:
        asked = monotonic()
        left = self._pace.whole_seconds - (asked - self._began)
        slack = self._slack()
        with suppress(StopAsyncIteration):
            try:
                async with asyncio.timeout(max(0.0, min(left, slack, self._pace.idle_seconds))):
                    return await anext(self._received)
            except TimeoutError:
                self.gave_up = True
                raise self._refusal(left, slack) from None
            finally:
                self._waited += monotonic() - asked
        return None

    def _slack(self) -> float:
        """How long it can be waited for until all that has come has come too slowly."""
        return self._pace.patience_seconds + self._bytes / self._pace.min_bytes - self._waited

    def _refusal(self, left: float, slack: float) -> InvalidRequest:
        pace = self._pace
        if left <= min(slack, pace.idle_seconds):
            return InvalidRequest(f"a request may take {pace.whole_seconds:g} seconds", hint=SLOW_HINT)
        if slack < pace.idle_seconds:
            return InvalidRequest(f"it came at less than {pace.min_bytes} bytes a second", hint=SLOW_HINT)
        return InvalidRequest(f"nothing was sent for {pace.idle_seconds:g} seconds", hint=SLOW_HINT)


@dataclass
class _Few:
    """The places of one tenant, and how many want one or have it."""

    places: asyncio.Semaphore
    users: int = 0


class UploadSlots:
    """Of one process. Of whoever waits nothing is read, and no tenant takes the places of all others."""

    def __init__(self, maximum: int, max_of_one: int, wait_seconds: float = WAIT_SECONDS) -> None:
        self._max_of_one = max_of_one
        self._wait_seconds = wait_seconds
        self._all = asyncio.Semaphore(maximum)
        self._tenants: dict[Tenant, _Few] = {}

    @property
    def tenants_remembered(self) -> int:
        return len(self._tenants)

    @asynccontextmanager
    async def turn(self, tenant: Tenant) -> AsyncIterator[None]:
        """The tenant's own places come first: whoever waits for them keeps nobody else waiting."""
        few = self._tenants.setdefault(tenant, _Few(asyncio.Semaphore(self._max_of_one)))
        few.users += 1
        details = {"retry_after_seconds": RETRY_AFTER_SECONDS}
        of_one = TooManyRequests("the tenant puts too much at once already", hint=BUSY_HINT, details=details)
        of_all = Unavailable("too many put documents at this moment", hint=BUSY_HINT, details=details)
        try:
            async with self._place(few.places, of_one), self._place(self._all, of_all):
                yield
        finally:
            few.users -= 1
            if not few.users:
                del self._tenants[tenant]

    @asynccontextmanager
    async def _place(self, places: asyncio.Semaphore, too_late: ToolscriptError) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._wait_seconds):
                await places.acquire()
        except TimeoutError:
            raise too_late from None
        try:
            yield
        finally:
            places.release()
