"""How many may put documents at once: each of them holds a line, a batch and its vectors."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from toolscript.errors import ToolscriptError, TooManyRequests, Unavailable
from toolscript.model.tenancy import Tenant

WAIT_SECONDS = 30.0
RETRY_AFTER_SECONDS = 10
HINT = "try again when one of them has ended"


@dataclass
class _Few:
    """The places of one tenant, and how many want one or have it."""

    places: asyncio.Semaphore
    users: int = 0


class PutTurns:
    """Of one process. Of whoever waits nothing is read, and no tenant takes the places of all others."""

    def __init__(self, most: int, most_of_one: int, wait_seconds: float = WAIT_SECONDS) -> None:
        self._most_of_one = most_of_one
        self._wait_seconds = wait_seconds
        self._all = asyncio.Semaphore(most)
        self._tenants: dict[Tenant, _Few] = {}

    @property
    def tenants_remembered(self) -> int:
        return len(self._tenants)

    @asynccontextmanager
    async def turn(self, tenant: Tenant) -> AsyncIterator[None]:
        """The tenant's own places come first: whoever waits for them keeps nobody else waiting."""
        few = self._tenants.setdefault(tenant, _Few(asyncio.Semaphore(self._most_of_one)))
        few.users += 1
        details = {"retry_after_seconds": RETRY_AFTER_SECONDS}
        of_one = TooManyRequests("the tenant puts too much at once already", hint=HINT, details=details)
        of_all = Unavailable("too many put documents at this moment", hint=HINT, details=details)
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
