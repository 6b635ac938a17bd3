"""Limits of uploads: how slow a client may be, and how many uploads run at once."""

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
    """Timeouts for a client. `min_bytes` per second apply after `patience_seconds` of waiting in total."""

    idle_seconds: float = 60.0
    patience_seconds: float = 60.0
    min_bytes: int = 1024
    whole_seconds: float = 3600.0


DEFAULT_TIMEOUTS = UploadTimeouts()


class TimedBody:
    """A request body with timeouts: a client may be slow, but not idle or endless. Our own delays do not count."""

    def __init__(self, received: AsyncIterator[bytes], pace: UploadTimeouts | None = None) -> None:
        self._received = received
        self._pace = pace or DEFAULT_TIMEOUTS
        self._began = monotonic()
        self._waited = 0.0
        self._bytes = 0
        self.gave_up = False

    async def pieces(self) -> AsyncIterator[bytes]:
        while (block := await self._next()) is not None:
            self._bytes += len(block)
            yield block
            # A block that has arrived already does not await: yield to the event loop here.
            await asyncio.sleep(0)

    async def _next(self) -> bytes | None:
        started = monotonic()
        remaining = self._pace.whole_seconds - (started - self._began)
        slack = self._slack()
        with suppress(StopAsyncIteration):
            try:
                async with asyncio.timeout(max(0.0, min(remaining, slack, self._pace.idle_seconds))):
                    return await anext(self._received)
            except TimeoutError:
                self.gave_up = True
                raise self._refusal(remaining, slack) from None
            finally:
                self._waited += monotonic() - started
        return None

    def _slack(self) -> float:
        """Return how long to wait before the average speed falls below the minimum."""
        return self._pace.patience_seconds + self._bytes / self._pace.min_bytes - self._waited

    def _refusal(self, remaining: float, slack: float) -> InvalidRequest:
        pace = self._pace
        if remaining <= min(slack, pace.idle_seconds):
            return InvalidRequest(f"a request may take {pace.whole_seconds:g} seconds", hint=SLOW_HINT)
        if slack < pace.idle_seconds:
            return InvalidRequest(f"the body arrived at less than {pace.min_bytes} bytes a second", hint=SLOW_HINT)
        return InvalidRequest(f"nothing was sent for {pace.idle_seconds:g} seconds", hint=SLOW_HINT)


@dataclass
class _TenantSlots:
    """The slots of one tenant, and the number of uploads that hold or wait for one."""

    slots: asyncio.Semaphore
    users: int = 0


class UploadSlots:
    """Upload slots of one process. The body of a waiting upload is not read, and no tenant can take all slots."""

    def __init__(self, maximum: int, max_per_tenant: int, wait_seconds: float = WAIT_SECONDS) -> None:
        self._max_per_tenant = max_per_tenant
        self._wait_seconds = wait_seconds
        self._all = asyncio.Semaphore(maximum)
        self._tenants: dict[Tenant, _TenantSlots] = {}

    @property
    def active_tenants(self) -> int:
        return len(self._tenants)

    @asynccontextmanager
    async def turn(self, tenant: Tenant) -> AsyncIterator[None]:
        """Take a slot of the tenant, then one of all: waiting for the tenant's slots blocks no other tenant."""
        tenant_slots = self._tenants.setdefault(tenant, _TenantSlots(asyncio.Semaphore(self._max_per_tenant)))
        tenant_slots.users += 1
        details = {"retry_after_seconds": RETRY_AFTER_SECONDS}
        tenant_busy = TooManyRequests("the tenant has too many uploads running", hint=BUSY_HINT, details=details)
        all_busy = Unavailable("too many uploads are running", hint=BUSY_HINT, details=details)
        try:
            async with self._slot(tenant_slots.slots, tenant_busy), self._slot(self._all, all_busy):
                yield
        finally:
            tenant_slots.users -= 1
            if not tenant_slots.users:
                del self._tenants[tenant]

    @asynccontextmanager
    async def _slot(self, slots: asyncio.Semaphore, too_late: ToolscriptError) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._wait_seconds):
                await slots.acquire()
        except TimeoutError:
            raise too_late from None
        try:
            yield
        finally:
            slots.release()
