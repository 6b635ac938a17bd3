"""The keys in use: read when they are due, by one request for all, and kept while their issuer is away."""

import asyncio
import logging
import math
import time
from collections.abc import Callable

from toolscript.adapters.jwt_tokens.key_sets import KeySet, read_key_set
from toolscript.adapters.jwt_tokens.key_sources import KeySource
from toolscript.errors import Unavailable

# How long known keys stay in use when nobody can say whether they still hold.
LONGEST_SECONDS = 24 * 3600.0
# Without any key nobody is answered, and so its issuer is asked more often than otherwise.
LONGEST_PAUSE_WITHOUT_KEYS = 2.0
SHORTEST_PAUSE = 1.0
HINT = "try again; whoever runs this service finds the key set named by TOOLSCRIPT_JWT_KEYS"

logger = logging.getLogger(__name__)


class KeyRing:
    """`now` is a clock that never goes back."""

    def __init__(self, source: KeySource, now: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._now = now
        self._data = b""
        self._keys: KeySet | None = None
        self._read_at = self._looked_at = self._failed_at = -math.inf
        self._failure = ""
        self._reading: asyncio.Task[None] | None = None

    async def keys(self) -> KeySet:
        """Those in force. Unavailable when there have never been any, or not for too long."""
        overdue = self._now() - self._read_at - self._source.fresh_seconds
        if overdue >= 0 and self._may_try():
            reading = self._read_once()
            # Where many ask, nobody waits; nor for an issuer that was away a moment ago, while there are keys.
            if self._known() is None or (overdue >= self._source.grace_seconds and not self._failure):
                await asyncio.shield(reading)
        known = self._known()
        if known is None:
            raise Unavailable(self._failure, hint=HINT)
        return known

    async def look_again(self) -> KeySet:
        """For a token whose key is not there: it may be new. Whoever sends nonsense cannot ask for this often."""
        if self._now() - self._looked_at >= self._source.pause_seconds:
            self._looked_at = self._now()
            await asyncio.shield(self._read_once())
        elif self._reading is not None and not self._reading.done():
            await asyncio.shield(self._reading)
        return await self.keys()

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def _known(self) -> KeySet | None:
        return self._keys if self._now() - self._read_at < LONGEST_SECONDS else None

    def _may_try(self) -> bool:
        pause = max(self._source.pause_seconds, SHORTEST_PAUSE)
        if self._known() is None:
            pause = min(pause, LONGEST_PAUSE_WITHOUT_KEYS)
        return not self._failure or self._now() - self._failed_at >= pause

    def _read_once(self) -> asyncio.Task[None]:
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        return self._reading

    async def _read(self) -> None:
        try:
            self._take(await self._source.read())
        except Unavailable as error:
            if not self._failure:
                logger.warning(
                    "keys of tokens cannot be read", extra={"part": "jwt_keys", "reason": error.message}
                )
            self._failure, self._failed_at = error.message, self._now()

    def _take(self, data: bytes) -> None:
        if self._keys is None or data != self._data:
            self._keys, self._data = read_key_set(data), data
            if self._keys.private:
                reason = f"{self._keys.private} private: whoever can read them can sign; left out, replace them"
                logger.warning("a key set shows private keys", extra={"part": "jwt_keys", "reason": reason})
        if self._failure:
            logger.info("keys of tokens are read again", extra={"part": "jwt_keys"})
        self._failure, self._read_at = "", self._now()
