"""Wrong admin tokens: each is counted, an address is logged once a minute, and many are answered late."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

WINDOW_SECONDS = 60
# So many of an address in a minute are mistakes; an answer to a further one takes this long.
MISTAKES, SLOW_SECONDS = 5, 1.0
MAX_ADDRESSES = 10_000

logger = logging.getLogger(__name__)


def _ignore() -> None: ...


@dataclass
class AdminGuesses:
    """The wait of a guess holds its place, so that an address has no more answers than places."""

    now: Callable[[], float] = time.monotonic
    on_guess: Callable[[], None] = _ignore
    slow_seconds: float = SLOW_SECONDS
    _window: int = -1
    _counts: Counter[str] = field(default_factory=Counter)

    async def note(self, address: str) -> None:
        self.on_guess()
        window = int(self.now() // WINDOW_SECONDS)
        if window != self._window or len(self._counts) >= MAX_ADDRESSES:
            self._window = window
            self._counts.clear()
        self._counts[address] += 1
        if self._counts[address] == 1:
            logger.warning("a wrong admin token", extra={"part": "access", "client": address})
        if self._counts[address] > MISTAKES:
            await asyncio.sleep(self.slow_seconds)
